#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""loads_judge.py - what a recording of the workload loads says, and what was true.

	loads_judge.py one JSON OUTPUT
		JSON: the report; OUTPUT: what the workload said some time before it was recorded, when that
		began, 4 s later, when it ended, and some time after. Prints
		OVERHEAD <seen from outside> <as heaptap states it> <steps>      in percent, after the first 4 s
		INTERVAL <kind> <site> <low> <high> <truth> <few|many>
		BROKEN <why>                                                     it cannot be judged
	loads_judge.py all FILE...
		Such lines, each behind "<shape> <limit> <load>", of many recordings: tables in lines "# ...", and
		HELD <intervals> <that hold> <least percent> <most percent>
		OVER <shape> <limit> <load> <recordings> <median from outside> <largest as stated>

How much of the intervals must hold: 93 to 97 %, and of few what a good program has but once in thousands of
times. They count half, for those of one recording hang together.

What was allocated is known for the time in which heaptap watched, from the hits that it counted: all units
are alike, so that all sites have the same part of what they allocated. Where it watched all the time
the hits are the program's own count.
"""
import json
import math
import re
import statistics
import sys

SETTLED = re.compile(r"^cost: .* ([0-9.]+) % of its CPU time after the first 4 s")
OVERALL = re.compile(r"^cost: ([0-9.]+) % of its CPU time")
MANY = 1500  # intervals
FEW = 4  # samples, below which a report marks a row as weak


def read_output(path):
    marks = []
    for line in open(path):
        word = line.split()
        if word and word[0] == "AT":
            marks.append({"cpu": int(word[1]), "work": int(word[2]), "cnt": int(word[3]), "site": {}})
        elif word and word[0] == "SITE":
            marks[-1]["site"][word[1]] = (int(word[2]), int(word[3]))
    return marks


def cpu_per_work(*stretches):
    cpu, work = (sum(end[key] - begin[key] for begin, end in stretches) for key in ("cpu", "work"))
    return cpu / work


def stated_overhead(comments):
    for pattern in SETTLED, OVERALL:
        for text in comments:
            found = pattern.match(text)
            if found:
                return float(found.group(1))
    return math.nan


def ledger(comments, name):
    for text in comments:
        found = re.search(r"^counters:.* %s=(\d+)" % name, text)
        if found:
            return int(found.group(1))
    return None


def site_of(row):
    for frame in row["frames"]:
        if frame["function"].startswith("site_"):
            return frame["function"]
    return None


def put_interval(kind, name, row, key, truth):
    low, high = row[key + "_low"], row[key + "_high"]
    if low is None:
        return
    # Of allocations the report has no number of samples: from the width, as of equal weights.
    if kind == "inuse":
        cnt = row["sample_cnt"]
    else:
        sd = (high - low) / 4
        cnt = (row[key] / sd) ** 2 if sd > 0 else math.inf
    print("INTERVAL", kind, name, low, high, round(truth), "few" if cnt < FEW else "many")


def one(report_path, output_path):
    report, marks = json.load(open(report_path)), read_output(output_path)
    alone, begin, settled, end, after = marks
    comments = report["comments"]
    hits, cnt = ledger(comments, "alloc_hits"), end["cnt"] - begin["cnt"]
    part = hits / cnt
    steps = [c for c in comments if c.startswith("budget: ")]
    rows = {}

    outside = 1 - cpu_per_work((alone, begin), (end, after)) / cpu_per_work((settled, end))
    print("OVERHEAD %.2f %.2f %d" % (100 * outside, stated_overhead(comments), len(steps)))
    if not steps and hits != cnt:
        print("BROKEN", "%d hits of %d allocations" % (hits, cnt))
    for row in report["rows"]:
        site = site_of(row)
        if not site:
            continue
        if site in rows:
            print("BROKEN", "two rows of", site)
        rows[site] = row
    truth = {s: end["site"][s][0] - begin["site"][s][0] for s in end["site"]}
    for site, row in rows.items():
        put_interval("alloc", site, row, "alloc_bytes", part * truth[site])
    put_interval("alloc", "total", report["total"], "alloc_bytes", part * sum(truth.values()))
    # "since": of what was allocated since a moment, at which nobody asked the workload.
    if report["inuse"] != "known":
        return
    for site, row in rows.items():
        put_interval("inuse", site, row, "inuse_bytes", end["site"][site][1])
    put_interval("inuse", "total", report["total"], "inuse_bytes", sum(v[1] for v in end["site"].values()))


def put_held(held):
    for what, (cnt, hits) in sorted(held.items()):
        print("# %-28s %6d intervals, %5.1f %% hold" % (what, cnt, 100 * hits / cnt))
    cnt, hits = held.get("all", (0, 0))
    spread = 100 * 4 * math.sqrt(0.95 * 0.05 / max(cnt / 2, 1))
    print("HELD %d %d %.1f %.1f" % (cnt, hits, *((93, 97) if cnt >= MANY else (95 - spread, 100))))


def all_of(paths):
    held, over, broken = {}, {}, []
    for path in paths:
        for line in open(path):
            word = line.split()
            cell, word = tuple(word[:3]), word[3:]
            if word[0] == "OVERHEAD":
                over.setdefault(cell, []).append((float(word[1]), float(word[2])))
            elif word[0] == "INTERVAL":
                low, high, truth = (float(w) for w in word[3:6])
                hit = low <= truth <= high
                for what in ("all", word[1], word[1] + " of " + word[2], word[1] + " with " + word[6] + " samples",
                             "in " + cell[0], "at " + cell[1]):
                    cnt, hits = held.get(what, (0, 0))
                    held[what] = (cnt + 1, hits + hit)
            else:
                broken.append(line)
    put_held(held)
    for cell, seen in sorted(over.items()):
        print("OVER", *cell, len(seen), "%.1f %.1f" % (
            statistics.median(s[0] for s in seen), max(s[1] for s in seen)))
        print("#   from outside:", *sorted(s[0] for s in seen))
        print("#   as stated:   ", *sorted(s[1] for s in seen))
    for line in broken:
        print("BROKEN", line.strip())


if sys.argv[1] == "one":
    one(sys.argv[2], sys.argv[3])
else:
    all_of(sys.argv[2:])

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""metrics_compare.py - a metrics page against what workloads/scope_grow.c says that it holds.

  metrics_compare.py [--sums] PAGE WORKLOAD_OUTPUT PID SERIES_MAX [EARLIER_PAGE]

Prints one line for each difference. The sum over the series of scopes must be the process; the
SERIES_MAX largest pairs of scope and thread pool must be there with their bytes, the rest must be in
(other). No counter may be less than it was in EARLIER_PAGE, and no scope that had a series there may have
none. --sums: which pairs have series, and what they have allocated, is not compared (those that were the largest
on the first page may not be any more).
"""
import re
import sys

arguments = [a for a in sys.argv[1:] if a != "--sums"]
only_sums = len(arguments) < len(sys.argv) - 1
page, output, pid, series_max = arguments[:4]
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
OTHER = ("(other)", "(other)")


def read(path):
    """{name: {labels: value}}, the labels as a sorted tuple"""
    families = {}
    for line in open(path, encoding="utf-8"):
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line.rstrip("\n"))
        if not match:
            print(f"no sample: {line!r}")
            continue
        labels = tuple(sorted(LABEL.findall(match[2] or "")))
        family = families.setdefault(match[1], {})
        if labels in family:
            print(f"twice: {line!r}")
        family[labels] = float(match[3])
    return families


def of_process(name):
    values = [v for k, v in now.get(name, {}).items() if ("pid", pid) in k]
    if len(values) != 1:
        print(f"{name} of {pid}: {len(values)} samples")
    return values[0] if values else None


def of_scopes(name):
    return {(dict(k)["scope"], dict(k)["thread"]): v
            for k, v in now.get(name, {}).items() if ("pid", pid) in k}


def differs(what, has, must):
    if has != must:
        print(f"{what}: {has}, must be {must}")


now = read(page)
holds = {}
for line in open(output, encoding="utf-8"):
    if line.startswith("READY"):
        holds = {}
    elif line.startswith("HOLDS "):
        inuse, objects, alloc, thread, scope = line.rstrip("\n").split(" ", 5)[1:]
        holds[scope, thread] = (int(inuse), int(objects), int(alloc))

want = sum(h[0] for h in holds.values())
differs("in use", of_process("heaptap_inuse_bytes"), want)
differs("objects in use", of_process("heaptap_inuse_objects"), sum(h[1] for h in holds.values()))
if not only_sums:
    differs("allocated", of_process("heaptap_alloc_bytes_total"), sum(h[2] for h in holds.values()))
for name, column in (("heaptap_scope_inuse_bytes", 0), ("heaptap_scope_inuse_objects", 1),
                     ("heaptap_scope_alloc_bytes_total", 2)):
    series = of_scopes(name)
    if int(series_max):
        process = of_process(name.replace("_scope", ""))
        if abs(sum(series.values()) - process) > 0.01:
            print(f"sum over {name}: {sum(series.values())}, the process has {process}")
    if len(series) > int(series_max) + 1:
        print(f"{name}: {len(series)} series")
    if only_sums:
        continue
    ranked = sorted(holds, key=lambda h: (-holds[h][0], -holds[h][2]))[:int(series_max)]
    for pair in ranked:
        differs(f"{name} of {pair}", series.get(pair), holds[pair][column])
    rest = [h[column] for pair, h in holds.items() if pair not in ranked]
    if rest and int(series_max):
        differs(f"{name} of the rest", series.get(OTHER), sum(rest))

if len(arguments) > 4:
    before, compared = read(arguments[4]), 0
    for name, family in before.items():
        if name.startswith("heaptap_scope_"):
            for labels in family.keys() - now.get(name, {}).keys():
                print(f"{name}{labels} is gone")
        if not name.endswith("_total"):
            continue
        for labels, value in family.items():
            compared += 1
            if now.get(name, {}).get(labels, value) < value:
                print(f"{name}{labels} went back from {value} to {now[name][labels]}")
    if compared < 20:
        print(f"only {compared} counters in the earlier page")

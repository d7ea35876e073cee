#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scope_compare.py - what `heaptap report` says of scopes against what a workload says of itself.

  scope_compare.py [--sampled] [--sums] [--pid PID] HEAPTAP PROFILE WORKLOAD_OUTPUT

WORKLOAD_OUTPUT has the lines of workloads/scope_ledger.h. Prints one line for each difference.
--sampled: the numbers need only be in their 95 % intervals, two of fifty may be out.
--sums: the scopes' sum alone is compared, not which scope has what.
--pid: of a profile with several processes, this one's; its lines end at its "PID" line.
"""
import json
import subprocess
import sys

options = [a for a in sys.argv[1:] if a.startswith("--") and a != "--pid"]
arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
pid = None
if "--pid" in sys.argv:
    pid = sys.argv[sys.argv.index("--pid") + 1]
    arguments.remove(pid)
heaptap, profile, output = arguments
is_sampled, only_sums = "--sampled" in options, "--sums" in options
misses = checked = 0


def report(by):
    command = [heaptap, "report", "--by", by, "--format", "json", "-n", "0", profile]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def differs(what, has, must):
    print(f"{what}: {has}, must be {must}")


def compare(what, row, key, must):
    global misses, checked
    has = row[key] if row else 0
    checked += 1
    if not is_sampled:
        if has != must:
            differs(f"{what}: {key}", has, must)
    elif not (row["inuse_bytes_low"] if row else 0) <= must <= (
            row["inuse_bytes_high"] if row else 1 << 20):
        misses += 1
        print(f"# {what}: {has}, must be {must}: outside of its interval")


by_scope = report("scope")
scopes = {row["path"]: row for row in by_scope["rows"]}
total = by_scope["total"]
instances = {row["task"]: row for row in report("instance")["rows"]}
labels = {}
expected = set()
lines = open(output, encoding="utf-8", errors="replace").read().splitlines()
for line in lines:
    word = line.split(" ")[0]
    if word == "EXPECT_SCOPE" and not only_sums:
        _, inclusive, exclusive, objects, path = line.split(" ", 4)
        expected.add(path)
        row = scopes.get(path)
        compare(f"scope {path}", row, "inuse_bytes", int(inclusive))
        if not is_sampled:
            compare(f"scope {path}", row, "exclusive_inuse_bytes", int(exclusive))
            compare(f"scope {path}", row, "exclusive_inuse_objects", int(objects))
    elif word == "EXPECT_INSTANCE":
        (_, number, state, bytes_, objects, alloc_bytes, alloc_objects, path) = line.split(" ", 7)
        row = instances.pop(number, None)
        if not row and not int(objects):
            continue  # forgotten, or not among the listed ones
        compare(f"instance {number}", row, "inuse_bytes", int(bytes_))
        if is_sampled or not row:
            continue
        compare(f"instance {number}", row, "inuse_objects", int(objects))
        if row["scope"] != path:
            differs(f"instance {number}: scope", row["scope"], path)
        if row["state"] is not None and row["state"] != state:
            differs(f"instance {number}: state", row["state"], state)
        if row["alloc_bytes"] is not None and alloc_bytes != "-":
            compare(f"instance {number}", row, "alloc_bytes", int(alloc_bytes))
            compare(f"instance {number}", row, "alloc_objects", int(alloc_objects))
    elif word == "EXPECT_LABEL":
        _, key, bytes_, value = line.split(" ", 3)
        if key not in labels:
            labels[key] = {row["name"]: row for row in report(f"label:{key}")["rows"]}
        compare(f"label {key}={value}", labels[key].get(value), "inuse_bytes", int(bytes_))
    elif word == "EXPECT_SUM":
        _, bytes_, objects = line.split(" ")
        top = [row for row in scopes.values() if row["depth"] == 0]
        if sum(row["inuse_bytes"] for row in top) != total["inuse_bytes"]:
            differs("sum over the scopes", sum(row["inuse_bytes"] for row in top),
                    total["inuse_bytes"])
        compare("total", total, "inuse_bytes", int(bytes_))
        if not is_sampled:
            compare("total", total, "inuse_objects", int(objects))
    elif word == "EXPECT_COUNTS":
        comments = report("scope")["comments"]
        for name, must in zip(("overflows", "underflows", "truncations"), line.split(" ")[1:]):
            found = [c.split()[2] for c in comments if c.startswith(f"ledger: scope_{name} ")]
            if int(found[0] if found else 0) != int(must):
                differs(f"ledger: scope_{name}", found, must)
if not only_sums:
    for path, row in scopes.items():
        if path not in expected and row["inuse_bytes"]:
            differs(f"scope {path}", row["inuse_bytes"], "none")
    for number, row in instances.items():
        if number is not None and row["inuse_bytes"]:
            differs(f"instance {number}", row["inuse_bytes"], "none")
if misses > max(1, checked // 25):
    differs("numbers outside of their intervals", misses, f"few of {checked}")
if not checked:
    print("the workload expects nothing")

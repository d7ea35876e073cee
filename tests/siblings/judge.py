#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""judge.py TRUTH WANT FILE FOLDER - is heaptap's answer honest?

FOLDER holds report.json, report.txt, check.txt and check.status of one recording. TRUTH is what is held in bytes, -1 if
nobody knows. Prints one line for people; the status is 1 when the answer is wrong:
  seen     at least 95 % of the truth is in use, or in the interval that the report gives, and not much more than it
  named    less was seen, or it may be; then nothing says "exact", "no losses" or "kept", and FILE is named
WANT is what it must be (seen, named), or any: either, but honest. "own" is like named, for a runtime's own heap: FILE is a
word of the sentence about it.
"""
import json
import re
import sys

truth, want, name, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


def read(file):
    try:
        with open(folder + "/" + file, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


text = " ".join((read("report.txt") + " " + read("notes.txt") + " " + read("heaptap.err")).split())
head = " ".join(read("report.txt").split())
status = read("check.status").strip()
faults = []
report = json.loads(read("report.json") or "{}")
total = report.get("total", {})
is_known = report.get("inuse") != "unknown" and report.get("recording", {}).get("inuse") != "unknown" and "UNKNOWN" not in head
seen = total.get("inuse_bytes", 0)
high = total.get("inuse_bytes_high") or seen
# The interval is one of 95 %: what is asked hundreds of times gets twice of it.
is_whole = truth >= 0 and is_known and seen + 2 * max(high - seen, 0) >= 0.95 * truth
says = {"exact": "(exact)" in head, "no losses": "no losses" in text, "kept": status == "0" or re.search("^pass +in use", read("check.txt"), re.M) is not None}
is_told = re.search(r"[Nn]ot seen|not exact|UNKNOWN|cannot be said|unknown", text) is not None
is_named = name == "-" or re.search(re.escape(name), text) is not None

if is_whole and seen > 1.25 * truth + (4 << 20):
    faults.append("more than the truth")
if not is_whole and is_known:
    faults += [f'says "{word}"' for word, said in says.items() if said]
if not is_whole and not is_told:
    faults.append("does not say that something is not seen")
if not is_whole and not is_named:
    faults.append(f"does not name {name}")
if want == "seen" and not is_whole:
    faults.append("must be seen")
if want == "own" and not is_named:
    faults.append(f"says nothing of {name}")
if not is_whole and truth >= 0 and is_known and "at least" not in head:
    faults.append('does not say "at least"')

words = [w for w, said in says.items() if said] + (["not seen"] if "Not seen" in head else []) + ([] if is_known else ["UNKNOWN"])
print(f"truth {truth / 1e6:.1f} MB | in use {seen / 1e6:.1f} MB | {', '.join(words) or 'nothing of it'} | check {status} | "
      f"{'; '.join(faults) or 'right'}")
sys.exit(1 if faults else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""same_text.py PID [BUT]: is the executable memory of a process what its files hold, byte by byte?

Every executable mapping of a file is compared with the file (through map_files, so deleted files
count too), but for those whose path has BUT in it. Prints the places that differ; status 1 if there are any.
"""
import sys

pid = int(sys.argv[1])
but = sys.argv[2] if len(sys.argv) > 2 else None
bad = compared = 0
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
    for line in maps:
        fields = line.split(None, 5)
        if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/") or but and but in fields[5]:
            continue
        start, end = (int(x, 16) for x in fields[0].split("-"))
        offset = int(fields[2], 16)
        mem.seek(start)
        there = mem.read(end - start)
        with open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb") as f:
            f.seek(offset)
            here = f.read(end - start)
        there = there[: len(here)]  # behind the end of the file there are zeros
        compared += len(here)
        if here == there:
            continue
        for i, (a, b) in enumerate(zip(here, there)):
            if a != b:
                bad += 1
                if bad <= 5:
                    print(f"{fields[5].strip()}+{offset + i:#x}: {b:02x}, in the file {a:02x}")
if not compared:
    print("no executable mapping of a file")
sys.exit(bool(bad) or not compared)

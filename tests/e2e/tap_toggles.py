#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tap_toggles.py PID SERVER N: N times has `heaptap serve` take its tap out of a process, and put it in again.

By SIGUSR1 and SIGUSR2, each when the bytes that the tap changes have become what they should: those of the file, or not.
The tap is in at the beginning and at the end. Says how many times it was, and how long one takes; status 1 if within 20 s
they do not become that, or the process ends.
"""
import os
import signal
import sys
import time

pid, server, times = (int(x) for x in sys.argv[1:])


def differences():
    """Address and byte of the file, of all that is not as in the files of the process."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/") or "memfd:" in fields[5]:
                continue
            start, end = (int(x, 16) for x in fields[0].split("-"))
            mem.seek(start)
            there = mem.read(end - start)
            with open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb") as f:
                f.seek(int(fields[2], 16))
                here = f.read(end - start)
            if there[: len(here)] != here:
                found += [(start + i, b) for i, (a, b) in enumerate(zip(there, here)) if a != b]
    return found


def become(mem, places, is_in):
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        if all((os.pread(mem, 1, addr)[0] != byte) == is_in for addr, byte in places):
            return
        time.sleep(0.001)
    sys.exit(f"time {done}: the tap is not {'in' if is_in else 'out'} within 20 s")


places = differences()
if not places:
    sys.exit("the tap is not in")
mem = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
begin = time.monotonic()
try:
    for done in range(times):
        os.kill(server, signal.SIGUSR1)
        become(mem, places, False)
        os.kill(server, signal.SIGUSR2)
        become(mem, places, True)
except (OSError, IndexError) as e:
    sys.exit(f"time {done}: the process is gone: {e}")
print(f"{times} times out and in, {(time.monotonic() - begin) / times * 1000:.0f} ms each")

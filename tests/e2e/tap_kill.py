#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tap_kill.py HEAPTAP PID FILE N: N times taps a process, and kills heaptap and its guardian while all its threads are stopped.

For the tap to be put in: the first time it also makes calls in one of them. A moment that was missed is waited for again,
three times as often as that. Says how often it was met; status 1 if never, or if the process ends.
"""
import os
import random
import subprocess
import sys
import time

heaptap, pid, file, times = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])


def is_stopped(stat):
    return os.pread(stat, 256, 0).rpartition(b") ")[2][:1] == b"t"


def guardian_of(parent):
    for child in open(f"/proc/{parent}/task/{parent}/children").read().split():
        if open(f"/proc/{child}/comm").read() == "heaptap-guard\n":
            return int(child)
    sys.exit("there is no guardian")


met = tried = 0
try:
    stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    while met < times and tried < 3 * times:
        tried += 1
        recorder = subprocess.Popen([heaptap, "record", "--tap", "-p", str(pid), "--force", "-q", "-n", "0", "-d", "1s", "-o", file],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 60  # an emulated machine takes its time
        while not is_stopped(stat) and time.monotonic() < limit and recorder.poll() is None:
            pass
        if time.monotonic() < limit and recorder.poll() is None:
            guardian = guardian_of(recorder.pid)
            if random.random() < 0.7:
                time.sleep(random.random() * 0.004)
            os.kill(guardian, 9)
            met += 1
        recorder.kill()
        recorder.wait()
        time.sleep(0.2)
        os.kill(pid, 0)
        is_stopped(stat)
except (OSError, IndexError) as e:
    sys.exit(f"the process is gone: {e}")
print(f"{met} of {tried} times")
sys.exit(not met)

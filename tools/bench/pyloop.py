# SPDX-License-Identifier: MIT
"""A Python program as a benchmark's target: "run N" on stdin -> ns of CPU time per turn."""
import sys
import time


def turn(i):
    words = [str(i * k) for k in range(40)]
    table = {w: len(w) for w in words}
    return ",".join(sorted(table)) + "." * (i % 300)


for line in sys.stdin:
    count = int(line.split()[1])
    start = time.thread_time_ns()
    for i in range(count):
        turn(i)
    print((time.thread_time_ns() - start) / count, flush=True)

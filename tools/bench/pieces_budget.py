# SPDX-License-Identifier: MIT
"""The overhead budget, kept: a program that does nothing but allocate, on two threads."""
import re
import statistics
import subprocess
import time

from benchlib import BUILD, CPUS, Skip
from profilers import HEAPTAP, Heaptap

LIMIT_PERCENT = 5
SETTLE_S = 2  # from the attachment on
WINDOW_S = 2  # over which the overhead is to stay below the limit
WATCH_S = 12


class Busy:
    """tests/e2e/workloads/busy on two CPUs; its progress is read from its output."""

    def __init__(self):
        self.log = BUILD / "busy.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([str(BUILD / "busy"), "2"], stdin=subprocess.PIPE,
                                            stdout=log)
        self.pid = self.process.pid

    def progress(self):
        """(seconds, CPU seconds, pairs) ten times a second."""
        found = []
        with open(self.log) as log:
            for line in log:
                words = line.split()
                if len(words) == 4 and words[0] == "AT" and line.endswith("\n"):
                    found.append((int(words[1]) / 1e9, int(words[2]) / 1e9, int(words[3])))
        return found

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def paces(progress, begin, end, seconds):
    """Pairs per CPU second, over each stretch of that length."""
    points = [p for p in progress if begin <= p[0] <= end]
    step = max(round(seconds * 10), 1)
    return [(b[2] - a[2]) / (b[1] - a[1]) for a, b in zip(points, points[step:]) if b[1] > a[1]]


def told(profile):
    """What heaptap says of it: (overhead after the first 4 s in percent, notes)."""
    out = subprocess.run([HEAPTAP, "report", "--notes", profile], capture_output=True, text=True, timeout=60)
    text = " ".join(out.stdout.split())
    settled = re.search(r"cost: .*?([0-9.]+) % of its CPU time after the first 4 s", text)
    return float(settled.group(1)) if settled else 100.0, text


def budget(bench):
    """The overhead of a tight loop under --max-overhead, as heaptap measures it and from outside."""
    if not (BUILD / "busy").exists():
        raise Skip("its program is not built")
    if len(CPUS) < 2:
        raise Skip("needs two CPUs")
    report = bench.report
    report.heading(f"malloc+free in a loop on 2 threads, --max-overhead {LIMIT_PERCENT}")
    target = Busy()
    recorder = None
    try:
        time.sleep(4)
        attach = time.monotonic()
        recorder = Heaptap(target.pid, "-n", "0", "--max-overhead", str(LIMIT_PERCENT))
        begin = time.monotonic()
        time.sleep(SETTLE_S + WATCH_S)
        end = time.monotonic()
        recorder.stop()
        settled, notes = told(recorder.profile)
        time.sleep(2)
        progress = target.progress()
    finally:
        if recorder:
            recorder.kill()
        target.close()
    alone = statistics.median(paces(progress, 0, attach, 1) + paces(progress, end + 0.5, end + 9, 1))
    within = [100 * (1 - p / alone)
              for p in paces(progress, begin + SETTLE_S, end, WINDOW_S)]
    slowed = [p for p in progress if p[0] > attach]
    hit = [b[0] for a, b in zip(slowed, slowed[1:])
           if b[1] > a[1] and (b[2] - a[2]) / (b[1] - a[1]) < 0.5 * alone and b[0] < begin + SETTLE_S]
    reaction = max(hit) - min(hit) + 0.1 if hit else 0
    report.values("slower, from outside", f"any {WINDOW_S} s after {SETTLE_S} s", within, "%")
    report.row("of its CPU time", "as heaptap says, after the first 4 s", settled, "%")
    report.row("slowed by more than half", "after the attachment", reaction, "s")
    median = statistics.median(within)
    report.bar("overhead of a tight loop, from outside", median, "%", f"<= {LIMIT_PERCENT} %",
               median <= LIMIT_PERCENT)
    report.bar("the same, as heaptap measures", settled, "%", f"<= {LIMIT_PERCENT} %",
               settled <= LIMIT_PERCENT)
    report.bar("kill switch: probes are out after", reaction, "s", "<= 0.5 s", reaction <= 0.5)
    says = "stopped recording" in notes and "in-use: UNKNOWN" in notes
    report.bar("the profile says what was given up", float(says), "", "yes", says)

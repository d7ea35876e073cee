# SPDX-License-Identifier: MIT
"""What a hit costs when many processes that use one library are followed, and when they are not.

Every group of processes has a copy of the C library of its own, so that probes of one group cost
the other nothing: a single followed process and one among many are compared in the same run. All
processes allocate all the time; the one of a group that is measured does so on command.
"""
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from benchlib import (BUILD, CPUS, HEAPTAP, PROFILER_CPU, Rounds, Skip, Target, spawn,
                      wait_for_text)
from pieces_cost import PAIRLOOP, per_slice

FOLLOWED = 30
NOT_FOLLOWED = 10
ALL = 300
SHARED_LIMIT = 1.4
ALL_LIMIT = 1.1
# A pair that nobody probes takes some 15 ns: more than this is a trap or part of one.
NOTHING_NS = 3
# The bar is nearer to what is measured than 15 rounds can tell: as many times the usual rounds.
BAR_ROUNDS = 4
# The processes of a shared event are put in order by what they hit, every second.
SETTLE_S = 3
# Allocations per second of the processes of a group that are not measured, all in all: more wake-ups
# of hundreds of processes than the CPUs can take would leave nothing for the one that is measured.
PACE_ALL = 6000


class Serve:
    """heaptap serve, that follows everything that runs this executable."""

    def __init__(self, exe, *options):
        if not os.access(HEAPTAP, os.X_OK):
            raise Skip(f"{HEAPTAP} is not built")
        log = BUILD / "serve.log"
        with open(log, "w") as err:
            self.process = spawn(PROFILER_CPU, [HEAPTAP, "serve", "--listen", "127.0.0.1:0",
                                                "--exe", f"^{exe}$", "--max-overhead", "off",
                                                "--max-overhead-host", "off", *options],
                                 stdout=subprocess.DEVNULL, stderr=err, stdin=subprocess.DEVNULL)
        try:
            line = wait_for_text(log, "heaptap: serving", self.process, 120)
        except Skip:
            self.close()
            raise
        self.url = re.search(r"http://[^/]*/", line).group(0)

    def ways(self):
        """{library: (way, processes)} of the C libraries that are probed."""
        with urllib.request.urlopen(self.url + "metrics", timeout=60) as page:
            text = page.read().decode()
        return {m[1]: (m[2], float(m[3])) for m in re.finditer(
            r'^heaptap_probed_processes\{file="([^"]*/libc\.so\.6)",id="\d+",way="(\w+)"\} (\S+)$',
            text, re.M)}

    def wait(self, library, way, count):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self.ways().get(str(library)) == (way, count):
                time.sleep(1)  # a move takes some steps after it is shown
                return
            time.sleep(0.2)
        raise Skip(f"the probes of {library} are not '{way}' for {count}: {self.ways()}")

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


class Groups:
    """Copies of the C library, and the processes that use them."""

    def __init__(self):
        self.top = Path(tempfile.mkdtemp(prefix="heaptap-many-"))
        self.targets = []
        maps = Path("/proc/self/maps").read_text()
        found = re.search(r"(/\S*/libc\.so\.6)$", maps, re.M)
        if not found:
            self.close()
            raise Skip("no libc.so.6 here")
        self.libc = found[1]
        self.followed_exe, self.other_exe = self.top / "followed", self.top / "other"
        for exe in (self.followed_exe, self.other_exe):
            shutil.copy(PAIRLOOP, exe)

    def library(self, group):
        (self.top / group).mkdir(exist_ok=True)
        library = self.top / group / "libc.so.6"
        if not library.exists():
            shutil.copy(self.libc, library)
        return library

    def start(self, group, exe, busy=0, cpu=CPUS[-1]):
        """One process to be measured, and others that allocate."""
        env = {"LD_LIBRARY_PATH": str(self.library(group).parent)}
        self.targets.append(Target([exe], env, cpu))
        measured = self.targets[-1]
        others = [Target([exe], env, CPUS[i % len(CPUS)]) for i in range(busy)]
        self.targets += others
        for other in others:
            pace = max(1, PACE_ALL // busy)
            other.process.stdin.write(f"pace 64 {pace} 100000\n".encode())
            other.process.stdin.flush()
        return measured

    def end(self):
        for target in self.targets:
            target.close()
        self.targets = []

    def close(self):
        self.end()
        shutil.rmtree(self.top)


def slices(bench, target):
    return per_slice(target, lambda n: f"run 64 1 {n}", bench.slice_s)


def ratio(bench, one, many, times=1):
    """Rounds of ns per pair, of a process that is alone and of one among many."""
    return Rounds().run(slices(bench, one), slices(bench, many), times * bench.rounds)


def ratios(rounds):
    return [b / a for a, b in zip(rounds.a, rounds.b)]


def report_ratio(report, what, rounds, note):
    report.values(what, "alone", rounds.a, "ns")
    report.values(what, "among them", rounds.b, "ns")
    report.values(what, "times", ratios(rounds), "", note)
    return statistics.median(ratios(rounds))


def settle(target):
    """Let it allocate for some time."""
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        target.ask("run 64 1 20000")


def floor(bench):
    """The same probes with programs that do nothing: the ns that the kernel itself takes more for a
    shared event."""
    report = bench.report
    target = Target([BUILD / "bench_event_floor", str(FOLLOWED)])
    try:
        target.read_line()
        measured = [[float(x) for x in target.ask("run 15000").split()]
                    for _ in range(bench.rounds)]
    except RuntimeError as why:
        raise Skip(str(why)) from why
    finally:
        target.end()
    own, event, last, apart, beside = ([max(m[i] - m[0], 0.01) for m in measured]
                                       for i in range(1, 6))
    what = "programs that do nothing"
    report.values(what, "alone", own, "ns", "a session link and an entry link")
    report.values(what, "shared, first", event, "ns", "an event's entry and return, and an entry")
    report.values(what, "shared, last", last, "ns")
    report.values(what, "links of its own", apart, "ns", "while the others share the event")
    report.values(what, "shared, beside that", beside, "ns")
    times = [b / a for a, b in zip(own, event)]
    report.values(what, "times", times, "", "first, to alone")
    added = [b - a for a, b in zip(own, event)]
    report.values(what, "shared, more", added, "ns", "two traps become three")
    return statistics.median(added)


def some(bench, groups, way, expected):
    """FOLLOWED processes on one library, and others that are not followed."""
    report = bench.report
    one = groups.start("one", groups.followed_exe)
    many = groups.start("many", groups.followed_exe, FOLLOWED - 1)
    other = groups.start("many", groups.other_exe, NOT_FOLLOWED - 1)
    free = groups.start("free", groups.other_exe)
    serve = Serve(groups.followed_exe, "--sharing", way)
    try:
        serve.wait(groups.library("many"), expected, FOLLOWED)
        settle(many)
        followed = ratio(bench, one, many, BAR_ROUNDS)
        times = report_ratio(report, f"{FOLLOWED} followed: {way}", followed,
                             f"{NOT_FOLLOWED} more not followed; attached as '{expected}'")
        rounds = ratio(bench, free, other)
        report.values("not followed", "no probes", rounds.a, "ns")
        report.values("not followed", "others followed", rounds.b, "ns")
        return times, statistics.median(followed.a), statistics.median(rounds.added())
    finally:
        serve.close()
        groups.end()


def every(bench, groups):
    """ALL processes, and everybody may pay."""
    one = groups.start("one", groups.followed_exe)
    many = groups.start("many", groups.followed_exe, ALL - 1)
    serve = Serve(groups.followed_exe, "--sharing", "all")
    try:
        serve.wait(groups.library("many"), "all", ALL)
        return report_ratio(bench.report, f"{ALL} followed: all", ratio(bench, one, many),
                            "one link for all")
    finally:
        serve.close()
        groups.end()


def many(bench):
    """What a hit costs among many followed processes."""
    report = bench.report
    report.heading("malloc+free pair of 64 B when many processes of one library are followed")
    groups = Groups()
    try:
        some(bench, groups, "own", "own")
        kernel_ns = floor(bench)
        times, alone_ns, added_ns = some(bench, groups, "auto", "event")
        report.bar(f"one of {FOLLOWED} followed, to one alone", times, "", f"<= {SHARED_LIMIT}",
                   times <= SHARED_LIMIT,
                   f"kernel alone {1 + kernel_ns / alone_ns:.2f}")
        report.bar("not followed, the library shared", added_ns, "ns", f"<= {NOTHING_NS} ns",
                   added_ns <= NOTHING_NS)
        times = every(bench, groups)
        report.bar(f"one of {ALL} with one link for all", times, "", f"<= {ALL_LIMIT}",
                   times <= ALL_LIMIT)
    finally:
        groups.close()

# SPDX-License-Identifier: MIT
"""What the tap costs the program that it is in, beside probes on every call."""
import os
import re
import statistics
import time
from pathlib import Path

from benchlib import BUILD, CPUS, Rounds, Skip, Target, changed_text_bytes, interval
from pieces_cost import BAR_SIZE, PAIRLOOP, pair_measure, size_name
from pieces_many import FOLLOWED, NOT_FOLLOWED, Groups, Serve, ratio, report_ratio, settle
from pieces_sampler import redis_case
from profilers import Heaptap, library

ADDED_NS, TIMES_LESS = {"glibc": 2.5, "jemalloc": 3}, 200
THREADS, STOP_MS, ATTACH_MS = 100, 5, 1000
VOLUME_BYTES, VOLUME_PER_S, VOLUME_SECONDS, VOLUME_PERCENT = 512, (1 << 30) // 512, 2, 1.5
PROCESS_PAIRS = 6
UNDISTURBED = 1.15
SETTLED_S = 60  # the rate is found, and what grows is looked for less often than in the beginning
MANY_TIMES = 1.1


class Tapped(Heaptap):
    """heaptap with the tap."""

    name = "tap"

    def __init__(self, pid, *options):
        super().__init__(pid, "--tap=only", "--rate", "512k", *options)


def added_by(bench, profiler, other, threads):
    """CPU ns that it adds to a pair, over several pairs of processes: where a process's code and
    blocks happen to lie is worth as much as the tap."""
    env = {"LD_PRELOAD": other} if other else None
    rounds = Rounds()
    for _ in range(PROCESS_PAIRS):
        base, variant, attached = Target([PAIRLOOP], env), None, None
        try:
            variant = Target([PAIRLOOP], env)
            for target in (base, variant):
                target.ask(f"run {BAR_SIZE} {threads} 1000")
            attached = profiler(variant.pid)
            rounds.take(pair_measure(bench, base, variant, BAR_SIZE, threads, (bench.rounds + 2) // 3))
            attached.stop()
        finally:
            if attached:
                attached.kill()
            if variant:
                variant.close()
            base.close()
    return rounds


def undisturbed(rounds):
    """What was added while the processor was at its own speed. A neighbour on the same core makes all
    of it up to twice as slow, the untouched loop and the tap alike."""
    fastest = min(rounds.a)
    return [added for base, added in zip(rounds.a, rounds.added()) if base <= UNDISTURBED * fastest]


def pair_case(bench, allocator, other, threads):
    report = bench.report
    rounds = added_by(bench, Tapped, other, threads)
    added = rounds.added()
    what = f"{allocator}, {size_name(BAR_SIZE)}, {threads} thr"
    report.values(what, "untouched", rounds.a, "ns")
    report.values(what, "+ tap", added, "ns", discarded=rounds.discarded)
    if threads != 1:
        return
    added = undisturbed(rounds)
    report.values(what, "+ tap, quiet", added, "ns", f"{len(added)} of {len(rounds.a)} rounds")
    low, high = interval(added)
    median = statistics.median(added)
    report.bar(f"tap, {allocator} {size_name(BAR_SIZE)}", median, "ns", f"<= {ADDED_NS[allocator]}",
               median <= ADDED_NS[allocator], f"[{low:.2f} .. {high:.2f}]")
    probes = added_by(bench, Heaptap, other, threads).added()
    report.values(what, "+ probes", probes, "ns")
    times = statistics.median(probes) / max(median, 0.1)
    report.bar(f"tap, {allocator}: less than probes", times, "times", f">= {TIMES_LESS}", times >= TIMES_LESS, "")


def stop_case(bench):
    """How long the tap stops a process of many threads, and how soon it is in."""
    report, stops, starts = bench.report, [], []
    target = Target([PAIRLOOP])
    try:
        target.ask(f"idle {THREADS}")
        for _ in range(max(5, bench.rounds)):
            attached = Tapped(target.pid)
            try:
                starts.append(attached.attach_s * 1000)
                found = re.search(r"is tapped: (\d+) threads paused for ([0-9.]+) ms", attached.log.read_text())
                if not found or int(found[1]) <= THREADS:
                    raise Skip(f"it was not tapped with {THREADS} threads")
                stops.append(float(found[2]))
                attached.stop()
            finally:
                attached.kill()
    finally:
        target.close()
    what = f"{THREADS} threads"
    report.values(what, "stopped", stops, "ms", f"longest {max(stops):.1f} ms")
    report.values(what, "attach", starts, "ms", "command to recording")
    stop, attach = statistics.median(stops), statistics.median(starts)
    report.bar(f"a process of {THREADS} threads is stopped", stop, "ms", f"<= {STOP_MS} ms", stop <= STOP_MS)
    report.bar("command to recording with the tap", attach, "ms", f"<= {ATTACH_MS} ms", attach <= ATTACH_MS)


def threads_cpu_s(pid):
    """CPU time of the threads that a process has, to the nanosecond: ticks of 10 ms are too coarse for 0.1 %."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def family_cpu_s(top):
    """CPU time of a process and all that it has started and that are alive."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rsplit(") ", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    seconds, todo = 0, [top]
    while todo:
        pid = todo.pop()
        seconds += threads_cpu_s(pid)
        todo += children.get(pid, [])
    return seconds


def volume_case(bench):
    """All that it takes, in the process and beside it, at a GiB a second, with the rate that it chooses."""
    report, added, own = bench.report, [], []
    base, variant, attached = Target([PAIRLOOP]), Target([PAIRLOOP]), None
    command = f"pace {VOLUME_BYTES} {VOLUME_PER_S} {VOLUME_SECONDS}"

    def percent_of(target):
        before = int(Path(f"/proc/{target.pid}/schedstat").read_text().split()[0])
        began = time.monotonic()
        reached = target.number(command)
        if reached < 0.98 * VOLUME_PER_S:
            raise Skip(f"this machine makes {reached:.0f} pairs a second, not {VOLUME_PER_S}")
        spent = int(Path(f"/proc/{target.pid}/schedstat").read_text().split()[0]) - before
        return spent / 1e7 / (time.monotonic() - began)

    try:
        variant.ask(f"run {VOLUME_BYTES} 1 1000")
        attached = Heaptap(variant.pid, "--tap=only")
        variant.number(f"pace {VOLUME_BYTES} {VOLUME_PER_S} {SETTLED_S}", 2 * SETTLED_S)
        for _ in range(bench.rounds):
            a = percent_of(base)
            before, began = family_cpu_s(attached.process.pid), time.monotonic()
            b = percent_of(variant)
            own.append(100 * (family_cpu_s(attached.process.pid) - before) / (time.monotonic() - began))
            added.append(b - a)
        attached.stop()
    finally:
        if attached:
            attached.kill()
        variant.close()
        base.close()
    what = f"1 GiB/s of {size_name(VOLUME_BYTES)}"
    both = [x + y for x, y in zip(added, own)]
    report.values(what, "process, more", added, "%", "of a CPU")
    report.values(what, "heaptap", own, "%", "of a CPU")
    total, (low, high) = statistics.median(both), interval(both)
    report.bar(f"{what}, all in", total, "%", f"<= {VOLUME_PERCENT}", total <= VOLUME_PERCENT,
               f"[{low:.2f} .. {high:.2f}]")


def many_case(bench):
    """One of many tapped processes beside one that is tapped alone, and those that are not."""
    report, groups = bench.report, Groups()
    serve = None
    try:
        one = groups.start("one", groups.followed_exe)
        many = groups.start("many", groups.followed_exe, FOLLOWED - 1)
        groups.start("many", groups.other_exe, NOT_FOLLOWED - 1)
        others = groups.targets[-NOT_FOLLOWED:]
        serve = Serve(groups.followed_exe, "--tap", "^followed$", "--rate", "512k")
        log, deadline = BUILD / "serve.log", time.monotonic() + 60
        while log.read_text(errors="replace").count(" is tapped: ") < FOLLOWED + 1:
            if time.monotonic() > deadline:
                raise Skip(f"not all of {FOLLOWED + 1} processes are tapped after 60 s")
            time.sleep(0.2)
        settle(many)
        times = report_ratio(report, f"{FOLLOWED} tapped", ratio(bench, one, many), "all of one C library")
        changed = sum(changed_text_bytes(other.pid) for other in others)
        report.row(f"{NOT_FOLLOWED} not tapped", "bytes changed", changed, "B")
        report.bar(f"one of {FOLLOWED} tapped, to one alone", times, "", f"<= {MANY_TIMES}", times <= MANY_TIMES)
        report.bar("who is not tapped: bytes of code changed", changed, "B", "0", changed == 0)
    finally:
        if serve:
            serve.close()
        groups.close()


def tap(bench):
    """What the tap costs, beside probes."""
    report = bench.report
    report.heading("the tap: malloc+free pair, CPU ns added; redis-server; threads; volume; many")
    allocators = [("glibc", None)]
    try:
        allocators.append(("jemalloc", library("libjemalloc.so.2")))
    except Skip as why:
        report.skip("tap, jemalloc", why)
    for allocator, other in allocators:
        for threads in sorted({1, 2, 2 * len(CPUS)}):
            pair_case(bench, allocator, other, threads)
    for pipeline in (16, 1):
        redis_case(bench, "tap", None, Tapped, pipeline, "set")
    for case in (stop_case, volume_case, many_case):
        try:
            case(bench)
        except Skip as why:
            report.skip(f"tap, {case.__name__}", why)

# SPDX-License-Identifier: MIT
"""What the tap costs the program that it is in, beside probes on every call."""
import statistics

from benchlib import CPUS, Skip, Target, interval
from pieces_cost import BAR_SIZE, PAIRLOOP, pair_measure, size_name
from pieces_sampler import redis_case
from profilers import Heaptap, library

ADDED_NS, TIMES_LESS = 5, 200


class Tapped(Heaptap):
    """heaptap with the tap."""

    name = "tap"

    def __init__(self, pid, *options):
        super().__init__(pid, "--tap=only", "--rate", "512k", *options)


def added_by(bench, profiler, other, threads):
    """CPU ns that it adds to a pair."""
    env = {"LD_PRELOAD": other} if other else None
    base, variant, attached = Target([PAIRLOOP], env), None, None
    try:
        variant = Target([PAIRLOOP], env)
        for target in (base, variant):
            target.ask(f"run {BAR_SIZE} {threads} 1000")
        attached = profiler(variant.pid)
        rounds = pair_measure(bench, base, variant, BAR_SIZE, threads, bench.rounds)
        attached.stop()
    finally:
        if attached:
            attached.kill()
        if variant:
            variant.close()
        base.close()
    return rounds


def pair_case(bench, allocator, other, threads):
    report = bench.report
    rounds = added_by(bench, Tapped, other, threads)
    added = rounds.added()
    what = f"{allocator}, {size_name(BAR_SIZE)}, {threads} thr"
    report.values(what, "untouched", rounds.a, "ns")
    report.values(what, "+ tap", added, "ns", discarded=rounds.discarded)
    if threads != 1:
        return
    low, high = interval(added)
    median = statistics.median(added)
    report.bar(f"tap, {allocator} {size_name(BAR_SIZE)}", median, "ns", f"<= {ADDED_NS}", median <= ADDED_NS,
               f"[{low:.2f} .. {high:.2f}]")
    probes = added_by(bench, Heaptap, other, threads).added()
    report.values(what, "+ probes", probes, "ns")
    times = statistics.median(probes) / max(median, 0.1)
    report.bar(f"tap, {allocator}: less than probes", times, "times", f">= {TIMES_LESS}", times >= TIMES_LESS, "")


def tap(bench):
    """What the tap costs, beside probes."""
    bench.report.heading("the tap: malloc+free pair, CPU ns added, and redis-server")
    allocators = [("glibc", None)]
    try:
        allocators.append(("jemalloc", library("libjemalloc.so.2")))
    except Skip as why:
        bench.report.skip("tap, jemalloc", why)
    for allocator, other in allocators:
        for threads in sorted({1, 2, 2 * len(CPUS)}):
            pair_case(bench, allocator, other, threads)
    redis_case(bench, "tap", None, Tapped)

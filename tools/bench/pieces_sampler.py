# SPDX-License-Identifier: MIT
"""What libheaptap-sampler costs the program that has it, at rest and while somebody looks."""
import statistics

from benchlib import BUILD, CPUS, Skip, Target, interval
from pieces_cost import BAR_SIZE, PAIRLOOP, pair_measure, redis_compare, size_name
from profilers import Heaptap, library
from workloads import Redis

LIBRARY = BUILD.parent / "libheaptap-sampler.so"
REST_NS, LOOKED_AT_NS = 1, 5
RATE_KEPT, P99_MORE = 97, 5  # percent
RATE_KNOWN = 3  # percent that the interval may be wide
REDIS_PAIRS = 6


class Sampled(Heaptap):
    """heaptap that reads the program's own sampler."""

    name = "sampler"

    def __init__(self, pid, *options):
        super().__init__(pid, "--source", "usdt", *options)


def preload(other=None):
    if not LIBRARY.exists():
        raise Skip(f"{LIBRARY} is not built")
    return {"LD_PRELOAD": f"{LIBRARY} {other}" if other else str(LIBRARY)}


def pair_case(bench, allocator, other, threads, looked_at):
    """One row: the same loop in two processes, one with the library."""
    report = bench.report
    base = Target([PAIRLOOP], {"LD_PRELOAD": other} if other else None)
    variant = Target([PAIRLOOP], preload(other))
    attached = None
    try:
        for target in (base, variant):
            target.ask(f"run {BAR_SIZE} {threads} 1000")
        if looked_at:
            attached = Sampled(variant.pid)
        rounds = pair_measure(bench, base, variant, BAR_SIZE, threads, bench.rounds)
        if attached:
            attached.stop()
    finally:
        if attached:
            attached.kill()
        base.close()
        variant.close()
    added = rounds.added()
    how = "looked at" if looked_at else "at rest"
    what = f"{allocator}, {size_name(BAR_SIZE)}, {threads} thr"
    report.values(what, "no sampler", rounds.a, "ns")
    report.values(what, "+ sampler, " + how, added, "ns", discarded=rounds.discarded)
    if threads == 1:
        low, high = interval(added)
        limit = LOOKED_AT_NS if looked_at else REST_NS
        report.bar(f"sampler {how}, {allocator} {size_name(BAR_SIZE)}", statistics.median(added), "ns",
                   f"<= {limit}", statistics.median(added) <= limit, f"[{low:.2f} .. {high:.2f}]")


def redis_case(bench, what, env, profiler, pipeline=1, tests="set,get"):
    """redis-server with it, beside one that nobody touches. Several pairs of servers: where a server's
    memory happens to lie is worth some percent, which no number of rounds of one pair takes out."""
    report = bench.report
    found = {"base_rate": [], "rate": [], "base_p99": [], "p99": [], "discarded": 0}
    for _ in range(REDIS_PAIRS):
        base, variant, attached = Redis(), None, None
        try:
            variant = Redis(env)
            attached = profiler(variant.pid)
            pair = redis_compare(bench, profiler.name, base, variant, pipeline, tests)
            attached.stop()
        finally:
            if attached:
                attached.kill()
            if variant:
                variant.close()
            base.close()
        for key in found:
            found[key] += pair[key]
    load = f"redis {tests} -P {pipeline}"
    report.values(load + ", per s", "untouched", found["base_rate"], "/s")
    report.values(load + ", per s", "+ " + what, found["rate"], "%", discarded=found["discarded"])
    report.values(load + ", p99", "untouched", found["base_p99"], "ms")
    report.values(load + ", p99", what, found["p99"], "ms")
    slower = [100 * (b / a - 1) for a, b in zip(found["base_p99"], found["p99"])]
    report.values(load + ", p99", "+ " + what, slower, "%")
    kept = 100 + statistics.median(found["rate"])
    low, high = interval(found["rate"])
    report.bar(f"{load} with the {what}", kept, "%", f">= {RATE_KEPT}", kept >= RATE_KEPT,
               f"[{100 + low:.1f} .. {100 + high:.1f}]")
    if pipeline > 1:
        report.bar(f"{load}: width of that interval", high - low, "%", f"< {RATE_KNOWN}", high - low < RATE_KNOWN)
    median, (low, high) = statistics.median(slower), interval(slower)
    report.bar(f"{load} with the {what}: p99", median, "%", f"<= {P99_MORE}", median <= P99_MORE or low <= 0,
               f"[{low:.1f} .. {high:.1f}]" + (", noise" if low <= 0 < median else ""))


def sampler(bench):
    """What libheaptap-sampler costs, at rest and looked at."""
    bench.report.heading("libheaptap-sampler: malloc+free pair, CPU ns added, and redis-server")
    allocators = [("glibc", None)]
    try:
        allocators.append(("jemalloc", library("libjemalloc.so.2")))
    except Skip as why:
        bench.report.skip("sampler, jemalloc", why)
    for allocator, other in allocators:
        for threads in sorted({1, 2, 2 * len(CPUS)}):
            for looked_at in (False, True):
                pair_case(bench, allocator, other, threads, looked_at)
    redis_case(bench, "sampler looked at", preload(), Sampled)

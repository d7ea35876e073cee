# SPDX-License-Identifier: MIT
"""What scopes cost: the program that publishes them, and the probe that reads them."""
import json
import statistics
import subprocess

from benchlib import BUILD, TARGET_CPU, Rounds, Skip, Target, spawn
from pieces_cost import per_slice
from profilers import Heaptap

# Samples differ by more than what is looked for, so this wants more rounds than other pieces.
ROUNDS_FACTOR = 4
# ... and so do processes of the same program.
PROCESS_PAIRS = 3
SAMPLED_LIMIT_NS = 60
# An unsampled allocation must not pay anything: what is left is the noise of a trap.
UNSAMPLED_LIMIT_NS = 8


# Of the forms that scope_cost measures.
PROGRAM_LIMITS_NS = {"static tag": 3, "push and pop": 3, "task in and out": 5}


def in_program(bench):
    """What tags cost the program, nobody being attached."""
    report = bench.report
    report.heading("A scope in and out, in the program: what is added to a call of an empty function")
    runs = {}
    for _ in range(3):
        process = spawn(TARGET_CPU, [BUILD / "scope_cost"], stdout=subprocess.PIPE)
        for line in process.communicate(timeout=60)[0].decode().splitlines():
            row = json.loads(line)
            runs.setdefault(row["form"], []).append(row["ns"])
    for form, values in runs.items():
        ns = statistics.median(values)
        report.row("in and out", form, ns, "ns", min(values), max(values))
        if form in PROGRAM_LIMITS_NS:
            limit = PROGRAM_LIMITS_NS[form]
            report.bar(f"in the program, {form}", ns, "ns", f"<= {limit} ns", ns <= limit)


def read_alone(bench):
    """ns of the one read of user memory that a scope takes, without anything around it."""
    process = spawn(TARGET_CPU, [BUILD / "user_read"], stdout=subprocess.PIPE)
    output = process.communicate(timeout=60)[0].decode()
    if process.returncode:
        return None
    ns = json.loads(output)["ns"]
    bench.report.row("of which", "a read of 32 bytes", ns, "ns")
    return ns


def sampled_bar(bench, added):
    """Where one bare read takes most of the limit no reader can keep it."""
    read_ns = read_alone(bench)
    if read_ns is not None and read_ns > 0.75 * SAMPLED_LIMIT_NS and added > SAMPLED_LIMIT_NS:
        passed, note = None, f"a bare read takes {read_ns:.0f} ns here"
    else:
        passed, note = added <= SAMPLED_LIMIT_NS, ""
    bench.report.bar("a scope, pair sampled", added, "ns", f"<= {SAMPLED_LIMIT_NS} ns", passed, note)


def compare(bench, rate, what):
    """Rounds of ns per pair: scopes that nobody finds, and that are read, recorded at this rate."""
    rounds = Rounds()
    for is_first in (True, False) * PROCESS_PAIRS:
        plain, scoped = Target([BUILD / "scopeloop_plain"]), Target([BUILD / "scopeloop"])
        attached = []
        try:
            # Of two recordings that probe one libc the later one's hits pass the earlier one's filter:
            # each of the two is the earlier one in half of the rounds.
            for target in (plain, scoped) if is_first else (scoped, plain):
                target.read_line()  # ready
                attached.append(Heaptap(target.pid, "--rate", rate, "-n", "0"))
            a = per_slice(plain, lambda n: f"run {what} {n}", bench.slice_s)
            b = per_slice(scoped, lambda n: f"run {what} {n}", bench.slice_s)
            rounds.take(Rounds().run(a, b, ROUNDS_FACTOR * bench.rounds // (2 * PROCESS_PAIRS)))
            for each in attached:
                each.stop()
        finally:
            for each in attached:
                each.kill()
            plain.close()
            scoped.close()
    return rounds


def scopes(bench):
    """What a scope costs the program, and the probe that reads it."""
    if not (BUILD / "scopeloop").exists() or not (BUILD / "scope_cost").exists():
        raise Skip("its programs are not built")
    report = bench.report
    in_program(bench)
    report.heading("malloc+free pair of 64 B under a scope: what is added to a recorded pair without")
    for rate, name in (("1", "sampled"), ("1t", "not sampled")):
        for what in ("none", "tag", "deep", "task"):
            if rate != "1" and what in ("none", "deep"):
                continue
            rounds = compare(bench, rate, what)
            if what in ("none", "tag") and rate == "1" or what == "tag":
                report.values(name, "without scopes", rounds.a, "ns")
            variant = {"none": "+ no scope now", "tag": "+ tag", "deep": "+ 4 tags deep",
                       "task": "+ task"}[what]
            report.values(name, variant, rounds.added(), "ns")
            if what == "tag":
                added = statistics.median(rounds.added())
                if rate == "1":
                    sampled_bar(bench, added)
                else:
                    report.bar("a scope, pair not sampled", added, "ns", f"<= {UNSAMPLED_LIMIT_NS} ns",
                               added <= UNSAMPLED_LIMIT_NS)

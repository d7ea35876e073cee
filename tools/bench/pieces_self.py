# SPDX-License-Identifier: MIT
"""What heaptap itself takes: CPU, memory, attach and detach, unwinding, tables, symbols."""
import json
import os
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from benchlib import (BUILD, PROFILER_CPU, TOP, Skip, Target, changed_text_bytes, interval, spawn)
from ledger import ledger_of
from pieces_cost import BAR_SIZE, PAIRLOOP, heaptap_command, pair_measure, python_command
from profilers import Heaptap
from workloads import Redis, compile_command, timed_run


# --- self ------------------------------------------------------------------------------------


def self_cost(bench):
    """CPU and memory of heaptap itself, and what a snapshot takes."""
    report = bench.report
    report.heading("heaptap itself: CPU and memory by sample rate, snapshot by live samples")
    for per_second in (1000, 10000, 100000):
        target = Target([PAIRLOOP])
        attached = None
        try:
            target.ask("run 64 1 1000")
            attached = Heaptap(target.pid, "--rate", "1")
            before, start = attached.cpu_s(), time.monotonic()
            done = target.number(f"pace 64 {per_second} 3")
            cpu = (attached.cpu_s() - before) / (time.monotonic() - start)
            what = f"{per_second} samples/s"
            note = f"reached {done:.0f}/s"
            report.row(what, "CPU", 100 * cpu, "%", note=note)
            report.row(what, "memory", attached.status_kb("VmRSS"), "KiB",
                       note=f"peak {attached.status_kb('VmHWM') // 1024} MiB")
            report.row(what, "BPF maps", attached.maps_kb(), "KiB")
            attached.stop()
        finally:
            if attached:
                attached.kill()
            target.close()
    for live in (10 ** 4, 10 ** 5, 10 ** 6):
        target = Target([PAIRLOOP])
        attached = None
        try:
            target.ask("run 64 1 1000")
            attached = Heaptap(target.pid, "--rate", "1", "--max-live", str(2 * live))
            target.ask(f"hold {live} 64", 120)
            attached.stop()
            what = f"{live} live samples"
            ledger = attached.ledger()
            report.row(what, "stop to exit", attached.stop_s * 1000, "ms",
                       note="profile written")
            if "snapshot_ns" in ledger:
                report.row(what, "snapshot", ledger["snapshot_ns"] / 1e6, "ms")
            report.row(what, "peak memory", attached.usage.ru_maxrss, "KiB")
        finally:
            if attached:
                attached.kill()
            target.close()


# --- attach ----------------------------------------------------------------------------------


def map_many_files(target, count):
    """Map the code of that many different libraries of this machine; returns how many."""
    done = 0
    for path in sorted(Path("/usr/lib").rglob("*.so*")):
        if done == count:
            break
        if path.is_symlink() or not path.is_file() or re.search("malloc|[atlu]b?san", path.name):
            continue
        try:
            target.ask(f"map {path}")
            done += 1
        except RuntimeError:
            continue
    return done


def residue(bench, pid, name):
    changed = changed_text_bytes(pid)
    bench.report.bar(f"text bytes changed after {name}", changed, "B", "0", changed == 0)


def attach(bench):
    """How long attaching and detaching take, and that nothing stays behind."""
    report = bench.report
    report.heading("Attach and detach")
    server = Redis()
    try:
        starts, stops = [], []
        for _ in range(max(5, bench.rounds // 3)):
            attached = Heaptap(server.pid)
            try:
                server.load(500)
                attached.stop()
            finally:
                attached.kill()
            starts.append(attached.attach_s * 1000)
            stops.append(attached.stop_s * 1000)
        report.values("redis-server", "attach", starts, "ms", "command to recording")
        report.values("redis-server", "stop", stops, "ms", "signal to exit")
        report.bar("attach to redis-server", statistics.median(starts), "ms", "< 1 000 ms",
                   statistics.median(starts) < 1000)
        residue(bench, server.pid, "detach")
        attached = Heaptap(server.pid)
        attached.kill()
        time.sleep(0.5)
        residue(bench, server.pid, "kill -9 of heaptap")
    finally:
        server.close()
    many_files(bench)
    speed_after(bench)


def many_files(bench):
    report = bench.report
    target = Target([PAIRLOOP])
    try:
        count = map_many_files(target, 300)
        if count < 300:
            raise Skip(f"only {count} libraries to map")
        starts = []
        for _ in range(3):
            attached = Heaptap(target.pid)
            try:
                attached.stop()
            finally:
                attached.kill()
            starts.append(attached.attach_s * 1000)
        report.values("300 mapped files", "attach", starts, "ms", "command to recording")
        report.bar("attach to a process with 300 files", statistics.median(starts), "ms",
                   "< 3 000 ms", statistics.median(starts) < 3000)
    except Skip as why:
        report.skip("300 mapped files", why)
    finally:
        target.close()


def speed_after(bench):
    """A pair in a process that was profiled, against one that never was."""
    report = bench.report
    for how in ("stop", "kill -9"):
        p, q = Target([PAIRLOOP]), Target([PAIRLOOP])
        try:
            q.ask("run 64 1 1000")
            attached = Heaptap(q.pid)
            try:
                q.ask("run 64 1 10000")
                if how == "stop":
                    attached.stop()
            finally:
                attached.kill()
            time.sleep(0.5)
            rounds = pair_measure(bench, p, q, BAR_SIZE, 1, bench.rounds)
            low, high = interval(rounds.added())
            report.values(f"pair after {how}", "added", rounds.added(), "ns")
            # A forgotten probe costs a trap, which is hundreds of ns; two processes differ by one.
            trap = statistics.median(x[0] for x in rounds.extra)
            report.bar(f"pair cost left after {how}", statistics.median(rounds.added()), "ns",
                       "< trap / 20", statistics.median(rounds.added()) < trap / 20,
                       f"[{low:.1f} .. {high:.1f}]")
        finally:
            p.close()
            q.close()


# --- unwind ----------------------------------------------------------------------------------


def record_target(target, command, seconds):
    """Keep a line-driven target busy under heaptap; its ledger."""
    target.ask(command)
    attached = Heaptap(target.pid, "--rate", "8k")
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            target.ask(command)
        attached.stop()
        return attached.ledger()
    finally:
        attached.kill()


def unwind_redis():
    server = Redis()
    try:
        attached = Heaptap(server.pid, "--rate", "8k")
        try:
            server.load(30000)
            attached.stop()
        finally:
            attached.kill()
        return attached.ledger()
    finally:
        server.close()


def unwind_python():
    target = Target(python_command(), {"PYTHONMALLOC": "malloc"})
    try:
        return record_target(target, "run 1000", 2)
    finally:
        target.close()


def unwind_clang():
    profile = BUILD / "unwind.pb.gz"
    command, times = compile_command("unwind")
    timed_run(command, times, heaptap_command(profile, "--rate", "32k"))
    return ledger_of(profile)


def unwind_pairloop():
    target = Target([PAIRLOOP])
    try:
        return record_target(target, "run 1024 1 100000", 2)
    finally:
        target.close()


def unwind(bench):
    """Cost of a frame, and how many stacks reach the thread's start."""
    report = bench.report
    report.heading("Unwinding by tables in BPF: cost of a frame, stacks that are complete")
    for name, make in (("redis-server", unwind_redis), ("python3", unwind_python),
                       ("clang++", unwind_clang), ("pairloop", unwind_pairloop)):
        try:
            ledger = make()
        except Skip as why:
            report.skip(f"unwind, {name}", why)
            continue
        report.ledgers["unwind " + name] = ledger
        frames, walk_ns = ledger.get("frames", 0), ledger.get("walk_ns", 0)
        if not frames or not walk_ns:
            report.skip(f"unwind, {name}", "no walk_ns and frames in the profile's ledger")
            continue
        complete = ledger.get("stacks_complete", 0)
        walks = complete + sum(n for key, n in ledger.items() if key.startswith("truncated_"))
        note = f"{frames / walks:.1f} frames a stack" if walks else ""
        report.row(name, "a frame", walk_ns / frames, "ns", note=note)
        report.bar(f"unwinding, {name}", walk_ns / frames, "ns", "<= 120 ns",
                   walk_ns / frames <= 120)
        if walks:
            share = 100 * complete / walks
            report.row(name, "complete", share, "%", note=f"of {walks:.0f} stacks")
            report.bar(f"complete stacks, {name}", share, "%", ">= 99 %", share >= 99)


def built(name):
    """A program of bench.mk."""
    program = BUILD / name
    if not program.exists():
        raise Skip(f"{name} is not built")
    return program


# --- tables and symbols ----------------------------------------------------------------------


def largest_library_user():
    """clang and its libraries: libLLVM among them is over 100 MB."""
    clang_path = shutil.which("clang")
    if not clang_path:
        raise Skip("clang is not installed")
    out = subprocess.run(["ldd", clang_path], capture_output=True, text=True).stdout
    return [os.path.realpath(clang_path), *re.findall(r"=> (/\S+)", out)]


def tables(bench):
    """Building the unwind tables of libLLVM and what comes with it."""
    report = bench.report
    report.heading("Unwind tables of clang and its libraries")
    program = built("bench_unwind_table")
    process = spawn(PROFILER_CPU, [program, "-n", "5", *largest_library_user()],
                    stdout=subprocess.PIPE, text=True)
    for line in process.communicate(timeout=120)[0].splitlines():
        words = line.split()
        if line.startswith(("libLLVM", "libclang-cpp", "all ")):
            report.row(words[0], "build", float(words[1]), "ms",
                       note=f"{int(words[6]) / 1e6:.1f} M rows, {words[9]} MB")
            if words[0] == "all":
                report.bar("tables of clang and libLLVM", float(words[1]), "ms", "< 1 000 ms",
                           float(words[1]) < 1000)
        elif line.startswith("peak memory"):
            peak = float(words[-2])
            report.row("all", "peak memory", peak, "MB")
            report.bar("memory for these tables", peak, "MB", "< 100 MB", peak < 100)


def elf(bench):
    """To know what a file is (user/elf/elf_file.c)."""
    report = bench.report
    report.heading("Identity, segments and sections of 300 files")
    program = built("bench_elf_open")
    files = sorted(str(path) for path in Path("/usr/lib").rglob("*.so*")
                   if path.is_file() and not path.is_symlink())[:300]
    words = subprocess.run([program, *files], capture_output=True, text=True, timeout=120).stdout.split()
    report.row(f"{words[3]} files", "open", float(words[1]), "ms")
    report.bar("300 files, of an attach's 3 s", float(words[1]), "ms", "< 30 ms", float(words[1]) < 30)


def symbols(bench):
    """Addresses to functions, inlines and lines in a large file."""
    report = bench.report
    report.heading("Symbols of a file over 100 MB")
    program = built("bench_symbolize")
    big = BUILD / "big.so"
    if not big.exists():
        made = subprocess.run(["sh", str(TOP / "tools/bench/gen_big_elf.sh"), str(big) + ".tmp"],
                              capture_output=True, text=True, timeout=600)
        if made.returncode:
            raise Skip("no large file: " + made.stderr.strip()[-100:])
        os.rename(str(big) + ".tmp", big)
    size = f"{big.stat().st_size / 1e6:.0f} MB file"
    process = spawn(PROFILER_CPU, [program, big, 5000, 5], stdout=subprocess.PIPE, text=True)
    kinds = {}
    for line in process.communicate(timeout=300)[0].splitlines():
        found = json.loads(line)
        kinds[found["kind"]] = found
        report.row(f"{found['addresses']} addresses", found["kind"], found["seconds"] * 1000, "ms",
                   note=size)
        report.row(f"{found['addresses']} addresses", "helper's peak", found["helper_peak_mib"],
                   "MiB")
    limits = (("symbols with DWARF, cold", "dwarf-cold", "seconds", "s", 5),
              ("helper's memory with DWARF", "dwarf-cold", "helper_peak_mib", "MiB", 500),
              ("symbols without DWARF, cold", "symbols-cold", "seconds", "s", 0.3))
    for name, kind, key, unit, limit in limits:
        if kind not in kinds:
            raise Skip(f"bench_symbolize printed no {kind}")
        report.bar(name, kinds[kind][key], unit, f"< {limit} {unit}", kinds[kind][key] < limit)

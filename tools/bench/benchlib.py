# SPDX-License-Identifier: MIT
"""What every piece of the benchmark needs: statistics, processes under test, the report.

The method, which all pieces share: only differences and ratios within one run mean anything on a
machine that others use too. Base (A) and variant (B) alternate A B B A so that a slow drift hits
both alike; a round in which the hypervisor took CPU time away (steal) is repeated; the result is
the median of the rounds' paired differences with a bootstrap 95 % interval. Targets are pinned to
CPU 1 and profilers to CPU 0.
"""
import json
import os
import random
import select
import statistics
import subprocess
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / ".build" / "bench"
HEAPTAP = Path(os.environ.get("HEAPTAP", TOP / "heaptap"))
CPUS = sorted(os.sched_getaffinity(0))
PROFILER_CPU = CPUS[0]
TARGET_CPU = CPUS[1] if len(CPUS) > 1 else CPUS[0]
WIDTH = 100


class Skip(Exception):
    """A piece or variant that this machine cannot run; the text says what is missing."""


# --- statistics ------------------------------------------------------------------------------


def interval(values, statistic=statistics.median, resamples=2000):
    """Bootstrap 95 % interval. Seeded, so the same measurements print the same interval."""
    rng = random.Random(1)
    n = len(values)
    found = sorted(statistic(rng.choices(values, k=n)) for _ in range(resamples))
    return found[int(resamples * 0.025)], found[int(resamples * 0.975) - 1]


def steal_ticks():
    with open("/proc/stat") as f:
        return int(f.readline().split()[8])


class Rounds:
    """Paired measurements of a base and a variant, and what was thrown away to get them."""

    def __init__(self):
        self.a, self.b, self.extra = [], [], []
        self.discarded = 0

    def run(self, measure_a, measure_b, count, extra=None):
        spare = 2 * count
        while count > 0:
            before = steal_ticks()
            a1, b1, b2, a2 = measure_a(), measure_b(), measure_b(), measure_a()
            x = extra() if extra else None
            if steal_ticks() != before and spare > 0:
                spare -= 1
                self.discarded += 1
                continue
            self.a.append((a1 + a2) / 2)
            self.b.append((b1 + b2) / 2)
            self.extra.append(x)
            count -= 1
        return self

    def run_long(self, measure_a, measure_b, count):
        """For measurements that take seconds: A B, then B A, and nothing repeated for steal."""
        for i in range(count):
            if i % 2:
                b, a = measure_b(), measure_a()
            else:
                a, b = measure_a(), measure_b()
            self.a.append(a)
            self.b.append(b)
        return self

    def take(self, other):
        """The rounds of another pair of processes, for the same row."""
        self.a += other.a
        self.b += other.b
        self.extra += other.extra
        self.discarded += other.discarded

    def in_traps(self):
        """What was added in emulated traps; extra is what Bench.calibrate() returned."""
        return [d / x[0] for d, x in zip(self.added(), self.extra)]

    def added(self):
        return [b - a for a, b in zip(self.a, self.b)]

    def percent(self):
        return [100 * (b / a - 1) for a, b in zip(self.a, self.b)]


# --- processes -------------------------------------------------------------------------------


def spawn(cpu, command, **more):
    """Popen on one CPU. Not through taskset: a preloaded library would start there already."""
    return subprocess.Popen([*map(str, command)], preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
                            **more)


def wait_exit(process, seconds):
    """Wait with a limit; returns the process's resource usage. Kills it when the limit is over."""
    deadline = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > deadline:
            process.kill()
            deadline = float("inf")
        time.sleep(0.001)


def wait_for_text(path, text, process, seconds):
    """Wait until a process wrote a line that contains the text; returns that line."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for line in path.read_text(errors="replace").splitlines():
            if text in line:
                return line
        if process.poll() is not None:
            break
        time.sleep(0.002)
    tail = path.read_text(errors="replace").strip().splitlines()[-2:]
    raise Skip(f"no '{text}' from {process.args[:2]}: {' / '.join(tail) or 'silence'}")


class Target:
    """A process that answers one line for every line it is told, like pairloop."""

    def __init__(self, command, env=None, cpu=TARGET_CPU):
        self.process = spawn(cpu, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        self.buffer = b""

    def ask(self, text, seconds=60):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return self.read_line(seconds)

    def read_line(self, seconds=60):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise RuntimeError(f"{self.process.args[0]}: no answer in {seconds} s")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise RuntimeError(f"{self.process.args[0]}: ended unexpectedly")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        line = line.decode()
        if line.startswith("error:"):
            raise RuntimeError(f"{self.process.args[0]}: {line}")
        return line

    def number(self, text, seconds=60):
        return float(self.ask(text, seconds))

    def end(self):
        """Let it end by itself."""
        self.process.stdin.close()
        wait_exit(self.process, 10)
        self.process.stdout.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def changed_text_bytes(pid):
    """Bytes of the process's executable file mappings that differ from the files."""
    changed = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            fields = line.split(maxsplit=5)
            if "x" not in fields[1] or len(fields) < 6 or not fields[5].startswith("/"):
                continue
            start, end = (int(x, 16) for x in fields[0].split("-"))
            memory.seek(start)
            mapped = memory.read(end - start)
            with open(f"/proc/{pid}/root{fields[5].strip()}", "rb") as f:
                f.seek(int(fields[2], 16))
                stored = f.read(end - start)
            mapped = mapped[:len(stored)]
            if mapped != stored:
                changed += sum(x != y for x, y in zip(mapped, stored))
    return changed


# --- the report ------------------------------------------------------------------------------


def scaled(largest, unit):
    """(factor, unit) so that a value of this size is easy to read."""
    if unit == "ns" and largest >= 100000:
        return 1e-3, "us"
    if unit == "KiB" and largest >= 10240:
        return 1 / 1024, "MiB"
    return 1, unit


def number(value):
    """Three or four digits: the measurements do not hold more."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}".replace(",", " ")


def human(value, unit):
    factor, unit = scaled(abs(value), unit)
    return f"{number(value * factor)} {unit}".strip()


class Report:
    """Rows, bars and skips, printed as they come and kept for the JSON file."""

    def __init__(self):
        self.rows, self.bars, self.skips, self.ledgers = [], [], [], {}
        self.last_what = None

    def heading(self, text):
        self.last_what = None
        print(f"\n{text}\n{'-' * WIDTH}", flush=True)

    def row(self, what, variant, value, unit, low=None, high=None, note="", **more):
        self.rows.append({"what": what, "variant": variant, "value": value, "unit": unit,
                          "low": low, "high": high, "note": note, **more})
        factor, unit = scaled(max(abs(x) for x in (value, low or 0, high or 0)), unit)
        between = "" if low is None else f"[{number(low * factor)} .. {number(high * factor)}]"
        shown = "" if what == self.last_what else what
        self.last_what = what
        line = (f"{shown:<24.24} {variant:<15.15} {number(value * factor):>7} {unit:<3} "
                f"{between:<21} {note}")
        print(line.rstrip()[:WIDTH], flush=True)

    def values(self, what, variant, values, unit, note="", **more):
        """A row from repeated measurements: median and interval."""
        low, high = interval(values)
        self.row(what, variant, statistics.median(values), unit, low, high, note,
                 measurements=len(values), **more)

    def skip(self, what, why):
        self.skips.append({"what": what, "why": str(why)})
        print(f"{what:<30.30} skipped: {why}"[:WIDTH], flush=True)

    def bar(self, name, figure, unit, limit, passed, note=""):
        """passed: True, False, or None when the bar does not apply here."""
        self.bars.append({"name": name, "figure": figure, "unit": unit, "limit": limit,
                          "passed": passed, "note": note})

    def print_bars(self):
        self.heading("Bars")
        for bar in self.bars:
            verdict = {True: "PASS", False: "FAIL", None: "n/a "}[bar["passed"]]
            figure = human(bar["figure"], bar["unit"]) if bar["figure"] is not None else "-"
            print(f"{verdict} {bar['name']:<44.44} {figure:>11}  limit {bar['limit']:<12} "
                  f"{bar['note']}".rstrip()[:WIDTH])
        failed = sum(bar["passed"] is False for bar in self.bars)
        print(f"\nbars: {sum(b['passed'] is True for b in self.bars)} passed, {failed} failed, "
              f"{sum(b['passed'] is None for b in self.bars)} not applicable; "
              f"{len(self.skips)} skipped")
        return failed

    def write(self, path, meta):
        path.write_text(json.dumps({**meta, "rows": self.rows, "bars": self.bars,
                                    "skipped": self.skips, "ledgers": self.ledgers}, indent=1)
                        + "\n")

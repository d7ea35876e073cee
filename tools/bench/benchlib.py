# SPDX-License-Identifier: MIT
"""What every piece of the benchmark needs: statistics, processes under test, profilers, the report.

The method, which all pieces share: only differences and ratios within one run mean anything on a
machine that others use too. Base (A) and variant (B) alternate A B B A so that a slow drift hits
both alike; a round in which the hypervisor took CPU time away (steal) is repeated; the result is
the median of the rounds' paired differences with a bootstrap 95 % interval. Targets are pinned to
CPU 1 and profilers to CPU 0.
"""
import gzip
import json
import os
import random
import select
import shutil
import signal
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


# --- profilers -------------------------------------------------------------------------------


class Heaptap:
    """heaptap record -p: attached while the object lives."""

    name = "heaptap"
    serial = 0

    @staticmethod
    def target_env(env):
        """The environment of a process that will be profiled, and of no other."""
        return env

    def __init__(self, pid, *options):
        if not os.access(HEAPTAP, os.X_OK):
            raise Skip(f"{HEAPTAP} is not built")
        Heaptap.serial += 1
        self.profile = BUILD / f"heaptap.{Heaptap.serial % 8}.pb.gz"
        self.profile.unlink(missing_ok=True)
        self.log = BUILD / f"heaptap.{Heaptap.serial % 8}.log"
        start = time.monotonic()
        with open(self.log, "w") as log, open(BUILD / "heaptap.out", "w") as out:
            self.process = spawn(
                PROFILER_CPU, [HEAPTAP, "record", "-p", pid, "-o", self.profile, *options],
                stdout=out, stderr=log, stdin=subprocess.DEVNULL)
        try:
            wait_for_text(self.log, "heaptap: recording", self.process, 30)
        except Skip:
            self.kill()
            raise
        self.attach_s = time.monotonic() - start
        self.stop_s = None
        self.usage = None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self, seconds=120):
        start = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.usage = wait_exit(self.process, seconds)
        self.stop_s = time.monotonic() - start
        if self.process.returncode:
            raise Skip(f"heaptap ended with status {self.process.returncode}: "
                       + self.log.read_text(errors="replace").strip()[-200:])

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def status_kb(self, key):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        return 0

    def ledger(self):
        return ledger_of(self.profile)


class Naive(Heaptap):
    """The same program with its probes on the functions' first instructions."""

    name = "naive probes"

    def __init__(self, pid, *options):
        super().__init__(pid, "--naive-placement", *options)


class Coarse(Heaptap):
    """As coarse as jemalloc's own profiler: then their standard errors are equal."""

    name = "heaptap 512k"

    def __init__(self, pid, *options):
        super().__init__(pid, "--rate", "512k", *options)


class Bpftrace:
    """malloc at entry and return, free at entry: what bcc's memleak attaches, without its stacks."""

    name = "bpftrace"

    @staticmethod
    def target_env(env):
        """bpftrace 0.17 puts its probes into every process that maps the file, whatever -p says:
        the process under test gets copies of the libraries, so that the base has no probes."""
        copies = BUILD / "libraries"
        copies.mkdir(exist_ok=True)
        for name in ("libc.so.6", "libjemalloc.so.2"):
            try:
                shutil.copy(library(name), copies / name)
            except Skip:
                continue
        found = {**env, "LD_LIBRARY_PATH": str(copies)}
        if "LD_PRELOAD" in env:
            found["LD_PRELOAD"] = str(copies / os.path.basename(env["LD_PRELOAD"]))
        return found

    script = """
BEGIN {{ printf("ready\\n"); }}
uprobe:{lib}:malloc {{ @size[tid] = arg0; }}
uretprobe:{lib}:malloc /@size[tid]/ {{
    @allocs = count(); @bytes = sum(@size[tid]); @live[retval] = @size[tid]; delete(@size[tid]);
}}
uprobe:{lib}:free /arg0/ {{ @frees = count(); delete(@live[arg0]); }}
END {{ clear(@live); clear(@size); }}
"""

    def __init__(self, pid):
        if not shutil.which("bpftrace"):
            raise Skip("bpftrace is not installed")
        library = allocator_of(pid)
        self.log = BUILD / "bpftrace.log"
        script = BUILD / "pairs.bt"
        script.write_text(self.script.format(lib=library))
        start = time.monotonic()
        with open(self.log, "w") as log:
            self.process = spawn(
                PROFILER_CPU, ["bpftrace", "-p", pid, script], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "BPFTRACE_MAP_KEYS_MAX": "1000000"})
        try:
            wait_for_text(self.log, "ready", self.process, 30)
        except Skip:
            self.kill()
            raise
        time.sleep(0.5)  # BEGIN may run before the last probe is attached
        self.attach_s = time.monotonic() - start
        self.stop_s = None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self, seconds=60):
        start = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        wait_exit(self.process, seconds)
        self.stop_s = time.monotonic() - start


def allocator_of(pid):
    """The file whose malloc a process calls: the first allocator library, else libc."""
    files = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1] and fields[5] not in files:
            files.append(fields[5])
    for wanted in ("libjemalloc", "libtcmalloc", "libmimalloc", "libc.so", "libc-"):
        for f in files:
            if wanted in os.path.basename(f):
                return f
    raise Skip(f"process {pid} maps no known allocator")


def library(name):
    """Path of a shared library by its soname, or Skip."""
    for line in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                               text=True).stdout.splitlines():
        fields = line.split()
        if fields and fields[0] == name:
            return fields[-1]
    raise Skip(f"{name} is not installed")


class HeaptrackSession:
    """The environment of a process under heaptrack, with the interpreter at the pipe's other end."""

    name = "heaptrack"

    def __init__(self):
        preload = self.find("libheaptrack_preload.so")
        interpreter = self.find("heaptrack_interpret")
        self.pipe = BUILD / "heaptrack.fifo"
        self.pipe.unlink(missing_ok=True)
        os.mkfifo(self.pipe)
        with open(BUILD / "heaptrack.raw", "w") as raw:
            self.process = spawn(PROFILER_CPU, ["sh", "-c", f"exec {interpreter} <{self.pipe}"],
                                 stdout=raw, stderr=subprocess.DEVNULL)
        self.env = {"LD_PRELOAD": preload, "DUMP_HEAPTRACK_OUTPUT": str(self.pipe)}

    @staticmethod
    def find(name):
        for where in ("/usr/lib/heaptrack", "/usr/lib/x86_64-linux-gnu/heaptrack",
                      "/usr/lib/aarch64-linux-gnu/heaptrack", "/usr/lib/heaptrack/libexec",
                      "/usr/libexec/heaptrack"):
            for path in Path(where).rglob(name) if Path(where).is_dir() else ():
                return str(path)
        raise Skip(f"heaptrack ({name}) is not installed")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.pipe.unlink(missing_ok=True)
        (BUILD / "heaptrack.raw").unlink(missing_ok=True)


JEMALLOC_PROF = {"MALLOC_CONF": "prof:true,lg_prof_sample:19"}


def jemalloc_has_profiler(path):
    """jemalloc prints 'Invalid conf pair' at start when it was built without its profiler."""
    done = subprocess.run(["true"], env={**os.environ, **JEMALLOC_PROF, "LD_PRELOAD": path},
                          capture_output=True, text=True)
    return "prof" not in done.stderr


# --- the profile's ledger --------------------------------------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields_of(data):
    """(number, value) of every field of a protobuf message; bytes for length-delimited ones."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def ledger_of(path):
    """The "ledger: NAME NUMBER" comments of a pprof file (string_table = 6, comment = 13)."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    strings, comments = [], []
    for number, value in fields_of(data):
        if number == 6:
            strings.append(value)
        elif number == 13 and isinstance(value, int):
            comments.append(value)
        elif number == 13:
            at = 0
            while at < len(value):
                index, at = varint(value, at)
                comments.append(index)
    ledger = {}
    for index in comments:
        words = strings[index].decode(errors="replace").split()
        if len(words) >= 3 and words[0] == "ledger:":
            try:
                ledger[words[1]] = float(words[2])
            except ValueError:
                pass
    return ledger


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
            print(f"{verdict} {bar['name']:<48.48} {figure:>13}  limit {bar['limit']:<14} "
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

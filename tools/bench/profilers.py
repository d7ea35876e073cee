# SPDX-License-Identifier: MIT
"""The profilers that are compared: each one attaches to a process or comes as an environment."""
import filecmp
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from benchlib import BUILD, HEAPTAP, PROFILER_CPU, Skip, spawn, wait_exit, wait_for_text
from ledger import ledger_of


def isolated(env):
    """The environment of a process that is alone with its copies of the allocator libraries.

    Uprobes sit on files: any other tool that probes the system's libc at the same time makes every
    hit dearer, and bpftrace 0.17 puts its probes into all processes that map the file, whatever -p
    says, so into the base, too. A profiled process therefore runs on files of its own.
    """
    copies = BUILD / "libraries"
    copies.mkdir(exist_ok=True)
    for name in ("libc.so.6", "libjemalloc.so.2"):
        try:
            original = library(name)
        except Skip:
            continue
        # Never written in place: a process that is still alive may have it mapped.
        if not (copies / name).exists() or not filecmp.cmp(original, copies / name):
            shutil.copy2(original, copies / (name + ".new"))
            os.replace(copies / (name + ".new"), copies / name)
    found = {**env, "LD_LIBRARY_PATH": str(copies)}
    if "LD_PRELOAD" in env:
        found["LD_PRELOAD"] = str(copies / os.path.basename(env["LD_PRELOAD"]))
    return found


class Heaptap:
    """heaptap record -p: attached while the object lives."""

    name = "heaptap"
    serial = 0

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
                PROFILER_CPU, [HEAPTAP, "record", "--force", "--max-overhead", "off", "-p", pid, "-o", self.profile,
                               *options],
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

    def maps_kb(self):
        """Kernel memory of its BPF maps, each counted once."""
        maps = {}
        for info in Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            fields = dict(line.split(":", 1) for line in info.read_text().splitlines()
                          if ":" in line)
            if "map_id" in fields:
                maps[fields["map_id"]] = int(fields["memlock"])
        return sum(maps.values()) / 1024

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
    """malloc at entry and return, free at entry: what bcc's memleak attaches, without stacks."""

    name = "bpftrace"

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
    """The environment of a process under heaptrack, with the interpreter at the pipe's end."""

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

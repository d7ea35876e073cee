# SPDX-License-Identifier: MIT
"""The programs that the pieces load: redis under redis-benchmark, a clang compile."""
import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from benchlib import BUILD, PROFILER_CPU, TARGET_CPU, Skip, spawn, wait_exit


class Redis:
    """A redis-server of its own on a unix socket; the client runs on the profilers' CPU."""

    serial = 0

    def __init__(self, env=None):
        for tool in ("redis-server", "redis-benchmark", "redis-cli"):
            if not shutil.which(tool):
                raise Skip(f"{tool} is not installed")
        Redis.serial += 1
        self.socket = BUILD / f"redis.{os.getpid()}.{Redis.serial}.sock"
        self.process = spawn(
            TARGET_CPU, ["redis-server", "--port", "0", "--unixsocket", self.socket,
                         "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        deadline = time.monotonic() + 20
        while subprocess.run(["redis-cli", "-s", self.socket, "ping"],
                             capture_output=True).stdout != b"PONG\n":
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.close()
                raise Skip("redis-server does not start")
            time.sleep(0.05)

    def cpu_ns(self):
        return sum(int((task / "schedstat").read_text().split()[0])
                   for task in Path(f"/proc/{self.pid}/task").iterdir())

    def load(self, requests, pipeline=1, tests="set,get"):
        """A set/get mix, or what tests says: requests/s, p99 in ms, CPU ns per request."""
        before = self.cpu_ns()
        client = spawn(PROFILER_CPU, ["redis-benchmark", "-s", self.socket, "-t", tests, "-n", requests,
                                      "-c", "50", "-r", "100000", "-d", "64", "-P", pipeline, "--csv"],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        out = client.communicate(timeout=300)[0]
        cpu = self.cpu_ns() - before
        rows = [[field.strip('"') for field in line.split(",")]
                for line in out.splitlines() if line.startswith('"')]
        head = rows[0]
        rate, p99 = head.index("rps"), head.index("p99_latency_ms")
        seconds = sum(requests / float(row[rate]) for row in rows[1:])
        count = requests * (len(rows) - 1)
        return count / seconds, max(float(row[p99]) for row in rows[1:]), cpu / count

    def requests_for(self, seconds, pipeline=1):
        """How many requests of each kind keep this server busy for about so long."""
        rate = self.load(1000 * pipeline, pipeline)[0]
        return max(1000, int(rate * seconds / 2))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)


def cpp_source():
    """A translation unit of our own with much of what makes a compiler allocate."""
    path = BUILD / "compile_me.cpp"
    rng = random.Random(7)
    lines = ["#include <algorithm>", "#include <map>", "#include <string>", "#include <vector>",
             "template <int N> struct Chain { int value = N; Chain<N - 1> next;",
             "  int sum() const { return value + next.sum(); } };",
             "template <> struct Chain<0> { int sum() const { return 0; } };"]
    for i in range(60):
        k = rng.randrange(3, 30)
        lines += [f"int work_{i}(const std::vector<std::string> &in) {{",
                  f"  std::map<std::string, int> seen; Chain<{k}> chain;",
                  f"  for (auto &s : in) seen[s + \"{i}\"] += s.size() * {k};",
                  "  int total = chain.sum();",
                  "  for (auto &e : seen) total += e.second;",
                  "  return total; }"]
    path.write_text("\n".join(lines) + "\n")
    return path


def compile_command(tag):
    """(command, file with its time line). One process (no separate cc1), started as a user would:
    a wrapper around it would be what the profiler prepares for instead."""
    clang = shutil.which("clang++") or shutil.which("clang")
    if not clang:
        raise Skip("clang is not installed")
    times = BUILD / f"compile.{tag}.json"
    times.unlink(missing_ok=True)
    return [clang, "-x", "c++", "-c", "-O1", "-ftime-trace", str(cpp_source()),
            "-o", str(BUILD / f"compile.{tag}.o")], times


def timed_run(command, times, prefix=(), env=None, limit=300):
    """Run a command made by compile_command(): (the seconds that the compiler says it took, those
    of everything around it). Not pinned: a profiler that starts it would be pinned with it."""
    start = time.monotonic()
    with open(BUILD / "compile.log", "w") as log:
        process = subprocess.Popen([*map(str, prefix), *command], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        wait_exit(process, limit)
    whole = time.monotonic() - start
    if process.returncode:
        tail = (BUILD / "compile.log").read_text(errors="replace").strip()[-200:]
        raise Skip(f"status {process.returncode}: {tail}")
    for event in json.loads(times.read_text())["traceEvents"]:
        if event["name"] == "ExecuteCompiler":
            return event["dur"] / 1e6, whole
    raise Skip("the compiler did not write its time line")

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tap_set.py PID RECORDER: what a tapped process has in its set of kept blocks, beside the map of live samples.

Both must hold the same addresses. The process must not be allocating. Prints how many they are, or what differs
(status 1). The layout is that of user/tap/tap_layout.h: it is asked of the compiler.
"""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

pid, recorder = int(sys.argv[1]), int(sys.argv[2])
top = Path(__file__).resolve().parents[2]
with tempfile.TemporaryDirectory() as work:
    source, program = Path(work, "layout.c"), Path(work, "layout")
    source.write_text("""#include <stddef.h>
#include <stdio.h>
#include "tap/tap_layout.h"
int main(void)
{
    return printf("%zu %zu %d", offsetof(struct tap_header, data_addr), offsetof(struct tap_data, set), TAP_SET_SLOTS) < 0;
}
""")
    subprocess.run(["cc", f"-I{top}/user", "-o", program, source], check=True)
    data_off, set_off, slots = map(int, subprocess.run([program], capture_output=True, check=True).stdout.split())

code = [int(line.split("-")[0], 16) for line in open(f"/proc/{pid}/maps") if "/memfd:heaptap" in line and " r-xp " in line]
if len(code) != 1:
    sys.exit(f"{len(code)} taps in PID {pid}")
with open(f"/proc/{pid}/mem", "rb") as mem:
    mem.seek(code[0] + data_off)
    data = struct.unpack("=Q", mem.read(8))[0]
    mem.seek(data + set_off)
    kept = {addr for addr in struct.unpack(f"={slots}Q", mem.read(8 * slots)) if addr}

ids = set()
for info in Path(f"/proc/{recorder}/fdinfo").iterdir():
    ids |= {line.split()[1] for line in info.read_text().splitlines() if line.startswith("map_id:")}
maps = json.loads(subprocess.run(["bpftool", "-j", "map", "list"], capture_output=True, check=True).stdout)
live_id = [str(m["id"]) for m in maps if m.get("name") == "live" and str(m["id"]) in ids]
if len(live_id) != 1:
    sys.exit(f"{len(live_id)} maps of live samples in PID {recorder}")
dump = json.loads(subprocess.run(["bpftool", "-j", "map", "dump", "id", live_id[0]], capture_output=True, check=True).stdout)
live = set()
for entry in dump:
    tgid, _, addr = struct.unpack("=IIQ", bytes(int(byte, 16) for byte in entry["key"]))
    if tgid == pid:
        live.add(addr)
if live != kept:
    sys.exit(f"{len(kept - live)} of {len(kept)} kept blocks are not live samples, {len(live - kept)} of {len(live)} are not kept")
print(f"{len(live)} blocks")

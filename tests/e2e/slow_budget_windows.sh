#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Windows: what is seen while the probes are in, scaled up, is what there was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/budget_lib.sh"
e2e_init budget_windows
has_mode session || has_mode multi || skip_all "no windows with perf events"
have python3 || skip_all "python3 is not installed"

build_c busy || { not_ok build "workload"; e2e_end; }
limit=5

# What windows see is scaled to what there was: a program that waits for its work. It does something
# else than allocate, too: how much slower a program gets on in a window is seen in its own CPU time,
# of which next to nothing is left where it only allocates.
pairs() { awk '/^AT/ { p = $4 } END { print p }' "$work/target.out"; }
start "$bin/busy" 1 100000 5000 || not_ok start "the target did not start" "$work/target.err"
await_pace 3
before=$(pairs)
attach -n 0 --max-overhead 2
await_pace 60
after=$(pairs)
stop_recorder
notes=$(notes)
seen=$("$heaptap" report --format json "$work/p.pb.gz" | python3 -c '
import json, sys
print(json.load(sys.stdin)["total"]["alloc_objects"])')
[[ "$notes" == *"full -> windows"* ]] &&
	awk -v seen="$seen" -v true="$((after - before))" 'BEGIN { exit !(seen > 0.5 * true && seen < 2 * true) }' &&
	ok "windows: $seen allocations estimated, $((after - before)) made" ||
	not_ok "windows" "$seen allocations estimated, $((after - before)) made" "$work/heaptap.err"
kill_target

e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Windows: what is seen while the probes are in, scaled up, is what there was. Of a program that waits for its
# work, which is not held up by probes, and of one that never waits, which is.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/budget_lib.sh"
e2e_init budget_windows
has_mode session || has_mode multi || skip_all "no windows with perf events"
have python3 || skip_all "python3 is not installed"
# Its links come and go in seconds, so that a recording has hardly a window; and nothing waits there.
[ "${HEAPTAP_VM:-0}" = 0 ] || skip_all "an emulated machine is too slow for windows"

build_c busy || { not_ok build "workload"; e2e_end; }

pairs() { awk '/^AT/ { p = $4 } END { print p }' "$work/target.out"; }
# windows WHAT LIMIT ARGUMENTS-OF-BUSY...
windows() {
	local what=$1 limit=$2 before after seen notes
	shift 2
	start "$bin/busy" "$@" || not_ok "$what" "the target did not start" "$work/target.err"
	await_pace 3
	attach -v -n 0 --max-overhead "$limit"
	before=$(pairs) # what was allocated before the attachment is not in the profile
	await_pace 60
	after=$(pairs)
	stop_recorder
	notes=$(notes)
	seen=$("$heaptap" report --format json "$work/p.pb.gz" | python3 -c '
import json, sys
print(json.load(sys.stdin)["total"]["alloc_objects"])')
	[[ "$notes" == *"full -> windows"* ]] &&
		awk -v seen="$seen" -v true="$((after - before))" 'BEGIN { exit !(seen > 0.5 * true && seen < 2 * true) }' &&
		ok "$what: $seen allocations estimated, $((after - before)) made" ||
		not_ok "$what" "$seen allocations estimated, $((after - before)) made" "$work/heaptap.err"
	grep -q 'windows: .*chance decides what they see' <<<"$notes" && ok "$what: it is said how good that is" ||
		not_ok "$what: notes" "$notes" "$work/heaptap.err"
	kill_target
}

windows "waits for its work" 2 1 100000 5000
windows "never waits" 5 1 0 3000

e2e_end

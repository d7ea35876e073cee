#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A heap is in a memory: what a child of vfork() or clone(CLONE_VM) allocates and frees there is its parent's, until it executes
# a program.
. "$(dirname "$0")/lib.sh"
e2e_init shared_memory
build_c shares || { not_ok build "shares.c"; e2e_end; }
export E2E_NO_EMPTY=1

# shared NAME MODE ARG...: to the byte, and no process but the parent, and what it executes, is in the profile
shared() {
	local name=$1 mode=$2
	shift 2
	start env E2E_MODE=$mode "$bin/shares"
	attach --rate 1 "$@"
	work_recorded "$name"
	[[ $* == *--follow* ]] && set -- --label pid="$target" || set --
	same "$name" --alloc "$@"
	no_losses "$name: no losses"
	[ "$mode" != vfork ] || [ $# = 0 ] || "$compare" labels "$work/p.pb.gz" comm | grep -q exe && return
	not_ok "$name: the program that a child executes" "is not in the profile" "$work/heaptap.err"
}
if [ "$(uname -m)" = x86_64 ]; then
	tap="--tap=only --tap-exactly"
	for mode in vfork clone early fork; do
		shared "tap, $mode" $mode $tap
		shared "tap, --follow, $mode" $mode $tap --follow
	done
fi
if [ "$(uname -m)" = x86_64 ]; then
	# Both are recorded, by their PIDs: the one that is tapped has all of it.
	start env E2E_MODE=early "$bin/shares"
	record_work --rate 1 $tap -p "$(pgrep -P "$target")"
	same "two processes of one memory" --alloc
	no_losses "two processes of one memory: no losses"
	[ "$(grep -c 'is tapped: [0-9]* thread' "$work/heaptap.err")" = 1 ] && ok "two processes of one memory: one tap" ||
		not_ok "two processes of one memory" "there is not one tap" "$work/heaptap.err"
fi
for attach in $e2e_modes; do
	for mode in vfork clone fork; do
		shared "probes, --follow, $mode, $attach" $mode --follow --attach-mode=$attach
	done
done
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Code that programs make at run time: stacks go through it, and it is named as what it was when it
# allocated. A program of our own, then the runtimes that are there.
. "$(dirname "$0")/lib.sh"
e2e_init jit

[ "$(uname -m)" = x86_64 ] || skip_all "the workload makes x86-64 code"
build_c jit || { not_ok build "workload"; e2e_end; }

# whole NAME [LEAST]: of the stacks, this many percent reach the thread's start
whole() {
	local name=$1 least=${2:-100} complete cut=0 counter
	complete=$(ledger stacks_complete)
	for counter in no_mapping no_table no_row unsupported read_fault too_deep bad_cfa jit; do
		cut=$((cut + $(ledger truncated_$counter)))
	done
	if [ "$complete" -gt 0 ] && [ $((complete * 100)) -ge $(((complete + cut) * least)) ]; then
		ok "$name: $complete of $((complete + cut)) stacks are whole"
	else
		not_ok "$name" "$complete of $((complete + cut)) stacks are whole" "$work/heaptap.err"
	fi
}
for mode in $e2e_modes; do
	exact "names in a map, $mode" --attach-mode=$mode -- "$bin/jit"
	whole "names in a map, $mode"
done
exact "memory given to other code" -- env E2E_MODE=reuse "$bin/jit"
whole "memory given to other code"
exact "names, a move and a change in a jitdump" -- env E2E_MODE=dump "$bin/jit"
exact_launched "names in a map, started by heaptap" -- "$bin/jit"
exact_launched "in a pid namespace, where it has another number" --follow -- unshare --pid --fork --mount-proc "$bin/jit"
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two recordings at once on one libc: of two processes, and of the same process. Neither changes
# what the other one counts.
. "$(dirname "$0")/lib.sh"
e2e_init two_recorders

build_c family && build_c busy || { not_ok build "workloads"; e2e_end; }
# other MODE PID: a recording in the background, its pid in $other
other() {
	: >"$work/other.err" # of the one before: it says the same
	"$heaptap" record --force -n 0 --rate 1 --attach-mode="$1" -o "$work/other.pb.gz" -p "$2" >/dev/null \
		2>"$work/other.err" </dev/null &
	owned other
	await 60 says "$work/other.err" '^heaptap: recording' ||
		not_ok "the other recording, $1: begins" "not within a minute" "$work/other.err"
}
end_other() {
	kill -INT "$other" 2>/dev/null
	await 20 is_gone "$other" && wait "$other"
}
mkfifo "$work/bystander.in"
"$bin/busy" 1 50000 <"$work/bystander.in" >"$work/bystander.out" &
owned bystander
exec {bystander_in}>"$work/bystander.in"
await 10 says "$work/bystander.out" '^READY'
for theirs in $(some 1 $e2e_every_mode); do
	other $theirs "$bystander"
	for ours in $e2e_modes; do
		beside exact "$ours, another process recorded by $theirs" --attach-mode=$ours -- "$bin/family"
	done
	together
	end_other || not_ok "the other recording, $theirs" "failed" "$work/other.err"
done
both() { # OURS THEIRS: of one process
	local name="$1, the same process recorded by $2 as well"
	start "$bin/family"
	other $2 "$target"
	attach --rate 1 --attach-mode=$1
	run_target
	stop_recorder
	end_other || not_ok "$name" "the other one failed" "$work/other.err"
	finish_target
	same "$name" --alloc
	cp "$work/other.pb.gz" "$work/p.pb.gz"
	cp "$work/other.err" "$work/heaptap.err" # what is shown when it differs
	same "$name, the other one" --alloc
}
for theirs in $e2e_every_mode; do
	for ours in $e2e_modes; do beside both $ours $theirs; done
done
together
e2e_end

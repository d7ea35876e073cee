#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap that takes over from probes: a program that heaptap starts is recorded from its first allocation on, and what
# it has in use stays known when probes cost too much. timeout: 900
. "$(dirname "$0")/lib.sh"
e2e_init tap_auto
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 || skip_all "python3 is not installed"
build_c early && build_c busy && build_c family && OUT=early-static build_c early -static || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/tap_lib.sh"
export E2E_NO_EMPTY=1
# Probes cost a program the same part of its time when it rests, and this machine less.
export E2E_REST=2 E2E_BUSY_MS=600

# record ARGS... -- COMMAND...: as a user has it, with the usual limit
record() {
	rm -f "$work/p.pb.gz"
	E2E_NOWAIT=1 timeout -s INT -k 10 90 "$heaptap" record --force -o "$work/p.pb.gz" "$@" \
		>"$work/target.out" 2>"$work/heaptap.err" </dev/null
	record_status=$? target_status=0
	comments >"$work/notes"
	tr -s '\n ' ' ' <"$work/notes" >"$work/flat"
}
was_tapped() { says "$work/heaptap.err" 'PID [0-9]* is tapped: '; }
# tapped NAME: by itself, and the profile says how
tapped() {
	was_tapped && says "$work/heaptap.err" 'the tap replaces probes, which cost [0-9.]* % of its CPU time' &&
		says "$work/notes" 'source: tap' && says "$work/notes" 'source: uprobe' &&
		says "$work/flat" 'ledger: tap_gap [0-9]* (ms of allocations missing from heap in use, while the tap was put in)' &&
		says "$work/flat" 'recorded: [^:]*, from the start of the program source' &&
		says "$work/flat" 'budget: after [^:]*: the tap replaces probes' && ! says "$work/notes" 'UNKNOWN' &&
		ok "$1: is tapped by itself" || not_ok "$1" "is not tapped, or it is not said" "$work/heaptap.err" "$work/notes"
}
# near NAME [FACTOR [SITES]]: what is in use of each site, within a fifth; FACTOR: so many processes have it
near() {
	"$compare" sites "$work/p.pb.gz" >"$work/sites"
	awk -v factor="${2:-1}" -v sites="${3:-site_}" '
		NR == FNR { if ($1 == "SITE") found[$2] += $4; next }
		$1 == "EXPECT" && $2 ~ sites { want = factor * $4; is = found[$2] + 0; printf "%s: %d of %d\n", $2, is, want
			if (is < 0.8 * want || is > 1.2 * want) bad = 1; rows++ }
		END { exit bad || rows < 2 }' "$work/sites" "$work/target.out" >"$work/near" &&
		ok "$1: in use of each site" || not_ok "$1: in use" "differs" "$work/near" "$work/heaptap.err"
}

# To the byte: every block is kept by the probes, and by the tap.
every="--tap=auto --tap-exactly --rate 1 --max-overhead 25"
for mode in $e2e_modes; do
	record $every --attach-mode=$mode -- "$bin/early"
	same "every block, $mode"
	tapped "every block, $mode"
done
record $every -- "$bin/early-static"
same "a static program"
tapped "a static program"
for name in jemalloc tcmalloc_minimal mimalloc; do
	other=$(ldconfig -p | awk -v name="lib$name.so." 'index($1, name) == 1 && /x86-64/ { print $NF; exit }')
	[ -n "$other" ] || { skip "$name" "it is not installed"; continue; }
	record $every -- env LD_PRELOAD="$other" "$bin/early"
	same "$name"
	tapped "$name"
done

# As a user has it. The tap takes fewer samples than the probes did, as the program allocates so much.
large="env E2E_BLOCKS=60000 E2E_BYTES=500"
record -- $large "$bin/early"
near "by default" 1 'kept|freed'
tapped "by default"
record --rate 64k -- $large "$bin/early"
near "one rate"
tapped "one rate"
"$heaptap" report "$work/p.pb.gz" | grep -q '^lost: [0-9]* ms of allocations missing from heap in use, while the tap was put in; see' && ok "what was missed is a loss" || not_ok "what was missed" "is no loss" "$work/notes"

# Who does not want it, or wants it exact.
for args in --tap=no "--max-overhead off"; do
	# shellcheck disable=SC2086 # an option and its value
	record $args -- "$bin/early"
	! was_tapped && ! says "$work/notes" 'source: tap' && ok "$args: probes" || not_ok "$args" "is tapped" "$work/heaptap.err"
done
for args in "--rate 1" "--tap=auto --rate 1"; do
	# shellcheck disable=SC2086
	record $args -- "$bin/early"
	! was_tapped && ok "$args: probes" || not_ok "$args" "is tapped" "$work/heaptap.err"
	same "$args" --alloc
	no_losses "$args: no losses"
done
"$heaptap" record --tap=never -- true >"$work/out" 2>&1
[ $? = 125 ] && says "$work/out" "bad value 'never'" && ok "--tap=never: wrong usage" || not_ok "--tap=never" "is taken" "$work/out"

# Little is left alone: the tap would cost more than it spares.
for command in true "ls /" "sh -c exit"; do
	# shellcheck disable=SC2086
	record -- $command
	[ $record_status = 0 ] && ! was_tapped && ok "$command: probes" || not_ok "$command" "status $record_status" "$work/heaptap.err"
done
# Wrappers: only what works is tapped, and nothing of it is missed.
record $every -- sh -c 'exec nice -n 0 env A=b "$0"' "$bin/early"
same "wrappers"
tapped "wrappers"
[ "$(grep -c 'is tapped' "$work/heaptap.err")" = 1 ] && ok "wrappers: once" || not_ok "wrappers" "more than once" "$work/heaptap.err"
# It executes another program when it is tapped: that one is late, which is said, or was not tapped yet.
record -- sh -c '"$0" >/dev/null; exec "$1"' "$bin/early" "$bin/family"
[ $record_status = 0 ] && ok "a child that is not recorded" || not_ok "a child" "status $record_status" "$work/heaptap.err"

# Refused: the probes stay, and that is said in one line, without the advice to tap. What the try took is a loss, too.
refused() {
	local name=$1
	shift
	record --max-overhead 5 "$@"
	[ $record_status = 0 ] && [ "$(grep -c 'cannot be tapped: .*; it is recorded with probes' "$work/heaptap.err")" = 1 ] &&
		! was_tapped && says "$work/notes" 'source: uprobe' && ! says "$work/heaptap.err" 'use --tap' &&
		says "$work/flat" 'ledger: tap_gap [0-9]* (ms of allocations missing from heap in use, ' &&
		ok "$name: probes" || not_ok "$name" "status $record_status" "$work/heaptap.err" "$work/notes"
}
refused "no descriptor left" -- bash -c 'ulimit -n 3; E2E_BUSY_MS=1400 exec "$0"' "$bin/early-static"
if have strace; then
	refused "another tracer" --no-hold -- strace -D -qq -e trace=none env E2E_BUSY_MS=1400 "$bin/early"
else
	skip "another tracer" "strace is not installed"
fi

# With its children: all of them over the limit together.
record --rate 64k --follow -- env E2E_CHILDREN=2 E2E_REST=0 E2E_BUSY_MS=4000 E2E_BLOCKS=20000 E2E_BYTES=500 "$bin/early"
near "--follow" 3
[ "$(grep -c 'is tapped' "$work/heaptap.err")" = 3 ] && says "$work/notes" 'ledger: tap_gap [0-9]* (ms' && ok "--follow: each is tapped" ||
	not_ok "--follow" "they are not each tapped" "$work/heaptap.err" "$work/notes"

# Of a running process: probes first, and nothing of the tap is left.
start $own "$bin/busy" 2 150000
record_start --tap=auto --max-overhead 25 -d 6s -p "$target"
wait_recorder
comments >"$work/notes"
[ "$record_status" = 0 ] && was_tapped && ! says "$work/notes" UNKNOWN && ok "a running process: in use is known" ||
	not_ok "a running process" "status $record_status" "$work/heaptap.err" "$work/notes"
same_text "a running process, after the end"
record_start --max-overhead 25 -d 6s -p "$target"
wait_recorder
! was_tapped && ok "a running process is not tapped by itself" || not_ok "a running process" "is tapped" "$work/heaptap.err"
# Stopped when it is tapped, with requests to the guardian under way: the tap goes out, and comes back.
record_start --tap=auto --max-overhead 25 -p "$target"
await 30 was_tapped || not_ok "stopped" "it is not tapped" "$work/heaptap.err"
kill -STOP "$recorder"
await 10 is_same_text && ok "stopped: the tap is out" || not_ok "stopped" "the text differs" "$work/differences"
kill -CONT "$recorder"
await 20 says "$work/heaptap.err" 'heaptap was stopped .* heap in use counts from now' && await 20 eval '! is_same_text' &&
	ok "stopped: it is back" || not_ok "stopped" "the tap does not come back, or it is not said" "$work/heaptap.err"
stop_recorder
same_text "stopped, after the end"
# Killed when it is tapped.
record_start --tap=auto --max-overhead 25 -p "$target"
await 30 was_tapped || not_ok "killed" "it is not tapped" "$work/heaptap.err"
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
same_text "killed"
kill_target

if have curl; then
	. "$e2e_dir/serve_lib.sh"
	sharing=own
	start $own "$bin/busy" 1 200000
	serve --listen 127.0.0.1:0 --comm '^busy' --tap-auto
	await 20 follows "$target" && await 30 says "$top/serve.err" "PID $target: after .*: the tap replaces probes" ||
		not_ok "serve" "it is not tapped" "$top/serve.err"
	[ "$(metric "heaptap_inuse_complete{pid=\"$target\"")" = 1 ] && ok "serve --tap-auto: in use is known" ||
		not_ok "serve --tap-auto" "it is unknown" "$top/serve.err"
	end_server serve
	same_text "serve, after the end"
	serve --listen 127.0.0.1:0 --comm '^busy' --tap-auto --tap '^another$'
	await 20 follows "$target" && await 30 says "$top/serve.err" 'heap in use is unknown\|stopped recording' &&
		! says "$top/serve.err" 'is tapped' && ok "serve: who is not named is not tapped" ||
		not_ok "serve: who is not named" "is tapped" "$top/serve.err"
	end_server serve
	kill_target
fi
e2e_end

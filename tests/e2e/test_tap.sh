#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap: exact where every block is kept, known where probes are too dear; what cannot be tapped is said.
# test_tap_guest.sh looks whether it does harm. timeout: 900
. "$(dirname "$0")/lib.sh"
e2e_init tap
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 || skip_all "python3 is not installed"
build_c family && build_c threads && build_cxx cxx && build_c busy && build_c planted && build_c execs && build_c forks &&
	OUT=family-static build_c family -static || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/tap_lib.sh"

# Every block kept: the same to the byte as by its own account.
every="--tap=only --tap-exactly"
export E2E_NO_EMPTY=1
for mode in $e2e_modes; do
	exact "every block, $mode" $every --attach-mode=$mode -- "$bin/family"
	no_losses "every block, $mode: no losses"
done
exact "8 threads" $every -- env E2E_THREADS=8 "$bin/family"
# some of which have the same counter
exact "100 threads" $every -- env E2E_THREADS=100 "$bin/family"
no_losses "100 threads: no losses"
exact "frees across threads" $every -- env E2E_MODE=race "$bin/threads"
exact "C++" $every -- "$bin/cxx"
exact "a static program" $every -- "$bin/family-static"
for name in jemalloc tcmalloc_minimal mimalloc; do
	other=$(ldconfig -p | awk -v name="lib$name.so." 'index($1, name) == 1 && /x86-64/ { print $NF; exit }')
	[ -n "$other" ] || { skip "$name" "it is not installed"; continue; }
	again exact "$name" $every -- env LD_PRELOAD="$other" "$bin/family"
	exact "$name, C++" $every -- env LD_PRELOAD="$other" E2E_NO_THROW=1 "$bin/cxx"
done

# A realloc that throws has no other function that gives such blocks: that is said.
comments >"$work/notes"
[ -z "$other" ] || says "$work/notes" 'missing: allocations of these functions, which cannot be tapped: mi_new_realloc' &&
	ok "mimalloc: what is missing" || not_ok "mimalloc: what is missing" "is not said" "$work/notes"
if have musl-gcc && CC=musl-gcc OUT=family-musl build_c family -idirafter/usr/include; then
	exact "musl" $every -- "$bin/family-musl"
	comments >"$work/notes"
	says "$work/notes" 'missing: allocations of these functions' && not_ok "musl: what is missing" "is not nothing" "$work/notes" ||
		ok "musl: nothing is missing"
else
	skip "musl" "musl-gcc is not installed"
fi

# Children have the changed bytes when they are forked, and data that is wiped: each is tapped for itself.
start $own E2E_MODE=follow E2E_CHILD_DELAY_MS=1500 "$bin/forks"
attach $every --rate 1 --follow
$own sleep 60 &
other=$!
e2e_pids="$e2e_pids $other"
run_target
(target=$other; is_same_text) && ok "--follow: nobody else is probed" || not_ok "--follow: somebody else" "has probes" "$work/differences"
stop_recorder
finish_target
cp "$work/target.out" "$work/all.out"
child=1
for pid in $(awk '$1 == "PID" { print $2 }' "$work/all.out"); do
	of_pid "$pid" "$work/all.out" >"$work/target.out"
	who=parent
	[ "$pid" = "$target" ] || who="child $((child++))"
	same "--follow: $who" --alloc --label pid="$pid"
done
comments >"$work/notes"
says "$work/notes" 'ledger: tap_late 2 (processes tapped late: up to their first ' && ! says "$work/notes" 'tap_never' &&
	ok "--follow: what came before is counted" || not_ok "--follow: what came before" "is not counted" "$work/notes"
[ "$(grep -c 'is tapped: [0-9]* thread' "$work/heaptap.err")" = 3 ] && ok "--follow: each is tapped" ||
	not_ok "--follow" "they are not each tapped" "$work/heaptap.err"
# Children that live for a moment only are left alone.
start env E2E_MODE=storm "$bin/forks"
attach $every --rate 1 --follow
run_target
stop_recorder
finish_target
same "--follow through a fork storm" --label pid="$target"
comments >"$work/notes"
says "$work/notes" 'ledger: tap_never [0-9]* (process\(es\)\{0,1\} not tapped: ' && ! says "$work/notes" 'source: uprobe' &&
	ok "--follow: who ended before is counted" || not_ok "--follow: who ended before" "is not counted" "$work/notes"
# Nobody was tapped in time: what was allocated and is in use is unknown, not 0.
"$heaptap" record --tap --force -o "$work/p.pb.gz" -- true >"$work/heaptap.out" 2>"$work/heaptap.err"
"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>&1
"$heaptap" report "$work/p.pb.gz" >"$work/text" 2>&1
if says "$work/heaptap.err" 'is tapped'; then
	skip "ended before its tap" "it was tapped in time"
else
	says "$work/json" '"inuse":"unknown"' && says "$work/json" '"total":{"inuse_bytes":null,.*"alloc_bytes":null,' &&
		says "$work/text" '^In use: UNKNOWN. No process was tapped before it ended' && ! says "$work/text" '\<0 B' &&
		ok "ended before its tap: nothing is known" || not_ok "ended before its tap" "it is 0" "$work/text" "$work/json"
fi

# As a user has it: a program that does nothing but allocate is far over any limit by probes.
start $own "$bin/busy" 2
"$heaptap" record --tap -p "$target" -d 2s --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
record_status=$?
comments >"$work/notes"
cost=$(sed -n 's/.*cost: \([0-9.]*\) % of its CPU time.*/\1/p' "$work/notes")
[ "$record_status" = 0 ] && says "$work/notes" 'source: tap, put into the running program, which was paused for' &&
	! says "$work/notes" UNKNOWN && ok "busy: in use is known, and how" ||
	not_ok "busy" "status $record_status" "$work/notes" "$work/heaptap.err"
awk -v cost="${cost:-100}" 'BEGIN { exit !(cost < 8) }' && ok "busy: $cost % of its CPU time" ||
	not_ok "busy: cost" "${cost:-unknown} %" "$work/notes"
tell 50000 # it is to cost nothing from here on
same_text "busy, after the end"
"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
! says "$work/doctor" JIT && ok "busy, after the end: doctor takes its memory for no compiler's" || not_ok "doctor after a tap" "a compiler" "$work/doctor"
[ "$(grep -c 'r-xp.*/memfd:heaptap' "/proc/$target/maps")" = 1 ] && "$heaptap" record --tap=only -p "$target" -d 0.3s --force \
	-o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err" && [ "$(grep -c 'r-xp.*/memfd:heaptap' "/proc/$target/maps")" = 1 ] &&
	ok "the next one uses the same memory" || not_ok "the next one" "maps more" "$work/heaptap.err"

# What would be changed, and nothing is.
dry_run() { "$heaptap" record --tap --dry-run -p "$target" >"$work/dry" 2>"$work/heaptap.err"; }
dry_run && says "$work/dry" 'uses the memory of an earlier tap' && says "$work/dry" '^    malloc+[0-9]*  *0x[0-9a-f]* .* -> e[9b]' &&
	says "$work/dry" "The tap is possible. Nothing was changed. .*record --tap -p $target" && ok "--dry-run" ||
	not_ok "--dry-run" "does not say it" "$work/dry" "$work/heaptap.err"
same_text "--dry-run"
"$heaptap" record --tap --dry-run -- true >"$work/dry" 2>"$work/heaptap.err"
[ $? = 125 ] && says "$work/heaptap.err" '--dry-run needs --tap and -p PID' && ok "--dry-run of a command: an error" ||
	not_ok "--dry-run of a command" "is none" "$work/heaptap.err"

# Two at once: the second is told, and nothing happens to the first.
record_start --tap -p "$target"
first=$recorder
! dry_run && says "$work/dry" 'would be refused: its code at .* differs from its file: another heaptap' && ok "--dry-run beside it" ||
	not_ok "--dry-run beside it" "does not say it" "$work/dry"
"$heaptap" record --tap=only -p "$target" -d 1s --force -o "$work/second.pb.gz" >"$work/second.out" 2>"$work/second.err"
status=$?
[ $status = 1 ] && says "$work/second.err" 'cannot be tapped: it is tapped by another heaptap, PID' && [ ! -e "$work/second.pb.gz" ] &&
	ok "two at once: the second is refused" || not_ok "two at once" "status $status" "$work/second.err"
recorder=$first
stop_recorder
comments >"$work/notes"
[ "$record_status" = 0 ] && says "$work/notes" 'source: tap' && ok "two at once: the first goes on" ||
	not_ok "two at once: the first" "status $record_status" "$work/heaptap.err"
same_text "two at once"
kill_target

# An exec is another image, which is tapped again; one that is started with a command is tapped as it runs.
start sh -c 'echo READY; read -r go; exec env LD_LIBRARY_PATH="$2" "$1" 1 200000' - "$bin/busy" "$work/own"
record_start --tap -p "$target" -d 3s
tell go
wait_recorder
comments >"$work/notes"
[ "$record_status" = 0 ] && says "$work/notes" 'source: tap' && says "$work/notes" 'busy_site\|busy' && ! says "$work/notes" UNKNOWN &&
	ok "an exec: the new program is tapped" || not_ok "an exec" "status $record_status" "$work/notes" "$work/heaptap.err"
same_text "an exec"
kill_target
E2E_NO_EMPTY=1 "$heaptap" record --tap -d 2s --force -o "$work/p.pb.gz" -- \
	bash -c 'exec "$1" 1 200000 < <(sleep 4)' - "$bin/busy" >"$work/heaptap.out" 2>"$work/heaptap.err"
status=$?
comments >"$work/notes"
[ $status = 0 ] && says "$work/notes" 'source: tap' && ok "a command" || not_ok "a command" "status $status" "$work/notes" "$work/heaptap.err"

# A child that is forked meanwhile has the bytes, and works; --remove-tap takes them out of it.
start $own python3 -uc 'import os, sys
print("READY")
sys.stdin.readline()
if not os.fork():
    print("CHILD", os.getpid())
    while True: sys.stdin.readline(); print("ALIVE", len("x" * 100000))
sys.stdin.read()'
record_start --tap=only -p "$target"
tell go
await 10 says "$work/target.out" '^CHILD'
stop_recorder
same_text "a forked child: its parent"
child=$(awk '$1 == "CHILD" { print $2 }' "$work/target.out")
parent=$target target=$child
"$heaptap" doctor --remove-tap -p "$child" >"$work/remove.out" 2>"$work/remove.err" && says "$work/remove.out" 'is removed' &&
	ok "a forked child: --remove-tap" || not_ok "a forked child: --remove-tap" "it says otherwise" "$work/remove.out" "$work/remove.err"
same_text "a forked child"
kill -0 "$child" && ok "a forked child: lives" || not_ok "a forked child" "it is dead" "$work/target.err"
kill -9 "$child"
target=$parent
kill_target

# What speaks against it is said, nothing is changed, and probes do it; =only does not go on.
refused() { # NAME WHAT
	"$heaptap" record --tap -p "$target" -d 1s --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
	local status=$?
	comments >"$work/notes"
	[ $status = 0 ] && says "$work/heaptap.err" "cannot be tapped: $2" && says "$work/notes" 'source: uprobe' && ok "$1: refused" ||
		not_ok "$1" "status $status" "$work/heaptap.err" "$work/notes"
	rm -f "$work/only.pb.gz"
	"$heaptap" record --tap=only -p "$target" -d 1s -o "$work/only.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
	status=$?
	[ $status = 1 ] && says "$work/heaptap.err" "cannot be tapped: $2" && [ ! -e "$work/only.pb.gz" ] && ok "$1: only" ||
		not_ok "$1: only" "status $status" "$work/heaptap.err"
}
if have gdb; then
	start $own "$bin/busy" 1 1000
	(sleep 30 | gdb -q -nx -p "$target" -ex continue >"$work/gdb.out" 2>&1) &
	e2e_pids="$e2e_pids $!"
	await 20 eval 'grep -q "^TracerPid:[[:space:]]*[1-9]" "/proc/$target/status"'
	refused "a debugger has it" 'it is being debugged or traced, by [a-z0-9]* (PID '
	kill_target
else
	start $own "$bin/busy" 1 1000
	python3 - "$target" >"$work/tracer.out" <<'PYTHON' &
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0x4206, int(sys.argv[1]), None, None):
    sys.exit("cannot seize")
print("SEIZED", flush=True)
time.sleep(60)
PYTHON
	e2e_pids="$e2e_pids $!"
	tracer=$!
	await 10 says "$work/tracer.out" SEIZED
	! dry_run && says "$work/dry" 'would be refused: it is being debugged or traced, by python3 (PID ' && ok "--dry-run of one that is traced" ||
		not_ok "--dry-run of one that is traced" "does not say it" "$work/dry"
	refused "another one traces it" 'it is being debugged or traced, by [a-z0-9]* (PID '
	kill -9 "$tracer"
	kill_target
fi
for args in "--rate 1" "--source usdt"; do
	# shellcheck disable=SC2086 # an option and its value
	"$heaptap" record --tap $args -p $$ -d 1s -o "$work/only.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
	status=$?
	[ $status = 2 ] && says "$work/heaptap.err" '^heaptap: error: record: --tap' && ok "--tap $args: an error" ||
		not_ok "--tap $args" "status $status" "$work/heaptap.err"
done

# serve taps who matches, and only these; SIGUSR1 takes it out, SIGUSR2 puts it in again.
if have curl; then
	. "$e2e_dir/serve_lib.sh"
	sharing=own
	top=$work
	start $own "$bin/busy" 1 200000
	serve --listen 127.0.0.1:0 --comm '^busy' --tap '^busy$' --tap-exe '/busy$'
	await 20 follows "$target" && await 20 says "$top/serve.err" "PID $target is tapped" ||
		not_ok "serve" "it is not tapped" "$top/serve.err"
	sleep 2
	curl -s -m 20 -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$target"
	comments >"$work/notes"
	says "$work/notes" 'source: tap' && ! says "$work/notes" UNKNOWN && ok "serve: in use is known" ||
		not_ok "serve" "it is not" "$work/notes" "$top/serve.err"
	kill -USR1 "$server"
	await 10 is_same_text && ok "serve: SIGUSR1 takes it out" ||
		not_ok "serve: SIGUSR1" "the text differs" "$work/differences"
	$own "$bin/busy" 1 200000 >"$work/second.out" 2>&1 <>"$e2e_never" &
	second=$!
	e2e_pids="$e2e_pids $second"
	await 20 follows "$second" || not_ok "serve: a second process" "is not followed" "$top/serve.err"
	sleep 1
	(target=$second; is_same_text) && ! says "$top/serve.err" "PID $second is tapped" && ok "serve: without probes nobody is tapped" ||
		not_ok "serve: without probes" "somebody is tapped, or said to be" "$work/differences" "$top/serve.err"
	kill -USR2 "$server"
	await 10 says "$top/serve.err" "PID $second is tapped" && ok "serve: and then is" ||
		not_ok "serve: and then" "is not tapped" "$top/serve.err"
	kill "$second"
	sleep 1
	await 10 eval '! is_same_text' && ok "serve: SIGUSR2 puts it in" ||
		not_ok "serve: SIGUSR2" "the text is as it was" "$top/serve.err"
	end_server serve
	same_text "serve, after the end"
	serve --listen 127.0.0.1:0 --comm '^busy' --tap '^busy$' --tap-exe '/another$'
	await 20 follows "$target" && ! says "$top/serve.err" 'is tapped' && ok "serve: an executable that nobody named is not tapped" ||
		not_ok "serve: --tap-exe" "it is tapped, or not followed" "$top/serve.err"
	end_server serve
	kill_target
fi
e2e_end

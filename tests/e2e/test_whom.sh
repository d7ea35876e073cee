#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whom to record: several processes, by pid, name and cgroup; what is there already of a family; what is
# said when it is not clear who is meant, and when nothing was to be had.
. "$(dirname "$0")/lib.sh"
e2e_init whom

build_c tree || { not_ok build "tree.c"; e2e_end; }

# tree NAME CHILDREN: one more of these programs; the pids of all its processes in $tree, the root first
tree() {
	local fifo=$work/in.$1
	mkfifo "$fifo"
	"$bin/tree" "$@" <"$fifo" >"$work/out.$1" 2>&1 &
	owned
	disown $! # no word about its end
	exec {tree_in}>"$fifo"
	await 20 says "$work/out.$1" ^READY || not_ok "tree $1" "not ready" "$work/out.$1"
	tree=$(pids_in "$work/out.$1")
}
pids_in() { awk '$1 == "PID" { print $2 }' "$1" | tr '\n' ' '; }
run() {
	rm -f "$work/p.pb.gz"
	timeout -k 5 60 "$heaptap" record -o "$work/p.pb.gz" --max-overhead off "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}
# holds NAME PIDS: the profile is of these processes and no others
holds() {
	local name=$1 want have
	want=$(tr ' ' '\n' <<<"$2" | grep . | sort -n | tr '\n' ' ')
	have=$("$compare" labels "$work/p.pb.gz" pid 2>/dev/null | grep -o '[0-9]*' | sort -nu | tr '\n' ' ')
	# of one alone there are no labels
	[ -n "$have" ] || have="$(sed -n 's/^heaptap: recording PID \([0-9]*\) .*/\1/p' "$work/err") "
	[ "$status" = 0 ] && [ "$want" = "$have" ] && ok "$name" ||
		not_ok "$name" "status $status, of '$have' instead of '$want'" "$work/err"
}
# refused NAME STATUS PATTERN: nothing was attached to, nothing written
refused() {
	if [ "$status" != "$2" ]; then
		not_ok "$1" "status $status" "$work/err"
	elif ! grep -qE -- "$3" "$work/err"; then
		not_ok "$1" "does not say /$3/" "$work/err"
	elif grep -q "^heaptap: recording" "$work/err" || [ -e "$work/p.pb.gz" ]; then
		not_ok "$1" "was attached to" "$work/err"
	else
		ok "$1"
	fi
}
# ran VERB ARGS... -- HEAPTAP ARGS...: it is run, and judged by the verb
ran() {
	local verb=()
	while [ "$1" != -- ]; do
		verb+=("$1")
		shift
	done
	shift
	run "$@"
	"${verb[@]}"
}
told() { # NAME STATUS PATTERN
	[ "$status" = "$2" ] && grep -qE -- "$3" "$work/err" && ok "$1" ||
		not_ok "$1" "status $status, or does not say /$3/" "$work/err"
}

tree whom-a 0
a=${tree% }
tree whom-a2 0
a2=${tree% }
tree whom-b 0
b=${tree% }

# several pids
run --rate 1 -d 500ms -p "$a,$a2" -p "$b" -p "$a"
holds "-p 1,2 -p 3" "$a $a2 $b"
told "says how many, and their names" 0 "^heaptap: recording 3 processes \(whom-a, whom-a2, whom-b\)"
"$compare" labels "$work/p.pb.gz" comm | grep -q whom-b && ok "label comm" || not_ok "label comm" "no whom-b" "$work/err"
beside ran holds "-p \$(pidof NAME): pids as words" "$a $a2 $b" -- --rate 1 -d 500ms -p "$a" "$a2" "$b"
beside ran holds "-p \"\$(pidof NAME)\"" "$a $a2" -- --rate 1 -d 500ms -p "$a $a2"
beside ran refused "-p NAME" 2 "bad value 'whom-b' for --pid: 1 process with this name runs: use --comm whom-b, not -p" -- -d 1 -p whom-b
beside ran refused "-p 1 2 -d 1" 2 "did you mean: heaptap record .*-d 1 -p $a,$a2\$" -- -p "$a" "$a2" -d 1
beside ran refused "-d 30s -p 1 2 -n 5" 2 "did you mean: heaptap record .*-d 30s -n 5 -p $a,$a2\$" -- -d 30s -p "$a" "$a2" -n 5
gone=$(($(cat /proc/sys/kernel/pid_max) - 1)) # a number that was just free is given again, here after some minutes
while [ -e "/proc/$gone" ]; do gone=$((gone - 1)); done
beside ran refused "one that does not exist: named, and nobody is attached to" 1 "no process with PID $gone" -- -d 1 -p "$a,$gone"
run -d 1 -p "$a" -p 2
[ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] && refused "one that cannot be recorded" 1 "PID 2.*kernel thread"
for bad in "1,,2" "1," ",1" "1;2" "1 , 2" "1,x" "0,1" "99999999999,1"; do
	beside ran refused "-p '$bad'" 2 "bad value '$bad' for --pid" -- -d 1 -p "$bad"
done

# by name, as serve does
beside ran holds "--comm" "$a $a2" -- --rate 1 -d 500ms --comm '^whom-a'
beside ran holds "--comm twice: one of them has to match" "$a $b" -- --rate 1 -d 500ms --comm '^whom-a$' --comm 'om-b$'
beside ran holds "--comm and -p" "$a $b" -- --rate 1 -d 500ms --comm '^whom-a$' -p "$b"
beside ran refused "--comm that nobody matches" 1 "no running process matches --comm 'no-such-name-here'" -- -d 1 --comm no-such-name-here
beside ran refused "--comm, not a regular expression" 2 "bad value 'bad\(' for --comm" -- -d 1 --comm 'bad('
beside ran refused "--comm and a command" 125 "not both" -- -d 1 --comm '^whom-a' -- true

together

# it ends when all have ended
: >"$work/heaptap.err"
timeout 60 "$heaptap" record --force -o "$work/p.pb.gz" -n 0 -p "$a,$a2" >/dev/null 2>"$work/heaptap.err" </dev/null &
owned recorder
await 30 record_began
kill -9 "$a2"
sleep 1
kill -0 "$recorder" 2>/dev/null && ok "goes on when one has ended" || not_ok "goes on when one has ended" "" "$work/heaptap.err"
kill -9 "$a"
await 20 is_gone "$recorder" && ok "ends when all have ended" || not_ok "ends when all have ended" "" "$work/heaptap.err"
tree whom-a3 0
a=${tree% }

# by cgroup
cgroup_root=
for dir in $(awk '$(NF - 2) ~ /^cgroup2?$/ || / - cgroup2? / { print $5 }' /proc/self/mountinfo); do
	if mkdir "$dir/heaptap-whom-$$" 2>/dev/null; then
		cgroup_root=$dir/heaptap-whom-$$
		break
	fi
done
remove_cgroup() {
	[ -n "$cgroup_root" ] || return
	for pid in $(cat "$cgroup_root/cgroup.procs" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
	for _ in $(seq 100); do rmdir "$cgroup_root" 2>/dev/null && break || sleep 0.05; done
}
trap 'remove_cgroup; e2e_cleanup' EXIT
if [ -n "$cgroup_root" ] && echo "$a" >"$cgroup_root/cgroup.procs" 2>/dev/null && echo "$b" >"$cgroup_root/cgroup.procs"; then
	beside ran holds "--cgroup FOLDER" "$a $b" -- --rate 1 -d 500ms --cgroup "$cgroup_root"
	beside ran holds "--cgroup PATH and --comm: both have to fit" "$b" -- --rate 1 -d 500ms --cgroup "$(grep -o "/[^:]*heaptap-whom-$$\$" "/proc/$a/cgroup" | head -1)" --comm '^whom-b$'
	beside ran refused "--cgroup and --comm: nobody" 1 "no running process matches --comm '\^bash\\$' and is in --cgroup '$cgroup_root'" -- -d 1 --cgroup "$cgroup_root" --comm '^bash$'
else
	skip "--cgroup" "no control group can be made here"
fi
beside ran refused "--cgroup that does not exist" 1 "there is no cgroup '/no/such/cgroup'" -- -d 1 --cgroup /no/such/cgroup
beside ran refused "--cgroup with .. in it" 1 "not the path of a cgroup" -- -d 1 --cgroup /a/../b

# operands that are no command
beside ran refused "a pid as operand" 2 "did you mean: heaptap record .* -p $b\$" -- "$b"
beside ran refused "pids as operands" 2 "did you mean: heaptap record .*-d 30s -p $a,$b\$" -- -d 30s "$a" "$b"
beside ran refused "the name of a program that runs" 2 "did you mean: heaptap record --comm whom-b, or to start it: heaptap record -- whom-b" -- whom-b
ln -s "$(type -P true)" "$work/whom-b"
PATH=$work:$PATH run -- whom-b
told "after -- it is a command" 0 "recording PID [0-9]* \(whom-b\)"
PATH=$work:$PATH run whom-b --help
told "and so it is with arguments" 0 "recording PID [0-9]* \(whom-b\)"
beside ran told "a command that does not run" 0 "recording PID [0-9]* \(true\)" -- true
beside ran refused "neither a command nor a process" 125 "no such command in PATH" -- no-such-program-anywhere

# a family that is there already
tree whom-f 3
family=$tree
beside ran holds "--follow -p PARENT: children and theirs" "$family" -- --rate 1 --follow -d 1 -p "${tree%% *}"
beside ran holds "without --follow: it alone" "${tree%% *}" -- --rate 1 -d 500ms -p "${tree%% *}"
# one that forks all the time while it is attached to: nobody is missed
E2E_MORE=150 E2E_MORE_US=8000 start env E2E_MORE=150 E2E_MORE_US=8000 "$bin/tree" whom-g 5
tell go
record_start --rate 1 --follow -n 0 -p "$target"
await 60 is_done
sleep 1
stop_recorder
status=$record_status
cp "$work/heaptap.err" "$work/err"
holds "a family that grows meanwhile" "$(pids_in "$work/target.out")"
kill_target

# nothing was sampled: why, and what to do
of_ls() {
	run -- ls /
	if [ "$(ledger samples)" = 0 ] || grep -q "nothing was sampled" "$work/err"; then
		told "-- ls: under one sample" 0 "nothing was sampled: PID [0-9]* \(ls\) called its allocator [0-9]* times, for less than about 192 KiB .*heaptap record --rate 1 -- ls /\$"
	else # once in a few times there is one
		run --rate 1g -- ls /
		told "-- ls: under one sample" 0 "nothing was sampled: PID [0-9]* \(ls\) called its allocator [0-9]* times, .*heaptap record --rate 1 -- ls /\$"
	fi
	run --rate 1 -- ls /
	[ "$status" = 0 ] && [ "$(ledger samples)" -gt 20 ] && ok "and that command records it" || not_ok "--rate 1 -- ls /" "status $status" "$work/err"
}
of_sleep() {
	local sleeper
	sleep 60 &
	owned sleeper
	await 5 says "/proc/$sleeper/comm" sleep
	run -d 1 -p $sleeper
	told "a process that does nothing" 0 "nothing was sampled: PID $sleeper \(sleep\) made no malloc calls in .*: heaptap record -d 5m -p $sleeper\$"
	[ ! -s "$work/out" ] && ok "and no empty report" || not_ok "no empty report" "" "$work/out"
}
beside of_ls
beside of_sleep

# programs whose heap is their own
of_go() {
	local go
	"$bin/go_grows" &
	owned go
	await 5 says "/proc/$go/comm" go_grows
	run -d 20 -p $go
	refused "Go: at once, and what to use instead" 1 "PID $go \(go_grows\): a Go program, whose heap is not malloc's.*use its own pprof: go tool pprof http"
	run -d 1 -- "$bin/go_grows"
	told "Go, started" 125 "a Go program, whose heap is not malloc's.*use its own pprof"
	kill $go "$(sed -n 's/^heaptap: recording PID \([0-9]*\) .*/\1/p' "$work/err")"
}
have go && build_go go_grows && beside of_go || skip "Go" "no go here"
of_python() { # [VARIABLE=VALUE]
	local python
	env "$@" python3 -c 'import time
while True: x = [bytes(600) for i in range(1000)]; time.sleep(.01)' &
	owned python
	await 5 says "/proc/$python/comm" python
	run -d 1 -p $python
	if [ $# = 0 ]; then
		told "CPython: what is not seen" 0 "PID $python \(python.*\): CPython keeps small objects .*PYTHONMALLOC=malloc"
	else
		[ $status = 0 ] && ! grep -q CPython "$work/err" && ok "CPython with PYTHONMALLOC=malloc: nothing to say" ||
			not_ok "CPython with PYTHONMALLOC=malloc" "" "$work/err"
	fi
	kill $python
}
by_script() {
	printf '#!/bin/sh\nexec python3 "$@"\n' >"$work/script"
	chmod +x "$work/script"
	run -d 2 -- "$work/script" -c 'import time; x = [bytes(6000) for i in range(1000)]; time.sleep(.5)'
	told "CPython, started" 0 "CPython keeps small objects .*PYTHONMALLOC=malloc"
}
if have python3; then
	beside of_python
	beside of_python PYTHONMALLOC=malloc
	beside by_script
fi

# times
beside ran told "-d 0m1s" 0 "wrote" -- -d 0m1s -n 0 -p "$b"
beside ran refused "-d 1m30" 2 "bad value '1m30' for --duration: a time such as 30s, 5m or 1m30s" -- -d 1m30 -p "$b"
together
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that heaptap started executes another one: not one allocation of that is missed, whatever it is,
# and nobody notices that it waited. E2E_HOLDS: how often a program with constructors is (1).
. "$(dirname "$0")/lib.sh"
e2e_init exec_hold

build_c planted && OUT=planted-static build_c planted -static && build_c execs && OUT=execs-static build_c execs -static &&
	OUT=libstartup.so build_c startup -shared -fPIC -DLIBRARY &&
	OUT=startup build_c startup "$bin/libstartup.so" -Wl,-rpath,"$bin" || { not_ok build "workloads"; e2e_end; }
programs="planted planted-static"
lib=$(ldconfig -p | awk '/libjemalloc\.so\.2 .*x86-64/ { print $NF; exit }')
[ -n "$lib" ] && OUT=planted-je build_c planted "$lib" && programs="$programs planted-je" ||
	skip "a program with jemalloc" "libjemalloc is not installed"
have musl-gcc && CC=musl-gcc OUT=planted-musl build_c planted -idirafter/usr/include &&
	programs="$programs planted-musl" || skip "a program of another libc" "musl-gcc is not installed"

notes() { "$heaptap" report --notes "$work/p.pb.gz" 2>&1; }
json() { "$heaptap" report --format json "$work/p.pb.gz" | grep -o "\"$1\":[^,}]*" | cut -d: -f2; }
# what the replaced programs held is in nothing that is in use
without_replaced() { sed -i '/^EXPECT [^ ]* execs/s/^\(EXPECT [^ ]* [^ ]*\) [0-9]* [0-9]*/\1 0 0/' "$work/target.out"; }
# whole NAME [HEAPTAP ARGS...] -- COMMAND...: to the byte, and called exact
whole() {
	local name=$1
	shift
	launch --rate 1 "$@"
	target_status=0
	without_replaced
	same "$name" --alloc
	if [ "$(ledger unseen_execs)" = 0 ] && [ "$(ledger throwing_sites)" != 0 ]; then
		skip "$name: called exact" "before Linux 6.13 operator new of jemalloc is left alone"
	elif [ "$(ledger unseen_execs)" != 0 ] || ! notes | grep -q '^In use: .*(exact)'; then
		not_ok "$name: called exact" "it is not" "$work/heaptap.err"
	else
		ok "$name: called exact"
	fi
}
# more processes than the table of files has places: none takes one that is not a file's
printf 'void _start(void) { __asm__ volatile("syscall" : : "a"(60), "D"(0)); }\n' >"$work/least.c"
least=$work/least
[ "$(uname -m)" = x86_64 ] && ${CC:-gcc} -O1 -static -nostdlib "$work/least.c" -o "$least" 2>/dev/null || cp /bin/true "$least"
many_commands() {
	local failed
	LIMIT=240 launch -q --follow -- sh -c "i=0; while [ \$i -lt 9000 ]; do '$least'; i=\$((i + 1)); done"
	failed=$(ledger failed_sites)
	[ "$record_status" = 0 ] && [ "${failed:-0}" = 0 ] && ok "9000 commands: nothing that could not be had" ||
		not_ok "9000 commands" "status $record_status, $failed places or files could not be had" "$work/heaptap.err"
}
again beside many_commands # begins first because it takes longest
# of_program PROGRAM NUMBER: a child of sh it is by default when its number is odd, after two others when it is even
of_program() {
	local program=$1 old held
	is_whole || [ $(($2 % 2)) = 0 ] || whole "a child of sh: $program" --follow -- sh -c "'$bin/$program'; exit"
	again whole "a child of sh: $program" --follow -- sh -c "'$bin/$program'; exit"
	again whole "env $program" -- env "$bin/$program"
	again whole "sh -c exec $program" -- sh -c "exec '$bin/$program'"
	for old in $(some 1 execs execs-static); do
		whole "$old, $program" -- "$bin/$old" "$bin/$program"
		held=$(json exec_held_bytes)
		[ "${held:-0}" -ge 108253 ] && [ "$held" -lt 120000 ] && ok "$old, $program: held at exec" ||
			not_ok "$old, $program: held at exec" "$held bytes, 108253 by the program itself"
		notes | grep -q "^  in use at exec: .* by PID [0-9]* ($old)" && ok "$old, $program: said whose" ||
			not_ok "$old, $program: said whose" ""
	done
	is_whole || [ $(($2 % 2)) = 1 ] || whole "two execs, $program" -- "$bin/execs" "$bin/execs-static" "$bin/$program"
	again whole "two execs, $program" -- "$bin/execs" "$bin/execs-static" "$bin/$program"
}
number=0
for program in $programs; do beside of_program $program $((number++)); done
for mode in $e2e_every_mode; do
	# A hold has an end, and perf events go in one after the other: they get the time that one needs.
	how=beside
	[ $mode = perf ] && how=
	# the first one is what of_program is recorded with
	is_whole || [ -n "${e2e_every_mode%% "$mode"*}" ] || [ " $mode" = "$e2e_modes" ] || continue
	$how whole "static after dynamic, $mode" --attach-mode=$mode -- "$bin/execs" "$bin/planted-static"
	is_whole || [ " $mode" = "$e2e_modes" ] || continue
	$how whole "dynamic after static, $mode" --attach-mode=$mode -- "$bin/execs-static" "$bin/planted"
	$how whole "a child, $mode" --follow --attach-mode=$mode -- sh -c "'$bin/planted-static'; exit"
done
for ((i = 1; i <= ${E2E_HOLDS:-1}; i++)); do beside whole "constructors ($i)" -- env "$bin/startup"; done
# libraries that come later, and allocators with them
if OUT=libplugin.so build_c plugin -shared -fPIC && build_c dlopens -ldl; then
	with_plugin="env E2E_PLUGIN=$bin/libplugin.so E2E_PAUSE_MS=0"
	beside whole "a library, used at once" -- $with_plugin E2E_MODE=late "$bin/dlopens"
	beside whole "dlopen and dlclose in a loop" -- $with_plugin E2E_MODE=loop "$bin/dlopens"
	[ -z "$lib" ] || beside whole "an allocator that is loaded and used at once" -- $with_plugin E2E_MODE=late E2E_ALLOCATOR="$lib" \
		GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 E2E_MALLOC=mallocx E2E_FREE=dallocx "$bin/dlopens"
fi
# 6 002 997 of it are the new program's
planted_numbers() {
	launch --rate 1 -- env "$bin/planted-static"
	[ "$("$compare" sites "$work/p.pb.gz" | awk '$2 ~ /^site_/ { i += $4; a += $6 } END { print i, a }')" = "1002997 6002997" ] &&
		ok "the planted numbers" || not_ok "the planted numbers" "$("$compare" sites "$work/p.pb.gz" | head -5)"
}
beside planted_numbers

# who is not root becomes root by a setuid program, traced or not
becomes_root() {
	cp "$bin/planted-static" "$work/setuid"
	chmod 4755 "$work/setuid"
	bare=$(E2E_NOWAIT=1 setpriv --reuid=65534 --clear-groups "$work/setuid" | grep EUID)
	launch --rate 1 --follow -- setpriv --reuid=65534 --clear-groups sh -c "'$work/setuid'; exit"
	same "a setuid program" --alloc
	[ "$bare" = "EUID 0" ] && [ "$(grep EUID "$work/target.out")" = "$bare" ] && ok "a setuid program: as root" ||
		not_ok "a setuid program: as root" "'$(grep EUID "$work/target.out")', without heaptap '$bare'"
}
have setpriv && beside becomes_root || skip "a setuid program" "no setpriv"
# those that take a stopped child for Ctrl-Z
under() {
	LIMIT=30 launch --rate 1 --follow -- $1 "'$bin/planted-static'; exit"
	same "under ${1%% *}" --alloc
}
parents=("su root -c" "unshare --fork sh -c" "runuser -u root -- sh -c" "setsid -w sh -c" "timeout 20 sh -c")
is_whole || parents=("${parents[@]:0:2}")
for parent in "${parents[@]}"; do
	$parent true >/dev/null 2>&1 && beside under "$parent" || skip "under ${parent%% *}" "it is not here"
done
# job control: a shell is told of the stop that was meant, and of no other
if have script; then
	cat >"$work/jobs.sh" <<-END
	'$bin/planted' >/dev/null; echo first \$?
	sleep 60 & kill -STOP %1; sleep 0.3; jobs
	kill -CONT %1; sleep 0.3; jobs; kill %1; wait %1; echo last \$?
	END
	controlled() { # NAME COMMAND
		E2E_NOWAIT=1 script -qec "$2" /dev/null </dev/null 2>&1 | sed 's/[0-9]\{3,\}/N/g' >"$work/bare.out"
		LIMIT=30 launch --follow -n 0 --no-lines -- script -qec "$2" /dev/null
		sed 's/[0-9]\{3,\}/N/g' "$work/target.out" >"$work/traced.out"
		cmp -s "$work/bare.out" "$work/traced.out" && grep -q "first 0" "$work/traced.out" && ok "job control: $1" ||
			not_ok "job control: $1" "$(diff "$work/bare.out" "$work/traced.out")" "$work/heaptap.err"
	}
	beside controlled "bash -i" "bash -i $work/jobs.sh"
	again beside controlled "bash --norc -im" "bash --norc -im $work/jobs.sh"
else
	skip "job control" "no script"
fi
# signals and threads arrive as ever
build_c family && beside whole "threads of a family" --follow -- env E2E_THREADS=4 "$bin/family"
signals() {
	launch --follow -n 0 --no-lines -- bash -c 'n=0; trap "n=\$((n+1))" USR1; for i in 1 2 3 4 5; do kill -USR1 $$; done; echo GOT $n; (sleep 2; echo LATE) & p=$!; kill -TERM $p; wait $p; echo STATUS $?'
	[ "$(grep -v LATE "$work/target.out" | tr '\n' ' ')" = "GOT 5 STATUS 143 " ] && ok "signals" ||
		not_ok "signals" "" "$work/target.out" "$work/heaptap.err"
}
beside signals

# who traces by itself is let go of
strace_traces() {
	local held
	LIMIT=40 launch --rate 1 --follow -- strace -f -o "$work/strace.out" "$bin/planted"
	grep -q "exited with 0" "$work/strace.out" && grep -q "^EUID" "$work/target.out" && [ "$record_status" = 0 ] &&
		ok "strace under heaptap" || not_ok "strace under heaptap" "status $record_status" "$work/heaptap.err" "$work/strace.out"
	held=$("$compare" total "$work/p.pb.gz" | awk '{ print $2 }')
	[ "${held:-0}" -ge 1002997 ] && ok "strace under heaptap: what it starts is recorded" ||
		not_ok "strace under heaptap: what it starts is recorded" "$held bytes"
}
strace_is_said() {
	LIMIT=40 launch --rate 1 -v --follow -- strace -f -o "$work/strace.out" "$bin/planted-static"
	grep -q "uses ptrace itself" "$work/heaptap.err" && ok "strace under heaptap is said" ||
		not_ok "strace under heaptap is said" "" "$work/heaptap.err"
	[ "$(ledger unseen_execs)" -gt 0 ] && ! notes | grep -q '^In use: .*(exact)' && ok "strace under heaptap: not called exact" ||
		not_ok "strace under heaptap: not called exact" "" "$work/heaptap.err"
}
under_strace() { # the program that heaptap starts is strace's already
	E2E_NOWAIT=1 timeout 60 strace -f -e trace=none -o /dev/null "$heaptap" record --max-overhead off --rate 1 --force \
		-n 0 -o "$work/p.pb.gz" -- env "$bin/planted-static" >"$work/target.out" 2>"$work/heaptap.err"
	grep -q "cannot pause .* traced already" "$work/heaptap.err" && [ "$(ledger unseen_execs)" -gt 0 ] &&
		grep -q ^EUID "$work/target.out" && ok "heaptap under strace" ||
		not_ok "heaptap under strace" "" "$work/heaptap.err" "$work/target.out"
}
if have strace && strace -f -o /dev/null true 2>/dev/null; then
	for how in strace_traces strace_is_said under_strace; do beside $how; done
else
	skip "strace" "it is not here"
fi
gdb_debugs() {
	LIMIT=60 launch --follow -n 0 --no-lines -- gdb -nx -batch -ex run "$bin/planted"
	grep -q "exited normally" "$work/target.out" && ok "gdb under heaptap" ||
		not_ok "gdb under heaptap" "" "$work/target.out" "$work/heaptap.err"
}
have gdb && beside gdb_debugs || skip "gdb" "it is not here"
leaks() {
	launch --follow -n 0 --no-lines -- sh -c "'$leak' 2>&1; exit"
	grep -q "detected memory leaks" "$work/target.out" && ok "LeakSanitizer looks for leaks" ||
		not_ok "LeakSanitizer looks for leaks" "" "$work/target.out" "$work/heaptap.err"
}
printf '#include <stdlib.h>\nvoid *volatile p;\nint main(void) { p = malloc(7); p = NULL; return 0; }\n' >"$work/leak.c"
leak=$work/leak
if ${CC:-gcc} -fsanitize=address "$leak.c" -o "$leak" 2>/dev/null && ! "$leak" 2>"$work/bare.err" &&
	grep -q "detected memory leaks" "$work/bare.err"; then
	beside leaks
else
	skip "LeakSanitizer" "it does not work here"
fi
together

# what heaptap cannot do while it stands still: the program waits, for a bounded time
hold_one() { # a program that is held at an exec, in $held; $recorder stands still
	rm -f "$work/go" "$work/mark" "$work/ready"
	PLANTED_MARK=$work/mark record_start --rate 1 -- sh -c ": >'$work/ready'; while [ ! -e '$work/go' ]; do sleep 0.05; done; exec '$bin/planted-static'"
	held=$(sed -n 's/^heaptap: recording PID \([0-9]*\).*/\1/p' "$work/heaptap.err")
	await 10 [ -e "$work/ready" ] # until then it is held as well
	guard=$(pgrep -P "$recorder" -x heaptap-guard)
	kill -STOP "$recorder"
	touch "$work/go"
	await 5 is_held
}
is_held() { grep -q '^State:.t' "/proc/$held/status" 2>/dev/null; }
runs_within() { # SECONDS: planted has run to its end
	local end=$((${EPOCHREALTIME/./} + $1 * 1000000 * e2e_patience))
	while [ "${EPOCHREALTIME/./}" -lt "$end" ]; do [ -e "$work/mark" ] && return 0; sleep 0.02; done
	return 1
}
hold_one && [ ! -e "$work/mark" ] && ok "it is held" || not_ok "it is held" "" "$work/heaptap.err"
kill -9 "$recorder"
runs_within 1 && ok "it goes on when heaptap is killed" || not_ok "it goes on when heaptap is killed" "$(grep State "/proc/$held/status")"
wait "$recorder" 2>/dev/null
hold_one || not_ok "it is held again" "" "$work/heaptap.err"
kill -9 "$guard"
runs_within 1 && ok "it goes on when the guardian is killed" || not_ok "it goes on when the guardian is killed" "$(grep State "/proc/$held/status")"
kill -CONT "$recorder"
wait_recorder
hold_one || not_ok "it is held a third time" "" "$work/heaptap.err"
runs_within 4 && ok "a hold has an end" || not_ok "a hold has an end" "$(grep State "/proc/$held/status")"
kill -CONT "$recorder"
wait_recorder
[ "$(ledger unseen_execs)" = 1 ] && notes | grep -q "not exact since the exec at" && ok "a hold that ended is said" ||
	not_ok "a hold that ended is said" "" "$work/heaptap.err"

# without a hold, or attached: what was not seen is said
launch --rate 1 --no-hold -- env "$bin/planted-static"
[ "$(ledger unseen_execs)" -gt 0 ] && ! notes | grep -q '^In use: .*(exact)' && notes | grep -q "not exact since the exec at" &&
	ok "--no-hold is said" || not_ok "--no-hold is said" "" "$work/heaptap.err"

# short-lived children: their stacks are whole
reach_start() { # NAME COMMAND...
	local name=$1 all whole
	shift
	LIMIT=60 launch --rate 1 --follow -n 0 --no-lines -- "$@"
	all=$(ledger samples) whole=$(ledger stacks_complete)
	[ "${all:-0}" -gt 100 ] && [ $((100 * whole)) -ge $((99 * all)) ] && ok "$name: $whole of $all stacks reach the start" ||
		not_ok "$name" "$whole of $all stacks reach the start" "$work/heaptap.err"
}
printf '#include <stdio.h>\nint main(void) { return puts("x"); }\n' >"$work/x.c"
have gcc && beside reach_start "gcc -c" gcc -O2 -c "$work/x.c" -o "$work/x.o" || skip "gcc -c" "no gcc"
beside reach_start "sh with small commands" sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do ls / >/dev/null; expr $i + 1 | cat >/dev/null; env true; done'
have convert && again beside reach_start "ImageMagick" convert -size 200x200 gradient:red-blue "$work/o.png" || skip "ImageMagick" "no convert"
together
e2e_end

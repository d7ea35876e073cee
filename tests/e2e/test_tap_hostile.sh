#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap does no harm: the siblings of what test_tap_harm.sh shows, with the same oracles.
#
# | what | the program | what it threatens |
# | --- | --- | --- |
# | execve of a file that is not answered | tap_family exec-file | threads_stop() waits for cred_guard_mutex |
# | execve all the time beside 50 threads | tap_family exec 50 | threads_stop(): who executes waits for the stopped |
# | a thread in the kernel that no signal reaches | tap_family read-file | wait for a stop that does not come, in and out |
# | stopped by SIGSTOP, before and meanwhile | tap_family plain | a group stop is no stop of ours; it must stay stopped |
# | frozen and thawed 100 times a second | tap_family plain | a stop at any moment of that |
# | userfaultfd over the tap's data, the heap | tap_memory uffd-* | who reads it from outside waits |
# | unmaps, protects, moves the tap's memory, lays another file over it | tap_memory | what is trusted when it comes out |
# | a process that shares the memory allocates | tap_family shared-memory | it is not stopped, is not in the list of threads |
# | a process that shares descriptors closes each new one | tap_family close-all | a descriptor in the target |
# | no descriptor, no memory left | tap_family no-files, no-memory | calls in the target fail: nothing may be half done |
# | seccomp: TRAP, ERRNO, USER_NOTIF | tap_calls | calls in the target raise a signal, fail, wait for ever |
# | signals blocked, ignored, handled | tap_signals | dispositions are as before, no signal is forced |
# | single steps in the target | tap_signals steps | SIGTRAP of its own at every instruction of the tap |
# | signals at 10 kHz that allocate on another stack | tap_signals stack | the slow path within itself |
# | strace has it, gdb has it | tap_family plain | a second tracer |
# | the first thread has ended | tap_family main-gone | the thread that makes the calls |
# | 300 threads born and dying | tap_family births | the list of threads is never complete |
# | a thread without a thread pointer begins when it is tapped | tap_own bare | the counter of a thread |
# | an allocator in the executable: static, static-pie, lto, clang | tap_own | what registers a caller relies on |
# | wrappers: -O0, with tail calls, three nested | tap_wrap | who is inside of whom |
# | a child of vfork allocates | tap_family vfork-allocates | whose memory it is |
# | a second heaptap: by the tap, by probes | tap_family plain | two at once |
# | init of a PID namespace | tap_family plain | signals that init does not get |
# | probes at the first instruction 20 times a second | tap_probe | text is written by two |
# | heaptap, its guardian, both killed at any moment | tap_family plain | who takes it out |
# | heaptap stopped while a tap is in | tap_family plain | the target gets on |
#
# E2E_TRIES=N: each N times (TESTS_WHOLE=1: 20). E2E_ONLY=PATTERN: these only. timeout: 3600
. "$(dirname "$0")/lib.sh"
e2e_init tap_hostile
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 && have curl && have objdump || skip_all "python3, curl or objdump is not installed"
build_c busy && build_c mute_fuse && build_c tap_memory && build_c tap_calls && build_c tap_signals && build_c tap_family &&
	build_c tap_probe && build_c tap_own && OUT=tap_own_static build_c tap_own -static &&
	OUT=tap_own_static_pie build_c tap_own -static-pie && OUT=tap_own_lto build_c tap_own -flto &&
	OUT=tap_wrap.so build_c tap_wrap -shared -fPIC && OUT=tap_wrap_O0.so build_c tap_wrap -shared -fPIC -O0 &&
	OUT=tap_wrap_tail.so build_c tap_wrap -shared -fPIC -DTAIL || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/harm_lib.sh"
family=$bin/tap_family

# Files that are not answered.
fuse_of_target() { # HOW WHEN
	begin_fuse "${3:-mute}"
	of_nobody tap_family
	begin_target "${nobody[@]}" "$work/tap_family" "$1" "$work/mnt/file"
	[ "$2" = during ] || ask do
	begin_serve
	await_tap
	[ "$2" = before ] || ask do
	kill -USR1 "$server"
	sleep 0.3
	is_healthy
	is_healthy
	end_serve
	end_fuse_file
	if [ "$1" = exec-file ]; then
		# that file is no program: the call fails, nothing else happens
		sleep 0.2
	fi
	await 3 is_same_text || "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err"
	ends_well
}
harm "execve of a file that is not answered, before" fuse_of_target exec-file before
harm "execve of a file that is not answered, meanwhile" fuse_of_target exec-file during
harm "a read that is not answered, before" fuse_of_target read-file before
harm "a read that is not answered, meanwhile" fuse_of_target read-file during

executes_50() {
	local i
	begin_target "$family" exec 50
	for ((i = 0; i < ${E2E_EXECS_TAPPED:-3} && ${#faults[@]} == 0; i++)); do
		begin_record -d 0.05s
		have_record 8
	done
	said="$i recordings"
	if is_well; then ends_itself; else ends_well; fi
	target=
}
harm "it executes itself beside 50 threads" executes_50

# Stopped, and frozen in any moment.
stopped() { # before, during
	begin_target "$family"
	[ "$1" = during ] || kill -STOP "$target"
	begin_serve
	if [ "$1" = during ]; then
		await_tap
		kill -STOP "$target"
	fi
	sleep 0.5
	is_healthy
	end_serve
	[ "$(awk '/^State/ { print $2 }' "/proc/$target/status")" = T ] || fault "it is not stopped any more"
	kill -CONT "$target"
	await 3 is_same_text || "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err"
	ask at
	ends_well
}
harm "SIGSTOP before" stopped before
harm "SIGSTOP meanwhile" stopped during
flutter() {
	local never
	exec {never}<>"$e2e_never"
	while :; do
		freeze
		read -rt 0.005 -u "$never"
		thaw
		read -rt 0.005 -u "$never"
	done 2>/dev/null
}
fluttering() { # VERSION
	local watcher flutter
	cgroup_of "$1" || { said="there is no such control group"; return; }
	watch_cgroup
	begin_target "$family"
	echo "$target" >"$cgroup/cgroup.procs"
	flutter {target_in}>&- &
	flutter=$!
	e2e_pids="$e2e_pids $flutter"
	begin_serve
	await_tap
	kill -USR1 "$server"
	sleep 0.2
	kill -USR2 "$server"
	sleep 0.3
	is_healthy
	end_serve
	kill -9 "$flutter"
	wait "$flutter" 2>/dev/null
	thaw
	await 3 is_same_text || "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err"
	ends_well
	kill -9 "$watcher"
	end_cgroup
}
harm "frozen 100 times a second, cgroup v2" fluttering 2
again harm "frozen 100 times a second, cgroup v1" fluttering 1

# What it does to the tap's memory.
tampers() { # HOW
	begin_target "$bin/tap_memory" "$1" /bin/true
	begin_serve
	await_tap
	ask do
	kill -USR1 "$server"
	sleep 0.3
	is_healthy
	end_serve
	case $1 in
	uffd-*) ends_itself ;; # nobody answers it
	*)
		await 3 is_same_text || "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err"
		is_same_text && ask go
		ends_well
		;;
	esac
	target=
}
harm "it unmaps the tap's memory" tampers unmap
harm "it protects the tap's memory" tampers protect
harm "its allocator's code may only be executed" tampers unread
harm "it moves the tap's memory" tampers move
harm "it lays another file over the tap's code" tampers other
harm "userfaultfd over the tap's data" tampers uffd-data
harm "userfaultfd over the heap" tampers uffd-heap

# Who shares.
harm "a process that shares its memory" left_alone -- "$family" shared-memory
harm "a process that closes each new descriptor" left_alone -- "$family" close-all
harm "no descriptor left" left_alone -- "$family" no-files
harm "no address space left" left_alone -- "$family" no-memory

# System calls that are watched.
watched() { READY=^WATCHED left_alone -- "$bin/tap_calls" "$1"; }
for how in trap errno notify; do harm "a filter: $how" watched $how; done

# Signals, and what the target thinks of them.
masks() { grep -hE '^Sig(Blk|Ign|Cgt)' /proc/"$target"/task/*/status; }
# In a handler of its own it blocks one more: what is read thrice in a row counts.
steady_masks() {
	local masks i
	for i in {1..50}; do
		masks=$(masks)
		[ "$masks" = "$(masks)" ] && [ "$masks" = "$(masks)" ] && break
	done
	echo "$masks"
}
has_masks() { [ "$1" = "$(masks)" ]; }
disposed() { # HOW
	local before
	begin_target "$bin/tap_signals" "$1"
	sleep 0.1 # a thread begins with all signals blocked
	before=$(steady_masks)
	begin_record -d 0.3s
	await 2 has_masks "$before" || fault "the signals that it blocks, ignores or catches have changed"
	have_record 8
	await 2 has_masks "$before" || fault "the signals that it blocks, ignores or catches are not as before"
	ask go
	ends_well
}
for how in blocked ignored handled stack steps; do harm "signals: $how" disposed $how; done

# Somebody traces it already.
traced() { # COMMAND...
	begin_target "$family"
	timeout 20 "$@" -p "$target" >"$work/tracer.out" 2>&1 <>"$e2e_never" {target_in}>&- &
	local tracer=$!
	e2e_pids="$e2e_pids $tracer"
	await 10 eval 'grep -q "^TracerPid:[[:space:]]*[1-9]" "/proc/$target/status"' || fault "the tracer does not begin" "$work/tracer.out"
	begin_record -d 0.3s
	have_record 8
	kill "$tracer"
	await 5 eval 'grep -q "^TracerPid:[[:space:]]*0" "/proc/$target/status"' || kill -9 "$tracer"
	wait "$tracer" 2>/dev/null
	ask at
	ends_well
}
have strace && harm "strace has it" traced strace -f -o /dev/null
have gdb && harm "gdb has it" traced gdb -q -nx -ex "set confirm off" -ex continue

# Threads.
harm "its first thread has ended" left_alone -- "$family" main-gone
harm "300 threads are born and die" left_alone -- "$family" births 300
harm "100 threads, and 100 that wait" left_alone -- "$family" threads 100
acted() { # COMMAND...
	begin_target "$@"
	begin_record
	ask do
	ask at
	end_record
	ends_well
}
harm "a thread without a thread pointer begins" acted "$bin/tap_own" bare
again harm "the same, static" acted "$bin/tap_own_static" bare
again harm "an allocator in its own file, static-pie" left_alone -- "$bin/tap_own_static_pie"
harm "an allocator in its own file, lto" left_alone -- "$bin/tap_own_lto"
if is_whole && have clang && CC=clang OUT=tap_own_clang build_c tap_own; then
	harm "an allocator in its own file, clang" left_alone -- "$bin/tap_own_clang"
fi

# Numbers.
again harm "numbers: a wrapper, -O0" numbers go -- env LD_PRELOAD="$bin/tap_wrap_O0.so" "$family"
harm "numbers: a wrapper with tail calls" numbers go -- env LD_PRELOAD="$bin/tap_wrap_tail.so" "$family"
harm "numbers: three wrappers" numbers go -- env LD_PRELOAD="$bin/tap_wrap.so:$bin/tap_wrap_O0.so:$bin/tap_wrap_tail.so" "$family"
harm "numbers: a wrapper, by probes" eval 'BASE="--max-overhead off" numbers go -- env LD_PRELOAD="$bin/tap_wrap.so" "$family"'
harm "numbers: a child of vfork allocates" numbers do -- env E2E_MS=400 "$family" vfork-allocates
second() { # ARGS...
	begin_target "$family"
	begin_record --rate 1024
	timeout 10 "$heaptap" record "$@" --max-overhead off -p "$target" -d 0.3s --force -n 0 -o "$work/second.pb.gz" \
		>"$work/second.out" 2>"$work/second.err" </dev/null &
	local second=$!
	sleep 0.3
	ask go
	wait "$second"
	[ $? -le 1 ] || fault "the second one fails" "$work/second.err"
	end_record
	within_tenth
	ends_well
}
harm "numbers: a second heaptap, by the tap" second --tap
harm "numbers: a second heaptap, by probes" second
init() {
	local outer
	begin_target unshare -p -f --mount-proc --kill-child "$family"
	outer=$target
	target=$(pgrep -P "$outer" -x tap_family) || { fault "it is not found"; target=$outer; return; }
	begin_record --rate 1024
	ask go
	end_record
	within_tenth
	is_well || fault "the target is harmed"
	await 5 is_same_text || fault "the text differs" "$work/differences"
	target=$outer
	ends_itself
	target=
}
harm "numbers: init of a PID namespace" init

# Another tool's probes come and go.
come_and_go() {
	begin_target env E2E_ALIGNED=1 "$family"
	"$bin/tap_probe" "$target" "$e2e_own/libc.so.6" 2 20 $(offsets_of "$e2e_own/libc.so.6" malloc free calloc posix_memalign memalign) \
		>"$work/probe.out" 2>"$work/probe.err" {target_in}>&- &
	local probe=$!
	e2e_pids="$e2e_pids $probe"
	begin_record --rate 1024 -d 0.5s
	have_record 8
	begin_record --rate 1024
	ask go
	await 10 is_gone "$probe" || kill -9 "$probe"
	wait "$probe" || fault "the other tool fails" "$work/probe.err"
	end_record
	within_tenth
	ends_well
}
harm "another tool's probes 20 times a second" come_and_go

# Killed, and stopped.
killed() { # heaptap, guardian, both
	local guardian i
	begin_target "$family" threads 4
	for ((i = 0; i < 2; i++)); do
		begin_record
		guardian=$(pgrep -P "$recorder" -x heaptap-guard)
		read -rt "0.$((RANDOM % 3))$((RANDOM % 10))" -u 9 9<>"$e2e_never"
		case $1 in
		heaptap) kill -9 "$recorder" ;;
		guardian) [ -z "$guardian" ] || kill -9 $guardian ;;
		both) kill -9 $guardian "$recorder" ;;
		esac
		[ "$1" != guardian ] || kill -INT "$recorder"
		await 5 is_gone "$recorder" || { fault "heaptap does not end"; end_ours; }
		wait "$recorder" 2>/dev/null
		recorder=
		await 10 has_none || fault "heaptap is not gone: $(where $(ours) | tr '\n' ';')"
		[ "$1" = heaptap ] || timeout 10 "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err" ||
			fault "what is left is not taken out" "$work/remove.err"
		await 10 is_same_text || fault "the text differs" "$work/differences"
	done
	begin_record -d 0.1s
	have_record 8
	ends_well
}
for who in heaptap guardian both; do harm "kill -9 of $who" killed $who; done
paused() { # SIGNAL
	local alone meanwhile
	begin_target env E2E_BUSY=1 "$family"
	alone=$(pace_of)
	begin_record
	kill "-$1" "$recorder"
	sleep 0.5
	meanwhile=$(pace_of)
	kill -CONT "$recorder"
	[ $((meanwhile * 2)) -ge "$alone" ] || fault "its pace is $meanwhile, $alone without heaptap"
	end_record
	said="$said, $((meanwhile * 100 / alone)) % of its pace"
	ends_well
}
harm "heaptap with a tap is stopped by SIGSTOP" paused STOP
harm "heaptap with a tap is stopped by SIGTSTP" paused TSTP

run_cases
e2e_end

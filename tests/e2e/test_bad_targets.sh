#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Targets and arguments that cannot be recorded: each gives a non-zero exit status and one clear
# message (what, why, what to do), in time, leaves no profile, and leaves the target as it was.
# Run from the top folder. HEAPTAP names the program.
# Without privileges it is run by root as another user.
COMPARE=none
. tests/e2e/lib.sh
e2e_init bad_targets

# run ARGS...: the command, with its status, output and messages kept
run() {
	timeout -k 5 30 "$heaptap" "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}

# Does the process still run, with the same identity as when it started?
starttime() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# refused NAME PATTERN: the last run failed by itself, said PATTERN in few lines, and wrote nothing
refused() {
	local name=$1 pattern=$2
	if [ "$status" = 0 ]; then
		not_ok "$name" "exit status 0" "$work/err"
	elif [ "$status" = 124 ] || [ "$status" -gt 125 ]; then # 125: heaptap failed before it started a command
		not_ok "$name" "timed out, or was killed: status $status" "$work/err"
	elif ! grep -qiE -- "$pattern" "$work/err"; then
		not_ok "$name" "message does not say /$pattern/" "$work/err"
	elif [ "$(grep -c . "$work/err")" -gt 4 ]; then
		not_ok "$name" "more than a message: $(grep -c . "$work/err") lines"
	elif [ -s "$work/p.pb.gz" ]; then
		not_ok "$name" "left a profile" "$work/err"
	else
		ok "$name"
	fi
	rm -f "$work/p.pb.gz"
}

# unharmed NAME PID STARTTIME
unharmed() {
	if [ "$(starttime "$2")" != "$3" ]; then
		not_ok "$1" "the target is gone" "$work/err"
	elif grep -q '^State:.*[tT] (' "/proc/$2/status"; then
		not_ok "$1" "the target is stopped" "$work/err"
	else
		ok "$1"
	fi
}

record() { run record -d 1 -o "$work/p.pb.gz" "$@"; }

test_no_such_pid() {
	sleep 0 & local gone=$!
	wait "$gone"
	record -p "$gone"
	refused "no such process" "no (such )?process.*$gone|$gone.*no such process"
}

test_bad_pid() {
	local bad
	for bad in abc -5 0 12x 99999999999999999999 ""; do
		record -p "$bad"
		refused "pid '$bad'" "pid|process"
	done
}

test_kernel_thread() {
	if [ "$(cat /proc/2/comm 2>/dev/null)" != kthreadd ]; then
		skip "kernel thread" "none is visible here"
		return
	fi
	record -p 2
	refused "kernel thread" "process 2 .*kernel thread"
}

test_zombie() {
	# a child that ended and whose parent does not ask
	python3 -c '
import os, sys, time
pid = os.fork()
if pid == 0:
    os._exit(0)
open(sys.argv[1], "w").write(str(pid))
time.sleep(60)' "$work/zombie" &
	disown $!
	owned
	await 4 test -s "$work/zombie"
	local zombie
	zombie=$(cat "$work/zombie")
	await 2 grep -q '^State:.Z' "/proc/$zombie/status"
	record -p "$zombie"
	refused "zombie" "process $zombie .*zombie"
}

has_threads() { [ "$(ls "/proc/$1/task" | wc -l)" -gt 1 ]; }
test_thread_id() {
	run_program python3 -c '
import threading, time
threading.Thread(target=time.sleep, args=(60,)).start()'
	await 20 has_threads "$pid"
	local tid before
	tid=$(ls "/proc/$pid/task" | tail -n 1)
	before=$(starttime "$pid")
	record -p "$tid"
	refused "thread id" "thread of process $pid.*-p $pid"
	unharmed "thread id: target unharmed" "$pid" "$before"
}

test_other_user() {
	if ! have setpriv; then
		skip "other user's process" "needs setpriv"
		return
	fi
	run_program sleep 60
	local before own
	before=$(starttime "$pid")
	# the program itself must be reachable for that user, wherever it was built
	install -m 755 "$heaptap" "$work/heaptap-nobody"
	mkdir -m 777 "$work/nobody"
	timeout -k 5 30 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$work/heaptap-nobody" record -d 1 -o "$work/nobody/p" -p "$pid" \
		>"$work/out" 2>"$work/err" </dev/null
	status=$?
	refused "other user's process" "root|CAP_"
	unharmed "other user's process: target unharmed" "$pid" "$before"
	# its own process: the kernel's side is what is missing then
	timeout -k 5 30 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$work/heaptap-nobody" record -d 1 -o "$work/nobody/p" -- sleep 0 \
		>"$work/out" 2>"$work/err" </dev/null
	status=$?
	refused "without privileges" "root|CAP_"
}

# 91 bytes: an ELF header, one segment, pause() in a loop.
make_32bit() {
	printf '%b' '\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\0\0' \
		'\x54\x80\x04\x08\x34\0\0\0\0\0\0\0\0\0\0\0\x34\0\x20\0\x01\0\0\0\0\0\0\0' \
		'\x01\0\0\0\0\0\0\0\0\x80\x04\x08\0\x80\x04\x08\x5d\0\0\0\x5d\0\0\0\x05\0\0\0\0\x10\0\0' \
		'\xb8\x1d\0\0\0\xcd\x80\xeb\xf7' >"$1"
	chmod +x "$1"
}

test_32bit() {
	make_32bit "$work/prog32"
	run_program "$work/prog32"
	if ! [ -d "/proc/$pid" ] || [ "$(readlink "/proc/$pid/exe")" != "$work/prog32" ]; then
		skip "32-bit program" "this kernel does not run it"
		return
	fi
	local before
	before=$(starttime "$pid")
	record -p "$pid"
	refused "32-bit program" "32-bit"
	unharmed "32-bit program: target unharmed" "$pid" "$before"
	record -- "$work/prog32"
	refused "32-bit command" "32-bit"
}

# A program without a known allocator is not an error of the user: it may be recorded, but the
# answer must say which allocators were looked for, and never that there are no leaks.
nothing_found() {
	local name=$1
	if [ "$status" -ge 124 ]; then
		not_ok "$name" "timed out, or was killed: status $status" "$work/err"
	elif ! cat "$work/out" "$work/err" | grep -qi "allocator"; then
		not_ok "$name" "does not say that no allocator was found" "$work/err"
	elif ! cat "$work/out" "$work/err" | grep -qw "malloc"; then
		not_ok "$name" "does not say what was looked for" "$work/err"
	elif cat "$work/out" "$work/err" | grep -qi "no leaks"; then
		not_ok "$name" "claims that there are no leaks" "$work/err"
	else
		ok "$name"
	fi
	rm -f "$work/p.pb.gz"
}

test_custom_arena() {
	cat >"$work/arena.c" <<-'END'
	#define SYS_mmap 9
	#define SYS_pause 34
	static long call(long nr, long a, long b, long c, long d, long e, long f)
	{
		register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
		long ret;

		__asm__ volatile("syscall" : "=a"(ret)
				 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
				 : "rcx", "r11", "memory");
		return ret;
	}
	void _start(void)
	{
		char *arena = (char *)call(SYS_mmap, 0, 1 << 20, 3, 0x22, -1, 0);
		int i;

		for (i = 0; i < 1 << 20; i += 4096)
			arena[i] = 1;
		for (;;)
			call(SYS_pause, 0, 0, 0, 0, 0, 0);
	}
	END
	if ! ${CC:-gcc} -O1 -nostdlib -static -o "$work/arena" "$work/arena.c" 2>"$work/err"; then
		skip "custom arena" "cannot be built here"
		return
	fi
	run_program "$work/arena"
	local before
	before=$(starttime "$pid")
	record -p "$pid"
	nothing_found "custom arena"
	unharmed "custom arena: target unharmed" "$pid" "$before"
}

test_go() {
	if ! have go; then
		skip "Go program" "no go here"
		return
	fi
	build_go go_grows || { not_ok "Go program" "cannot be built"; return; }
	run_program "$bin/go_grows"
	local before
	before=$(starttime "$pid")
	record -p "$pid"
	nothing_found "Go program"
	unharmed "Go program: target unharmed" "$pid" "$before"
}

# An output that cannot be written is told before anything is attached or started.
test_output() {
	run_program sleep 60
	local before
	before=$(starttime "$pid")
	run record -d 1 -o "$work/no/such/folder/p" -p "$pid"
	refused "output in no folder" "$work/no/such/folder"
	run record -d 1 -o "$work" -p "$pid"
	refused "output is a folder" "$work"
	unharmed "output: target unharmed" "$pid" "$before"
	run record -o "$work/no/such/folder/p" -- touch "$work/was-run"
	refused "output in no folder, with a command" "$work/no/such/folder"
	if [ -e "$work/was-run" ]; then
		not_ok "output: told before the command is started" "it was run" "$work/err"
	else
		ok "output: told before the command is started"
	fi
}

test_commands() {
	run record -o "$work/p.pb.gz" -- no-such-command-anywhere
	refused "command not in PATH" "no-such-command-anywhere.*PATH"
	run record -o "$work/p.pb.gz" -- /no/such/command
	refused "no such command" "/no/such/command"
	echo text >"$work/plain"
	run record -o "$work/p.pb.gz" -- "$work/plain"
	refused "command not executable" "plain.*execut"
	printf '#!/no/such/interpreter\n' >"$work/script"
	chmod +x "$work/script"
	run record -o "$work/p.pb.gz" -- "$work/script"
	refused "bad interpreter" "interpreter"
	head -c 100 /dev/zero >"$work/zeros"
	chmod +x "$work/zeros"
	run record -o "$work/p.pb.gz" -- "$work/zeros"
	refused "not a program" "zeros"
	run record -o "$work/p.pb.gz" -- "$work"
	refused "command is a folder" "directory|folder"
	run record -o "$work/p.pb.gz" --
	refused "no command" "command|CMD|-p|pid"
}

test_options() {
	run_program sleep 60
	local before
	before=$(starttime "$pid")
	run record -o "$work/p.pb.gz"
	refused "neither pid nor command" "pid|-p|command|CMD"
	run record -o "$work/p.pb.gz" -p "$pid" -- true
	refused "pid and command" "pid|-p|command|CMD"
	run record -o "$work/p.pb.gz" -p "$pid" --no-such-option
	refused "unknown option" "no-such-option"
	local value
	for value in x -1 1q ""; do
		run record -o "$work/p.pb.gz" -p "$pid" -d "$value"
		refused "duration '$value'" "duration|seconds|time|'$value'"
		run record -d 1 -o "$work/p.pb.gz" -p "$pid" --rate "$value"
		refused "rate '$value'" "rate|bytes|size|'$value'"
		run record -d 1 -o "$work/p.pb.gz" -p "$pid" --max-live "$value"
		refused "max-live '$value'" "max-live|'$value'"
	done
	run record -d 1 -o "$work/p.pb.gz" -p "$pid" --rate 0
	refused "rate 0" "rate"
	run record -d 1 -o "$work/p.pb.gz" -p "$pid" --max-live 0
	refused "max-live 0" "max-live"
	unharmed "options: target unharmed" "$pid" "$before"
	run no-such-command
	if [ "$status" = 0 ] || [ "$status" -ge 124 ]; then
		not_ok "unknown subcommand" "status $status" "$work/err"
	elif ! head -n 1 "$work/err" | grep -q "'no-such-command'"; then
		not_ok "unknown subcommand" "the first line does not name it" "$work/err"
	else # the list of commands follows
		ok "unknown subcommand"
	fi
}

# It executes copies of the code that it reads: a breakpoint there would end the program.
test_valgrind() {
	local pid way
	have valgrind || { skip valgrind "it is not installed"; return; }
	for way in "" --follow; do
		timeout 60 "$heaptap" record $way --force -o "$work/v.pb.gz" -- valgrind -q --tool=none ls / \
			>"$work/v.out" 2>"$work/v.err"
		[ $? = 0 ] && grep -q 'executes valgrind' "$work/v.err" && ok "valgrind: record $way: it lives" ||
			not_ok "valgrind: record $way" "it does not live, or nothing is said" "$work/v.err"
	done
	# The others are recorded on, and what was freed meanwhile is not said to be in use.
	have python3 && build_c peaks || { skip "valgrind: the others" "python3 is not installed"; return; }
	timeout 60 "$heaptap" record --follow --rate 1 --max-overhead off --force -o "$work/v.pb.gz" -- sh -c \
		'"$0" 5000 & valgrind -q --tool=none ls /; wait' "$bin/peaks" >"$work/v.out" 2>"$work/v.err"
	"$heaptap" report -f json --by function "$work/v.pb.gz" | python3 -c '
import json, sys
d = json.load(sys.stdin)
rows = {r["name"]: r for r in d["rows"]}
assert d["inuse"] == "since" and rows["hold_most"]["alloc_bytes"] == 30000000 and not rows["hold_first"]["inuse_bytes"], d' 2>"$work/out" && ok "valgrind: the others" ||
		not_ok "valgrind: the others" "they are not recorded, or hold what they have freed" "$work/out" "$work/v.err"
	valgrind -q --tool=none sleep 60 &
	owned pid
	await 10 eval '[ "$(cat /proc/$pid/comm)" != valgrind ]'
	run record -d 1 -o "$work/v.pb.gz" -p "$pid"
	refused "valgrind: record -p" "valgrind"
	kill -9 "$pid" 2>/dev/null
}

test_bad_pid
test_commands
test_output
test_options
test_no_such_pid
test_kernel_thread
test_zombie
test_thread_id
test_other_user
test_32bit
test_custom_arena
test_go
test_valgrind
e2e_end

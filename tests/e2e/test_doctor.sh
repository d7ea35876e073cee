#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `heaptap doctor` on real processes: the verdict, what it is made from, and that nothing is left in
# the process. Run from the top folder. HEAPTAP names the program.
COMPARE=none
. tests/e2e/lib.sh
e2e_init doctor
tracefs=/sys/kernel/tracing
uprobe=
cgroup=

cleanup() {
	if [ -n "$uprobe" ]; then
		echo 0 >"$tracefs/events/heaptap_test/enable"
		echo '-:heaptap_test/doctor' >>"$tracefs/uprobe_events"
	fi 2>/dev/null
	e2e_cleanup
	[ -z "$cgroup" ] || await 2 rmdir "$cgroup" 2>/dev/null
}
trap cleanup EXIT

doctor() {
	timeout -k 5 60 "$heaptap" doctor "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}

# told NAME STATUS PATTERN...: the last run ended so and printed each pattern, on one line each
told() {
	local name=$1 want=$2 pattern
	shift 2
	if [ "$status" != "$want" ]; then
		not_ok "$name" "status $status, not $want" "$work/out" "$work/err"
		return
	fi
	for pattern; do
		if ! grep -qE -- "$pattern" "$work/out" "$work/err"; then
			not_ok "$name" "does not say /$pattern/" "$work/out" "$work/err"
			return
		fi
	done
	ok "$name"
}

first_line() {
	head -n 1 "$work/out" | grep -qE -- "$2" && ok "$1" ||
		not_ok "$1" "the first line is not /$2/"
}

# check NAME EXPRESSION: a Python expression over the JSON in j holds
check() {
	local why
	if why=$(python3 -c '
import json, sys
j = json.load(open(sys.argv[1]))
files = j.get("files", [])
sites = [s for f in files for s in f.get("allocator", {}).get("sites", [])]
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("does not hold: " + sys.argv[2])' "$work/out" "$2" 2>&1); then
		ok "$1"
	else
		not_ok "$1" "$(tail -n 1 <<<"$why")"
	fi
}

run_past_loader() {
	run_program "$@"
	sleep 0.2
}

test_usage() {
	doctor -p abc
	told "pid that is no number" 2 "bad value 'abc' for --pid: a process id"
	doctor -p 0
	told "pid 0" 2 "bad value '0' for --pid: a process id"
	doctor --no-such-option
	told "unknown option" 2 "no-such-option"
	doctor extra
	told "extra argument" 2 "'extra'"
	doctor --help
	told "help" 0 "^[Uu]sage: heaptap doctor"
}

test_machine() {
	doctor
	first_line "machine: verdict" "^heaptap can record on this machine: (yes|with limits)"
	doctor --json
	check "machine: JSON" 'j["can_record"] in ("yes", "limits") and j["kernel"]["features"]["btf"]
		and j["kernel"]["emulated_hit_ns"] > 0 and "process" not in j'
	if python3 -c 'import json, sys
sys.exit(not all(json.load(open(sys.argv[1]))["kernel"]["features"].values()))' "$work/out"; then
		doctor
		told "machine: a kernel that has everything is one line" 0 \
			"^  kernel +Linux .*, all features$" "^  privileges +uid 0, all that are needed$"
		[ "$(grep -c . "$work/out")" -le 10 ] && ! grep -q uprobe_ "$work/out" &&
			ok "machine: in few lines" || not_ok "machine: in few lines" "" "$work/out"
	else
		doctor
		told "machine: what the kernel lacks is told" 0 "^  kernel +Linux .*missing: see below$" "^Kernel features" " NO "
	fi
	doctor -v
	told "machine: features and privileges are named" 0 "^  btf .*yes" "uprobe_multi" \
		"uprobe_session" "CAP_BPF" "CAP_PERFMON" "CAP_SYS_ADMIN" "CAP_SYS_PTRACE" \
		"perf_event_paranoid" "kptr_restrict" "lockdown" "a hit costs .*emulated"
}

test_process() {
	run_past_loader sleep 120
	doctor -p "$pid"
	told "process: text" 0 "^Process $pid \(sleep\)" "executable +/.*(sleep|coreutils)" "resident" \
		"^  recorded +allocations of glibc" "from the attach on; earlier" "^  command +heaptap record -p $pid -d 30s$"
	first_line "process: verdict" "^heaptap can record this process: (yes|with limits)"
	# without the note of probes that a neighbour has in the C library for a moment
	await 20 eval 'doctor -p "$pid"; ! says "$work/out" "another tool.s breakpoints"'
	[ "$(grep -c . "$work/out")" -le 24 ] && ok "process: fits a screen" ||
		not_ok "process: fits a screen" "$(grep -c . "$work/out") lines" "$work/out"
	doctor -v -p "$pid"
	told "process: all of it" 0 "^  malloc +\+[0-9]+" "^  free +\+[0-9]+" \
		"emulated|single-stepped" "rows" "names +lines"
	local columns option
	for columns in 80 100; do
		for option in "" -v; do
			COLUMNS=$columns doctor $option -p "$pid"
			if awk -v n=$columns 'length > n && !/\//' "$work/out" | grep -q .; then
				not_ok "process: fits $columns columns $option" \
					"$(awk -v n=$columns 'length > n && !/\//' "$work/out" | head -n 1)"
			else
				ok "process: fits $columns columns $option"
			fi
		done
	done
	doctor -p "$pid" --json
	check "process: JSON" 'j["process"]["pid"] == '"$pid"' and j["process"]["rss_bytes"] > 0'
	check "process: allocator entry points" \
		'{"malloc", "free", "calloc", "realloc"} <= {s["symbol"] for s in sites}'
	check "process: every site has an instruction and a cost" \
		'sites and all(s["instruction"] and s["cost_ns"] > 0 for s in sites)'
	check "process: a single-stepped site says why" \
		'all(s["emulated"] or s["why_not_emulated"] for s in sites)'
	check "process: files unwind" 'all(f["unwind_rows"] > 0 for f in files if f["text_bytes"] > 65536)'
	if grep -q uprobes "/proc/$pid/maps"; then
		not_ok "process: nothing is attached" "it has been probed" "$work/out" "$work/err"
	else
		ok "process: nothing is attached"
	fi
}

# The instruction that is printed is the one that stands in the file at the offset that is printed.
test_instruction() {
	if ! have objdump; then
		skip "instruction at the site" "no objdump"
		return
	fi
	cat >"$work/own.c" <<-'END'
	#include <stdlib.h>
	#include <unistd.h>
	int main(void) { void *volatile p = malloc(10); free(p); pause(); return 0; }
	END
	${CC:-gcc} -O1 -static -o "$work/own" "$work/own.c" 2>"$work/err" || {
		skip "static program" "cannot be built here"
		return
	}
	run_past_loader "$work/own"
	doctor -p "$pid" --json
	check "static program: its own malloc" \
		'any(s["symbol"] == "malloc" for f in files if f["path"].endswith("/own")
		 for s in f.get("allocator", {}).get("sites", []))'
	objdump -d --no-show-raw-insn "$work/own" >"$work/asm"
	if python3 - "$work/out" "$work/asm" "$work/own" >"$work/why" 2>&1 <<-'END'
	import json, re, subprocess, sys
	report = json.load(open(sys.argv[1]))
	sites = [s for f in report["files"] for s in f.get("allocator", {}).get("sites", [])]
	loads = re.findall(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)",
	                   subprocess.check_output(["readelf", "-lW", sys.argv[3]], text=True))
	at = {}
	for line in open(sys.argv[2]):
	    m = re.match(r"\s+(\w+):\t(\w+)", line)
	    if m:
	        at[int(m[1], 16)] = m[2]
	assert len(sites) >= 4, "few sites"
	for s in sites:
	    vaddr = [s["file_offset"] - int(o, 16) + int(v, 16) for o, v, n in loads
	             if int(o, 16) <= s["file_offset"] < int(o, 16) + int(n, 16)][0]
	    mine, theirs = s["instruction"].split()[0], at[vaddr]
	    assert mine.rstrip("qlwb") == theirs.rstrip("qlwb"), (s["symbol"], mine, theirs)
	END
	then ok "instruction at the site is objdump's"
	else not_ok "instruction at the site is objdump's" "$(tail -n 1 "$work/why")"; fi
}

# Somebody else's uprobe on the same function.
test_other_probes() {
	if ! has_tracefs; then
		skip "other probes are seen" "no tracefs"
		return
	fi
	if ! [ -x "$work/own" ]; then
		skip "other probes are seen" "no static program"
		return
	fi
	local off
	off=$(python3 -c '
import json, sys
print(hex(next(s["file_offset"] for f in json.load(open(sys.argv[1]))["files"]
    for s in f.get("allocator", {}).get("sites", []) if s["symbol"] == "malloc")))' "$work/out")
	check "nobody's probes are seen where there are none" \
		'not any(s["probed_by_others"] for s in sites)'
	if ! echo "p:heaptap_test/doctor $work/own:$off" >>"$tracefs/uprobe_events" 2>"$work/err"; then
		skip "other probes are seen" "a uprobe cannot be made"
		return
	fi
	uprobe=1
	echo 1 >"$tracefs/events/heaptap_test/enable"
	doctor -p "$pid" --json
	check "other probes are seen" \
		'[s["symbol"] for s in sites if s["probed_by_others"]] == ["malloc"]'
	doctor -v -p "$pid"
	told "other probes are told" 0 "another tool's breakpoints" "^  malloc .*\(probed\)"
}

# What the program says that its memory is for: its own scopes, and the labels of a library.
test_tags() {
	cat >"$work/tagged.c" <<-'END'
	#include <heaptap/scope.h>
	#include <unistd.h>
	void *labels(void);
	int main(int argc, char **argv)
	{
		heaptap_pop(); /* of nothing */
		HEAPTAP_SCOPE("Cache", "Index");
		if (argc > 1 && argv[1][0] == 'p')
			heaptap_pause_all();
		else if (argc > 1)
			heaptap_scope_v1.major_version = 2;
		pause();
		return labels() != 0;
	}
	END
	cat >"$work/labels.c" <<-'END'
	unsigned int custom_labels_abi_version = ABI;
	__thread void *volatile custom_labels_current_set, *volatile otel_thread_ctx_v1;
	void *labels(void) { return custom_labels_current_set ? otel_thread_ctx_v1 : 0; }
	END
	local abi cc=${CC:-gcc}
	if ! have "$cc"; then
		skip "tags" "no $cc"
		return
	fi
	for abi in 1 2; do
		mkdir "$work/$abi"
		if ! $cc -O1 -fPIC -shared -DABI=$abi -o "$work/$abi/liblabels.so" "$work/labels.c" \
			2>"$work/err" || ! $cc -O1 -I"$e2e_top/include" -o "$work/tagged$abi" \
			"$work/tagged.c" "$work/$abi/liblabels.so" 2>"$work/err"; then
			not_ok "tags" "the program cannot be built" "$work/err"
			return
		fi
	done

	run_past_loader "$work/tagged1"
	doctor -p "$pid"
	told "tags: scopes and labels, without -v" 0 "/tagged1 +scope\.h 1\.0 " "/liblabels\.so +OpenTelemetry "
	COLUMNS=100 doctor -v -p "$pid"
	told "tags: scopes and labels" 0 "^Tags" \
		"/tagged1 +scope\.h 1\.0 +static TLS +2 nodes, 1 underflow$" \
		"/liblabels\.so +OpenTelemetry +(DTV|static TLS) +no key names published$" \
		"/liblabels\.so +custom labels +(DTV|static TLS)$"
	doctor -p "$pid" --json
	check "tags: JSON of the scopes" '[(t["format"], t["abi"], t["found_by"], t["nodes"],
		t["underflows"], t["overflows"], t["truncations"], t["paused"], t["problem"])
		for f in files if f["path"].endswith("/tagged1") for t in f["tags"]] ==
		[("scope.h", "1.0", "static", 2, 1, 0, 0, False, "")]'
	check "tags: JSON of the labels" '[(t["format"], t["found_by"] in ("static", "dtv"))
		for f in files if f["path"].endswith("/liblabels.so") for t in f["tags"]] ==
		[("opentelemetry", True), ("custom_labels", True)] and j["otel_key_names"] is None'

	run_past_loader "$work/tagged1" pause
	doctor -v -p "$pid"
	told "tags: paused by the program" 0 "limit +no allocation is recorded now: .*/tagged1" \
		"heaptap_unpause_all" "paused, 2 nodes"

	run_past_loader "$work/tagged2" version
	COLUMNS=100 doctor -v -p "$pid"
	told "tags: of an ABI that is not known" 0 "limit +the tags of .*/tagged2 are left out" \
		"version 2\.0" "limit +the tags of .*/liblabels\.so are left out" \
		"/tagged2 +scope\.h +left out +see above$" "/liblabels\.so +custom labels +left out"
	first_line "tags: of an ABI that is not known: verdict" "process: with limits"

	run_past_loader sleep 120
	doctor -p "$pid"
	told "tags: none" 0 "^  tags +none: include heaptap/scope.h to see what the memory is for$"
	doctor -p "$pid" --json
	check "tags: none, JSON" 'files and not any(f["tags"] for f in files)'
}

test_no_allocator() {
	cat >"$work/arena.c" <<-'END'
	#define REPEAT4(x) x x x x
	#define REPEAT64(x) REPEAT4(REPEAT4(REPEAT4(x)))
	void _start(void)
	{
		long ret;

		REPEAT64(__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop");)
		for (;;)
			__asm__ volatile("syscall" : "=a"(ret) : "a"(34L) : "rcx", "r11", "memory");
	}
	END
	if ! ${CC:-gcc} -O1 -nostdlib -static -fno-asynchronous-unwind-tables -o "$work/arena" \
		"$work/arena.c" 2>"$work/err"; then
		skip "no allocator" "cannot be built here"
		return
	fi
	run_past_loader "$work/arena"
	doctor -v -p "$pid"
	told "no allocator: which were looked for" 1 "no known allocator" \
		"looked for" "malloc.* calloc|calloc.* malloc" "_Znwm|_rjem_|je_" "cannot attribute"
	first_line "no allocator: verdict" "^Cannot record this process: no known allocator"
	told "no unwind tables" 1 "without unwind tables" "frame pointers" "^ +-> it may get memory with mmap"
	doctor -p "$pid" --json
	check "no allocator: JSON" 'j["can_record"] == "no" and "malloc" in j["looked_for"]'
}

test_go() {
	have go || { skip "Go program" "no go here"; return; }
	build_go go_grows || { not_ok "Go program" "cannot be built"; return; }
	run_past_loader "$bin/go_grows"
	doctor -p "$pid"
	told "Go program" 1 "no known allocator" "Go program, whose heap is not malloc.s" "use its own pprof"
}

test_odd_processes() {
	cp "$(command -v sleep)" "$work/gone"
	run_past_loader "$work/gone" 120
	rm "$work/gone"
	doctor -p "$pid" --json
	check "deleted executable is still read" \
		'any(f["path"].endswith("/gone") and f["deleted"] and f["unwind_rows"] > 0 for f in files)'

	run_past_loader python3 -c '
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(120,)).start()
ctypes.CDLL(None).pthread_exit(None)'
	await 5 grep -q '^State:.Z' "/proc/$pid/status"
	doctor -v -p "$pid"
	told "main thread gone" 0 "its main thread has ended" "^  malloc "

	run_past_loader python3 -c '
import mmap, time
jit = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
open("/proc/self/comm", "wb").write(b"a\"b\\\x80\x01")
time.sleep(120)'
	sleep 0.5
	doctor -p "$pid" --json
	check "odd name: JSON is valid" 'j["process"]["comm"].startswith("a\"b\\")'
	check "executable memory without a file" 'j["jit_areas"] >= 1 and j["jit_bytes"] >= 8192'
	doctor -p "$pid"
	told "executable memory without a file, of a program that runs Python" 0 \
		"note +stacks have the interpreter's functions" "-X perf or PYTHONPERFSUPPORT=1"

	doctor -p 2
	if [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ]; then
		told "kernel thread" 1 "^Cannot record this process: .*kernel thread"
	else
		skip "kernel thread" "none is visible here"
	fi
	sleep 0 & local gone=$!
	wait "$gone"
	doctor -p "$gone"
	told "no such process" 1 "there is no process $gone"
}

test_confinement() {
	local id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef root
	for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
		# a cgroup file system, not the tmpfs that v1 hierarchies are mounted on
		grep -q . "$root/cgroup.procs" 2>/dev/null || continue
		mkdir "$root/docker-$id.scope" 2>/dev/null && cgroup=$root/docker-$id.scope && break
	done
	run_past_loader sleep 120
	if [ -n "$cgroup" ] && echo "$pid" >"$cgroup/cgroup.procs" 2>/dev/null; then
		doctor -p "$pid"
		told "container id" 0 "confinement +container $id"
		echo "$pid" >"$(dirname "$cgroup")/cgroup.procs"
	else
		skip "container id" "no cgroup can be made here"
	fi
	if ! unshare --pid --fork true 2>/dev/null; then
		skip "pid namespace" "cannot be made here"
		return
	fi
	run_past_loader unshare --pid --fork --kill-child sleep 120
	local inner
	inner=$(cat "/proc/$pid/task/$pid/children")
	doctor -p "${inner% }"
	told "pid namespace" 0 "own pid namespace"
}

test_unprivileged() {
	if ! have setpriv; then
		skip "without privileges" "needs setpriv"
		return
	fi
	run_past_loader sleep 120
	install -m 755 "$heaptap" "$work/heaptap-nobody"
	timeout -k 5 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$work/heaptap-nobody" doctor -p "$pid" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	told "without privileges: what is missing" 1 "missing capabilities: .*CAP_BPF" \
		"as uid 65534" "CAP_SYS_PTRACE +NO"
	first_line "without privileges: verdict" "^Cannot record this process: .*(root|CAP_BPF)"
}

test_usage
test_machine
test_process
test_instruction
test_other_probes
test_tags
test_no_allocator
test_go
test_odd_processes
test_confinement
test_unprivileged
e2e_end

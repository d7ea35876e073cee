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
exact_whole() {
	exact "$@"
	whole "$1"
}
for mode in $e2e_modes; do
	beside exact_whole "names in a map, $mode" --attach-mode=$mode -- "$bin/jit"
done
beside exact_whole "memory given to other code" -- env E2E_MODE=reuse "$bin/jit"
beside exact "names, a move and a change in a jitdump" -- env E2E_MODE=dump "$bin/jit"
beside exact_launched "names in a map, started by heaptap" -- "$bin/jit"
beside exact_launched "in a pid namespace, where it has another number" --follow -- unshare --pid --fork --mount-proc "$bin/jit"

together

# served, and named for those who ask for addresses
. "$e2e_dir/serve_lib.sh"
begin jit "$bin/jit"
serve -p "${pid_of[jit]}" --listen 127.0.0.1:0 --rate 1 --max-overhead off
work_of jit
exact_of jit "in a profile of serve"
get "$url/pid/${pid_of[jit]}/pprof/heap" | grep -oE '0x[0-9a-f]+' | sort -u | paste -sd+ >"$work/addresses"
get -d "@$work/addresses" "$url/pid/${pid_of[jit]}/pprof/symbol" >"$work/symbols"
if grep -q "site_framed$" "$work/symbols" && grep -q "site_small$" "$work/symbols"; then
	ok "names for addresses"
else
	not_ok "names for addresses" "they are not told" "$work/symbols" "$work/addresses"
fi
end_server "serve"

# The runtimes. planted NAME FUNCTION [ARGS...]: $target, recorded for a while, names the function in its
# first row, and nearly all of its stacks are whole.
planted() {
	local name=$1 function=$2
	shift 2
	"$heaptap" record --max-overhead off --force -q -r 4k -d 2s -o "$work/p.pb.gz" -p "$target" "$@" 2>"$work/heaptap.err" </dev/null ||
		not_ok "$name" "status $?" "$work/heaptap.err"
	"$heaptap" report "$work/p.pb.gz" >"$work/report"
	whole "$name" 95
	if grep -q "^ *1 .* $function" "$work/report"; then
		ok "$name: its function is named first"
	else
		not_ok "$name: its function is named first" "it is not" "$work/report" "$work/heaptap.err"
	fi
	rm -f "/tmp/perf-$target.map"
}
# the first python that can do it
find_python() {
	for python in python3 python3.12 python3.13 python3.14 "$HOME"/.pyenv/versions/*/bin/python3; do
		"$python" -c 'import sys, ctypes; sys.activate_stack_trampoline("perf")' 2>/dev/null && return
	done
	return 1
}
if find_python; then
	start "$python" -X perf "$loads/jit_ctypes.py"
	planted "Python, with -X perf" planted_python
	kill_target
	if is_whole; then
		start env PYTHONPERFSUPPORT=1 "$python" "$loads/jit_ctypes.py"
		planted "Python, with PYTHONPERFSUPPORT" planted_python
		kill_target
	fi
else
	skip "Python" "none with perf's trampolines (3.12 or later) is here"
fi

if have node && node -e 0 2>/dev/null; then
	# It would be in its caller, and name that one, as it should.
	start env -C "$work" node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$loads/jit_buffers.js"
	planted "Node" "plantedBuffer jit_buffers.js:6"
	kill_target
else
	skip "Node" "it is not here"
fi

if have luajit; then
	cat >"$work/loop.lua" <<-'EOF'
		local ffi = require("ffi")
		ffi.cdef[[void *malloc(size_t); void free(void *);]]
		io.write("READY\n") io.flush()
		local from = os.time()
		while os.time() - from < 60 do for i = 1, 1000 do ffi.C.free(ffi.C.malloc(2000)) end end
	EOF
	start luajit "$work/loop.lua"
	"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
	grep -q "stacks end in compiled Lua code" "$work/doctor" && ok "LuaJIT: doctor says so" ||
		not_ok "LuaJIT: doctor says so" "it does not" "$work/doctor"
	"$heaptap" record --max-overhead off --force -q -d 1s -o "$work/p.pb.gz" -p "$target" 2>"$work/heaptap.err" </dev/null
	kill_target
	[ "$(ledger truncated_jit)" -gt 100 ] && ok "LuaJIT: $(ledger truncated_jit) stacks end there, and are counted" ||
		not_ok "LuaJIT: stacks end there" "not so" "$work/heaptap.err"
else
	skip "LuaJIT" "it is not here"
fi

java_flags="-XX:+PreserveFramePointer -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,JitDirect.plantedDirect"
java_class() {
	[ -e "$work/java/JitDirect.class" ] || javac -d "$work/java" "$loads/JitDirect.java" 2>"$work/javac"
}
mapped_libjvm() { awk '/libjvm\.so$/ { print $NF; exit }' "/proc/$target/maps"; }
# unharmed NAME WHY COMMAND...: what is no JVM that can be asked, or may not be asked, lives on
unharmed() {
	local name=$1 why=$2
	shift 2
	rm -f "$work/p.pb.gz"
	start "$@"
	"$heaptap" record --force -q -d 500ms -o "$work/p.pb.gz" --jvm-perfmap -p "$target" 2>"$work/heaptap.err" </dev/null
	if ! kill -0 "$target" 2>/dev/null; then
		not_ok "$name" "it has ended" "$work/heaptap.err" "$work/target.out"
	elif grep -q "Full thread dump" "$work/target.out"; then
		not_ok "$name" "it was made to print its threads" "$work/heaptap.err"
	elif ! grep -q "$why" "$work/heaptap.err"; then
		not_ok "$name" "not said why" "$work/heaptap.err"
	else
		ok "$name"
	fi
	kill_target
}
if have java && have javac && java_class; then
	start java $java_flags -cp "$work/java" JitDirect
	"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
	grep -q "Java's functions have no names yet" "$work/doctor" && ! grep -q "compiled Java code" "$work/doctor" &&
		ok "Java: doctor knows what is missing" ||
		not_ok "Java: doctor knows what is missing" "it does not say so" "$work/doctor"
	planted "Java" "void JitDirect.plantedDirect" --jvm-perfmap
	libjvm=$(mapped_libjvm)
	kill_target
	start java -cp "$work/java" JitDirect
	"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
	grep -q "stacks end in compiled Java code" "$work/doctor" && ok "Java without frame pointers: doctor says so" ||
		not_ok "Java without frame pointers: doctor says so" "it does not" "$work/doctor"
	kill_target
	if is_whole; then
		start setpriv --reuid 65534 --regid 65534 --clear-groups java $java_flags -cp "$work/java" JitDirect
		planted "Java of another user" "void JitDirect.plantedDirect" --jvm-perfmap
		kill_target
	fi
	unharmed "a JVM that lets nobody attach" "DisableAttachMechanism" \
		java -XX:+DisableAttachMechanism $java_flags -cp "$work/java" JitDirect
	again unharmed "a program that only maps a JVM" "does not catch SIGQUIT" \
		/usr/bin/python3 -c 'import ctypes, sys, time; ctypes.CDLL(sys.argv[1]); print("READY", flush=True); time.sleep(60)' "$libjvm"
	cat >"$work/mute.py" <<-'EOF'
		import ctypes, os, signal, socket, sys, time
		signal.signal(signal.SIGQUIT, lambda *_: None)
		jvm = ctypes.CDLL(sys.argv[1])
		path = f"/tmp/.java_pid{os.getpid()}"
		listener = socket.socket(socket.AF_UNIX)
		listener.bind(path)
		listener.listen(0)
		crowd = []
		for _ in range(3):  # until nobody else can connect
		    crowd.append(socket.socket(socket.AF_UNIX))
		    crowd[-1].setblocking(False)
		    crowd[-1].connect_ex(path)
		print("READY", flush=True)
		time.sleep(60)
	EOF
	began=$SECONDS
	unharmed "a program with a JVM's socket that nobody can connect to" "does not answer" \
		/usr/bin/python3 "$work/mute.py" "$libjvm"
	[ $((SECONDS - began)) -le 25 ] && [ -s "$work/p.pb.gz" ] && ok "and the recording ends and is saved" ||
		not_ok "and the recording ends and is saved" "after $((SECONDS - began)) s" "$work/heaptap.err"
	rm -f "/tmp/.java_pid$target"
else
	skip "Java" "no JDK is here"
fi
e2e_end

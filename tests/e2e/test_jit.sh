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
	[ "$complete" -gt 0 ] && [ $((complete * 100)) -ge $(((complete + cut) * least)) ] &&
		ok "$name: $complete of $((complete + cut)) stacks are whole" ||
		not_ok "$name" "$complete of $((complete + cut)) stacks are whole" "$work/heaptap.err"
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

# The runtimes. planted NAME FUNCTION [ARGS...]: $target, recorded for a while, names the function in its
# first row, and nearly all of its stacks are whole.
planted() {
	local name=$1 function=$2
	shift 2
	"$heaptap" record --max-overhead off --force -q -r 4k -d 2s -o "$work/p.pb.gz" -p "$target" "$@" 2>"$work/heaptap.err" </dev/null ||
		not_ok "$name" "status $?" "$work/heaptap.err"
	"$heaptap" report "$work/p.pb.gz" >"$work/report"
	whole "$name" 95
	grep -q "^ *1 .* $function" "$work/report" && ok "$name: its function is named first" ||
		not_ok "$name: its function is named first" "it is not" "$work/report" "$work/heaptap.err"
	rm -f "/tmp/perf-$target.map"
}
# the first python that can do it; where there are several, those that can are asked first
find_python() {
	for python in "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3 python3 python3.12 python3.13 python3.14; do
		"$python" -c 'import sys, ctypes; sys.activate_stack_trampoline("perf")' 2>/dev/null && return
	done
	return 1
}
python_named() { # NAME COMMAND...
	start "${@:2}" "$loads/jit_ctypes.py"
	planted "Python, with $1" planted_python
	kill_target
}
if find_python; then
	beside python_named "-X perf" "$python" -X perf
	again beside python_named PYTHONPERFSUPPORT env PYTHONPERFSUPPORT=1 "$python"
else
	skip "Python" "none with perf's trampolines (3.12 or later) is here"
fi

node_named() {
	# It would be in its caller, and name that one, as it should.
	start env -C "$work" node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining "$loads/jit_buffers.js"
	planted "Node" "plantedBuffer jit_buffers.js:6"
	kill_target
}
have node && node -e 0 2>/dev/null && beside node_named || skip "Node" "it is not here"

lua_ends() {
	cat >"$work/loop.lua" <<-'EOF'
		local ffi = require("ffi")
		ffi.cdef[[void *malloc(size_t); void free(void *); int usleep(unsigned);]]
		io.write("READY\n") io.flush()
		local from = os.time()
		while os.time() - from < 60 do for i = 1, 1000 do ffi.C.free(ffi.C.malloc(2000)) end ffi.C.usleep(2000) end
	EOF
	start luajit "$work/loop.lua"
	"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
	grep -q "stacks end in compiled Lua code" "$work/doctor" && ok "LuaJIT: doctor says so" ||
		not_ok "LuaJIT: doctor says so" "it does not" "$work/doctor"
	"$heaptap" record --max-overhead off --force -q -d 1s -o "$work/p.pb.gz" -p "$target" 2>"$work/heaptap.err" </dev/null
	kill_target
	[ "$(ledger truncated_jit)" -gt 100 ] && ok "LuaJIT: $(ledger truncated_jit) stacks end there, and are counted" ||
		not_ok "LuaJIT: stacks end there" "not so" "$work/heaptap.err"
}
have luajit && beside lua_ends || skip "LuaJIT" "it is not here"

java_flags="-XX:+PreserveFramePointer -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,JitDirect.plantedDirect"
java=$work/java
java_class() { javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -d "$java" "$loads/JitDirect.java" 2>"$work/javac"; }
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
java_named() {
	start java $java_flags -cp "$java" JitDirect
	"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
	grep -q "Java's functions have no names yet" "$work/doctor" && ! grep -q "compiled Java code" "$work/doctor" &&
		ok "Java: doctor knows what is missing" ||
		not_ok "Java: doctor knows what is missing" "it does not say so" "$work/doctor"
	planted "Java" "void JitDirect.plantedDirect" --jvm-perfmap
	kill_target
}
java_without_frame_pointers() {
	start java -cp "$java" JitDirect
	"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
	grep -q "stacks end in compiled Java code" "$work/doctor" && ok "Java without frame pointers: doctor says so" ||
		not_ok "Java without frame pointers: doctor says so" "it does not" "$work/doctor"
	kill_target
}
java_of_another() {
	start setpriv --reuid 65534 --regid 65534 --clear-groups java $java_flags -cp "$java" JitDirect
	planted "Java of another user" "void JitDirect.plantedDirect" --jvm-perfmap
	kill_target
}
mute_jvm() {
	local began=$SECONDS
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
	unharmed "a program with a JVM's socket that nobody can connect to" "does not answer" \
		/usr/bin/python3 "$work/mute.py" "$libjvm"
	[ $((SECONDS - began)) -le 25 ] && [ -s "$work/p.pb.gz" ] && ok "and the recording ends and is saved" ||
		not_ok "and the recording ends and is saved" "after $((SECONDS - began)) s" "$work/heaptap.err"
	rm -f "/tmp/.java_pid$target"
}
if have java && have javac && java_class; then
	libjvm=$(find "$(dirname "$(realpath "$(command -v java)")")/.." -name libjvm.so | head -n 1)
	beside mute_jvm # first, because it takes longest
	beside java_named
	beside java_without_frame_pointers
	again beside java_of_another
	beside unharmed "a JVM that lets nobody attach" "DisableAttachMechanism" \
		java -XX:+DisableAttachMechanism $java_flags -cp "$java" JitDirect
	again beside unharmed "a program that only maps a JVM" "does not catch SIGQUIT" \
		/usr/bin/python3 -c 'import ctypes, sys, time; ctypes.CDLL(sys.argv[1]); print("READY", flush=True); time.sleep(60)' "$libjvm"
else
	skip "Java" "no JDK is here"
fi
together

# served, and named for those who ask for addresses
. "$e2e_dir/serve_lib.sh"
begin jit "$bin/jit"
serve -p "${pid_of[jit]}" --listen 127.0.0.1:0 --rate 1 --max-overhead off
work_of jit
exact_of jit "in a profile of serve"
get "$url/pid/${pid_of[jit]}/pprof/heap" | grep -oE '0x[0-9a-f]+' | sort -u | paste -sd+ >"$work/addresses"
get -d "@$work/addresses" "$url/pid/${pid_of[jit]}/pprof/symbol" >"$work/symbols"
grep -q "site_framed$" "$work/symbols" && grep -q "site_small$" "$work/symbols" && ok "names for addresses" ||
	not_ok "names for addresses" "they are not told" "$work/symbols" "$work/addresses"
end_server "serve"

e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap record -- CMD: from the first instruction to the last.
. "$(dirname "$0")/lib.sh"
e2e_init launch

OUT=libstartup.so build_c startup -shared -fPIC -DLIBRARY &&
	OUT=startup build_c startup "$bin/libstartup.so" -Wl,-rpath,"$bin" ||
	{ not_ok build "startup.c"; e2e_end; }
# exact_launched, and nothing was lost
lossless_launched() {
	exact_launched "$@"
	no_losses "$1: no losses"
}
# with VARIABLE=VALUE COMMAND...
with() {
	local -x "$1"
	"${@:2}"
}
# in_folder FOLDER COMMAND...
in_folder() {
	cd "$1" || not_ok "a relative path" "no directory"
	"${@:2}"
}
beside lossless_launched "constructors, main and destructors" -- "$bin/startup"
for mode in $e2e_modes; do
	beside exact_launched "constructors, main and destructors, $mode" --attach-mode=$mode -- "$bin/startup"
done
for ((i = 1; i <= 5; i++)); do again beside exact_launched "again ($i)" -- "$bin/startup"; done

# What a program is started by, and where its libraries are, are two questions: the loader looks beside the
# file itself, whatever link, script or other loader led to it. Where the list of them is not had, the
# first allocations are missed.
loader=$(readelf -l "$bin/startup" 2>/dev/null | sed -n 's/.*interpreter: \(.*\)]/\1/p')
mkdir -p "$work/real/bin" "$work/real/lib" "$work/path" "$work/plain"
OUT=libstartup-named.so build_c startup -shared -fPIC -DLIBRARY -Wl,-soname,libstartup.so &&
	OUT=startup-origin build_c startup "$bin/libstartup-named.so" -Wl,-rpath,'$ORIGIN/../lib' &&
	OUT=startup-plain build_c startup "$bin/libstartup-named.so" || not_ok build "startup.c, its library found at the start"
cp "$bin/libstartup-named.so" "$work/real/lib/libstartup.so"
cp "$bin/startup-origin" "$work/real/bin/startup"
cp "$bin/startup-plain" "$work/plain/startup"
ln -s ../real/bin/startup "$work/path/by-link"
ln -s by-link "$work/path/startup"
ln -s "$loader" "$work/path/loader"
printf '#!%s\n' "$work/path/startup" >"$work/by-script"
printf '#!%s\n' "$work/by-script" >"$work/by-two-scripts"
printf '#!/usr/bin/env by-link\n' >"$work/by-env"
printf '#!/usr/bin/env -S -u NOT_SET by-link\n' >"$work/by-env-with-options"
chmod 755 "$work"/by-*
beside lossless_launched "by a link" -- "$work/path/by-link"
again beside exact_launched "by a link to a link" -- "$work/path/startup"
again beside exact_launched "by a script" -- "$work/by-script"
beside exact_launched "by a script of a script" -- "$work/by-two-scripts"
beside with "PATH=$work/path:$PATH" exact_launched "by a link in PATH" -- by-link
again beside with "PATH=$work/path:$PATH" exact_launched "by a script of env" -- "$work/by-env"
beside with "PATH=$work/path:$PATH" exact_launched "by a script of env with options" -- "$work/by-env-with-options"
beside exact_launched "by the loader" -- "$loader" "$work/real/bin/startup" argument
again beside exact_launched "by a link to the loader" -- "$work/path/loader" --argv0 other "$work/real/bin/startup"
beside exact_launched "by the loader, with a path for libraries" -- \
	"$loader" --library-path "$work/real/lib" "$work/plain/startup"
beside with "LD_LIBRARY_PATH=$work/real/lib" exact_launched "LD_LIBRARY_PATH" -- "$work/plain/startup"
beside with "LD_PRELOAD=$work/real/lib/libstartup.so" exact_launched "LD_PRELOAD" -- "$work/plain/startup"
# the loader says of each other program that it does not find it
quietly() { "$@" 2>/dev/null; }
beside quietly with 'LD_PRELOAD=$ORIGIN/../lib/libstartup.so' exact_launched "LD_PRELOAD beside the program, by a link" -- \
	"$work/path/by-link"
again beside in_folder "$work/path" exact_launched "a relative link" -- ./by-link
beside in_folder "$work/path" with "LD_LIBRARY_PATH=../real/lib" exact_launched "a relative LD_LIBRARY_PATH" -- ../plain/startup
by_descriptor() {
	cp "$plain" "$work/startup"
	exec 4<"$work/startup"
	exact_launched "by a descriptor" -- /proc/self/fd/4
	rm "$work/startup"
	exact_launched "a file that was deleted" -- /proc/self/fd/4
	exec 4<&-
}
plain=$work/plain/startup
beside in_folder "$work/path" with "LD_LIBRARY_PATH=../real/lib" by_descriptor

# a JVM: /usr/bin/java is a link to a link, and libjli.so lies where the program does
of_java() {
	local direct linked
	launch --rate 1 -n 0 --no-lines -- "$(realpath "$(command -v java)")" -version
	direct=$("$compare" total "$work/p.pb.gz" | awk '{ print $4 }')
	launch --rate 1 -n 0 --no-lines -- java -version
	linked=$("$compare" total "$work/p.pb.gz" | awk '{ print $4 }')
	[ "${direct:-0}" -gt 1000000 ] && [ $((10 * ${linked:-0})) -gt $((9 * direct)) ] &&
		ok "a JVM by its link" || not_ok "a JVM by its link" "$linked bytes, by its path $direct" "$work/heaptap.err"
}
have java && [ -L "$(command -v java)" ] && beside of_java || skip "a JVM by its link" "no java here that is a link"

# status, signals, arguments, stdin and stdout are the program's
as_ever() {
	launch -n 0 -- sh -c 'exit 7'
	[ "$record_status" = 7 ] && grep -q "exited with status 7" "$work/heaptap.err" &&
		ok "the program's status is told and returned" || not_ok "the program's status" "$record_status" "$work/heaptap.err"
	launch -n 0 -- sh -c 'kill -SEGV $$'
	[ "$record_status" = 139 ] && grep -q "signal 11" "$work/heaptap.err" &&
		ok "the program's signal is told, and returned as 128+N" || not_ok "the program's signal" "$record_status" "$work/heaptap.err"
	launch --rate 1 -- sh -c 'echo own'
	[ "$(cat "$work/target.out")" = own ] && grep -q "^In use" "$work/heaptap.err" && ok "the summary goes to stderr" ||
		not_ok "the summary goes to stderr" "" "$work/target.out" "$work/heaptap.err"
	launch -o /dev/full -n 0 -- true
	[ "$record_status" = 125 ] && ok "125: heaptap itself failed" || not_ok "125: heaptap itself failed" "$record_status" "$work/heaptap.err"
	launch --no-such-option -- true
	[ "$record_status" = 125 ] && ok "125: wrong usage before --" || not_ok "125: wrong usage" "$record_status" "$work/heaptap.err"
	LIMIT=20 launch -n 0 -d 300ms -- sleep 2
	[ "$record_status" = 0 ] && ok "0: it still runs" || not_ok "0: it still runs" "$record_status" "$work/heaptap.err"
	[ "$(echo hello | timeout 30 "$heaptap" record --force -q -n 0 -o "$work/p.pb.gz" -- cat 2>/dev/null)" = hello ] &&
		ok "stdin and stdout are the program's" || not_ok "stdin and stdout are the program's" ""
	launch -- "$work/no-such-program"
	[ "$record_status" = 125 ] && [ ! -e "$work/p.pb.gz" ] && grep -qi "no such file\|not found" "$work/heaptap.err" &&
		ok "a program that does not exist" ||
		not_ok "a program that does not exist" "status $record_status" "$work/heaptap.err"
	launch -n 0 -- true
	[ "$record_status" = 0 ] && [ -s "$work/p.pb.gz" ] &&
		ok "a program that ends at once" || not_ok "a program that ends at once" "$record_status" "$work/heaptap.err"
}
beside as_ever

# a file of another file system seen through overlayfs: fstat() and the mappings name it differently (as on
# btrfs), and known by two names it would be probed twice
mkdir "$work/lower" "$work/upper" "$work/room" "$work/merged"
trap 'umount -l "$work/merged" "$work/lower" 2>/dev/null; e2e_cleanup' EXIT
if OUT=family-static build_c family -static && mount -t tmpfs none "$work/lower" 2>/dev/null &&
	cp "$bin/family-static" "$work/lower/" &&
	mount -t overlay -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/room" none "$work/merged" 2>/dev/null; then
	for mode in $e2e_modes; do
		beside exact_launched "on overlayfs, $mode" --attach-mode=$mode -- "$work/merged/family-static"
	done
else
	skip "on overlayfs" "it cannot be mounted here"
fi

# Ctrl-C goes to both on a terminal; SIGINT to heaptap alone ends the recording, not the program
interrupted() {
	local pid
	record_start --rate 1 -- sleep 20
	pid=$(sed -n 's/^heaptap: recording PID \([0-9]*\).*/\1/p' "$work/heaptap.err")
	stop_recorder
	[ "$record_status" = 0 ] && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null &&
		ok "SIGINT ends the recording, the program goes on" ||
		not_ok "SIGINT ends the recording, the program goes on" "status $record_status, PID '$pid'" "$work/heaptap.err"
	[ -n "$pid" ] && kill "$pid" 2>/dev/null
}
beside interrupted
together
e2e_end

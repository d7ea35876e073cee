#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap record -- CMD: from the first instruction to the last.
. "$(dirname "$0")/lib.sh"
e2e_init launch

OUT=libstartup.so build_c startup -shared -fPIC -DLIBRARY &&
	OUT=startup build_c startup "$bin/libstartup.so" -Wl,-rpath,"$bin" ||
	{ not_ok build "startup.c"; e2e_end; }
exact_launched "constructors, main and destructors" -- "$bin/startup"
no_losses "constructors, main and destructors: no losses"
for mode in $e2e_modes; do
	exact_launched "constructors, main and destructors, $mode" --attach-mode=$mode -- "$bin/startup"
done
for i in 1 2 3 4 5; do exact_launched "again ($i)" -- "$bin/startup"; done

# status, signals, arguments, stdin and stdout are the program's
launch -n 0 -- sh -c 'exit 7'
[ "$record_status" = 0 ] && grep -q "exited with status 7" "$work/heaptap.err" &&
	ok "the program's status is told" || not_ok "the program's status is told" "$record_status" "$work/heaptap.err"
launch -n 0 -- sh -c 'kill -SEGV $$'
grep -q "signal 11" "$work/heaptap.err" &&
	ok "the program's signal is told" || not_ok "the program's signal is told" "" "$work/heaptap.err"
[ "$(echo hello | timeout 30 "$heaptap" record --force -q -n 0 -o "$work/p.pb.gz" -- cat 2>/dev/null)" = hello ] &&
	ok "stdin and stdout are the program's" || not_ok "stdin and stdout are the program's" ""
launch -- "$work/no-such-program"
[ "$record_status" != 0 ] && [ ! -e "$work/p.pb.gz" ] && grep -qi "no such file\|not found" "$work/heaptap.err" &&
	ok "a program that does not exist" ||
	not_ok "a program that does not exist" "status $record_status" "$work/heaptap.err"
launch -n 0 -- true
[ "$record_status" = 0 ] && [ -s "$work/p.pb.gz" ] &&
	ok "a program that ends at once" || not_ok "a program that ends at once" "$record_status" "$work/heaptap.err"

# a file of another file system seen through overlayfs: fstat() and the mappings name it differently (as on
# btrfs), and known by two names it would be probed twice
mkdir "$work/lower" "$work/upper" "$work/room" "$work/merged"
trap 'umount -l "$work/merged" "$work/lower" 2>/dev/null; e2e_cleanup' EXIT
if OUT=family-static build_c family -static && mount -t tmpfs none "$work/lower" 2>/dev/null &&
	cp "$bin/family-static" "$work/lower/" &&
	mount -t overlay -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/room" none "$work/merged" 2>/dev/null; then
	for mode in $e2e_modes; do
		exact_launched "on overlayfs, $mode" --attach-mode=$mode -- "$work/merged/family-static"
	done
else
	skip "on overlayfs" "it cannot be mounted here"
fi

# Ctrl-C goes to both on a terminal; SIGINT to heaptap alone ends the recording, not the program
record_start --rate 1 -- sleep 20
pid=$(sed -n 's/^heaptap: recording PID \([0-9]*\).*/\1/p' "$work/heaptap.err")
stop_recorder
if [ "$record_status" = 0 ] && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
	ok "SIGINT ends the recording, the program goes on"
else
	not_ok "SIGINT ends the recording, the program goes on" "status $record_status, PID '$pid'" "$work/heaptap.err"
fi
[ -n "$pid" ] && kill "$pid" 2>/dev/null
e2e_end

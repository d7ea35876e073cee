#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lib.sh - what the tests of the one executable share; sourced from the top folder. Results are TAP.
# DIST: where `make dist` has left it (.build-dist).
. tests/packaging/lib.sh
dist=${DIST:-.build-dist}
one=$(realpath -m "$dist/heaptap")
dist_init() {
	name=$1
	[ -x "$one" ] || skip_all "there is no $dist/heaptap: make dist"
	[ "$(id -u)" = 0 ] || skip_all "needs root"
	work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-dist-XXXXXX")
	chmod 755 "$work"
	trap 'for p in $pids; do kill "$p" 2>/dev/null; done; wait 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
	trap 'exit 130' INT TERM
}
# build_holder OUT COMPILER...
build_holder() {
	local out=$1
	shift
	"$@" -std=gnu11 -O2 -g -fno-builtin-malloc -Wno-deprecated-declarations -Iinclude -o "$out" tests/dist/holder.c >"$work/log" 2>&1
}
# new_root DIR: nothing but the executable, and where proc and sys will be
new_root() {
	mkdir -p "$1/proc" "$1/sys"
	cp "$one" "$1/heaptap"
}
# inside ROOT COMMAND...: proc and sys are mounted for this command alone, which sees nothing of this machine's
# environment but $with; enter does the same instead of this shell, so that in the background its pid is the command's
enter() {
	exec env -i PATH=/bin:/usr/bin:/sbin:/usr/sbin ${with:-} "$(command -v unshare)" -m --propagation private "$BASH" -c '
		root=$1; shift
		mount --rbind /proc "$root/proc" && mount --rbind /sys "$root/sys" && exec chroot "$root" "$@"' - "$@"
}
inside() { (enter "$@"); }
# names PROFILE REGEX...: of the stacks that the executable itself reports
names() {
	local title=$1 profile=$2
	shift 2
	"$one" report -v "$profile" >"$work/report" 2>&1
	has "$title" "$work/report" "$@"
}
dist_end() { exit "$failed"; }

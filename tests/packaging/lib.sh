# SPDX-License-Identifier: MIT
# lib.sh - what the packaging tests share; sourced from the top folder. Results are TAP.
set -u
name=
work=
B=${B:-.build}
ok() { echo "ok - $name: $1"; }
# not_ok NAME WHY [FILE...]: the beginning of each file is shown
not_ok() {
	echo "not ok - $name: $1: $2"
	shift 2
	for file; do
		[ -s "$file" ] && sed "s|^|#   $(basename "$file"): |" "$file" | head -n 20
	done
	failed=1
}
skip() { echo "ok - $name: $1 # SKIP $2"; }
skip_all() {
	skip all "$1"
	exit 0
}
have() { command -v "$1" >/dev/null 2>&1; }
# passes NAME COMMAND...: it succeeds
passes() {
	local title=$1
	shift
	if timeout "${LIMIT:-120}" "$@" >"$work/log" 2>&1; then
		ok "$title"
	else
		not_ok "$title" "status $?" "$work/log"
	fi
}
# has NAME FILE REGEX...
has() {
	local title=$1 file=$2 regex
	shift 2
	for regex; do
		if ! grep -qE -- "$regex" "$file"; then
			not_ok "$title" "no '$regex'" "$file"
			return
		fi
	done
	ok "$title"
}
failed=0
pids=
packaging_init() {
	name=$1
	work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-packaging-XXXXXX")
	chmod 755 "$work"
	trap 'for p in $pids; do kill "$p" 2>/dev/null; done; wait; rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM
	[ -x ./heaptap ] || { echo "Bail out! heaptap is not built"; exit 1; }
}
packaging_end() { exit "$failed"; }
# await SECONDS COMMAND...
await() {
	local i
	for ((i = 0; i < $1 * 50; i++)); do
		"${@:2}" && return 0
		sleep 0.02
	done
	return 1
}

# debian_root DIR [SUITE]: Debian (12) with nothing but its base, from where this machine gets its packages.
debian_root() {
	local mirror
	mirror=$(sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *(http[^ ]*debian)( .*)?$/\3/p' /etc/apt/sources.list \
		/etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
	[ -n "$mirror" ] || skip_all "apt's sources name no mirror"
	LIMIT=600 passes "debootstrap" debootstrap --variant=minbase "${2:-bookworm}" "$1" "$mirror"
	[ "$failed" = 0 ] || packaging_end
	[ ! -d /etc/apt/apt.conf.d ] || cp -r /etc/apt/apt.conf.d "$1/etc/apt/"
	echo 'APT::Install-Recommends "false";' >"$1/etc/apt/apt.conf.d/zz-test"
}

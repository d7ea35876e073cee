#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lib.sh - what the consumer tests share: the generated profile and TAP lines. Sourced by them,
# from the top folder:
#	. tests/consumers/lib.sh
#	consumer_init NAME
set -u
consumer_failed=0
B=${B:-.build}

ok() { echo "ok - $consumer: $1"; }
# not_ok NAME WHY [FILE]
not_ok() {
	echo "not ok - $consumer: $1: $2"
	[ -z "${3:-}" ] || sed 's/^/#   /' "$3" | head -n 40
	consumer_failed=1
}
skip_all() {
	echo "ok - $consumer: all # SKIP $1"
	exit 0
}
have() { command -v "$1" >/dev/null 2>&1; }

# make_profile, which all of them use, is built by the first; of two at once one waits.
build_make_profile() {
	local made=$B/make_profile sources="tests/consumers/make_profile.c tests/lib/pprof_check.c"
	(
		flock 9
		if [ ! -e "$made" ] || [ -n "$(find $sources "$B/libheaptap.a" -newer "$made")" ]; then
			${CC:-cc} -std=gnu11 -O1 -D_GNU_SOURCE -Iinclude -Iuser -I"$B/gen" -o "$made.new" $sources \
				"$B/libheaptap.a" -lprotobuf-c -lz -lm && mv "$made.new" "$made"
		fi
	) 9>"$B/.make_profile.lock" && ln -s "$(realpath "$made")" "$work/make_profile"
}
# The profile of make_profile.c in $profile; scratch room in $work.
consumer_init() {
	consumer=$1
	work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-consumer-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	profile=$work/profile.pb.gz
	if ! build_make_profile >"$work/log" 2>&1 || ! "$work/make_profile" "$profile" >>"$work/log" 2>&1; then
		not_ok setup "the profile cannot be made" "$work/log"
		exit 1
	fi
}
# expect NAME FILE PATTERN...: every extended regular expression matches a line
expect() {
	local name=$1 file=$2 pattern
	shift 2
	for pattern in "$@"; do
		if ! grep -qE -- "$pattern" "$file"; then
			not_ok "$name" "no line matches '$pattern'" "$file"
			return
		fi
	done
	ok "$name"
}
consumer_end() { exit "$consumer_failed"; }

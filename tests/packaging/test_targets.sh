#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `make help` lists works on a machine that has nothing yet: the first that a target does is to install
# what it needs, and it is not expected to have been found before. And every script is there that a makefile runs.
set -u
failed=0 cnt=0
none=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-none-XXXXXX")
trap 'rm -rf "$none"' EXIT
check() {
	local first
	first=$(env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -n B="$none" "$1" 2>&1 | head -n 1)
	case $first in
	tools/setup.sh*)
		cnt=$((cnt + 1))
		echo "ok - targets: $1 sets up first"
		;;
	*)
		echo "not ok - targets: $1 sets up first: it begins with '$first'"
		failed=1
		;;
	esac
}
# These build only, install or remove what was built, or need no more than the tree.
alone=" all help setup clean install uninstall format check-static quick "
while read -r target; do
	[[ $alone == *" $target "* ]] || check "$target"
done < <(make help | sed -nE 's/^([a-z0-9-]+) .*/\1/p')
scripts=$(sed '/^#/d' Makefile tools/*/*.mk tests/*.mk | grep -oP '(^|[\s@])\K(tools|tests)/[\w/.-]++(?![%*$(])' | sort -u)
missing=$(for script in $scripts; do [ -e "$script" ] || echo "$script"; done)
if [ -z "$missing" ] && [ "$(wc -w <<<"$scripts")" -ge 15 ]; then
	echo "ok - targets: $(wc -w <<<"$scripts") scripts of makefiles are there"
else
	echo "not ok - targets: scripts of makefiles: not there: $(xargs <<<"$missing") of $(wc -w <<<"$scripts")"
	failed=1
fi
[ $failed = 0 ] && [ $cnt -ge 15 ]

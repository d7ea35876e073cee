#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What tags cost, with each compiler: limits in nanoseconds, no system call, no allocation.
# See tools/bench/scope_cost.c.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-cost-XXXXXX")
trap 'rm -rf "$out"' EXIT
failed=0
for cc in gcc clang; do
	if ! command -v $cc >/dev/null 2>&1; then
		echo "ok - $cc # SKIP not installed"
	elif ! $cc -std=gnu11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude \
		tools/bench/scope_cost.c -o "$out/$cc" 2>"$out/log"; then
		echo "not ok - $cc: cannot be built"
		sed 's/^/# /' "$out/log" | head -10
		failed=1
	else
		timeout 60 "$out/$cc" check >"$out/tap" || failed=1
		sed "s/^\(.*ok\) - /\1 - $cc, /" "$out/tap"
	fi
done
exit $failed

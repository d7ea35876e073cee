#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 1200
# `heaptap explain` with the glibc of other releases: the heaps of tests/e2e/test_explain.sh, each arena as malloc_info() of
# that glibc has it, and what its malloc_trim(0) returns. GLIBC_SUITES='bullseye sid': of these releases of Debian.
COMPARE=none
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
e2e_init glibc
. "$e2e_dir/explain_lib.sh"
# Blocks of 2.31 in the caches of threads that share an arena count as live: no plant has such threads.
for suite in ${GLIBC_SUITES:-bullseye bookworm trixie forky sid}; do
	said=$("$here/get_glibc" "$got" $suite 2>&1) || { skip "$suite" "${said:-get_glibc fails}"; continue; }
	cc=$got/glibc-$suite/cc
	heaps=$work/heaps-$suite
	"$cc" $c_flags -o "$heaps" "$loads/heaps.c" >"$work/log" 2>&1 || { not_ok "$suite" "heaps.c is not compiled" "$work/log"; continue; }
	version=$(grep -aom 1 'release version [0-9]*\.[0-9]*' "$got/glibc-$suite/root/lib/x86_64-linux-gnu/libc.so.6" | sed 's/.* //')
	e2e_name="glibc ${version:-$suite}"
	planted_all
done
e2e_name=glibc
e2e_end

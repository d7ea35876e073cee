#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 4800
# `heaptap explain` with the glibc of other releases: the heaps of tests/e2e/test_explain.sh, each arena as malloc_info() of
# that glibc has it, and what its malloc_trim(0) returns. GLIBC_SUITES='bullseye sid': of these releases of Debian, and with GLIBC_GIT,
# a repository of glibc, also '2.28 2.35': these versions, built for it.
COMPARE=none
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
e2e_init glibc
. "$e2e_dir/explain_lib.sh"
# Blocks of 2.31 in the caches of threads that share an arena count as live: no plant has such threads.
built=${GLIBC_GIT:+2.28 2.35 2.39}
for suite in ${GLIBC_SUITES:-bullseye bookworm trixie forky sid $built}; do
	get=get_glibc
	[[ $suite != [0-9]* ]] || get=build_glibc
	said=$("$here/$get" "$got" $suite 2>&1) || { skip "$suite" "${said:-$get fails}"; continue; }
	cc=$got/glibc-$suite/cc
	heaps=$work/heaps-$suite
	"$cc" $c_flags -o "$heaps" "$loads/heaps.c" >"$work/log" 2>&1 || { not_ok "$suite" "heaps.c is not compiled" "$work/log"; continue; }
	version=$(ldd "$heaps" | awk '$1 == "libc.so.6" { print $3 }' | xargs grep -aom 1 'release version [0-9]*\.[0-9]*' | sed 's/.* //')
	e2e_name="glibc ${version:-$suite}"
	# Before 2.29 blocks in the caches of threads cannot be told from live ones; before 2.31 malloc_info() has no top.
	unset INFO_WITHOUT_TOP GLIBC_TUNABLES
	[[ $version != 2.2[678] ]] || export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
	[[ $version != 2.2[6789] && $version != 2.30 ]] || export INFO_WITHOUT_TOP=1
	planted_all
done
e2e_name=glibc
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# C++: every operator new and delete, containers, and exceptions thrown through recorded calls,
# with the allocators of glibc, jemalloc, tcmalloc and mimalloc.
. "$(dirname "$0")/lib.sh"
e2e_init exact_cxx

build_cxx cxx || { not_ok build "cxx.cc"; e2e_end; }

# caught NAME N: the program lived, and its exceptions arrived
caught() {
	says "$work/target.out" "^CAUGHT $2$" && ok "$1: exceptions arrive" ||
		not_ok "$1: exceptions arrive" "not $2" "$work/target.out" "$work/target.err"
}
with() {
	local name=$1 preload=$2 mode
	if [ -n "$preload" ] && [ ! -e "$preload" ]; then
		skip "$name" "not installed"
		return
	fi
	# The operator new of an allocator is left alone where every return is probed.
	if [ -z "$preload" ] || has_mode session; then
		beside with_default "$name" "$preload"
	else
		skip "$name" "this kernel has no uprobe sessions"
	fi
	for mode in $e2e_modes; do
		# that an allocator is a library is seen with one of them
		is_whole || [ "$name" != tcmalloc ] || continue
		[ $mode = session ] || beside with_mode "$name" "$preload" $mode
	done
}
with_default() {
	local name=$1 preload=$2
	lossless "$name" -- env ${preload:+LD_PRELOAD=$preload} "$bin/cxx"
	caught "$name" 12
	is_whole || [ -z "$preload" ] || return
	exact_launched "$name, started" -- \
		env E2E_DELAY_MS=2000 ${preload:+LD_PRELOAD=$preload} "$bin/cxx"
	caught "$name, started" 12
	exact "$name, address space limited" -- \
		env E2E_LIMIT_MIB=1500 ${preload:+LD_PRELOAD=$preload} "$bin/cxx"
	caught "$name, address space limited" 15
}
with_mode() {
	local name=$1 preload=$2 mode=$3
	# exact where new is probed at the risk of the program, which throws nothing here ...
	exact "$name, --attach-mode=$mode" --attach-mode=$mode --probe-throwing-new -- \
		env E2E_NO_THROW=1 ${preload:+LD_PRELOAD=$preload} "$bin/cxx"
	# ... and without taking it, exceptions arrive
	start env ${preload:+LD_PRELOAD=$preload} "$bin/cxx"
	record_work --rate 1 --attach-mode=$mode
	caught "$name, --attach-mode=$mode" 12
}
libs=/usr/lib/$(uname -m)-linux-gnu
with glibc ""
with jemalloc "$libs/libjemalloc.so.2"
with tcmalloc "$libs/libtcmalloc_minimal.so.4"
if [ -e "$libs/libmimalloc.so.2" ]; then
	modes=$e2e_modes
	is_whole || modes=${e2e_every_mode# } modes=${modes%% *} # it takes the kernel seconds to put in perf's
	for mode in $modes; do
		beside exact "mimalloc, --attach-mode=$mode" --attach-mode=$mode --probe-throwing-new -- \
			env E2E_NO_THROW=1 LD_PRELOAD="$libs/libmimalloc.so.2" "$bin/cxx"
	done
else
	skip mimalloc "not installed"
fi

# static C++ runtime: operator new is the program's own
OUT=cxx-static-runtime build_cxx cxx -static-libstdc++ -static-libgcc &&
	beside exact "static libstdc++" -- "$bin/cxx-static-runtime"
if have clang++; then
	CXX=clang++ OUT=cxx-clang build_cxx cxx && beside exact "compiled with clang++" -- "$bin/cxx-clang"
else
	skip "compiled with clang++" "clang++ is not installed"
fi
together
e2e_end

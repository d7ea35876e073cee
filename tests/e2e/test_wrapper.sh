#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Libraries in front of the allocator, one or several: what is asked for is allocated once. timeout: 1200
. "$(dirname "$0")/lib.sh"
e2e_init wrapper

build_cxx wrapped && build_c nested -rdynamic && build_cxx cxx || { not_ok build "workloads"; e2e_end; }
calls=-fno-optimize-sibling-calls
wrapper() { OUT=$1 build_cxx wrapper -shared -fPIC -fvisibility=hidden -ldl "${@:2}"; }
wrapper libwrapper-calls.so $calls && wrapper libwrapper-jumps.so && wrapper libwrapper-big.so $calls -DBIG -DHELPER &&
	wrapper libwrapper-helper.so -DHELPER -DBIG && wrapper libwrapper-hook.so -DHOOK -DBIG &&
	wrapper libwrapper-aligned.so $calls -DALIGNED -DBIG -DHELPER ||
	{ not_ok build "wrapper.cc"; e2e_end; }

# through NAME LD_PRELOAD PROGRAM MODE...
through() {
	local name=$1 preload=$2 program=$3 mode
	for mode in "${@:4}"; do
		lossless "$name, $mode" --attach-mode=$mode --probe-throwing-new -- \
			env ${preload:+LD_PRELOAD="$preload"} "$bin/$program"
	done
}
# sampled NAME LD_PRELOAD PROGRAM COUNT SITES MODE...: what each site is estimated to have allocated is near
# the truth of COUNT times about 1 KiB or more, of which one in 4 KiB is kept: 1.4 % standard error at 20000
sampled() {
	local name=$1 preload=$2 program=$3 count=$4 sites=$5 mode
	for mode in "${@:6}"; do sampled_as "$mode"; done
}
sampled_as() {
	local row site estimate alloc bad= cnt=0
	start env ${preload:+LD_PRELOAD="$preload"} "$bin/$program" $count ||
		not_ok "$name, sampled, $1" "the target did not start" "$work/target.err"
	record_work --rate 4K --attach-mode=$1 --probe-throwing-new
	while read -r row site _ _ _ estimate _; do
		alloc=$(awk -v site="$site" '$1 == "EXPECT" && $2 == site { print $6 }' "$work/target.out")
		[ "$row" = SITE ] && [ $((100 * estimate)) -gt $((92 * alloc)) ] &&
			[ $((100 * estimate)) -lt $((108 * alloc)) ] || bad="$bad $site: $estimate, must be near $alloc;"
		cnt=$((cnt + 1))
	done < <("$compare" sites "$work/p.pb.gz")
	[ -z "$bad" ] && [ $cnt = $sites ] && ok "$name, sampled, $1" ||
		not_ok "$name, sampled, $1" "$cnt sites of $sites;$bad" "$work/heaptap.err"
}
first=${e2e_modes# }
first=${first%% *}
# What differs by the way to attach is seen with the first program; E2E_WRAPPERS: with the second one as well.
second=$first
[ -z "${E2E_WRAPPERS:-}" ] || second=$e2e_modes
if [ "${HEAPTAP_VM:-0}" != 0 ]; then # the emulated machine is slow: what differs by kernel
	beside sampled "the C library alone" "" wrapped 20000 8 $first
	for shape in calls jumps; do
		beside through "a wrapper ($shape)" "$bin/libwrapper-$shape.so" wrapped $e2e_modes
	done
	beside sampled "a wrapper (jumps)" "$bin/libwrapper-jumps.so" wrapped 20000 8 $first
	beside exact "handlers and stacks" --attach-mode=$first -- env LD_PRELOAD="$bin/libwrapper-hook.so" "$bin/nested"
	together
	e2e_end
fi
beside sampled "the C library alone" "" wrapped 20000 8 $e2e_modes
beside through "by pointers" "" nested $e2e_modes
again beside sampled "by pointers" "" nested 20000 2 $second
for shape in calls jumps; do
	beside through "a wrapper ($shape)" "$bin/libwrapper-$shape.so" wrapped $e2e_modes
	beside sampled "a wrapper ($shape)" "$bin/libwrapper-$shape.so" wrapped 20000 8 $e2e_modes
	again beside through "by pointers, a wrapper ($shape)" "$bin/libwrapper-$shape.so" nested $second
	again beside sampled "by pointers, a wrapper ($shape)" "$bin/libwrapper-$shape.so" nested 20000 2 $second
done
for shape in big helper aligned; do
	beside through "a wrapper ($shape)" "$bin/libwrapper-$shape.so" wrapped $first
	again beside sampled "a wrapper ($shape)" "$bin/libwrapper-$shape.so" wrapped 20000 8 $first
done
for mode in $e2e_modes; do # calls that are left are noted, and not allocations
	beside exact "handlers and stacks, $mode" --attach-mode=$mode -- env LD_PRELOAD="$bin/libwrapper-hook.so" "$bin/nested"
done
again beside sampled "handlers and stacks" "$bin/libwrapper-hook.so" nested 20000 7 $second
beside through "two wrappers" "$bin/libwrapper-calls.so $bin/libwrapper-big.so" wrapped $first
again beside sampled "two wrappers" "$bin/libwrapper-calls.so $bin/libwrapper-jumps.so" wrapped 20000 8 $first
if has_mode session; then # elsewhere exceptions and return probes do not go together
	for shape in $(some 1 calls jumps); do
		exact "exceptions through a wrapper ($shape)" -- \
			env E2E_LIMIT_MIB=1500 LD_PRELOAD="$bin/libwrapper-$shape.so" "$bin/cxx"
		says "$work/target.out" "^CAUGHT 15$" && ok "a wrapper ($shape): exceptions arrive" ||
			not_ok "a wrapper ($shape): exceptions arrive" "not 15" "$work/target.out"
	done
fi
for lib in $(some 1 libjemalloc.so.2 libtcmalloc_minimal.so.4); do
	path=$(ldconfig -p | awk -v lib=$lib '$1 == lib && /x86-64/ { print $NF; exit }')
	if [ -n "$path" ]; then
		beside through "a wrapper in front of $lib" "$bin/libwrapper-calls.so $path" wrapped $first
		again beside sampled "a wrapper in front of $lib" "$bin/libwrapper-jumps.so $path" wrapped 20000 8 $first
		beside through "$lib in front of a wrapper" "$path $bin/libwrapper-big.so" wrapped $first
		again beside sampled "$lib in front of a wrapper" "$path $bin/libwrapper-big.so" wrapped 20000 8 $first
	else
		skip "a wrapper and $lib" "not installed"
	fi
done
# The allocator of a sanitizer: of gcc a library in front of the C library, of clang in the program.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
for cxx in $(some 1 g++ clang++); do
	if have $cxx && CXX=$cxx OUT=wrapped-asan-$cxx build_cxx wrapped -fsanitize=address -Wno-array-bounds; then
		beside through "ASan of $cxx" "" wrapped-asan-$cxx $e2e_modes
		again beside sampled "ASan of $cxx" "" wrapped-asan-$cxx 20000 8 $first
	else
		skip "ASan of $cxx" "not installed"
	fi
done
together
e2e_end

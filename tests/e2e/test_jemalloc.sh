#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# jemalloc: the malloc family, its own entry points, shared, static, with background threads.
. "$(dirname "$0")/lib.sh"
e2e_init jemalloc

lib=$(ldconfig -p | awk '/libjemalloc\.so\.2 .*x86-64/ { print $NF; exit }')
[ -n "$lib" ] || skip_all "libjemalloc is not installed"
build_c family && build_c threads || { not_ok build "workloads"; e2e_end; }
for mode in $e2e_modes; do
	lossless "preloaded, $mode" --attach-mode=$mode -- env LD_PRELOAD="$lib" "$bin/family"
done
exact "preloaded, 8 threads" -- env LD_PRELOAD="$lib" E2E_THREADS=8 "$bin/family"
lossless "preloaded, race" -- env LD_PRELOAD="$lib" E2E_MODE=race "$bin/threads"
exact "preloaded, producers and consumers" -- \
	env LD_PRELOAD="$lib" E2E_MODE=handover E2E_THREADS=3 "$bin/threads"
if ! echo '#include <jemalloc/jemalloc.h>' | ${CC:-gcc} -E - >/dev/null 2>&1; then
	skip "own entry points" "jemalloc/jemalloc.h is not installed"
	e2e_end
fi
if build_c jemalloc -ljemalloc; then
	for mode in $e2e_modes; do
		lossless "own entry points, $mode" --attach-mode=$mode -- "$bin/jemalloc"
	done
else
	not_ok "own entry points" "cannot be built"
fi
if OUT=jemalloc-static build_c jemalloc -Wl,-Bstatic -ljemalloc -Wl,-Bdynamic -lstdc++ -lm -ldl; then
	exact "linked in statically" -- "$bin/jemalloc-static"
else
	skip "linked in statically" "no libjemalloc.a"
fi
if OUT=family-jemalloc-static build_c family -Wl,-Bstatic -ljemalloc -Wl,-Bdynamic -lstdc++ -lm -ldl; then
	exact "malloc family, linked in statically" -- "$bin/family-jemalloc-static"
else
	skip "malloc family, linked in statically" "no libjemalloc.a"
fi
e2e_end

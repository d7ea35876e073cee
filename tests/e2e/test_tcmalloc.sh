#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gperftools' tcmalloc: the malloc family and operator new, shared and static.
. "$(dirname "$0")/lib.sh"
e2e_init tcmalloc

lib=$(ldconfig -p | awk '/libtcmalloc_minimal\.so\.4 .*x86-64/ { print $NF; exit }')
[ -n "$lib" ] || skip_all "libtcmalloc_minimal is not installed"
build_c family && build_c threads && build_cxx cxx || { not_ok build "workloads"; e2e_end; }
# What throws is left alone where every return is probed, unless that is asked for, at the risk of the
# program: which throws nothing then.
throwing=
has_mode session || { throwing=--probe-throwing-new && export E2E_NO_THROW=1; }
for mode in $e2e_modes; do
	exact "preloaded, $mode" --attach-mode=$mode -- env LD_PRELOAD="$lib" "$bin/family"
	no_losses "preloaded, $mode: no losses"
done
exact "preloaded, 8 threads" -- env LD_PRELOAD="$lib" E2E_THREADS=8 "$bin/family"
exact "preloaded, race" -- env LD_PRELOAD="$lib" E2E_MODE=race "$bin/threads"
no_losses "preloaded, race: no losses"
full=$(ldconfig -p | awk '/libtcmalloc\.so\.4 .*x86-64/ { print $NF; exit }')
if [ -n "$full" ]; then
	exact "with its own profiler, C++" $throwing -- env LD_PRELOAD="$full" "$bin/cxx"
else
	skip "with its own profiler, C++" "libtcmalloc is not installed"
fi
if OUT=cxx-tcmalloc-static build_cxx cxx -Wl,-Bstatic -ltcmalloc_minimal -Wl,-Bdynamic; then
	exact "linked in statically" $throwing -- "$bin/cxx-tcmalloc-static"
else
	skip "linked in statically" "no libtcmalloc_minimal.a"
fi
e2e_end

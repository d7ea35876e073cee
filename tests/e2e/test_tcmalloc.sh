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
	lossless "preloaded, $mode" --attach-mode=$mode -- env LD_PRELOAD="$lib" "$bin/family"
done
exact "preloaded, 8 threads" -- env LD_PRELOAD="$lib" E2E_THREADS=8 "$bin/family"
lossless "preloaded, race" -- env LD_PRELOAD="$lib" E2E_MODE=race "$bin/threads"
full=$(ldconfig -p | awk '/libtcmalloc\.so\.4 .*x86-64/ { print $NF; exit }')
if [ -n "$full" ]; then
	exact "with its own profiler, C++" $throwing -- env LD_PRELOAD="$full" "$bin/cxx"
else
	skip "with its own profiler, C++" "libtcmalloc is not installed"
fi
if OUT=cxx-tcmalloc-static build_cxx cxx -Wl,-Bstatic -ltcmalloc_minimal -Wl,-Bdynamic; then
	exact "linked in statically" $throwing -- "$bin/cxx-tcmalloc-static"
	# A process that is followed turns into another program with less memory to have: a return probe on a
	# new that throws would end it.
	. "$e2e_dir/serve_lib.sh"
	begin limits env E2E_LIMIT_MIB=1024 E2E_LIMIT_LATE=1 \
		sh -c 'echo READY && read -r go && ulimit -v 1048576 && exec "$1"' - "$bin/cxx-tcmalloc-static"
	serve --listen 127.0.0.1:0 --rate 1 --max-overhead off -p "${pid_of[limits]}"
	says "$top/serve.err" "tracking PID ${pid_of[limits]}" || not_ok "limits" "is not followed" "$top/serve.err"
	is_cxx() { [ "$(grep -c ^READY "$top/limits/target.out")" = 2 ]; }
	tell_to limits go
	await 20 is_cxx || not_ok "limits" "is not cxx" "$top/limits/target.err"
	sleep 2
	work_of limits
	says "$top/limits/target.out" '^CAUGHT 15$' && ok "limited after it was followed: new fails as it would" ||
		not_ok "limited after it was followed" "the program is gone" "$top/limits/target.out" "$top/limits/target.err"
	end_server "serve"
else
	skip "linked in statically" "no libtcmalloc_minimal.a"
fi
e2e_end

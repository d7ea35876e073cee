#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mimalloc: the malloc family and its own entry points, shared and static.
. "$(dirname "$0")/lib.sh"
e2e_init mimalloc

lib=$(ldconfig -p | awk '/libmimalloc\.so\.2 .*x86-64/ { print $NF; exit }')
[ -n "$lib" ] || skip_all "libmimalloc is not installed"
build_c family && build_c threads || { not_ok build "workloads"; e2e_end; }
for mode in $e2e_modes; do
	lossless "preloaded, $mode" --attach-mode=$mode -- env LD_PRELOAD="$lib" "$bin/family"
done
exact "preloaded, 8 threads" -- env LD_PRELOAD="$lib" E2E_THREADS=8 "$bin/family"
lossless "preloaded, race" -- env LD_PRELOAD="$lib" E2E_MODE=race "$bin/threads"
header=$(ls /usr/include/mimalloc.h /usr/include/mimalloc-*/mimalloc.h /usr/lib/*/mimalloc-*/include/mimalloc.h 2>/dev/null | head -n 1)
if [ -z "$header" ]; then
	skip "own entry points" "mimalloc.h is not installed"
	e2e_end
fi
if build_c mimalloc -I"$(dirname "$header")" -lmimalloc; then
	lossless "own entry points" -- "$bin/mimalloc"
	exact "own heaps" -- env E2E_HEAPS=1 "$bin/mimalloc"
else
	not_ok "own entry points" "cannot be built"
fi
archive=$(ls /usr/lib/*/libmimalloc.a /usr/lib/*/mimalloc-*/libmimalloc.a 2>/dev/null | head -n 1)
if [ -n "$archive" ] && OUT=mimalloc-static build_c mimalloc -I"$(dirname "$header")" "$archive"; then
	exact "linked in statically" -- "$bin/mimalloc-static"
else
	skip "linked in statically" "no libmimalloc.a"
fi
e2e_end

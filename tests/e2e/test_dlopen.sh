#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Libraries that come and go while a process is recorded, allocators among them.
. "$(dirname "$0")/lib.sh"
e2e_init dlopen

OUT=libplugin.so build_c plugin -shared -fPIC && build_c dlopens -ldl || { not_ok build "workloads"; e2e_end; }
export E2E_PLUGIN=$bin/libplugin.so
for mode in session multi perf; do
	exact "a library, used after a second, $mode" --attach-mode=$mode -- env E2E_MODE=late "$bin/dlopens"
done
exact "a library, used at once" -- env E2E_MODE=late E2E_PAUSE_MS=0 "$bin/dlopens"
exact "dlopen and dlclose in a loop" -- env E2E_MODE=loop "$bin/dlopens"
no_losses "dlopen and dlclose in a loop: no losses"
exact_launched "a library, used at once, started" -- env E2E_MODE=late E2E_PAUSE_MS=0 E2E_DELAY_MS=1000 "$bin/dlopens"
late() {
	local name=$1 lib=$2 mode
	lib=$(ldconfig -p | awk -v lib="$lib" '$1 == lib && /x86-64/ { print $NF; exit }')
	if [ -z "$lib" ]; then
		skip "$name" "not installed"
		return
	fi
	for mode in session multi perf; do
		exact "$name loaded late, $mode" --attach-mode=$mode -- env E2E_MODE=late E2E_ALLOCATOR="$lib" \
			GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 E2E_MALLOC="$3" E2E_FREE="$4" "$bin/dlopens"
	done
}
late jemalloc libjemalloc.so.2 mallocx dallocx
late mimalloc libmimalloc.so.2 mi_malloc mi_free
e2e_end

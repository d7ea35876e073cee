#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Libraries that come and go while a process is recorded, allocators among them.
. "$(dirname "$0")/lib.sh"
e2e_init dlopen

OUT=libplugin.so build_c plugin -shared -fPIC && build_c dlopens -ldl || { not_ok build "workloads"; e2e_end; }
export E2E_PLUGIN=$bin/libplugin.so
for mode in $e2e_modes; do
	beside exact "a library, used after a second, $mode" --attach-mode=$mode -- env E2E_MODE=late "$bin/dlopens"
done
# Used at once: no byte is missing, and nothing is charged to whom it does not belong; the stacks
# that met the library before it was known are cut, and counted.
at_once() {
	local name=$1 want got site
	shift
	start env "$@" "$bin/dlopens"
	record_work --rate 1
	want=$(awk '/^EXPECT/ { n += $4 } END { print n }' "$work/target.out")
	got=$("$compare" total "$work/p.pb.gz" | awk '{ print $2 }')
	site=$("$compare" sites "$work/p.pb.gz" | awk '/ site_plugin / { print $4 }')
	if [ "$record_status$target_status" != 00 ]; then
		not_ok "$name" "status $record_status, target $target_status" "$work/heaptap.err"
	elif [ "${got:-0}" -ge "$want" ] && [ "$got" -le $((want + 65536)) ] && [ "${site:-0}" -le "$want" ]; then
		ok "$name: $want bytes, ${site:-0} of them at their site, $(ledger truncated_no_mapping) stacks cut"
	else
		not_ok "$name" "$got bytes, must be $want and a little; ${site:-0} at the site" "$work/heaptap.err"
	fi
	no_losses "$name: no losses"
}
beside at_once "a library, used at once" E2E_MODE=late E2E_PAUSE_MS=0
beside at_once "dlopen and dlclose in a loop" E2E_MODE=loop
beside exact "dlopen and dlclose in a loop, the library known before" -- env E2E_MODE=loop E2E_KNOWN=1 "$bin/dlopens"
late() {
	local name=$1 lib=$2 mode
	lib=$(ldconfig -p | awk -v lib="$lib" '$1 == lib && /x86-64/ { print $NF; exit }')
	if [ -z "$lib" ]; then
		skip "$name" "not installed"
		return
	fi
	for mode in $e2e_modes; do
		beside exact "$name loaded late, $mode" --attach-mode=$mode -- env E2E_MODE=late E2E_ALLOCATOR="$lib" \
			GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384 E2E_MALLOC="$3" E2E_FREE="$4" "$bin/dlopens"
	done
}
late jemalloc libjemalloc.so.2 mallocx dallocx
late mimalloc libmimalloc.so.2 mi_malloc mi_free
together
e2e_end

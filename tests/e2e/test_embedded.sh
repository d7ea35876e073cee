#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An allocator inside a larger file: in a library, or in a program whose own functions lie between the allocator's. What the
# rest of that file allocates is seen, from this allocator and from libc's.
. "$(dirname "$0")/lib.sh"
e2e_init embedded

# Functions of one source are laid out as they stand there.
flags=(-DLIB -fno-toplevel-reorder -Wno-unused-function)
OUT=libembedded.so build_c embedded "${flags[@]}" -fPIC -shared && OUT=embedded-lib build_c embedded -DPROGRAM "$bin/libembedded.so" &&
	OUT=embedded-unity build_c embedded "${flags[@]}" -DPROGRAM || { not_ok build "embedded.c"; e2e_end; }

# says_exact NAME: the report calls the sum exact, and tells of no loss
says_exact() {
	"$heaptap" report -f json "$work/p.pb.gz" >"$work/report" 2>&1
	grep -q '"is_lossy": *false' "$work/report" && ok "$1" || not_ok "$1" "no" "$work/report"
}
for kind in lib unity; do
	for mode in $e2e_modes; do
		lossless "$kind, $mode" --attach-mode=$mode -- "$bin/embedded-$kind"
		says_exact "$kind, $mode: exact"
	done
done
e2e_end

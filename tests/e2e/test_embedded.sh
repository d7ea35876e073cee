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
# sampled NAME PROGRAM: what each function is estimated to have allocated is near the truth
sampled() {
	local row site estimate alloc bad= cnt=0
	start env E2E_COUNT=10000 "$2" || not_ok "$1" "the target did not start" "$work/target.err"
	attach --rate 4K
	run_target
	stop_recorder
	finish_target
	while read -r row site _ _ _ estimate _; do
		alloc=$(awk -v site="$site" '$1 == "EXPECT" && $2 == site { print $6 }' "$work/target.out")
		[ "$row" = SITE ] && [ $((100 * estimate)) -gt $((90 * alloc)) ] && [ $((100 * estimate)) -lt $((110 * alloc)) ] ||
			bad="$bad $site: $estimate, must be near $alloc;"
		cnt=$((cnt + 1))
	done < <("$compare" sites "$work/p.pb.gz")
	[ -z "$bad" ] && [ $cnt = 4 ] && ok "$1" || not_ok "$1" "$cnt sites of 4;$bad" "$work/heaptap.err"
}
sampled "lib, sampled" "$bin/embedded-lib"
says_exact "lib, sampled: nothing was lost"
sampled "unity, sampled" "$bin/embedded-unity"
says_exact "unity, sampled: nothing was lost"

# A library that calls itself an allocator, and is more: with every call recorded the open call decides; of samples it is
# counted that none is ever found, and the file is named.
OUT=libmimalloc-more.so build_c embedded "${flags[@]}" -fPIC -shared -Wl,-soname,libmimalloc-more.so &&
	OUT=embedded-more build_c embedded -DPROGRAM "$bin/libmimalloc-more.so" -Wl,-rpath,"$bin" || { not_ok build "embedded.c"; e2e_end; }
lossless "more than its name says" -- "$bin/embedded-more"
says_exact "more than its name says: exact"
start env E2E_COUNT=10000 "$bin/embedded-more"
attach --rate 4K
run_target
stop_recorder
finish_target
[ "$(ledger nested_misjudged)" -gt 1000 ] && "$heaptap" report --notes "$work/p.pb.gz" >"$work/report" 2>&1 &&
	tr -s ' \n' ' ' <"$work/report" | grep -q "not exact: calls of the allocator in '[^']*libmimalloc-more.so' were taken" &&
	"$heaptap" report -f json "$work/p.pb.gz" | grep -q '"is_lossy": *true' && ok "more than its name says, sampled: told" ||
	not_ok "more than its name says, sampled: told" "no" "$work/report"
e2e_end

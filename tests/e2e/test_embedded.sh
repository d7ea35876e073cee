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
	record_work --rate 4K
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
record_work --rate 4K
[ "$(ledger nested_misjudged)" -gt 1000 ] && "$heaptap" report --notes "$work/p.pb.gz" >"$work/report" 2>&1 &&
	tr -s ' \n' ' ' <"$work/report" | grep -q "not exact: allocator calls from '[^']*libmimalloc-more.so' were mistaken" &&
	"$heaptap" report -f json "$work/p.pb.gz" | grep -q '"is_lossy": *true' && ok "more than its name says, sampled: told" ||
	not_ok "more than its name says, sampled: told" "no" "$work/report"

# A prefix that no table has, and an allocator whose functions are inlined into each other.
OUT=embedded-acme build_c embedded "${flags[@]}" -DPROGRAM -DPRE=acme_je_ && lossless "a prefix of its own" -- "$bin/embedded-acme" ||
	not_ok build "embedded.c"
says_exact "a prefix of its own: exact"

# Without names: it is known by its messages. What it allocates is not seen, and so it is said, first.
OUT=nameless-all build_c nameless && OUT=nameless-plain build_c nameless -DPLAIN || { not_ok build "nameless.c"; e2e_end; }
for kind in all plain; do strip -o "$work/$kind" "$bin/nameless-$kind"; done
told() { tr -s ' \n' ' ' <"$3" | grep -qE -- "$2" && ok "$1" || not_ok "$1" "no '$2'" "$3"; }
start "$work/all"
"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
record_work --rate 1
told "no names: said at once" "'[^']*/all' contains jemalloc, whose functions have no names: its allocations are not seen" "$work/heaptap.err"
told "no names: doctor" "/all contains jemalloc, whose functions have no names" "$work/doctor"
"$heaptap" report "$work/p.pb.gz" >"$work/report" 2>&1
sed -n 2p "$work/report" >"$work/second"
told "no names: the report says it first" "^Not seen: .*/all contains jemalloc" "$work/second"
"$heaptap" report -f json "$work/p.pb.gz" | grep -q '"is_lossy": *true' && ok "no names: nothing is exact" || not_ok "no names: nothing is exact" "it is"
"$heaptap" check --max-inuse 100M "$work/p.pb.gz" >"$work/check" 2>&1
[ $? = 2 ] && ok "no names: a limit cannot be said to be kept" || not_ok "no names: a limit" "status" "$work/check"

# Frees without a name: what was allocated is known, what is in use is not.
start "$work/plain"
record_work --rate 1
"$heaptap" report "$work/p.pb.gz" >"$work/report" 2>&1
told "frees without a name: in use is unknown" "In use: UNKNOWN. The free function of its allocator has no name" "$work/report"
told "frees without a name: what was allocated is known" "Allocated 19.3 MiB in 20.0k blocks" "$work/report"
"$heaptap" report -f json "$work/p.pb.gz" | grep -q '"inuse": *"unknown"' && ok "frees without a name: JSON" || not_ok "frees without a name: JSON" "no"

# ... and a server says so of each process.
if have curl; then
	. "$e2e_dir/serve_lib.sh"
	begin nameless "$work/all"
	nameless=$target
	begin exported "$work/plain"
	plain=$target
	serve --listen 127.0.0.1:0 -p "$nameless" -p "$plain"
	is_shown() { [ -n "$(metric "heaptap_inuse_complete{pid=\"$nameless\"")" ] && [ -n "$(metric "heaptap_inuse_complete{pid=\"$plain\"")" ]; }
	await 30 is_shown
	[ "$(metric "heaptap_inuse_complete{pid=\"$nameless\"")" = 0 ] && ok "served: no names: not complete" || not_ok "served: no names: not complete" "it is"
	[ "$(metric "heaptap_inuse_complete{pid=\"$plain\"")" = 0 ] && ok "served: frees without a name: not complete" ||
		not_ok "served: frees without a name: not complete" "it is"
	get -f -o "$work/metrics" "$url/metrics"
	grep -q "^heaptap_inuse_bytes{pid=\"$plain\"" "$work/metrics" && not_ok "served: frees without a name: no number" "there is" ||
		ok "served: frees without a name: no number"
	get -f -o "$work/index" "$url/"
	grep -q "contains jemalloc, whose functions have no names" "$work/index" && ok "served: the page says why" || not_ok "served: the page says why" "no"
	end_server "served"
fi
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The malloc family of glibc, entry point by entry point, to the byte.
. "$(dirname "$0")/lib.sh"
e2e_init exact_c

build_c family || { not_ok build "family.c"; e2e_end; }
lossless "malloc family, attached" -- "$bin/family"

# the comparison itself: one byte more, a row that is not there, a row that nobody expects
differ=$("$compare" exact "$work/p.pb.gz" "$work/target.out" --alloc | grep -c .)
fails() {
	if "$compare" exact "$work/p.pb.gz" "$work/wrong" --alloc >"$work/differences"; then
		not_ok "comparison" "$1 passes"
	elif [ "$(grep -c . "$work/differences")" != $((differ + 1)) ]; then
		not_ok "comparison" "$1: not one difference more" "$work/differences"
	else
		ok "comparison finds $1"
	fi
}
sed 's/site_malloc family 13117 /site_malloc family 13118 /' "$work/target.out" >"$work/wrong"
fails "a byte too few"
sed 's/site_malloc family 13117 13 18162 18/site_malloc family 13117 13 18162 17/' "$work/target.out" >"$work/wrong"
fails "an allocation too many"
(cat "$work/target.out"; echo "EXPECT site_none family 0 1 0 1" | sed 's/ 0 1$/ - -/') >"$work/wrong"
fails "a row that is missing"
grep -v 'site_malloc_zero ' "$work/target.out" >"$work/wrong"
fails "a ghost"

exact_launched "malloc family, started" -- "$bin/family"
no_losses "malloc family, started: no losses"
for mode in $e2e_every_mode; do
	lossless "malloc family, --attach-mode=$mode" --attach-mode=$mode -- "$bin/family"
done
exact "malloc family, naive placement" --naive-placement -- "$bin/family"

# the same program otherwise compiled: frame pointers, no optimisation, clang, no PIE
OUT=family-O0 build_c family -O0 && exact "compiled with -O0" -- "$bin/family-O0"
OUT=family-nopie build_c family -no-pie && exact "compiled without PIE" -- "$bin/family-nopie"
if have clang; then
	CC=clang OUT=family-clang build_c family -Wno-unknown-warning-option &&
		exact "compiled with clang" -- "$bin/family-clang"
else
	skip "compiled with clang" "clang is not installed"
fi
e2e_end

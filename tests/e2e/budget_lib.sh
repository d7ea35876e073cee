# SPDX-License-Identifier: MIT
# budget_lib.sh - what tests of the overhead budget share: how fast the workload busy gets on. After
# lib.sh and e2e_init.

# pace FROM TO: pairs per CPU second that the target did between the lines FROM and TO of its output
pace() {
	awk -v from="$1" -v to="$2" '/^AT/ { if (++n == from) { c = $3; p = $4 }
		if (n == to) print ($4 - p) / ($3 - c) * 1e9 }' "$work/target.out"
}
lines() { grep -c '^AT' "$work/target.out"; }
has_lines() { [ "$(lines)" -ge "$1" ]; }
# await_pace N: its pace over the next N tenths of a second, in $pace
await_pace() {
	local from=$(($(lines) + 1))
	await 60 has_lines $((from + $1))
	pace=$(pace "$from" $((from + $1)))
}
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 < b + 0) }'; }
notes() { "$heaptap" report "$work/p.pb.gz" | tr -s ' \n' ' '; }

# SPDX-License-Identifier: MIT
# budget_lib.sh - what tests of the overhead budget share: how fast the workload busy gets on. After
# lib.sh and e2e_init.

# pace FROM TO: pairs per CPU second that the target did between the lines FROM and TO of its output
pace() {
	awk -v from="$1" -v to="$2" '/^AT/ { if (++n == from) { c = $3; p = $4 }
		if (n == to) print ($4 - p) / ($3 - c) * 1e9 }' "$work/target.out"
}
# has_lines N: it has said where it is so often. It is asked often: no process is started for it.
has_lines() {
	local line
	cnt=0
	while IFS= read -r line; do [[ $line == AT* ]] && cnt=$((cnt + 1)); done <"$work/target.out"
	[ $cnt -ge "$1" ]
}
# await_pace N: its pace over the next N tenths of a second, in $pace
await_pace() {
	local from cnt
	has_lines 0
	from=$((cnt + 1))
	await 60 has_lines $((from + $1))
	pace=$(pace "$from" $((from + $1)))
}
# keeps_pace TENTHS ALONE: it gets on at two thirds of the pace ALONE or better, in $pace. Up to eight
# stretches of so many tenths of a second are looked at: other machines on the same hardware take CPU
# time as well, but not in all of them; probes that stay in do.
keeps_pace() {
	local try
	for try in 1 2 3 4 5 6 7 8; do
		await_pace "$1"
		below "$2" "$(awk -v w="$pace" 'BEGIN { print w * 1.5 }')" && return
	done
	return 1
}
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 < b + 0) }'; }
notes() { "$heaptap" report --notes "$work/p.pb.gz" | tr -s ' \n' ' '; }

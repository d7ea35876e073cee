# SPDX-License-Identifier: MIT
# budget_lib.sh - what tests of the overhead budget share: how fast the workload busy gets on. After
# lib.sh and e2e_init.

# Where other machines on the same hardware take processor time, a CPU second is worth less, for half a minute and more. So
# a program that nobody records runs beside the target, and the target's pace is told in times of that. Of a CPU second
# of its own, too, so it rests for most of the time.
reference=
start_reference() {
	OUT=reference build_c busy -static && mkfifo "$work/reference.in" || return 1
	reference=$work/reference.out
	exec {reference_in}<>"$work/reference.in"
	"$bin/reference" 1 10000000 <"$work/reference.in" >"$reference" &
	owned
	reference_pid=$!
	await 10 says "$reference" ^AT
}
end_reference() {
	kill "$reference_pid"
	reference=
}
# pace FILE FROM TO: pairs per CPU second between the lines FROM and TO of the output of one
pace() {
	awk -v from="$2" -v to="$3" '/^AT/ { if (++n == from) { c = $3; p = $4 }
		if (n == to) print ($4 - p) / ($3 - c) * 1e9 }' "$1"
}
# has_lines N [FILE]: it has said where it is so often. It is asked often: no process is started for it.
has_lines() {
	local line
	cnt=0
	while IFS= read -r line; do [[ $line == AT* ]] && cnt=$((cnt + 1)); done <"${2:-$work/target.out}"
	[ $cnt -ge "$1" ]
}
# await_pace N: its pace over the next N tenths of a second, in $pace
await_pace() {
	local from reference_from cnt=0
	[ -z "$reference" ] || has_lines 0 "$reference"
	reference_from=$cnt
	has_lines 0
	from=$((cnt + 1))
	await 60 has_lines $((from + $1))
	pace=$(pace "$work/target.out" "$from" $((from + $1)))
	[ -z "$reference" ] || has_lines 0 "$reference"
	[ -z "$reference" ] || pace=$(awk -v own="$pace" -v other="$(pace "$reference" "$reference_from" "$cnt")" \
		'BEGIN { printf "%.3f", other ? own / other : 0 }')
}
# keeps_pace TENTHS ALONE: it gets on at two thirds of the pace ALONE or better, in $pace. Up to eight
# stretches of so many tenths of a second are looked at: something else may slow it in one of them, probes that stay in
# do in all.
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
# await_used SECONDS PID COMMAND...: until COMMAND succeeds, for so long, and on until the process has had so many seconds of the
# processor, of which others may take their parts: what its shares are of grows only with it. Ten times as long at the most.
await_used() {
	local seconds=$1 pid=$2 until try
	shift 2
	until=$(($(used_cs "$pid") + 100 * seconds))
	for ((try = 0; try < 10; try++)); do
		await "$seconds" "$@" && return 0
		[ "$(used_cs "$pid")" -lt "$until" ] || return 1
	done
	return 1
}
used_cs() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

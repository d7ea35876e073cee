#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 3000
# kill -9 of heaptap at any moment: while it attaches, records, takes probes out and in because they
# cost too much, or detaches; record and serve; targets of one thread and of eight. A second later the text
# of the target is what its file holds, and it is as fast as before.
#
# And of heaptap and its guardian at once, which may leave something: the next start takes it away.
#
# Each target is a file of its own, so that no other recording takes its leftovers away. E2E_KILLS: how
# many kills (16), in rounds of one for each target at the same time; E2E_KILLS_BOTH: of both (4).
. "$(dirname "$0")/lib.sh"
e2e_init kill
have python3 || skip_all "python3 is not installed"

build_c bursts -static || { not_ok build "bursts.c"; e2e_end; }
kills=${E2E_KILLS:-16} kills_both=${E2E_KILLS_BOTH:-4}
lanes="record-1 record-8 serve-1 serve-8"
declare -A target_of in_of base_of
top=$work

cost_of() { # LANE: its best cost of a pair, in $cost
	local n
	n=$(grep -c ^COST "$top/$1/target.out")
	target_in=${in_of[$1]}
	tell measure
	await 20 more_costs "$1" "$n"
	cost=$(awk '/^COST/ { c = $2 } END { print c }' "$top/$1/target.out")
}
more_costs() { [ "$(grep -c ^COST "$top/$1/target.out")" -gt "$2" ]; }
is() { awk "BEGIN { exit !($1) }"; }
same_text() { timeout 20 python3 -IS "$e2e_dir/same_text.py" "${target_of[$1]}" >"$top/$1/text"; }
pause_ms() { # FROM TO: a random pause between
	local ms=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1)))
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}
guard_of() { pgrep -P "$1" -x heaptap-guard; }

# profile LANE: starts heaptap on its target; its pid in $profiler
profile() {
	local args=(record -n 0 -o "$top/$1/p.pb.gz")
	[ "${1%-*}" = record ] || args=(serve --listen 127.0.0.1:0)
	rm -f "$top/$1/p.pb.gz"
	: >"$top/$1/err"
	"$heaptap" "${args[@]}" -p "${target_of[$1]}" >/dev/null 2>"$top/$1/err" </dev/null &
	profiler=$!
}
began() { says "$top/$1/err" '^heaptap: \(recording\|serving\)' || ! kill -0 "$profiler" 2>/dev/null; }

# leak_cnt: how often since the mark the kernel could not take a probe out for a guardian; main's are in its own text.
# The kernel's log forgets: lines are not compared with those of before, and without its mark all of it is later.
log_mark="heaptap test_kill $$ $EPOCHREALTIME"
leak_cnt() {
	dmesg 2>/dev/null | awk -v mark="$log_mark" 'index($0, mark) { cnt = 0 } /heaptap-guard:.* leaking uprobe/ { cnt++ } END { print cnt + 0 }'
}

# kill_once LANE MOMENT [both]: what is wrong a second later goes to its file "wrong"
kill_once() {
	profile "$1"
	case $2 in
	attaching) pause_ms 0 700 ;;
	attached) await 20 began "$1"; pause_ms 0 300 ;;
	over-budget) await 20 began "$1"; pause_ms 300 3500 ;;
	detaching)
		await 20 began "$1"
		pause_ms 100 1500
		kill -INT "$profiler"
		pause_ms 0 250
		;;
	first-moments) # when it begins to take out, or to put in again
		await 20 began "$1"
		if [ "${1%-*}" = record ]; then
			kill -INT "$profiler"
		else
			kill -USR1 "$profiler"
			[ $((RANDOM % 2)) = 0 ] || { sleep 0.3; kill -USR2 "$profiler"; }
		fi
		pause_ms 0 30
		;;
	esac
	guard=$(guard_of "$profiler")
	kill -9 "$profiler" ${3:+$guard} 2>/dev/null
	wait "$profiler" 2>/dev/null
	[ -z "${3:-}" ] || return 0
	SECONDS=0
	if [ -n "$guard" ]; then
		await 1 is_gone "$guard" || echo "$2: the guardian is still there" >>"$top/$1/wrong"
	else
		sleep 1
	fi
	same_text "$1" || { echo "$2:"; cat "$top/$1/text"; } >>"$top/$1/wrong"
}

for lane in $lanes; do
	work=$top/$lane
	mkdir -p "$work"
	: >"$work/wrong"
	cp "$bin/bursts" "$work/bursts"
	E2E_THREADS=${lane#*-} start "$work/bursts" || not_ok "start $lane" "the target did not start"
	target_of[$lane]=$target in_of[$lane]=$target_in
	cost_of "$lane"
	base_of[$lane]=$cost
done
work=$top

moments=(attaching over-budget detaching attached)
# each_lane FUNCTION ARG...: for all at once
each_lane() {
	local n=0
	for lane in $lanes; do
		"$@" "$lane" $((n++)) &
		e2e_lanes="$e2e_lanes $!"
	done
	wait $e2e_lanes
	e2e_lanes=
}
kill_one() { kill_once "$2" "${moments[($1 + $3) % 4]}"; }
# mend I LANE N: both are killed, then it is recorded once more
mend() {
	kill_once "$2" "${moments[($1 + $3) % 2]}" both
	await 5 is_gone "$guard"
	if ! same_text "$2"; then
		echo >>"$top/$2/left"
		"$heaptap" doctor -p "${target_of[$2]}" >"$top/$2/doctor" 2>&1
		tr -s ' \n' ' ' <"$top/$2/doctor" | grep -q 'a killed one left them' ||
			{ echo "doctor does not say it:"; cat "$top/$2/doctor"; } >>"$top/$2/wrong"
	fi
	profile "$2"
	await 30 began "$2"
	kill -INT "$profiler"
	await 30 is_gone "$profiler"
	wait "$profiler" 2>/dev/null
	same_text "$2" || { echo "after the next start:"; cat "$top/$2/text" "$top/$2/err"; } >>"$top/$2/wrong"
}
judge() { # WHAT
	for lane in $lanes; do
		if [ -s "$top/$lane/wrong" ]; then
			not_ok "$lane threads: $1" "differs" "$top/$lane/wrong"
		else
			ok "$lane threads: $1"
		fi
		: >"$top/$lane/wrong"
		cost_of "$lane"
		is "$cost < 2 * ${base_of[$lane]} + 5" &&
			ok "$lane threads: its speed is back: ${base_of[$lane]}, $cost ns" ||
			not_ok "$lane threads: speed after kills" "${base_of[$lane]} ns before, $cost ns after"
	done
}

moments=(attaching over-budget detaching attached)
echo "$log_mark" >/dev/kmsg 2>/dev/null
leaks=$(leak_cnt)
for ((i = 0; i < kills / 4; i++)); do each_lane kill_one $i; done
judge "killed $((kills / 4)) times, a second later the text is what its file holds"
[ "$(leak_cnt)" -le "$leaks" ] && ok "the kernel has not failed to take a probe out" ||
	not_ok "the kernel's log" "$(($(leak_cnt) - leaks)) times 'leaking uprobe'"

moments=(first-moments attaching)
for ((i = 0; i < kills_both / 4; i++)); do each_lane mend $i; done
judge "killed with its guardian $((kills_both / 4)) times, mended by the next start"
echo "# $(cat "$top"/*/left 2>/dev/null | wc -l) of $kills_both had left something"

# The guardian alone: a recording ends with what there is, a server ends, to be started anew.
for lane in record-8 serve-8; do
	profile $lane
	await 20 began $lane
	sleep 0.5
	kill -9 "$(guard_of "$profiler")"
	await 20 is_gone "$profiler" || kill -9 "$profiler"
	wait "$profiler"
	status=$?
	if grep -q 'was killed.*heaptap-guard' "$top/$lane/err" && same_text $lane &&
		{ { [ $lane = serve-8 ] && [ $status = 1 ]; } || { [ $status = 0 ] && [ -s "$top/$lane/p.pb.gz" ]; }; }; then
		ok "$lane threads: its guardian is killed: said, nothing is left, status $status"
	else
		not_ok "$lane threads: its guardian is killed" "status $status" "$top/$lane/err" "$top/$lane/text"
	fi
done
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The overhead budget: programs that do nothing but allocate, as heaptap measures it and as seen from
# outside. The work that a target gets done per CPU second of its own is what is compared, within one run:
# so it does not matter what else the machine does. Margins are wide; `make bench` is strict.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/budget_lib.sh"
e2e_init budget
build_c busy && start_reference || { not_ok build "workloads"; e2e_end; }
limit=5
json() { "$heaptap" report -f json "$work/p.pb.gz"; }
# What the probes took after the first 4 s, in which the step that fits is found.
settled() { sed -nE 's/.*cost: .* ([0-9.]+) % of its CPU time after the first 4 s.*/\1/p' <<<"$notes"; }

## A tight loop on two threads
tight_loop() {
	start "$bin/busy" 2 || not_ok start "the target did not start" "$work/target.err"
	await_pace 6
	alone=$pace
	attach -n 0 --max-overhead $limit
	await_pace 45 # to settle
	keeps_pace 15 "$alone"
	kept=$?
	stop_recorder
	[ "$record_status" = 0 ] || not_ok "tight loop" "heaptap's exit status is $record_status" "$work/heaptap.err"
	notes=$(notes)
	settled=$(settled)
	below "$settled" $((limit * 3 / 2)) && ok "tight loop: $settled % of its CPU time after the first 4 s, as heaptap measures" ||
		not_ok "tight loop" "the overhead after the first 4 s is '$settled' %" "$work/heaptap.err"
	[ $kept = 0 ] &&
		ok "tight loop: $(awk -v a="$alone" -v w="$pace" 'BEGIN { printf "%.0f", 100 * w / a }') % of its pace, as seen from outside" ||
		not_ok "tight loop" "its pace was $alone times the reference's and is $pace" "$work/heaptap.err"
	grep -q '(limit: 5 %)' <<<"$notes" && # not the 1 % of one CPU, which is less
		grep -q 'budget: after [^:]*: stopped recording' <<<"$notes" &&
		grep -q 'in-use: UNKNOWN' <<<"$notes" &&
		ok "tight loop: the profile says what was given up" ||
		not_ok "tight loop: notes" "$notes" "$work/heaptap.err"
	says "$work/heaptap.err" 'PID [0-9]*: after [^:]*: stopped recording.* % of its CPU time.*retrying in .*to measure it, use --tap .about 1 %.*, or heaptap record --max-overhead [0-9a-z]* ' &&
		ok "tight loop: it is told when it happens" ||
		not_ok "tight loop: message" "nothing is said" "$work/heaptap.err"
	"$heaptap" report "$work/p.pb.gz" | grep -q busy_site &&
		ok "tight loop: who allocates is known all the same" ||
		not_ok "tight loop: sites" "busy_site is not in the report" "$work/heaptap.err"
	keeps_pace 5 "$alone" && ok "afterwards nothing is left" ||
		not_ok "afterwards" "its pace was $alone times the reference's and is $pace"
	kill_target
}

## Without a limit nothing is given up
no_limit() {
	start "$bin/busy" 1 || not_ok start "the target did not start" "$work/target.err"
	attach -n 0 --max-overhead off -d 1
	wait_recorder
	notes=$(notes)
	grep -q 'cost: .*(no limit)' <<<"$notes" && ! grep -q 'in-use:' <<<"$notes" &&
		ok "off: nothing is given up" || not_ok "off" "$notes" "$work/heaptap.err"
	cost=$(sed -nE 's/.*cost: ([0-9.]+) % of its CPU time.*/\1/p' <<<"$notes")
	below 20 "$cost" && ok "off: $cost % of its CPU time" || not_ok "off" "the overhead is '$cost' %"
	timeout 30 "$heaptap" record --force -n 0 -d 1 --rate 1 -o "$work/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
	says "$work/heaptap.err" '--rate 1 records every allocation, so the overhead is not limited' &&
		[[ "$(notes)" == *"(no limit)"* ]] && ok "--rate 1 is not limited, and says so" ||
		not_ok "--rate 1" "it is limited, or nothing is said" "$work/heaptap.err"
	kill_target
	for value in -1 100 x 5x nan '!' '5!!'; do
		"$heaptap" record --max-overhead "$value" -p $$ >"$work/out" 2>&1
		[ $? = 2 ] && says "$work/out" "bad value '$value'" && ok "refused: --max-overhead $value" ||
			not_ok "refused: --max-overhead $value" "it is taken" "$work/out"
	done
}

## A load that goes away: what was given up comes back, and in-use has a beginning
load_goes_away() {
	start "$bin/busy" 1 || not_ok start "the target did not start" "$work/target.err"
	attach -n 0 --max-overhead 40
	await 30 says "$work/heaptap.err" 'stopped recording' || not_ok "comes back" "nothing was given up" "$work/heaptap.err"
	kill -STOP "$target"
	await 90 says "$work/heaptap.err" 'recording allocations again' &&
		await 30 says "$work/heaptap.err" 'tracking frees again: heap in use counts from now' &&
		ok "comes back: it is told" || not_ok "comes back" "nothing is told" "$work/heaptap.err"
	stop_recorder
	kill_target
	"$heaptap" report -f json "$work/p.pb.gz" | grep -q '"inuse":"since"' && ok "comes back: in-use is of what came since" ||
		not_ok "comes back: in-use" "$(notes)" "$work/heaptap.err"
}

## One that does little is left alone, whatever share of that the probes take
does_little() {
	start "$bin/busy" 1 1000 || not_ok start "the target did not start" "$work/target.err"
	attach -n 0 --max-overhead $limit -d 3
	wait_recorder
	notes=$(notes)
	if [ "${HEAPTAP_VM:-0}" != 0 ]; then
		skip "what costs next to nothing is left alone" "on an emulated machine a hit takes milliseconds"
	elif ! grep -q 'in-use:' <<<"$notes" && ! grep -q 'budget:' <<<"$notes"; then
		ok "what costs next to nothing is left alone"
	else
		not_ok "what costs nothing" "$notes" "$work/heaptap.err"
	fi
	kill_target
}

## A server that sleeps, and then serves 40 requests of 10 blocks at once
bursts() {
	start "$bin/requests" 2000 40 3000 || not_ok start "the target did not start" "$work/target.err"
	attach -n 0 -d 6
	wait_recorder
	json | grep -q '"inuse":"known"' && ok "bursts: in-use is known with the defaults" ||
		not_ok bursts "$(notes)" "$work/heaptap.err"
	kill_target
}
bursts_limited() {
	local notes settled way_out
	start "$bin/requests" 2000 40 3000 || not_ok start "the target did not start" "$work/target.err"
	attach --max-overhead '5!' -d 8
	wait_recorder
	notes=$(notes)
	json | grep -q '"inuse":"unknown".*' && json | grep -q '"total":{"inuse_bytes":null,' &&
		ok "bursts: with 5 % of its CPU time it is unknown, and not 0" || not_ok "bursts: 5!" "$notes" "$work/heaptap.err"
	settled=$(settled)
	below "$settled" 7.5 && ok "bursts: $settled % after the first 4 s" ||
		not_ok "bursts: overhead" "'$settled' % after the first 4 s" "$work/heaptap.err"
	way_out=$(sed -nE 's/.*To measure it: (heaptap record --tap -d 10s -p [0-9]+).*/\1/p' <<<"$notes")
	# shellcheck disable=SC2086
	timeout 60 "$heaptap" $(advised "$way_out") --force -o "$work/p.pb.gz" >/dev/null 2>"$work/heaptap.err"
	[ -n "$way_out" ] && json | grep -q '"inuse":"known"' && ok "bursts: what is advised gives it ($way_out)" ||
		not_ok "bursts: advice" "'$way_out' gives $(notes)" "$work/heaptap.err"
	kill_target
}

## One that fills its memory at once, as before an OOM kill: neither the kill switch nor one burst ends in-use
one_burst() {
	if [ "${HEAPTAP_VM:-0}" = 0 ] && build_c grows; then
		start "$bin/grows" || not_ok start "the target did not start" "$work/target.err"
		attach -n 0 --max-overhead $limit -d 5
		sleep 1
		tell "up 300000 128" # it lasts less than SPREAD_NS of budget.c, also where a hit takes 2 us
		wait_recorder
		held=$(awk '$1 == "HELD" { n = $2 } END { print n + 0 }' "$work/target.out")
		inuse=$(json | sed -nE 's/.*"total":\{"inuse_bytes":([0-9]+),.*/\1/p')
		[ "$held" -gt 0 ] && below "$held" "$((inuse * 4 / 3))" && below "$((inuse * 3 / 4))" "$held" &&
			ok "a burst: in-use is known, $inuse of $held bytes" ||
			not_ok "a burst" "in-use '$inuse' of $held bytes" "$work/heaptap.err"
		kill_target
	else
		skip "a burst" "its program cannot be built, or the machine is emulated"
	fi
}

## A child with an allocator of its own, in a file that nobody else maps
own_allocator() {
	local threads=1
	is_whole && threads=2
	if OUT=busy-static build_c busy -static; then
		start "$bin/busy-static" $threads || not_ok start "the target did not start" "$work/target.err"
		await_pace 6
		alone=$pace
		kill_target
		ln -sf heaptap.out "$work/target.out"
		# With --follow everybody pays who maps what is probed: the shell and its sleep have a C library of their own.
		mkdir -p "$work/own"
		cp "$(ldd "$(command -v sleep)" | awk '$1 == "libc.so.6" { print $3 }')" "$work/own/"
		LD_LIBRARY_PATH=$work/own record_start -n 0 --max-overhead $limit --follow -- sh -c "sleep 100 | '$bin/busy-static' $threads"
		child=$(sed -nE 's/^heaptap: recording PID ([0-9]+) .*/\1/p' "$work/heaptap.err")
		await_pace 30
		keeps_pace 15 "$alone" &&
			ok "child: $(awk -v a="$alone" -v w="$pace" 'BEGIN { printf "%.0f", 100 * w / a }') % of its pace" ||
			not_ok "child" "its pace was $alone times the reference's and is $pace" "$work/heaptap.err"
		pkill -P "$child"
		wait_recorder
		rm -f "$work/target.out"
	else
		skip "child" "busy cannot be linked statically"
	fi
}

# What computes, one after the other: a burst takes longer beside others, and so seems to cost more.
tight_loop
own_allocator
end_reference
no_limit
one_burst
# Beside each other what mostly sleeps.
sleepers() {
	does_little
	[ "${HEAPTAP_VM:-0}" != 0 ] || bursts
}
beside load_goes_away
if [ "${HEAPTAP_VM:-0}" != 0 ]; then
	skip "bursts" "on an emulated machine a hit takes milliseconds"
elif ! build_c requests; then
	not_ok bursts "workload"
else
	beside bursts_limited
	E2E_BESIDE=${E2E_BESIDE:-3}
fi
beside sleepers
together
e2e_end

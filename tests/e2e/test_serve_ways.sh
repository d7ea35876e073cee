#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: the ways to attach. Each counts to the byte; probes move from one to another while
# a program allocates; who is not followed has no probe; nothing is left behind, also by kill -9.
. "$(dirname "$0")/lib.sh"
e2e_init ways
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
definitions=/sys/kernel/tracing/uprobe_events
has_tracefs || skip_all "no $definitions"

build_c family && build_c threads || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"

at() { work=$top/$1 target=${pid_of[$1]} target_in=${in_of[$1]}; }
end() {
	at "$1"
	kill_target
	work=$top
}
serve_ways() { serve --listen 127.0.0.1:0 --rate 1 --comm '^way-' "$@"; }
# way_is WAY CNT: of the C library's probes
way_is() {
	get "$url/metrics" |
		grep -E "^heaptap_probed_processes\{file=\"[^\"]*libc\.so\.6\",id=\"[0-9]+\",way=\"$1\"\} $2$" >/dev/null
}
# defined_cnt GUARDIAN: definitions are those of the process that holds the probes
defined_cnt() { grep -c "[pr]:heaptap_$1_" $definitions; }
guardian_of() { pgrep -P "$1" -x heaptap-guard; }
has_probe() { ! same_memory "$1"; }
# The guardian may go on for a moment when the server has ended.
is_clean() { [ "$(defined_cnt "$1")" = 0 ] && ! has_probe "$2"; }

begin other
for way in own event all; do
	for i in 1 2 3; do begin "way-$way$i"; done
	serve_ways --sharing "$way"
	await 5 way_is $way 3 && ok "$way: 3 processes" || not_ok "$way: 3 processes" "not so" "$top/serve.err"
	begin "way-${way}4"
	await 5 way_is $way 4 && ok "$way: who comes later too" ||
		not_ok "$way: who comes later too" "not within 5 s" "$top/serve.err"
	for i in 1 2 3 4; do
		at "way-$way$i"
		tell go
	done
	for i in 1 2 3 4; do
		at "way-$way$i"
		await 60 is_done || not_ok "$way: the work of $i" "does not end" "$work/target.err"
		exact_of "way-$way$i" "$way: exact, process $i"
	done
	case $way in
	all) has_probe other && ok "all: others pay" || not_ok "all: others pay" "no probe is seen" ;;
	*) has_probe other && not_ok "$way: nobody else pays" "has a probe" "$top/text" ||
		ok "$way: nobody else pays" ;;
	esac
	has_probe "way-${way}4" && ok "$way: a probe is in who is followed" ||
		not_ok "$way: a probe is in who is followed" "none is seen"
	guardian=$(guardian_of "$server")
	[ $way != event ] || [ "$(defined_cnt "$guardian")" -gt 0 ] ||
		not_ok "event: definitions" "there are none"
	end_server "$way"
	await 10 is_clean "$guardian" "way-${way}4" && ok "$way: nothing is left" ||
		not_ok "$way: nothing is left" "$(defined_cnt "$guardian") definitions" "$top/text"
	for i in 1 2 3 4; do end "way-$way$i"; done
done

# There and back while threads allocate, hand over and free, until they are told that it is over.
export E2E_MODE=race E2E_THREADS=3 E2E_MS=$((60000 * e2e_patience))
mkdir -p "$top/way-racer"
cp "$bin/threads" "$top/way-racer/way-racer"
begin way-racer "$top/way-racer/way-racer"
serve_ways --sharing auto
await 5 way_is own 1 || not_ok "alone: own" "not so" "$top/serve.err"
at way-racer
tell go
unset E2E_MODE E2E_THREADS E2E_MS
for i in 1 2 3 4 5; do begin "way-idle$i"; done
await 10 way_is event 6 && ok "moves to event" || not_ok "moves to event" "not within 10 s" "$top/serve.err"
work_of way-idle3
exact_of way-idle3 "moved: exact for who came meanwhile"
for i in 1 2 3 4 5; do end "way-idle$i"; done
guardian=$(guardian_of "$server")
moved() { ! grep -q "[pr]:heaptap_${guardian}_" $definitions; }
if has_mode session; then
	await 10 way_is own 1 && ok "moves back to own" || not_ok "moves back to own" "not within 10 s" "$top/serve.err"
	await 10 moved && ok "the definitions are gone" ||
		not_ok "the definitions are gone" "$(defined_cnt "$guardian") are there"
else # every way pays for the return there: to move would gain less than a tenth
	await 10 way_is event 1 && ok "stays an event for the last one" ||
		not_ok "stays an event for the last one" "not so" "$top/serve.err"
fi
at way-racer
is_done && not_ok "moved while it allocated" "it had ended" "$top/serve.err"
tell over
await 30 is_done || not_ok "the racer" "does not end" "$work/target.err"
exact_of way-racer "exact through the moves"
work=$top/way-racer no_losses "no losses through the moves"
work=$top
grep -q "libc.*: probes moved from 'own' to 'event' for .* ns per hit" "$top/serve.err" && ok "moves are told" ||
	not_ok "moves are told" "they are not" "$top/serve.err"
end_server "both moves"
end way-racer

# kill -9: the guardian takes all out. Of both: probes go with them, what is defined stays until the next
# start.
clean() { ! has_probe way-killed1 && ! has_probe way-killed2; }
undefined() { [ "$(defined_cnt "$guardian")" = 0 ]; }
for i in 1 2; do begin "way-killed$i"; done
for both in "" both; do
	serve_ways --sharing event
	await 5 way_is event 2 || not_ok "event: 2 processes" "not so" "$top/serve.err"
	guardian=$(guardian_of "$server")
	left=$(defined_cnt "$guardian")
	kill -9 "$server" ${both:+"$guardian"}
	wait "$server" 2>/dev/null
	await 5 clean && ok "kill -9 ${both:-alone}: no probe stays" ||
		not_ok "kill -9 ${both:-alone}: no probe stays" "there are" "$top/text"
	if [ "$both" ]; then
		[ "$left" -gt 0 ] && [ "$(defined_cnt "$guardian")" = "$left" ] &&
			ok "kill -9 both: $left definitions stay, inert" ||
			not_ok "kill -9 both" "$(defined_cnt "$guardian") definitions of $left"
	else
		await 5 undefined && ok "kill -9 alone: no definition stays" ||
			not_ok "kill -9 alone: definitions" "$(defined_cnt "$guardian") stay"
	fi
done
# who is on its way out still holds them
await 20 is_gone "$guardian" || not_ok "kill -9 both" "the guardian does not end"
serve_ways
undefined && grep -q "removed $left probe definitions" "$top/serve.err" &&
	ok "the next start removes them" || not_ok "the next start removes them" "not so" "$top/serve.err"
end_server "the next start"
for name in way-killed1 way-killed2 other; do end $name; done
e2e_end

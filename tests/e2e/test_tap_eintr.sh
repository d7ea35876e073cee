#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The stop for a tap is not seen by system calls: of some fifty that a signal can end, one in each thread, none answers what
# it does not answer without stops, none with a limit ends before it, and no signal that comes meanwhile is lost.
# E2E_STOPS=N: so many stops (60). timeout: 3600
. "$(dirname "$0")/lib.sh"
e2e_init tap_eintr
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 && have curl || skip_all "python3 or curl is not installed"
build_c busy && build_c tap_eintr -lrt || { not_ok build "tap_eintr.c"; e2e_end; }
. "$e2e_dir/harm_lib.sh"
stops=${E2E_STOPS:-60}
export E2E_LIFE_SECONDS=$((120 + stops / 4))
signals=$((${#stops} > 3 ? 10000 : 1500))

seen() { grep '^SET' "$work/target.out" | sort -u; }
counted() { # calls and signals so far
	ask do
	awk '$1 == "COUNT" { calls = $2; signals = $3 } END { print calls, signals }' "$work/target.out"
}
had_signals() { [ "$(counted | cut -d ' ' -f 2)" -ge $signals ]; }

top=$work
export E2E_OF=$work
: >"$work/shown"
begin_target "$bin/tap_eintr"
await 60 had_signals || fault "it does not get its signals" "$work/target.out"
seen >"$work/alone"
ends_itself
target=
[ ${#faults[@]} = 0 ] && [ "$(grep -c ' - returned' "$work/alone")" -ge 30 ] && [ "$(grep -c ' SIGUSR1 ' "$work/alone")" -ge 40 ] &&
	ok "without stops: $(grep -c ' - returned' "$work/alone") calls with a limit, $(grep -c ' SIGUSR1 ' "$work/alone") without" ||
	not_ok "without stops" "${faults[*]:-calls are missing}" "$work/alone"

faults=()
begin_target "$bin/tap_eintr"
begin_serve
await_tap
if [ "$said" = tapped ]; then
	toggled=$(python3 "$e2e_dir/tap_toggles.py" "$target" "$server" $((stops / 2)) 2>"$work/toggles") ||
		fault "the tap does not go in and out" "$work/toggles" "$work/serve.err"
	read -r calls sent <<<"$(counted)"
	seen >"$work/stopped"
	end_serve
	comm -13 "$work/alone" "$work/stopped" >"$work/new"
	grep ' - ' "$work/new" >"$work/answers"
	grep ' SIGUSR' "$work/new" >"$work/lost"
	[ ! -s "$work/answers" ] && ok "$calls calls answer what they answer without stops: $toggled" ||
		not_ok "calls answer what they do not answer without stops" "$(grep -c . "$work/answers") kinds" "$work/answers"
	[ ! -s "$work/lost" ] && ok "$sent signals do what they do without stops" ||
		not_ok "signals do what they do not do without stops" "$(grep -c . "$work/lost") kinds" "$work/lost"
else
	fault "it is not tapped" "$work/serve.err"
	end_serve
fi
ends_well
clear_up
[ ${#faults[@]} = 0 ] && ok "the program is well" || not_ok "the program" "${faults[*]}" "$work/shown"
e2e_end

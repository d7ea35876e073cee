#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is resident as a witness of what is seen: the end of a recording is looked at, however short it is; and what a
# runtime with a heap of its own holds is called exact, and a limit kept, only if the process did not grow by something else.
. "$(dirname "$0")/lib.sh"
e2e_init resident
build_c resident || { not_ok build "resident.c"; e2e_end; }
cp "$bin/resident" "$work/ruby" # its name says that it has a heap of its own

# recorded HOW ARGS...: $work/report, $work/check and the status of that
recorded() {
	local how=$1 program=$2
	shift 2
	start "$program" "$how"
	attach "$@"
	rows_are_read
	sleep 0.7 # a tapped process is looked at once, then rarely
	step go
	if [ "$how" = freed ]; then
		sleep 2.5 # a moment
		step free
	fi
	stop_recorder
	finish_target
	"$heaptap" report "$work/p.pb.gz" >"$work/report" 2>&1
	"$heaptap" check --max-inuse 1G "$work/p.pb.gz" >"$work/check" 2>&1
	check_status=$?
}
shows() { grep -qE -- "$2" "$work/report" && ok "$1" || not_ok "$1" "no '$2'" "$work/report" "$work/check"; }
hides() { grep -qE -- "$2" "$work/report" && not_ok "$1" "'$2'" "$work/report" "$work/check" || ok "$1"; }
judged() { [ $check_status = "$2" ] && ok "$1" || not_ok "$1" "status $check_status" "$work/check" "$work/report"; }

for way in "--rate 1" --tap; do
	recorded malloc "$bin/resident" $way
	shows "short, $way: the end is looked at" '^Resident .*: live \+3[0-9.]+ MiB'
done

recorded map "$work/ruby" --rate 1
shows "own heap: at least" '^Held \(allocated while recording, not freed\): at least 1\.00 MiB in'
hides "own heap: not exact" '^Held.*exact'
judged "own heap: a limit is not kept" 2
grep -q 'in use: 1.00 MiB or more' "$work/check" && tr -s ' \n' ' ' <"$work/check" | grep -q 'grew by more than twice its heap in use: Ruby keeps objects' &&
	ok "own heap: check says why" || not_ok "own heap: check says why" "no" "$work/check"

recorded malloc "$work/ruby" --rate 1
shows "own heap, all is malloc's: exact" '^Held \(allocated while recording, not freed\): 33.0 MiB \(exact\)'
judged "own heap, all is malloc's: kept" 0
recorded freed "$work/ruby" --rate 1
shows "own heap, freed blocks are resident: exact" '^Held \(allocated while recording, not freed\): 1.00 MiB \(exact\)'
judged "own heap, freed blocks are resident: kept" 0
e2e_end

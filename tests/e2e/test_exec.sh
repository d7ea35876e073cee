#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that becomes another program: what the old one held is not the new one's.
. "$(dirname "$0")/lib.sh"
e2e_init exec

build_c execs && build_c family && OUT=family-static build_c family -static || { not_ok build "workloads"; e2e_end; }
began_work() { says "$work/target.out" ^BEFORE; }
is_ready_again() { [ "$(grep -c ^READY "$work/target.out")" = 2 ]; }

# As same(); what the new program allocates before its file has been read has a stack that is cut, which is counted.
same_but_cut() {
	local name=$1 cut missing
	cut=$(ledger truncated_no_mapping)
	[ "${cut:-0}" != 0 ] || { same "$@"; return; }
	shift
	"$compare" exact "$work/p.pb.gz" "$work/target.out" "$@" >"$work/differences"
	missing=$(awk '/allocated objects [0-9]+, must be [0-9]+$/ { missing += $NF - $(NF - 3) } END { print missing + 0 }' "$work/differences")
	# some of those that are cut are of the C library itself, which the program does not know of
	[ "$record_status$target_status" = 00 ] && [ "$missing" -le "$cut" ] && ok "$name, but for $cut stacks that are cut" ||
		not_ok "$name" "$missing are missing, $cut stacks are cut" "$work/differences" "$work/heaptap.err"
}

# NAME SECONDS PROGRAM [HEAPTAP ARGS]: how long the new program waits before it works
through_exec() {
	local name=$1 pause=$2 program=$3
	shift 3
	start "$bin/execs" "$program"
	attach --rate 1 "$@"
	tell go
	await 20 began_work
	tell exec
	await 20 is_ready_again || not_ok "$name" "no second program" "$work/target.err"
	sleep "$pause"
	work_recorded
	# what the old program held is gone with it; what it has allocated stays, under the old name
	held=$(awk '/^EXPECT [^ ]* execs / { sum += $4 } END { print sum + 0 }' "$work/target.out")
	sed -i 's/^\(EXPECT [^ ]* execs\) [0-9]* [0-9]*/\1 0 0/' "$work/target.out"
	same_but_cut "$name" --alloc
	said=$("$heaptap" report --format json "$work/p.pb.gz" | grep -o '"exec_held_bytes":[0-9]*' | cut -d: -f2)
	[ "${said:-0}" = "$held" ] && ok "$name: held at exec" || not_ok "$name: held at exec" "$said bytes, $held by the program itself"
	cp "$work/target.out" "$work/all.out"
	for comm in execs "$(basename "$program")"; do
		sed "/^EXPECT/{/ $comm /!d}" "$work/all.out" >"$work/target.out"
		same_but_cut "$name: rows of comm $comm" --alloc --label comm="$comm"
	done
}
for mode in $e2e_modes; do
	through_exec "another program, same libc, $mode" 1 "$bin/family" --attach-mode=$mode
	through_exec "a static program, $mode" 1 "$bin/family-static" --attach-mode=$mode
	# nothing holds what was attached to: from when to when it ran unseen is said, and no number called exact
	[ "$(ledger unseen_execs)" = 1 ] &&
		"$heaptap" report --notes "$work/p.pb.gz" | tr -d '\n' | grep -q "not exact since the exec at .* PID [0-9]* (family-static) ran .* before it *was probed" &&
		! "$heaptap" report "$work/p.pb.gz" | grep -q "(exact)" &&
		ok "a static program, $mode: the time between is said" ||
		not_ok "a static program, $mode: the time between is said" "" "$work/heaptap.err"
done
if have musl-gcc && CC=musl-gcc OUT=family-musl build_c family -idirafter/usr/include; then
	through_exec "a program of another libc" 1 "$bin/family-musl"
else
	skip "a program of another libc" "musl-gcc is not installed"
fi
# the file is known already when it is the same program
through_exec "at once" 0 "$bin/family"
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that becomes another program: what the old one held is not the new one's.
. "$(dirname "$0")/lib.sh"
e2e_init exec

build_c execs && build_c family && OUT=family-static build_c family -static || { not_ok build "workloads"; e2e_end; }
began_work() { says "$work/target.out" ^BEFORE; }
is_ready_again() { [ "$(grep -c ^READY "$work/target.out")" = 2 ]; }

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
	run_target
	stop_recorder
	finish_target
	# the recording keeps what the old program held at its end, under the old name
	same "$name" --alloc
	cp "$work/target.out" "$work/all.out"
	for comm in execs "$(basename "$program")"; do
		sed "/^EXPECT/{/ $comm /!d}" "$work/all.out" >"$work/target.out"
		same "$name: rows of comm $comm" --alloc --label comm="$comm"
	done
}
for mode in $e2e_modes; do
	through_exec "another program, same libc, $mode" 1 "$bin/family" --attach-mode=$mode
	through_exec "a static program, $mode" 1 "$bin/family-static" --attach-mode=$mode
done
if have musl-gcc && CC=musl-gcc OUT=family-musl build_c family -idirafter/usr/include; then
	through_exec "a program of another libc" 1 "$bin/family-musl"
else
	skip "a program of another libc" "musl-gcc is not installed"
fi
# the file is known already when it is the same program
through_exec "at once" 0 "$bin/family"
e2e_end

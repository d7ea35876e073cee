#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many threads: the same operations in each, blocks that others free, races, threads that end.
. "$(dirname "$0")/lib.sh"
e2e_init exact_threads

build_c family && build_c threads || { not_ok build "threads.c"; e2e_end; }
beside lossless "8 threads, malloc family" -- env E2E_THREADS=8 "$bin/family"
has_mode perf && again beside exact "8 threads, malloc family, perf" --attach-mode=perf -- env E2E_THREADS=8 "$bin/family"
beside exact "names and sizes of threads" -- env E2E_MODE=named E2E_THREADS=7 "$bin/threads"
beside lossless "producers and consumers" -- env E2E_MODE=handover E2E_THREADS=4 "$bin/threads"
race_ms=$(is_whole && echo 1500 || echo 500)
for mode in $e2e_every_mode; do
	for seed in $(some 1 1 2); do
		beside lossless "race, $mode, seed $seed" --attach-mode=$mode -- \
			env E2E_MODE=race E2E_SEED=$seed E2E_MS=$race_ms "$bin/threads"
	done
done
beside lossless "threads that end" -- env E2E_MODE=deaths E2E_THREADS=4 "$bin/threads"

# Attach in the middle of the race: what was allocated before is unknown, but nothing may be held
# that the program has freed: for no site more than the program has.
attached_in_a_race() {
	start env E2E_MODE=race E2E_MS=60000 "$bin/threads"
	tell go
	sleep 0.2
	attach --rate 1
	sleep 1
	tell stop
	await 60 is_done
	stop_recorder
	finish_target
	"$compare" sites "$work/p.pb.gz" >"$work/sites"
	awk '/^EXPECT/ { b[$2 " " $3] = $4; o[$2 " " $3] = $5 }
		/^SITE/ { n++; k = $2 " " $3; if ($4 > b[k] + 0 || $5 > o[k] + 0) print k, $4, $5, "program has", b[k] + 0, o[k] + 0 }
		END { if (n < 4) print "only", n + 0, "rows" }' "$work/target.out" "$work/sites" >"$work/differences"
	[ "$record_status" = 0 ] && [ ! -s "$work/differences" ] &&
		ok "attached in the middle of a race: nothing that was freed is held" ||
		not_ok "attached in the middle of a race" "status $record_status" "$work/differences" "$work/heaptap.err"
}
beside attached_in_a_race

# Detach in the middle: the program does not notice, and a second recording of the same process
# begins from nothing.
detached_in_a_race() {
	start env E2E_MODE=race E2E_MS=60000 "$bin/threads"
	tell go
	attach --rate 1
	sleep 0.5
	stop_recorder
	first=$record_status
	attach --rate 1
	sleep 0.5
	tell stop
	await 30 is_done
	stop_recorder
	finish_target
	[ "$first$record_status$target_status" = 000 ] && ok "detached and attached again in the middle of a race" ||
		not_ok "detached and attached again in the middle of a race" \
			"status $first, $record_status, target $target_status" "$work/heaptap.err"
}
beside detached_in_a_race
together
e2e_end

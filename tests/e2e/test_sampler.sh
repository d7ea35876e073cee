#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Samplers in the program itself: what they tell in USDT probes, by heaptap's own library (tools/sampler) and by
# an emitter made from the contracts' texts.
. "$(dirname "$0")/lib.sh"
e2e_init sampler

built=$e2e_top/.build/libheaptap-sampler
# an emulated machine has only the workloads' folder
lib=$bin/libheaptap-sampler.so
if [ -e "$built.so" ]; then
	cmp -s "$built.so" "$lib" || { cp "$built.so" "$lib.$$" && mv "$lib.$$" "$lib"; }
	[ "$bin/family-sampler" -nt "$built.a" ] || rm -f "$bin/family-sampler"
fi
[ -e "$lib" ] || { not_ok library "$lib is not built"; e2e_end; }
build_c family && build_c threads && build_cxx cxx && build_c planted && build_c busy &&
	build_c emitter && OUT=emitter-datadog build_c emitter -DEMIT='"ddheap"' -DSEMAPHORE ||
	{ not_ok build "workloads"; e2e_end; }
comments() { "$heaptap" report --notes "$work/p.pb.gz" 2>&1; }

# The emitter: arguments in registers, memory, constants, of all widths; only what it tells counts.
for mode in $e2e_modes; do
	beside exact "otel_memory, $mode" --source usdt --attach-mode=$mode -- "$bin/emitter"
done
with_semaphore() {
	lossless "ddheap, with a semaphore" --source usdt -- "$bin/emitter-datadog"
	comments >"$work/notes"
	says "$work/notes" 'source: usdt (ddheap), of the program' && ok "the notes name the source" ||
		not_ok "the notes name the source" "they do not" "$work/notes"
}
beside with_semaphore
no_weights() {
	E2E_COMPARE='' exact "weights that are none" --source usdt -- env EMITTER_BAD=1 "$bin/emitter"
	[ "$(ledger sampled_bad)" = 3 ] && ok "weights that are none are counted" ||
		not_ok "weights that are none are counted" "sampled_bad is $(ledger sampled_bad)" "$work/heaptap.err"
}
beside no_weights

# Without a word of it a sampler in the program is found when it tells of something, and not before.
start env EMITTER_OFF=1 "$bin/emitter"
record_work --rate 1
"$heaptap" report --format json "$work/p.pb.gz" >"$work/json" 2>&1
grep -Eq '"inuse_bytes": ?500000\b' "$work/json" && ok "a sampler that is off: the allocator is probed" ||
	not_ok "a sampler that is off" "site_silent's blocks are not there" "$work/heaptap.err" "$work/json"
start env EMITTER_OFF=1 "$bin/emitter"
"$heaptap" record -p "$target" --source usdt -d 1s --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
says "$work/heaptap.err" 'has a sampler that reported nothing' && ok "--source usdt and nothing told: says so" ||
	not_ok "--source usdt and nothing told" "does not say so" "$work/heaptap.err"
kill_target
start "$bin/family"
"$heaptap" record -p "$target" --source usdt -d 1s --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
status=$?
says "$work/heaptap.err" 'has no sampler of its own' && [ $status = 1 ] && ok "--source usdt without a sampler: says so" ||
	not_ok "--source usdt without a sampler" "status $status" "$work/heaptap.err"
kill_target

# The library: every block, by its own account, whatever the program does.
every="env LD_PRELOAD=$lib HEAPTAP_SAMPLER_RATE=1"
for mode in $e2e_modes; do
	beside lossless "library, every block, $mode" --source usdt --attach-mode=$mode -- $every "$bin/family"
done
beside exact "library, 8 threads" --source usdt -- $every E2E_THREADS=8 "$bin/family"
beside lossless "library, frees across threads" --source usdt -- $every E2E_MODE=race "$bin/threads"
beside exact "library, C++" --source usdt -- $every E2E_NO_THROW=1 "$bin/cxx"
OUT=family-sampler build_c family "$built.a" -ldl &&
	beside exact "library, linked" --source usdt -- env HEAPTAP_SAMPLER_RATE=1 "$bin/family-sampler"
for name in jemalloc tcmalloc_minimal mimalloc; do
	other=$(ldconfig -p | awk -v name="lib$name.so." 'index($1, name) == 1 && /x86-64/ { print $NF; exit }')
	[ -n "$other" ] || { skip "library before $name" "it is not installed"; continue; }
	again beside exact "library before $name" --source usdt -- env LD_PRELOAD="$lib $other" HEAPTAP_SAMPLER_RATE=1 "$bin/family"
	beside exact "library before $name, C++" --source usdt -- \
		env LD_PRELOAD="$lib $other" HEAPTAP_SAMPLER_RATE=1 E2E_NO_THROW=1 "$bin/cxx"
done
beside exact_launched "library, a program that is started" --source usdt -- $every "$bin/planted"
# Children that nobody follows have the parent's sampler and blocks, and are not the parent. Their costs are never those
# without a probe, so they wait for none.
not_followed() { E2E_COMPARE='' exact "forks, $1" --source usdt -- $every E2E_COST_MS=0 E2E_MODE=$1 "$bin/forks"; }
build_c forks && for how in $(some 2 plain vfork storm); do beside not_followed $how; done
together

# As a user has it: its own rate, nothing said. A program that does nothing but allocate is over any budget by
# probes, and has hardly a cost by its sampler.
start env LD_PRELOAD="$lib" "$bin/busy" 1
"$heaptap" record -p "$target" -d 2s --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
record_status=$?
comments >"$work/notes"
cost=$(sed -n 's/.*cost: \([0-9.]*\) % of its CPU time.*/\1/p' "$work/notes")
[ "$record_status" = 0 ] && says "$work/notes" 'source: usdt (otel_memory)' && says "$work/notes" 'one sample per 512 KiB' &&
	ok "library, found by itself, with its rate" ||
	not_ok "library, found by itself" "is not in the notes" "$work/notes" "$work/heaptap.err"
awk -v cost="${cost:-100}" 'BEGIN { exit !(cost < 10) }' && ok "library, busy: $cost % of its CPU time" ||
	not_ok "library, busy: cost" "${cost:-unknown} %" "$work/notes"
kill_target

# It comes, and goes, with an exec.
start env E2E_SAMPLER="$lib" sh -c 'echo READY; read -r go; LD_PRELOAD=$E2E_SAMPLER exec "$1" 1 500000' - "$bin/busy"
record_start -p "$target" -d 3s --max-overhead 25
tell go
wait_recorder
comments >"$work/notes"
[ "$record_status" = 0 ] && says "$work/notes" 'source: usdt (otel_memory)' && ok "a program that comes with an exec" ||
	not_ok "a program that comes with an exec" "its sampler is not used" "$work/notes" "$work/heaptap.err"
kill_target
start env LD_PRELOAD="$lib" sh -c 'echo READY; while read -r go; do [ "$go" = go ] && exec env -u LD_PRELOAD "$1" 1 20000; done' - "$bin/busy"
record_start -p "$target" --source auto
tell go
sleep 2
stop_recorder
kill_target
"$heaptap" report -f collapsed --value alloc "$work/p.pb.gz" >"$work/stacks" 2>&1
[ "$record_status" = 0 ] && says "$work/stacks" 'busy_site' && ok "a program without a sampler after one with it" ||
	not_ok "a program without a sampler after one with it" "is not probed" "$work/stacks" "$work/heaptap.err"
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A recording that an error of heaptap's own ends early: what was recorded is written, and the exit status is not success.
. "$(dirname "$0")/lib.sh"
e2e_init cut_short
build_c family && OUT=libno_memory.so build_c no_memory -shared -fPIC -ldl || { not_ok build "workloads"; e2e_end; }
export E2E_NO_MEMORY=$work/no-memory

start "$bin/family"
LD_PRELOAD=$bin/libno_memory.so attach --rate 1
run_target
: >"$E2E_NO_MEMORY"
wait_recorder 30
rm "$E2E_NO_MEMORY"
[ "$record_status" = 1 ] && ok "record: the exit status" ||
	not_ok "record: the exit status" "$record_status" "$work/heaptap.err"
says "$work/heaptap.err" 'Cannot allocate memory: ending the recording early' && ok "record: it is said" ||
	not_ok "record: it is said" "not" "$work/heaptap.err"
record_status=0
finish_target
same "record: what was recorded is there" --alloc

# A limit that was kept until then proves nothing.
start "$bin/family"
LD_PRELOAD=$bin/libno_memory.so "$heaptap" check -p "$target" --max-inuse 1T -d 20s >"$work/check.out" 2>"$work/heaptap.err" </dev/null &
owned recorder
await 60 record_began
: >"$E2E_NO_MEMORY"
wait_recorder 30
rm "$E2E_NO_MEMORY"
run_target
finish_target
[ "$record_status" = 2 ] && ok "check: undecided" ||
	not_ok "check: undecided" "status $record_status" "$work/check.out" "$work/heaptap.err"
e2e_end

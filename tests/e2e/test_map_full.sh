#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# More live samples than the live map holds: the recording goes on, and says what is missing.
. "$(dirname "$0")/lib.sh"
e2e_init map_full

build_c family && build_c sites200 -fno-ipa-icf -lm || { not_ok build "workloads"; e2e_end; }
launch --rate 1 --max-live 100 -n 0 -- "$bin/sites200"
[ "$record_status" = 0 ] && ok "exit status 0" || not_ok "exit status" "$record_status" "$work/heaptap.err"
lost=$(ledger live_full) bytes=$(ledger live_full_bytes) live=$("$compare" sites "$work/p.pb.gz" | awk '{ n += $5 } END { print n }')
[ "${lost:-0}" -gt 1000 ] && [ "${bytes:-0}" -gt 100000 ] && ok "the ledger has it: $lost samples, $bytes bytes" ||
	not_ok "the ledger" "live_full $lost, live_full_bytes $bytes"
[ "$live" -gt 0 ] && [ "$live" -le 100 ] && ok "what fits is there: $live" || not_ok "what fits is there" "$live objects"
grep -qi "live map was full.*--max-live" "$work/heaptap.err" && ok "the message says so" ||
	not_ok "the message" "does not say so" "$work/heaptap.err"
# tracked and not tracked make up everything: of the allocations at sites and elsewhere
all=$(awk '/^EXPECT/ { n += $7 } END { print n }' "$work/target.out")
samples=$(ledger samples)
[ "$samples" -ge "$all" ] && ok "samples and losses make up all allocations" ||
	not_ok "samples" "$samples, the program made $all"
launch --rate 1 --max-stacks 16 -n 0 -- "$bin/family"
[ "$record_status" = 0 ] && [ "$(ledger stacks_full)" -gt 0 ] && grep -qi "stack map was full.*--max-stacks" "$work/heaptap.err" &&
	ok "stack map full: counted and said" ||
	not_ok "stack map full" "status $record_status, stacks_full $(ledger stacks_full)" "$work/heaptap.err"
"$heaptap" report --by stack -n 3 "$work/p.pb.gz" >"$work/report"
grep -q "^In use.*(exact)" "$work/report" && ! grep -v "^In use\|^Peak" "$work/report" | grep -q exact && ok "stack map full: the sum is exact, no row is" ||
	not_ok "stack map full: exact" "" "$work/report"
e2e_end

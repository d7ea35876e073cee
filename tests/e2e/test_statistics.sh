#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 200 sites, 5 recordings at the default rate: the 95 % interval of what a site holds, and of what it
# allocated, has the truth in 95 % of all rows, the totals are unbiased, and the error that is stated is
# the one observed. E2E_RUNS: how many (TESTS_WHOLE=1: 30, `make torture`: 100; fewer than 30 tell little of the
# standard error).
# E2E_TAP=1: drawn by the tap instead of probes (test_tap_truth.sh), at that rate all the time: else a busy machine, where
# samples cost more, makes it coarser, and for the few samples of a site that are left an interval is less than approximate.
#
# How far each may be off follows from the number n of runs, so that chance alone fails a check about once
# in 2000 times whatever n is, and more runs see smaller faults:
#	bias of the total	3.5 standard errors of the mean, sd / sqrt(n); of a few runs, the stated ones
#	stated error		3.5 / sqrt(2 (n - 1)) of itself, the standard error of a standard deviation
#	coverage		1.24 % because an interval is approximate for few samples, and 3.5
#				standard errors, sqrt(0.95 * 0.05 / rows): 93 to 97 % with 50 runs
. "$(dirname "$0")/lib.sh"
e2e_init statistics${E2E_TAP:+_tap}

runs=${E2E_RUNS:-$(is_whole && echo 30 || echo 5)}
build_c sites200 -fno-ipa-icf -lm || { not_ok build "sites200.c"; e2e_end; }
recordings=$work
recorded() {
	if [ -z "${E2E_TAP:-}" ]; then
		launch -n 0 -q --no-lines -- "$bin/sites200"
		return
	fi
	record_status=1
	start "$bin/sites200" && attach --tap=only --rate 64k -n 0 --no-lines && run_target && stop_recorder
	finish_target
}
# recording NUMBER: its rows in a file of their own; the last one's profile is kept
recording() {
	recorded
	[ "$record_status" = 0 ] && [ "$(ledger live_full stacks_full scratch_busy contexts_full | tr -d '\n')" = 0000 ] ||
		not_ok "recording $1" "status $record_status, or it lost samples" "$work/heaptap.err"
	"$compare" sampled "$work/p.pb.gz" "$work/target.out" | sed "s/^/$1 /" >"$recordings/rows.$1"
	[ "$1" != $((runs - 1)) ] || cp "$work/p.pb.gz" "$recordings"
}
for ((i = 0; i < runs; i++)); do beside recording $i; done
together
[ "$e2e_failed" = 0 ] && ok "$runs recordings without a loss"
cat "$work"/rows.* >"$work/rows"

# of a few runs the standard error itself is uncertain
spread=$(awk "BEGIN { print (($runs > 1) ? 3.5 / sqrt(2 * ($runs - 1)) : 0) }")
cover=$(awk "BEGIN { printf \"%.2f\", 1.24 + 3.5 * 100 * sqrt(0.95 * 0.05 / (200 * $runs)) }")
value() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" "$work/summary"; }
is() { awk "BEGIN { exit !($1) }"; }

# check ROW|ALLOC WHAT: coverage of the rows' intervals, bias of the total, its stated error
check() {
	awk -v kind="$1" '
		$2 == kind { n++; hits += $10; est[$1] += $5; var[$1] += $6; truth[$1] += $9
			if ($5 == 0) missing++ }
		$2 == "GHOST" { ghosts++ }
		END {
			for (r in est) {
				d = (est[r] - truth[r]) / truth[r]
				sum += d; square += d * d; stated += sqrt(var[r]) / truth[r]; k++
			}
			mean = sum / k; sd = sqrt((square - k * mean * mean) / (k - 1)); se = (k < 30 ? stated / k : sd) / sqrt(k)
			printf "rows=%d coverage=%.2f missing=%d ghosts=%d mean=%.6f se=%.6f z=%.2f sd=%.6f stated=%.6f\n",
				n, 100 * hits / n, missing, ghosts, mean, se, mean / se, sd, stated / k
		}' "$work/rows" >"$work/summary"
	echo "# $2: $(cat "$work/summary")"
	[ "$(value rows)" = $((runs * 200)) ] && [ "$(value ghosts)" = 0 ] &&
		ok "$2: all rows, no ghosts" || not_ok "$2: all rows, no ghosts" "$(cat "$work/summary")"
	is "$(value coverage) >= 95 - $cover && $(value coverage) <= 95 + $cover" &&
		ok "$2: the 95 % interval holds the truth in $(value coverage) % of $(value rows) rows" ||
		not_ok "$2: coverage" "$(value coverage) %, must be 95 +- $cover"
	is "$(value z) >= -3.5 && $(value z) <= 3.5" &&
		ok "$2: total unbiased: mean error $(value mean), $(value z) standard errors" ||
		not_ok "$2: bias of the total" "mean error $(value mean), $(value z) standard errors"
	if [ "$runs" -ge 30 ]; then
		is "$(value sd) < (1 + $spread) * $(value stated) && $(value sd) > (1 - $spread) * $(value stated)" &&
			ok "$2: the stated standard error is the one observed" ||
			not_ok "$2: stated standard error" "stated $(value stated), observed $(value sd), may differ by a factor of 1 +- $spread"
	else
		skip "$2: the stated standard error is the one observed" "$runs runs are too few"
	fi
}
check ROW "in use"
check ALLOC "allocated"

if [ -n "${E2E_TAP:-}" ]; then
	"$heaptap" report --notes "$work/p.pb.gz" 2>&1 | grep -q 'source: tap' && ok "the tap drew them" ||
		not_ok "the tap" "did not draw them" "$work/heaptap.err"
fi
# what stands in the report is that of the file: everything was allocated at the sites
"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>"$work/report.err"
total=$(sed -n 's/^"total":{\(.*\)},$/\1/p' "$work/json")
number() { sed -n "s/.*\"$1\":\([0-9]*\)[,}].*/\1/p" <<<"$total,"; }
error=$(awk -v r=$((runs - 1)) '$1 == r && $2 == "ALLOC" { v += $6 } END { print 1.959964 * sqrt(v) }' "$work/rows")
low=$(number alloc_bytes_low) high=$(number alloc_bytes_high) alloc=$(number alloc_bytes)
# Few samples that stand for much make the interval longer upwards than downwards, and
# a little longer as a whole.
if [ -n "${E2E_TAP:-}" ]; then
	is_stated="($high - $low) / 2 / $error > 0.99 && ($high - $low) / 2 / $error < 1.06 && $high - $alloc > 0.99 * ($alloc - $low)"
else
	is_stated="($high - $alloc) / $error > 0.99 && ($high - $alloc) / $error < 1.01 && ($alloc - $low) / $error > 0.99 && ($alloc - $low) / $error < 1.01"
fi
is "${low:-0} > 0 && $is_stated" &&
	ok "the report states that error: $alloc, $low to $high bytes" ||
	not_ok "error in the report" "${low:-no low} to ${high:-no high} for $alloc, +- $error" "$work/report.err"
e2e_end

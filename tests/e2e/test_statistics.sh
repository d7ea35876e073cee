#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 200 sites, 50 recordings at the default rate: the 95 % interval of a site holds the truth in 93 to
# 97 % of all rows, and the total is unbiased within three standard errors. E2E_RUNS: how many (fewer
# than 30 tell little of the standard error; an emulated machine does 30).
. "$(dirname "$0")/lib.sh"
e2e_init statistics

runs=${E2E_RUNS:-$((${HEAPTAP_VM:-0} ? 30 : 50))}
build_c sites200 -fno-ipa-icf -lm || { not_ok build "sites200.c"; e2e_end; }
failed=0
for ((i = 0; i < runs; i++)); do
	launch -n 0 -q --no-lines -- "$bin/sites200"
	[ "$record_status" = 0 ] || failed=$((failed + 1))
	"$compare" sampled "$work/p.pb.gz" "$work/target.out" | sed "s/^/$i /" >>"$work/rows"
	[ "$(ledger live_full)$(ledger stacks_full)$(ledger scratch_busy)$(ledger contexts_full)" = 0000 ] ||
		failed=$((failed + 1))
done
[ "$failed" = 0 ] && ok "$runs recordings without a loss" || not_ok "recordings" "$failed failed or lost samples" "$work/heaptap.err"

awk -v runs="$runs" '
	$2 == "ROW" { n++; hits += $10; est[$1] += $5; var[$1] += $6; truth[$1] += $9
		if ($5 == 0) missing++ }
	$2 == "GHOST" { ghosts++ }
	END {
		for (r in est) {
			d = (est[r] - truth[r]) / truth[r]
			sum += d; square += d * d; stated += sqrt(var[r]) / truth[r]; k++
		}
		mean = sum / k; sd = sqrt((square - k * mean * mean) / (k - 1)); se = sd / sqrt(k)
		printf "rows=%d coverage=%.2f missing=%d ghosts=%d mean=%.6f se=%.6f z=%.2f sd=%.6f stated=%.6f\n",
			n, 100 * hits / n, missing, ghosts, mean, se, mean / se, sd, stated / k
	}' "$work/rows" >"$work/summary"
echo "# $(cat "$work/summary")"
value() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" "$work/summary"; }
is() { awk "BEGIN { exit !($1) }"; }
[ "$(value rows)" = $((runs * 200)) ] && [ "$(value ghosts)" = 0 ] &&
	ok "all rows, no ghosts" || not_ok "all rows, no ghosts" "$(cat "$work/summary")"
is "$(value coverage) >= 93 && $(value coverage) <= 97" &&
	ok "the 95 % interval holds the truth in $(value coverage) % of $(value rows) rows" ||
	not_ok "coverage" "$(value coverage) %, must be 93 to 97"
# of a few runs the standard error itself is uncertain
[ "$runs" -ge 30 ] && far=3 || far=6
is "$(value z) >= -$far && $(value z) <= $far" &&
	ok "total unbiased: mean error $(value mean), $(value z) standard errors" ||
	not_ok "bias of the total" "mean error $(value mean), $(value z) standard errors"
# what the profile states as its error is the error it has (50 runs: within a third)
if [ "$runs" -ge 30 ]; then
	is "$(value sd) < 1.35 * $(value stated) && $(value sd) > 0.7 * $(value stated)" &&
		ok "the stated standard error is the one observed" ||
		not_ok "stated standard error" "stated $(value stated), observed $(value sd)"
else
	skip "the stated standard error is the one observed" "$runs runs are too few"
fi
e2e_end

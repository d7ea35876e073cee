#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is run by hand, months apart, still runs: every option that a script in tools/ gives to heaptap is one, and the
# targets of `make help` that record something run in their shortest form. What they measure is not looked at.
# (tests/e2e/test_soak.sh is that of `make soak`; tests/packaging/test_targets.sh looks at all of them without running any.)
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init tools

tools/check-options "$heaptap" >"$work/options"
[ $? = 0 ] && [ "$(grep -c '^ok' "$work/options")" -ge 30 ] && ok "$(grep -c 'heaptap .* -' "$work/options") options of scripts" ||
	not_ok "options of scripts" "one is unknown" <(grep '^not ok' "$work/options")
# A renamed one is found, in a script of each kind.
mkdir -p "$work/tree/tools/bench"
cp tools/check-options "$work/tree/tools/"
cat >"$work/tree/tools/shell" <<'END'
"$heaptap" serve --listen 127.0.0.1:0 \
	--no-such-option all 2>"$work/err" --not-ours &
./heaptap record -p 1 -d 2 -- program --not-ours
END
cat >"$work/tree/tools/bench/pieces.py" <<'END'
class Tapped(Heaptap):
    def __init__(self, pid):
        super().__init__(pid, "--no-such-tap=only")
Heaptap(1, "--no-such-mode", *options)
spawn([str(HEAPTAP), "report", "--no-such-report", profile])
other("--not-ours")
END
"$work/tree/tools/check-options" "$heaptap" | sed -nE 's/^not ok - options: heaptap ([a-z]+ -[a-z-]+):.*/\1/p' | sort | xargs >"$work/unknown"
same_words="record --no-such-mode record --no-such-tap report --no-such-report serve --no-such-option"
[ "$(cat "$work/unknown")" = "$same_words" ] && ok "unknown options are found" ||
	not_ok "unknown options are found" "not '$same_words'" "$work/unknown"

[ "$(id -u)" = 0 ] || e2e_end
[ -x .build/soak/churn ] || skip_all "make soak-programs"
# runs WHAT LAST COMMAND...: it comes to its end, which says LAST
runs() {
	local what=$1 last=$2
	shift 2
	timeout 120 env "$@" >"$work/log" 2>&1
	grep -qE -- "$last" "$work/log" && ! grep -qE "unknown option|Traceback|: command not found|No such file" "$work/log" &&
		ok "$what runs" ||
		not_ok "$what runs" "it does not say '$last'" <(tail -n 12 "$work/log")
}
beside runs "make scale: scale" "outstanding too few at the end" SCALE_PROCESSES=4 SCALE_SAMPLES=400 SCALE_HELD=4000 \
	SCALE_SECONDS=1 SCALE_PAUSE=1 tools/soak/scale
beside runs "make scale: past" "resident memory more" PAST_PROCESSES=4 PAST_SECONDS=2 PAST_PAUSE=1 PAST_TIMES=60 tools/soak/past
beside runs "make demo" "by function" DEMO_SECONDS=1 DEMO_OUT="$work/demo.pb.gz" tools/demo.sh
beside runs "make bench: pieces" "^tap " tools/bench/run --list
again beside runs "make bench" "figures in" BENCH_ROUNDS=3 BENCH_SLICE_MS=1 BENCH_OUT="$work/bench.json" tools/bench/run calibrate
together
e2e_end

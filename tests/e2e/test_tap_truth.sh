#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap: what it says is true. Every free is seen, sums are those of probes, intervals hold, a leak under much that comes
# and goes is the first row, other tools' return probes cut no stack.
# E2E_TAP_RUNS: recordings for the statistics (`make torture`: 30), E2E_LEAK_SECONDS: how long the leak is recorded (8).
# timeout: 1800
. "$(dirname "$0")/lib.sh"
e2e_init tap_truth
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 || skip_all "python3 is not installed"
build_c threads -lpthread && build_c family && build_cxx leaky_server || { not_ok build "workloads"; e2e_end; }

# number FIELD: of the total of the profile
number() {
	"$heaptap" report -f json "$work/p.pb.gz" 2>/dev/null |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["total"][sys.argv[1]])' "$1"
}

# Threads that allocate, resize and free each other's: what is kept in the process at the end is what is live for heaptap.
export E2E_MODE=race E2E_MS=1000 E2E_THREADS=8
start "$bin/threads"
attach --tap=only --rate 512
run_target
if [ -x "$(command -v bpftool)" ]; then
	there=$(python3 "$e2e_dir/tap_set.py" "$target" "$recorder" 2>"$work/differences") && [ "${there%% *}" -gt 50 ] &&
		ok "8 threads: the process and heaptap hold the same $there" ||
		not_ok "8 threads: what is kept and what is live" "${there:-they differ}" "$work/differences"
else
	skip "8 threads: the same blocks" "bpftool is not installed"
fi
stop_recorder
finish_target
unset E2E_MODE E2E_MS E2E_THREADS

if was_built rust-release || { have rustc && bash "$loads/rust/build" "$bin" >"$work/build.log" 2>&1; }; then
	E2E_NO_EMPTY=1 exact "Rust" --tap=only --tap-exactly -- "$bin/rust-release"
else
	skip "Rust" "rustc is not installed"
fi

# Somebody's return probes on the same functions put an address of the kernel's in the place of the caller's. In a C library
# of their own: nobody else's text changes.
mkdir -p "$work/own"
cp "$(ldd "$bin/family" | awk '$1 == "libc.so.6" { print $3 }')" "$work/own/"
own="env LD_LIBRARY_PATH=$work/own"
. "$e2e_dir/serve_lib.sh"
top=$work
$own sleep 300 &
other=$!
e2e_pids="$e2e_pids $other"
serve --listen 127.0.0.1:0 -p "$other" --sharing all --attach-mode "$(set -- $e2e_every_mode; eval echo "\$$#")"
await 20 follows "$other" || not_ok "another one's return probes" "they are not in" "$top/serve.err"
E2E_NO_EMPTY=1 exact "another one's return probes" --tap=only --tap-exactly -- $own "$bin/family"
says "$work/heaptap.err" 'PID [0-9]*: [0-9]* breakpoints in .*/own/libc.so.6' || not_ok "another one's return probes" "they are not in it" "$work/heaptap.err"
[ "$("$compare" ledger "$work/p.pb.gz" truncated_no_mapping)" = 0 ] && ok "another one's return probes: no stack is cut" ||
	not_ok "another one's return probes" "stacks are cut" "$work/heaptap.err"
end_server "another one's return probes"

# 20 000 requests a second of ten small blocks each, and a leak of 1 KiB ten times a second.
leak() {
	local seconds=${E2E_LEAK_SECONDS:-8} first
	start "$bin/leaky_server" leak 10 20000
	sleep 1
	# At the 64 KiB of the default it is one sample in 8 s, or none; so it is forty, and no limit makes the rate coarser where
	# the machine is busy.
	"$heaptap" record --tap=only --rate 2k --max-overhead off -p "$target" -d "${seconds}s" --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err" </dev/null
	record_status=$?
	"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>>"$work/heaptap.err"
	first=$(python3 - "$work/json" "$seconds" <<-'PYTHON' 2>"$work/told"
	import json, sys
	rows = json.load(open(sys.argv[1]))["rows"]
	true = float(sys.argv[2]) * 10 * 1024
	first = rows[0]
	name = " ".join(frame["function"] or "" for frame in first["stack"]) if "stack" in first else first["name"]
	assert "remember" in name, name
	assert first["inuse_bytes_low"] <= 1.1 * true and first["inuse_bytes_high"] >= 0.9 * true, (first, true)
	print(f"{first['inuse_bytes'] / 1024:.0f} KiB, {first['inuse_bytes_low'] / 1024:.0f} to {first['inuse_bytes_high'] / 1024:.0f}; {true / 1024:.0f} were leaked")
	PYTHON
	) && [ "$record_status" = 0 ] && ok "the leak is the first row after $seconds s: $first" ||
		not_ok "the leak" "it is not the first row" "$work/told" "$work/heaptap.out" "$work/heaptap.err"
	kill_target
}
beside leak

# The same load twice, by the tap and by probes.
redis_sums() {
	local how difference
	for how in "--tap=only" "--source=probes"; do
		redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --enable-debug-command local >"$work/redis.out" 2>&1 &
		target=$!
		e2e_pids="$e2e_pids $target"
		await 20 eval 'redis-cli -s "$work/redis.sock" ping 2>/dev/null | grep -q PONG'
		attach --rate 65536 $([ "$how" = --tap=only ] && echo --tap=only)
		redis-cli -s "$work/redis.sock" debug populate 200000 key 100 >"$work/populate.out"
		stop_recorder
		redis-cli -s "$work/redis.sock" shutdown nosave >/dev/null 2>&1
		wait "$target"
		echo "$how $(number inuse_bytes) $(number inuse_bytes_low) $(number inuse_bytes_high)" >>"$work/sums"
	done
	# the two errors are independent; three and a half of them are chance once in 2 000 times
	difference=$(awk '{ value[NR] = $2; error[NR] = ($4 - $3) / 2 / 1.96 }
		END { printf "%.1f", (value[1] - value[2]) / sqrt(error[1] ^ 2 + error[2] ^ 2) }' "$work/sums") &&
		awk -v d="$difference" 'BEGIN { exit !(d < 3.5 && d > -3.5) }' &&
		awk '$2 < 20e6 { exit 1 }' "$work/sums" &&
		ok "redis: tap and probes: $(awk '{ printf "%s%.1f MB", (NR > 1 ? " and " : ""), $2 / 1e6 }' "$work/sums"), $difference standard errors apart" ||
		not_ok "redis: tap and probes" "$difference standard errors apart" "$work/sums" "$work/populate.out" "$work/heaptap.err"
}
have redis-server && have redis-cli && beside redis_sums || skip "redis: tap and probes" "redis is not installed"

sites_200() {
	E2E_TAP=1 E2E_RUNS=${E2E_TAP_RUNS:-3} bash "$e2e_dir/test_statistics.sh" >"$work/statistics"
	cat "$work/statistics"
	grep -q '^ok' "$work/statistics" && ! grep -q '^not ok' "$work/statistics" && ok "200 sites" ||
		not_ok "200 sites" "see above"
}
beside sites_200
together
e2e_end

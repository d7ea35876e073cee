#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 900
# `record -p PID` with nothing but defaults, on programs as people have them: the answer arrives. In-use is
# known and agrees with what the program says itself, or with the growth of its memory; or it is
# UNKNOWN, and the very command that is printed then gives it.
. "$(dirname "$0")/lib.sh"
e2e_init first_minute
[ "${HEAPTAP_VM:-0}" = 0 ] || skip_all "on an emulated machine a hit takes milliseconds"
have python3 || skip_all "python3 is not installed"
seconds=$(is_whole && echo 6 || echo 4)
verdicts=$work/verdicts # of each: "target"; "known"; or "near": unknown, but known where a hit costs a third less
load= # of the target: a process

# watch: notes with the time, while $watched is there, what the kernel says of the memory of the target and its children,
# and what the target itself says that it holds, if it does. Hardly a process is started: the target is under load.
watch() {
	local time children pid key kb rest sum line
	while [ -e "$work/watched" ]; do
		time=$EPOCHREALTIME sum=0 children=
		{ read -r children <"/proc/$target/task/$target/children"; } 2>/dev/null
		for pid in $target $children; do
			while read -r key kb rest; do
				[ "$key" = RssAnon: ] && sum=$((sum + kb)) && break
			done <"/proc/$pid/status"
		done 2>/dev/null
		line=$(tail -n 1 "$work/target.out")
		[[ $line == "AT "* ]] && line=${line##* } || line=
		echo "$time $sum $line"
		sleep 0.1
	done >"$work/watch"
}

# judge: a line of figures; 0: in-use agrees with what was noted in the time of the recording, 1: it does not,
# 2: in-use is unknown
judge() {
	"$heaptap" report -f json "$work/p.pb.gz" | python3 -c '
import json, sys
report = json.load(sys.stdin)
total = report["total"]
mib = 1 << 20
if total["inuse_bytes"] is None:
    print("in-use is unknown")
    sys.exit(2)
notes = [[float(a) for a in line.split()] for line in open(sys.argv[1])]
near = lambda time_s: min(notes, key=lambda note: abs(note[0] - time_s))
end_ns = report["time_ns"]
begin, end = near((end_ns - report["duration_ns"]) / 1e9), near(end_ns / 1e9)
held, low, high = total["inuse_bytes"], total["inuse_bytes_low"], total["inuse_bytes_high"]
words = f"{held / mib:.2f} MiB ({low / mib:.2f} to {high / mib:.2f})"
if len(end) > 2:
    # of the notes: each is up to 0.2 s old
    truth = end[2] - begin[2]
    slack = 65536 + truth / 10
    agrees = low - slack <= truth <= high + slack
    print(f"{words}, it says {truth / mib:.2f}")
else:
    # Freed memory is used again, and pages are kept: memory is no account of blocks.
    growth = (end[1] - begin[1]) * 1024
    agrees = low <= 1.5 * growth + 16 * mib and high >= 0.4 * growth - 16 * mib
    print(f"{words}, resident memory {growth / mib:+.2f}")
sys.exit(0 if agrees else 1)' "$work/watch"
}

# look COMMAND...: one recording; as judge, figures in $figures
look() {
	local verdict watcher
	: >"$work/watched"
	watch &
	watcher=$!
	timeout 90 "$@" >"$work/screen" 2>"$work/heaptap.err"
	verdict=$?
	rm "$work/watched"
	wait $watcher
	[ $verdict = 0 ] || { figures="status $verdict"; return 1; }
	figures=$(judge)
}

# first_minute NAME [ARGS...]: of $target
first_minute() {
	local name=$1 figures command
	shift
	echo target >>"$verdicts"
	look "$heaptap" record -d "$seconds" "$@" -o "$work/p.pb.gz" --force -p "$target"
	case $? in
	0)
		echo known >>"$verdicts"
		ok "$name: $figures"
		[ "$(wc -l <"$work/screen")" -le 24 ] && return
		not_ok "$name: screen" "$(wc -l <"$work/screen") lines" "$work/screen"
		return
		;;
	1)
		not_ok "$name" "$figures" "$work/screen" "$work/heaptap.err"
		return
		;;
	esac
	sed -nE 's/^In use: UNKNOWN\. .* costs ([0-9.]+) %.*limit is ([0-9.]+) %.*/\1 \2/p' "$work/screen" |
		awk '{ exit !($1 <= 1.5 * $2) }' && echo near >>"$verdicts"
	command=$(sed -nE 's/^To measure it: (heaptap record .*)/\1/p' "$work/screen")
	[ -n "$command" ] || { not_ok "$name" "unknown, and no command" "$work/screen"; return; }
	# shellcheck disable=SC2086
	look "$heaptap" $(advised "$command") -o "$work/p.pb.gz" --force &&
		ok "$name: unknown; then, by '$command': $figures" ||
		not_ok "$name" "unknown, and '$command' gives: $figures" "$work/screen" "$work/heaptap.err"
}
# done_with: the load first
done_with() {
	[ -z "$load" ] || kill "$load" 2>/dev/null
	load=
	kill -9 "$target" 2>/dev/null
	wait "$target" 2>/dev/null
}
in_background() {
	"$@" >/dev/null 2>&1 </dev/null &
	owned load
}
# of_workload NAME COMMAND...: one that says what it holds
of_workload() {
	local name=$1
	shift
	start "$@" || { not_ok "$name" "did not start" "$work/target.err"; kill_target; return; }
	await 10 says "$work/target.out" '^AT'
	first_minute "$name"
	kill_target
}
port=$((20000 + $$ % 20000))
is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

## What it says itself. They sleep most of the time, and run beside each other.
export E2E_BESIDE=${E2E_BESIDE:-7}
if build_cxx leak_server -I"$e2e_top/include" && build_c requests && OUT=requests-static build_c requests -static; then
	beside of_workload "a server that leaks" "$bin/leak_server"
	beside of_workload "the same with scopes" "$bin/leak_server" scopes
	beside of_workload "a server of bursts" "$bin/requests" 2000 40 3000 16
	beside of_workload "a static program" "$bin/requests-static" 2000 10 3000 4
	mkdir -p "$work/root"
	cp "$bin/requests" "$work/root/"
	for file in $(ldd "$bin/requests" | grep -oE '/[^ ]+'); do
		install -D "$file" "$work/root$file"
	done
	beside of_workload "in a chroot" chroot "$work/root" /requests 2000 10 3000 4
else
	not_ok workloads "cannot be built"
fi
if [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
	beside of_workload "Python with numpy" /usr/bin/python3 -c '
import time, numpy
kept = []
print("READY", flush=True)
while True:
    kept.append(numpy.ones(25000))
    scratch = numpy.ones(50000) * 2
    time.sleep(0.02)
    print("AT 0 0", 200000 * len(kept), flush=True)'
else
	skip "Python with numpy" "numpy is not installed"
fi
if have node; then
	beside of_workload "Node" node -e '
const kept = [];
console.log("READY");
setInterval(() => {
	kept.push(Buffer.alloc(200000, 1));
	JSON.stringify(kept.map((b) => b.length));
	console.log("AT 0 0 " + 200000 * kept.length);
}, 50);'
else
	skip "Node" "node is not installed"
fi
together

## What the kernel says of it; two at a time, as a share of its own CPU time is what counts
redis_too() {
	redis-server --port $port --save '' --appendonly no >"$work/redis.out" 2>&1 </dev/null &
	owned target
	: >"$work/target.out"
	await 20 is_open || not_ok redis "did not start" "$work/redis.out"
	in_background redis-benchmark -p $port -t set -n 100000000 -r 1000000 -d 100 -c 20
	sleep 1
	first_minute "redis under load"
	done_with
}

nginx=$(PATH=$PATH:/usr/sbin command -v nginx)
nginx_too() {
	port=$((port + 1))
	mkdir -p "$work/nginx/logs" "$work/nginx/html"
	head -c 20000 /dev/zero >"$work/nginx/html/index.html"
	cat >"$work/nginx/nginx.conf" <<END
daemon off; user root; worker_processes 1; pid $work/nginx/pid; error_log $work/nginx/error.log;
events { worker_connections 64; }
http { access_log off; gzip on; server { listen 127.0.0.1:$port; root $work/nginx/html; } }
END
	"$nginx" -p "$work/nginx" -c "$work/nginx/nginx.conf" >"$work/nginx.out" 2>&1 </dev/null &
	owned master
	await 20 is_open || not_ok nginx "did not start" "$work/nginx.out" "$work/nginx/error.log"
	target=$(pgrep -P $master | head -n 1)
	in_background python3 -c "
import http.client
while True:
    c = http.client.HTTPConnection('127.0.0.1', $port)
    for i in range(50):
        c.request('GET', '/index.html', headers={'Accept-Encoding': 'gzip'})
        c.getresponse().read()"
	sleep 1
	: >"$work/target.out"
	first_minute "an nginx worker"
	kill "$load" "$master" 2>/dev/null
	load=
	wait "$master" 2>/dev/null
}

pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
postgres_too() {
	as="setpriv --reuid postgres --regid postgres --clear-groups"
	port=$((port + 2))
	chmod 755 "$work"
	install -d -o postgres -g postgres -m 700 "$work/pg"
	$as "$pg/initdb" --no-sync -D "$work/pg/data" -A trust -U postgres >"$work/initdb.out" 2>&1 ||
		not_ok postgres "initdb" "$work/initdb.out"
	$as "$pg/postgres" -D "$work/pg/data" -k "$work/pg" -p $port -h '' >"$work/postgres.out" 2>&1 </dev/null &
	owned postmaster
	psql() { $as "$pg/psql" -q -h "$work/pg" -p $port -U postgres "$@"; }
	can_ask() { psql -c 'select 1' >/dev/null 2>&1; }
	await 20 can_ask || not_ok postgres "did not start" "$work/postgres.out"
	cat >"$work/work.sql" <<'END'
create temp table t as select i, md5(i::text) as v from generate_series(1, 20000) i;
select count(*), max(v) from (select a.v from t a join t b on a.i = b.i order by a.v desc) x;
drop table t;
select pg_sleep(0.1);
END
	chmod 644 "$work/work.sql"
	ask_on() { while :; do cat "$work/work.sql"; sleep 0.1; done | psql -f -; }
	in_background ask_on
	backend() { pgrep -P $postmaster -f 'postgres.*\[local\]' | head -n 1; }
	has_backend() { [ -n "$(backend)" ]; }
	await 20 has_backend
	sleep 1
	: >"$work/target.out"
	target=$(backend)
	first_minute "a postgres backend"
	target=$postmaster
	first_minute "its postmaster, with --follow" --follow
	pkill -P "$load"
	kill "$load" 2>/dev/null
	load=
	kill -INT "$postmaster"
	await 20 is_gone "$postmaster" || kill -9 "$postmaster"
	wait "$postmaster" 2>/dev/null
}
if [ -n "$pg" ] && have setpriv && id postgres >/dev/null 2>&1; then
	beside postgres_too # it takes longest
else
	skip "a postgres backend" "postgresql is not installed"
	skip "its postmaster, with --follow" "postgresql is not installed"
fi
have redis-server && have redis-benchmark && beside redis_too || skip "redis under load" "redis is not installed"
[ -n "$nginx" ] && beside nginx_too || skip "an nginx worker" "nginx is not installed"
E2E_BESIDE=2 together

# As many as eight of eleven; but what a hit costs is the machine's, and differs by half from one to another, and from
# day to day: who is at most half over the limit is known on a faster one. Six of eleven in any case.
target_cnt=$(grep -c target "$verdicts") known_cnt=$(grep -c known "$verdicts") near_cnt=$(grep -c near "$verdicts")
summary="$known_cnt of $target_cnt are known with defaults, $near_cnt are at most half over the limit"
[ $(((known_cnt + near_cnt) * 11)) -ge $((target_cnt * 8)) ] && [ $((known_cnt * 11)) -ge $((target_cnt * 6)) ] &&
	ok "$summary" || not_ok "defaults" "only $summary"
e2e_end

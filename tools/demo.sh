#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh - records a real program for some seconds and shows which code holds its memory: redis-server
# under a load of growing lists where it is installed, else python3. Leaves demo.pb.gz. Needs root.
# DEMO_SECONDS (6); DEMO_OUT names another file.
set -eu
cd "$(dirname "$0")/.."
seconds=${DEMO_SECONDS:-6}
out=${DEMO_OUT:-demo.pb.gz}
work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-demo-XXXXXX")
target=
load=

cleanup() {
	[ -z "$load" ] || kill "$load" 2>/dev/null || true
	[ -z "$target" ] || kill "$target" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

start_redis() {
	# A unix socket of its own: whatever else runs here is not touched.
	redis-server --port 0 --unixsocket "$work/redis" --dir "$work" --save '' --appendonly no \
		>"$work/log" 2>&1 &
	target=$!
	for _ in $(seq 100); do
		[ -S "$work/redis" ] && redis-cli -s "$work/redis" ping >/dev/null 2>&1 && break
		sleep 0.05
	done
	redis-cli -s "$work/redis" ping >/dev/null || { cat "$work/log" >&2; exit 1; }
	redis-benchmark -s "$work/redis" -q -l -n 100000 -r 1000000 -d 200 \
		-t set,lpush,hset,zadd >/dev/null 2>&1 &
	load=$!
}

start_python() {
	cat >"$work/demo.py" <<'PY'
import time

cache = {}

def handle(request):
    return {"id": request, "body": "x" * (request % 500)}

def remember(request):
    cache[request] = handle(request)  # never evicted: the leak

n = 0
while True:
    for _ in range(200):
        remember(n)
        handle(n)
        n += 1
    time.sleep(0.01)
PY
	PYTHONMALLOC=malloc python3 "$work/demo.py" &
	target=$!
	sleep 0.3
}

if command -v redis-server >/dev/null 2>&1 && command -v redis-cli >/dev/null 2>&1 &&
	command -v redis-benchmark >/dev/null 2>&1; then
	start_redis
elif command -v python3 >/dev/null 2>&1; then
	start_python
else
	echo "demo: neither redis-server nor python3 is installed" >&2
	exit 1
fi
# A server under full load: within the default limit its frees could not be tracked, and heap in use
# would be unknown.
echo "+ ./heaptap record --force --max-overhead off -p $target -d $seconds -o $out" >&2
./heaptap record --force --max-overhead off -p "$target" -d "$seconds" -o "$out"
echo "+ ./heaptap report $out --by function -n 15" >&2
./heaptap report "$out" --by function -n 15

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# demo.sh - records a real program for some seconds and shows which code holds its memory: redis-server
# under a load of growing lists where it is installed, else python3. Leaves demo.pb.gz. Needs root.
# DEMO_SECONDS (6); DEMO_OUT names another file.
#
#   tools/demo.sh picture     makes .github/page.png instead, the page of the process after DEMO_SECONDS (150) of serve
set -eu
cd "$(dirname "$0")/.."
what=${1:-record}
[ "$what" = picture ] && seconds=150 out=.github/page.png || seconds=6 out=demo.pb.gz
seconds=${DEMO_SECONDS:-$seconds}
out=${DEMO_OUT:-$out}
work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-demo-XXXXXX")
target=
load=
server=

cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ -z "$load" ] || kill "$load" 2>/dev/null || true
	[ -z "$target" ] || kill "$target" 2>/dev/null || true
	wait 2>/dev/null || true
	[ -z "${cgroup:-}" ] || rmdir "$cgroup" 2>/dev/null || true
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
# A control group of its own, with a limit that the page shows; where none can be made, the page has no limit.
cgroup=
limit_memory() {
	local root
	for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		mkdir "$root/redis" 2>/dev/null || continue
		cgroup=$root/redis
		{ echo 1G >"$cgroup/memory.limit_in_bytes" || echo 1G >"$cgroup/memory.max"; } 2>/dev/null || true
		echo "$target" >"$cgroup/cgroup.procs" && return
	done
}

take_picture() {
	local url browser
	limit_memory
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
		echo "demo: a picture needs chromium" >&2
		exit 1
	}
	./heaptap serve --tap . --past-interval 1s --listen 127.0.0.1:0 -p "$target" 2>"$work/serve.err" &
	server=$!
	for _ in $(seq 100); do
		url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$work/serve.err")
		[ -z "$url" ] || break
		sleep 0.1
	done
	[ -n "$url" ] || { cat "$work/serve.err" >&2; exit 1; }
	sleep "$seconds"
	"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" \
		--window-size=1200,1000 --virtual-time-budget=5000 --screenshot="$out" "$url/pid/$target/?live=0" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; exit 1; }
	ls -l "$out"
}

if [ "$what" = picture ]; then
	take_picture
	exit
fi
# A server under full load: within the default limit its frees could not be tracked, and heap in use
# would be unknown.
echo "+ ./heaptap record --force --max-overhead off -p $target -d $seconds -o $out" >&2
./heaptap record --force --max-overhead off -p "$target" -d "$seconds" -o "$out"
echo "+ ./heaptap report $out --by function -n 15" >&2
./heaptap report "$out" --by function -n 15

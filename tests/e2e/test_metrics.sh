#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# /metrics of a live server: to the byte by process, scope and thread pool; bounded; counters that
# never go back, over an exec too; what the kernel says of the target; formats; who has ended is gone.
. "$(dirname "$0")/lib.sh"
e2e_init metrics
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
build_c scope_grow "-I$e2e_top/include" || { not_ok build "scope_grow"; e2e_end; }

end_group() { rmdir "/sys/fs/cgroup/memory/heaptap-test-$$" "/sys/fs/cgroup/heaptap-test-$$" 2>/dev/null; }
trap 'e2e_cleanup; end_group' EXIT

. "$e2e_dir/serve_lib.sh"
serve_grow() {
	serve --listen 127.0.0.1:0 --rate 1 "$@"
	[ -n "$url" ] || e2e_end
}
# page FILE: one of a snapshot that was taken after this moment
page() {
	since=$EPOCHREALTIME
	await 20 is_fresh "$1" || not_ok page "none that is new" "$work/serve.err"
}
is_fresh() {
	local now=$EPOCHREALTIME
	get -f -o "$1" "$url/metrics" && awk -v since="$since" -v now="$now" \
		'/^heaptap_snapshot_age_seconds/ { ok = $2 < now - since } END { exit !ok }' "$1"
}
# compared NAME [--sums] SERIES_MAX PAGE [EARLIER]
compared() {
	local name=$1 sums=
	shift
	[ "$1" = --sums ] && sums=$1 && shift
	"$e2e_dir/metrics_compare.py" $sums "$2" "$work/target.out" "$target" "$1" ${3:-} >"$work/differences" 2>&1
	[ -s "$work/differences" ] && not_ok "$name" "differences" "$work/differences" "$work/serve.err" || ok "$name"
}
value() { awk -v begin="$2" 'index($0, begin) == 1 { print $NF; exit }' "$1"; }

# What the server says of a process and its scopes
scopes() {
	start "$bin/scope_grow" 4 || not_ok start "the target did not start" "$work/target.err"
	serve_grow --metrics-scopes 8 -p "$target"
	# It goes into a control group, which is looked at every few seconds, and shown further down.
	limit=67108864 group=
	if [ -d /sys/fs/cgroup/memory ] && mkdir "/sys/fs/cgroup/memory/heaptap-test-$$" 2>/dev/null; then
		group=/sys/fs/cgroup/memory/heaptap-test-$$
		echo $limit >"$group/memory.limit_in_bytes" 2>/dev/null
	elif grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null && mkdir "/sys/fs/cgroup/heaptap-test-$$" 2>/dev/null; then
		group=/sys/fs/cgroup/heaptap-test-$$
		echo $limit >"$group/memory.max" 2>/dev/null
	fi
	limited=
	[ -n "$group" ] && cat "$group"/memory.limit_in_bytes "$group"/memory.max 2>/dev/null | grep -qx $limit &&
		echo "$target" >"$group/cgroup.procs" 2>/dev/null && limited=1
	step "grow 3"
	page "$work/a"
	compared "a process, its 8 largest scopes and the rest" 8 "$work/a"
	step "churn 5000"
	step "grow 2"
	page "$work/b"
	compared "grown: no counter goes back" --sums 8 "$work/b" "$work/a"
	grep -q 'scope="App/s29",thread="scope_grow"' "$work/b" && grep -q 'scope="App/conn",thread="worker-\*"' "$work/b" &&
		ok "scopes and pools by name" || not_ok "scopes and pools by name" "missing" "$work/b"
	step free
	step "grow 1"
	page "$work/c"
	compared "shrunk: no counter goes back" --sums 8 "$work/c" "$work/b"
	step 'name a "b\'
	page "$work/d"
	compared "names that need escapes" --sums 8 "$work/d" "$work/c"

	# formats
	type_of() { get -o "$work/body" -w '%{content_type}' "$@" "$url/metrics"; }
	type=$(type_of)
	[ "$type" = "text/plain; version=0.0.4; charset=utf-8" ] && ! grep -q '^# EOF' "$work/body" &&
		ok "text for who names no format" || not_ok "text for who names no format" "$type" "$work/body"
	type=$(type_of -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5')
	[ "$type" = "application/openmetrics-text; version=1.0.0; charset=utf-8" ] && [ "$(tail -n 1 "$work/body")" = "# EOF" ] &&
		ok "OpenMetrics for who wants it" || not_ok "OpenMetrics for who wants it" "$type" "$work/body"

	# at once: one snapshot, whose time is on the page
	for i in 1 2 3 4 5 6; do get -f -o "$work/same$i" "$url/metrics" & scrapes="${scrapes:-} $!"; done
	wait $scrapes
	shared=$(grep -h '^heaptap_snapshot_seconds' "$work"/same? | sort | uniq -c | awk '$1 > n { n = $1 } END { print n }')
	[ "${shared:-0}" -ge 3 ] && ok "scrapes at once share a snapshot" || not_ok "scrapes at once share a snapshot" "$shared of 6"

	# what the kernel says
	rss=$(value "$work/d" "heaptap_target_resident_bytes{pid=\"$target\"")
	really=$(awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$target/status")
	[ "${rss:-0}" -gt $((really / 2)) ] && [ "$rss" -lt $((really * 2)) ] && ok "resident" || not_ok "resident" "$rss, not about $really"
	has_pss() { get "$url/metrics" >"$work/pss" && [ -n "$(value "$work/pss" "heaptap_target_proportional_bytes{pid=\"$target\"")" ]; }
	await 10 has_pss && [ "$(value "$work/pss" "heaptap_target_proportional_bytes{pid=\"$target\"")" -le $((rss * 2)) ] &&
		ok "proportional set size" || not_ok "proportional set size" "none within 10 s, or too much" "$work/pss"
	if [ -n "$limited" ]; then
		is_limited() {
			get "$url/metrics" >"$work/limit"
			[ "$(value "$work/limit" "heaptap_target_cgroup_limit_bytes{pid=\"$target\"")" = $limit ]
		}
		await 20 is_limited && [ "$(value "$work/limit" "heaptap_target_cgroup_usage_bytes{pid=\"$target\"")" -lt $limit ] &&
			ok "limit and usage of the control group" || not_ok "limit and usage of the control group" "not $limit" "$work/limit"
	else
		skip "limit and usage of the control group" "no memory controller that can be written"
	fi

	# heaptap itself
	entries=$(value "$work/d" 'heaptap_map_entries{map="live"}')
	objects=$(value "$work/d" "heaptap_inuse_objects{pid=\"$target\"")
	[ "$entries" = "$objects" ] && ok "entries of the live map: $entries" || not_ok "entries of the live map" "$entries, not $objects"
	[ "$(value "$work/d" 'heaptap_map_capacity{map="live"}')" = 1000000 ] && ok "its capacity" || not_ok "its capacity" "not that of --max-live" "$work/d"
	stacks=$(value "$work/d" 'heaptap_map_entries{map="stacks"}')
	[ "${stacks:-0}" -ge 3 ] && [ "$stacks" -lt 200 ] && ok "call stacks: $stacks" || not_ok "call stacks" "$stacks"
	shown=$(awk '/^heaptap_open_fds/ { n += $NF } END { print n }' "$work/d")
	really=$(ls "/proc/$server/fd" | wc -l)
	[ $((shown - really)) -le 4 ] && [ $((really - shown)) -le 4 ] && ok "descriptors: $shown" || not_ok "descriptors" "$shown, not about $really"

	# another program in the process: its series go on
	tell exec
	again() { [ "$(grep -c ^READY "$work/target.out")" = 2 ]; }
	await 20 again || not_ok exec "not done" "$work/target.out"
	fresh() { get "$url/metrics" >"$work/fresh" && [ "$(value "$work/fresh" "heaptap_inuse_bytes{pid=\"$target\"")" = 0 ]; }
	await 10 fresh || not_ok exec "what was before is shown" "$work/fresh"
	sleep 1
	step "grow 1"
	page "$work/e"
	compared "after exec: what the new program holds, and no counter goes back" --sums 8 "$work/e" "$work/d"

	kill_target
	ended() { ! get "$url/metrics" | grep -q "pid=\"$target\""; }
	await 5 ended && ok "who has ended has no series" || not_ok "who has ended has no series" "still there after 5 s"
	end_server "--metrics-scopes 8"
}

no_scopes() {
	start "$bin/scope_grow" 2
	serve_grow --metrics-scopes 0 -p "$target"
	step "grow 1"
	page "$work/none"
	compared "--metrics-scopes 0: the process" 0 "$work/none"
	grep -q '^heaptap_scope_' "$work/none" && not_ok "--metrics-scopes 0: no series of scopes" "some" "$work/none" ||
		ok "--metrics-scopes 0: no series of scopes"
	end_server "--metrics-scopes 0"
	kill_target
}

# Names that look alike on the page are one series: two of the same labels are an error to a reader.
odd_names() {
	start python3 -c '
import ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def work(name):
    libc.prctl(15, name, 0, 0, 0)
    for _ in range(20):
        libc.malloc(5000)
print("READY", flush=True)
sys.stdin.readline()
for name in b"io\x01a", b"io\x02a", b"io?a":
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
print("DONE", flush=True)
sys.stdin.readline()' || not_ok start "the target did not start" "$work/target.err"
	serve_grow --metrics-scopes 100 -p "$target"
	tell go
	await 20 is_done || not_ok "threads with odd names" "not done" "$work/target.err"
	page "$work/odd"
	bytes=$(awk '/^heaptap_scope_inuse_bytes.*thread="io[?]a"/ { print $NF }' "$work/odd")
	twice=$(sed -n 's/^\([^#].*\) [^ ]*$/\1/p' "$work/odd" | sort | uniq -d)
	[ "${bytes:-0}" -ge 300000 ] 2>/dev/null && [ -z "$twice" ] && ok "threads with odd names: one series" ||
		not_ok "threads with odd names: one series" "'$bytes' bytes; twice: $twice" "$work/odd"
	end_server "threads with odd names"
	kill_target
}

for bad in -1 1001 x ''; do
	timeout 10 "$heaptap" serve --metrics-scopes "$bad" --comm nobody >"$work/out" 2>&1
	[ $? = 2 ] && grep -q -- "--metrics-scopes" "$work/out" || not_ok "--metrics-scopes '$bad'" "not refused" "$work/out"
done
ok "bad values are refused"

others() {
	no_scopes
	odd_names
}
beside apart scopes
beside apart others
together
e2e_end

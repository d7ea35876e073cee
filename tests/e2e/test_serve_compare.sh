#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_serve_compare.sh - heaptap serve compares two processes: as they are now, and with the saved profile of one that has
# ended; both are named, and lead back. And the index of 100 processes is there at once.
. "$(dirname "$0")/lib.sh"
e2e_init serve_compare
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
. "$e2e_dir/serve_lib.sh"
sharing=own
build_c grows || { not_ok build "workload"; e2e_end; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
screens() { timeout 200 python3 "$e2e_dir/browser.py" "$browser" "$work/chromium" "$url$2" "$e2e_dir/$1" "${@:3}" >"$work/said" 2>"$work/log"; }

begin old "$bin/grows"
begin new "$bin/grows"
old=${pid_of[old]} new=${pid_of[new]}
serve --listen 127.0.0.1:0 --rate 1 --max-overhead off --past-interval 1s -p "$old" -p "$new"
tell_to old "up 100 10007"
tell_to new "up 209 10034"
# told NAME QUERY EXPRESSION: of the difference d, and its rows by function
told() {
	get -f -o "$work/json" "$url/pid/$new/diff?$2&format=json" 2>"$work/err" && python3 -c "
import json
d = json.load(open('$work/json'))
rows = {r['name'].split(' < ')[0]: (r['inuse_bytes_before'], r['inuse_bytes_after']) for r in d['rows']}
assert $3, d" >"$work/told" 2>&1
}
held=1000700 more=2097106
is_told() { told now "from_pid=$old" "rows['site_up'] == ($held, $more)"; }
await 20 is_told && ok "two processes, now" || not_ok "two processes, now" "not so" "$work/err" "$work/told"
told names "from_pid=$old" "d['before'] == 'grows (PID $old), now' and d['after'] == 'grows (PID $new), now'" && ok "their names" ||
	not_ok "their names" "not so" "$work/told"
get -f -o "$work/page" "$url/pid/$new/diff?from_pid=$old"
grep -q "^A: grows (PID $old), now → B: grows (PID $new), now – heaptap$" "$work/page" && grep -q "href=\"./\">grows (PID $new)</a>, <a href=\"../$old/\">grows (PID $old)</a>" "$work/page" &&
	ok "a page with both names and ways back" || not_ok "a page with both names" "not so" "$work/page"
get -f -o "$work/json" "$url/pid/$new/api" && grep -q "\"others\":\[{\"pid\":$old,\"name\":\"grows\"}\]" "$work/json" && ok "what it can be compared with" ||
	not_ok "what it can be compared with" "not so" "$work/json"
answers 404 "$url/pid/$new/diff?from_pid=1"
answers 400 "$url/pid/$new/diff?from_pid=$new"
answers 400 "$url/pid/$new/diff?from_pid=x"
answers 404 "$url/pid/$new/diff?from_pid=$old&from=2020-01-01T00:00:00Z"
grep -q "no moment of process $old is stored near that time" "$top/body" && ok "of which process: said" || not_ok "of which process" "not said" "$top/body"
has_two_moments() { get -f "$url/pid/$new/api" | grep -q '"moments":\[[0-9]*,[0-9]'; }
if [ -n "$browser" ] && await 20 has_two_moments; then
	screens page_compare.js "/pid/$new/?live=0" 1400x900:light
	grep -q "with grows (PID $old): A: grows (PID $old), now, B: grows (PID $new), [0-9].* 977 KiB → 2.00 MiB.*site_up.* picture diff?from_pid=$old&to=20.*Z #from=%40$old&to=[0-9]*$" "$work/said" &&
		ok "chosen on the page" || not_ok "chosen on the page" "not so" "$work/said" "$work/log"
fi
if [ -n "$browser" ]; then
	screens page_pick.js "/?live=0#by=none&sort=name" 1400x900:light
	grep -qE "light Compare=false Compare=false / Compare=true with ([0-9]+)=pid/[0-9]+/diff\?from_pid=\\1 / Compare=false Compare=false$" "$work/said" &&
		ok "chosen on the index" || not_ok "chosen on the index" "not so" "$work/said" "$work/log"
fi
has_peak() { told peak "from_pid=$old&from=peak" "rows['site_up'] == ($held, $more)"; }
await 20 has_peak || not_ok "a saved profile of the other" "there is none" "$work/err" "$work/told"
end_process old
is_forgotten() { [ "$(get -o /dev/null -w '%{http_code}' "$url/pid/$new/diff?from_pid=$old")" = 404 ]; }
await 10 is_forgotten || not_ok "the other has ended" "it is still there"
told ended "from_pid=$old&from=peak&to=now" "rows['site_up'] == ($held, $more) and d['before'] == 'grows (PID $old), peak'" &&
	ok "with one that has ended" || not_ok "with one that has ended" "not so" "$work/err" "$work/told"
end_server "compare"

# 100 processes: the first paint of the index.
if [ -n "$browser" ]; then
	cp /bin/sleep "$work/napper"
	for i in {1..100}; do
		"$work/napper" 600 &
		owned
	done
	sharing=
	serve --listen 127.0.0.1:0 --comm '^napper$'
	has_100() { [ "$(metric heaptap_probed_processes)" = 100 ]; }
	await 30 has_100 || not_ok "100 processes" "$(metric heaptap_probed_processes) are followed" "$top/serve.err"
	bytes=$(get "$url/" | wc -c)
	is_whole && limit_ms=300 || limit_ms=1000 # beside other tests
	is_fast() {
		screens page_checks.js "/#by=none" 1400x900:light
		painted=$(sed -n 's/.* painted after \([0-9]*\) ms$/\1/p' "$work/said")
		[ "${painted:-9999}" -lt $limit_ms ]
	}
	await 60 is_fast && [ "$bytes" -lt 200000 ] && ok "100 processes: painted after $painted ms, $bytes bytes" ||
		not_ok "100 processes" "painted after $painted ms, $bytes bytes" "$work/said" "$work/log"
	end_server "100 processes"
fi
e2e_end

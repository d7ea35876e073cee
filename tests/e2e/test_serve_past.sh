#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_serve_past.sh - what heaptap serve knows of the past of stacks: of a server that leaks 100 KiB/s beside a cache and
# requests, the stack that leaks is named, the others are not; what changed between two moments; moments that are not
# there. Moments are a second apart here, ten seconds otherwise.
. "$(dirname "$0")/lib.sh"
e2e_init serve_past
have python3 || skip_all "python3 is not installed"
have curl || skip_all "curl is not installed"
. "$e2e_dir/serve_lib.sh"
sharing=own
build_cxx leaky_server && build_c grows || { not_ok build "workloads"; e2e_end; }

begin leaky "$bin/leaky_server" leak 100
begin grows "$bin/grows"
pid=${pid_of[leaky]} other=${pid_of[grows]}
serve --listen 127.0.0.1:0 --rate 1k --max-overhead off --past-interval 1s -p "$pid" -p "$other"
page="$url/pid/$pid"
# of the process that holds nothing there are no stacks, and all the same a past
answers 400 "$page/diff?from=yesterday"
answers 400 "$page/diff?from=2026-02-30T00:00:00Z"
answers 400 "$page/diff?to=2026-01-01T00:00:00Z"
answers 400 "$page/diff?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z"
answers 400 "$page/diff?from=2026-01-01T00:00:00Z&at=peak"
answers 400 "$page/growth?of=week"
answers 404 "$url/pid/1/diff?from=2026-01-01T00:00:00Z"

# holds EXPRESSION: of the JSON d in $top/out; of(NAME): rows that have it, with these values
holds() {
	python3 -c "
import json
d = json.load(open('$top/out'))
def of(name, **keys):
    return [r for r in d['rows'] if name in str(r.get('frames', '')) + r['name'] and all(r[k] == v for k, v in keys.items())]
assert $1, d['rows']" >"$top/told" 2>&1
}
told() { # NAME EXPRESSION
	holds "$2" && ok "$1" || not_ok "$1" "$2" "$top/told"
}
# Moments are a second apart: to ask more often than twice in one takes more of a processor than all the rest.
leak_is_named() {
	sleep 0.5
	get -f -o "$top/out" "$page/growth" 2>/dev/null && python3 -c "
import json, sys
rows = json.load(open('$top/out'))['rows']
sys.exit(not any(r['growth'] == 'grows' and r['inuse_bytes'] > 200000 for r in rows))" 2>/dev/null
}
await 40 leak_is_named || not_ok "something grows" "nothing does" "$top/out" "$top/serve.err"
told "the stack that leaks grows, at its pace" \
	"any(80000 < r['growth_bytes_per_s_high'] and r['growth_bytes_per_s_low'] < 130000 for r in of('remember', growth='grows'))"
# by chance one row in forty is said to grow, and a moment later it is not
others_do_not_grow() {
	get -f -o "$top/out" "$page/growth" &&
		holds "of('handle') and of('Cache::put') and not of('Cache::put', growth='grows') and not of('handle', growth='grows')"
}
await 15 others_do_not_grow && ok "cache and requests do not" || not_ok "cache and requests do not" "they do" "$top/told"
get -f -o "$top/out" "$page/growth?of=day&by=scope" && told "of a day, by scope" "len(d['rows']) == 1" ||
	not_ok "of a day, by scope" "no answer"

answers 200 "$page/?live=0"
cp "$top/body" "$work/page"
grep -q "script-src 'self'.*form-action 'self'" "$top/head" && ! grep -q '<script>' "$work/page" && ok "the page: no script in it, and a form" ||
	not_ok "the page: no script in it, and a form" "not so" "$top/head"
# on a busy machine a page may come without: its stacks took too long
page_says_what_grows() {
	grep -q '<td><b>grows</b>.*Store::remember leaky_server.cc:' "$work/page" && grep -q '^<tr[ >].*Requests::handle' "$work/page" ||
		{ get -o "$work/page" "$page/?live=0" && false; }
}
await 20 page_says_what_grows && ok "the page: what grows" ||
	not_ok "the page: what grows" "not so" "$work/page"
grep -q '<select name="from">$' "$work/page" && grep -q '<option value="20..-..-..T..:..:..Z">20.* UTC, [0-9]* s ago' "$work/page" && ok "moments to choose from" ||
	not_ok "moments to choose from" "there are none" "$work/page"
answers 200 "$page/"
grep -q 'href="?live=0#moments"' "$top/body" && ! grep -q '<select' "$top/body" && ok "none on a page that is fetched again" ||
	not_ok "none on a page that is fetched again" "not so" "$top/body"

# a busy machine is not sure of it at once
report_says_what_grows() {
	timeout 60 "$heaptap" report --sort growth "$url/debug/pprof/heap?pid=$pid" >"$top/text" 2>"$top/err"
	grep -q ' grows  .*remember' "$top/text" || { sleep 1 && false; }
}
await 60 report_says_what_grows && ok "report --sort growth of a served profile" ||
	not_ok "report --sort growth of a served profile" "not so" "$top/text" "$top/err"

# An old and the newest moment that can be chosen. At the first ones cache and requests had not been seen whole.
from=$(sed -nE 's/^<option value="([^"]*)".*/\1/p' "$work/page" | tail -n 4 | head -n 1)
to=$(sed -nE 's/^<option value="([^"]*)".*/\1/p' "$work/page" | head -n 1)
answers 200 "$page/diff?from=$from&to=$to&format=json"
cp "$top/body" "$top/out"
told "what changed is the leak" "d['rows'][0]['name'].find('remember') >= 0 and d['rows'][0]['is_significant'] and d['before'] < d['after']"
told "by as much as it leaks" "(lambda t: d['rows'][0]['inuse_bytes_delta_high'] > 0.8 * t and d['rows'][0]['inuse_bytes_delta_low'] < 1.2 * t)(
    102400 * (__import__('datetime').datetime.fromisoformat(d['after'][:-1]) - __import__('datetime').datetime.fromisoformat(d['before'][:-1])).total_seconds())"
told "and little else" "all(abs(r['inuse_bytes_delta']) < 0.2 * d['rows'][0]['inuse_bytes_delta'] for r in d['rows'][1:])"
answers 200 "$page/diff?from=$from"
grep -q "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'" <(tr 'A-Z' 'a-z' <"$top/head") &&
	grep -q '<script src="../../viewer.js"></script>' "$top/body" && grep -q '^ *+.*Store::remember' "$top/body" && ok "as pictures, and as text without a script" ||
	not_ok "as pictures" "not so" "$top/head" "$top/body"
answers 404 "$page/diff?from=9999-12-31T23:59:59Z"
answers 404 "$page/diff?from=2020-01-01T00:00:00Z"
grep -q "is stored near that time, only from 20.*/pid/$pid/?live=0 lists them" "$top/body" && ok "which moments there are" || not_ok "which moments" "not said" "$top/body"
answers 400 "$page/diff?from=$(date -u -d "30 seconds" +%FT%TZ)"

answers 200 "$url/pid/$other/?live=0"
grep -q '<h2>What grows' "$top/body" && not_ok "nothing grows of nothing" "but it says so" "$top/body" || ok "of what holds nothing there is no table"
kill -USR1 "$server" # takes the probes out
is_unknown() { get "$page/" | grep -q 'No changes by stack: heap in use is unknown'; }
await 10 is_unknown && ok "while in use is not known: that is said" || not_ok "while in use is not known" "not said"
answers 404 "$page/diff?from=$from"
kill -USR2 "$server"
end_process leaky
is_forgotten() { [ "$(get -o /dev/null -w '%{http_code}' "$page/diff?from=$from")" = 404 ]; }
await 10 is_forgotten && ok "a process that has gone" || not_ok "a process that has gone" "is still there"
end_server "with a past"

serve --listen 127.0.0.1:0 --past-interval 0 -p "$other"
answers 200 "$url/pid/$other/"
grep -q 'with --past-interval 0 nothing is stored' "$top/body" && ok "without a past: that is said" || not_ok "without a past" "not said" "$top/body"
answers 404 "$url/pid/$other/diff?from=$from"
answers 404 "$url/pid/$other/growth"
end_server "without a past"
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_serve_pages.sh - the pages of heaptap serve in a real browser, of a process whose names mean ill: what runs are the
# server's files and nothing else, names are text, and without a script there are tables all the same. On narrow and wide
# screens, dark and light, nothing overflows, all can be read and reached, and a refresh moves nothing.
. "$(dirname "$0")/lib.sh"
e2e_init serve_pages
. "$e2e_dir/serve_lib.sh"
have curl && have python3 || skip_all "curl or python3 is not installed"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip_all "no chromium"

# The file, the process, the thread, the scope and the function: each is markup.
cat >"$work/evil.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <heaptap/scope.h>
void evil(void) __asm__("\"<img/src=x/onerror=alert(3)>\"");
static void *volatile block;
__attribute__((noinline)) void evil(void)
{
	HEAPTAP_SCOPE("<script>alert(2)</script>");
	block = malloc(1000003);
	__asm__ volatile("");
}
int main(void)
{
	char line[8];
	pthread_setname_np(pthread_self(), "</td><script>");
	if (write(1, "READY\n", 6) != 6)
		return 1;
	while (read(0, line, 1) == 1 && *line != 'e')
		if (*line == 'g') {
			evil();
			if (write(1, "DONE\n", 5) != 5)
				return 1;
		}
	return 0;
}
END
mkdir -p "$work/<b>"
evil="$work/<b>/<i onload=1>"
gcc -O1 -g -fno-builtin -D_GNU_SOURCE -I"$e2e_top/include" -pthread -o "$evil" "$work/evil.c" 2>"$work/log" ||
	{ not_ok build "the process with evil names" "$work/log"; e2e_end; }

secret=asecretoftwentyletters
printf '%s\n' "$secret" >"$work/token"
chmod 600 "$work/token"
begin evil "$evil"
pid=${pid_of[evil]}
serve --rate 1 --max-overhead off --past-interval 1s -p "$pid" --listen 127.0.0.1:0 --token-file "$work/token"
has_metric() { get -H "Authorization: Bearer $secret" "$url/metrics" | grep -q "$1"; }
await 10 has_metric '^heaptap_probed_processes.* 1$' || not_ok "it is probed" "it is not" "$top/serve.err"
tell_to evil g
await 10 has_metric '^heaptap_inuse_bytes.* 1000003$' || not_ok "it holds what it says" "it does not" "$top/evil/target.out"

for page in / /api /page.css /page.js /index.js /process.js "/pid/$pid/" "/pid/$pid/api" "/pid/$pid/viewer" /viewer.js /viewer.css "/pid/$pid/diff?at=peak"; do
	answers 401 "$url$page"
	[ "$page" = "/pid/$pid/diff?at=peak" ] || answers 200 -H "Authorization: Bearer $secret" "$url$page"
	case $page in *viewer) cp "$top/body" "$work/viewer.html" ;; */) cp "$top/body" "$work/page.html" && cp "$top/head" "$work/page.head" ;; esac
done
answers 404 -H "Authorization: Bearer $secret" "$url/pid/1/"
answers 400 -H "Authorization: Bearer $secret" "$url/pid/$pid/diff"
answers 200 -H "Authorization: Bearer $secret" -I "$url/pid/$pid/viewer"
grep -qi "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'" "$top/head" && ok "the viewer's policy: no script within the page" ||
	not_ok "the viewer's policy" "not so" "$top/head"
grep -qi "^content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; .*form-action 'self'" "$work/page.head" &&
	! grep -qE '<style|<script>|<script src="(\.\./\.\./)?[^p./]' "$work/page.html" && [ "$(grep -c '<script' "$work/page.html")" = 3 ] && ok "a page's policy: its own files only" ||
	not_ok "a page's policy" "not so" "$work/page.head" "$work/page.html"
[ "$(grep -c '<script' "$work/viewer.html")" = 2 ] && grep -q '<script src="../../viewer.js"></script>' "$work/viewer.html" &&
	grep -q '<script type="application/json"' "$work/viewer.html" && ! grep -q '<style' "$work/viewer.html" &&
	ok "data and a link, nothing that runs" || not_ok "data and a link, nothing that runs" "not so" "$work/viewer.html"

# screens SCRIPT PATH SCREEN...: what the script says there, in $work/said. One browser looks at all.
mkfifo "$work/browser.in" "$work/browser.out"
python3 "$e2e_dir/browser.py" "$browser" "$work/chromium" <"$work/browser.in" >"$work/browser.out" 2>"$work/browser.err" &
owned
exec {ask}>"$work/browser.in" {answer}<"$work/browser.out"
screens() {
	local end
	printf '%s\t' "$work/said" "${url/http:\/\//http://x:$secret@}$2" "$1" "${@:3}" | sed 's/\t$/\n/' >&"$ask"
	read -rt 200 -u "$answer" end || : >"$work/said"
	cp "$work/browser.err" "$work/log"
}
echo 'new Promise((done) => setTimeout(() => done(document.documentElement.outerHTML), 500))' >"$work/dom.js"
# dom PATH: as the browser has it half a second after it is loaded, in $work/dom; the console in $work/log
dom() {
	screens "$work/dom.js" "$1" 1200x900:light
	sed -n 's/^1200x900:light //p' "$work/said" >"$work/dom"
	grep '^console ' "$work/said" >>"$work/log"
}
# seen NAME PATTERN...: each is in the page, and no markup of the names is
seen() {
	local name=$1 pattern
	shift
	for pattern; do
		grep -qE -- "$pattern" "$work/dom" || { not_ok "$name" "not there: $pattern" "$work/dom" "$work/log"; return; }
	done
	sed -E 's/ (title|aria-label|content)="[^"]*"//g' "$work/dom" | grep -qE '<img|<i onload|<script>|<b>/' && { not_ok "$name" "a name is markup" "$work/dom"; return; }
	grep -qE 'alert|Refused|Content Security Policy' "$work/log" && { not_ok "$name" "the browser refused something" "$work/log"; return; }
	ok "$name"
}
dom /
seen "the index" "href=\"pid/$pid/\">&lt;/td&gt;&lt;script&gt;</a>" '>977 KiB</td>' '&lt;b&gt;/&lt;i onload=1&gt;' 'href="pid/[0-9]*/viewer"' 'Auto-refresh 10 s.*>Pause<'
await 20 has_metric '^heaptap_resident_bytes{.*kind="files"} [1-9]' || not_ok "its resident memory by row" "is not read" "$top/serve.err"
dom "/pid/$pid/"
seen "a process" '<section id="rows"><h2>Resident memory<small>[0-9.]+ [KM]iB, read [0-9]+ s ago' '<i></i>file pages \(page cache\)</span>' "<h1>&lt;/td&gt;&lt;script&gt;</h1>" '<b>977 KiB</b>' '&lt;script&gt;alert\(2\)&lt;\\/script&gt;' '&lt;b&gt;/&lt;i onload=1&gt;' 'Probe cost'
dom "/pid/$pid/?live=0"
seen "a process, held still" '<h1>' 'class="paused"><span>Paused</span><button[^>]*>Resume<'
get -H "Authorization: Bearer $secret" "$url/pid/$pid/" | sed -n '/<noscript>$/,/<.noscript>/p' >"$work/plain"
grep -q 'In use: <b>977 KiB</b>' "$work/plain" && ! grep -qE '<img|<script' "$work/plain" && ok "a process without a script" || not_ok "a process without a script" "not there" "$work/plain"
get -H "Authorization: Bearer $secret" "$url/" | sed -n '/<noscript>$/,/<.noscript>/p' >"$work/plain"
grep -q "<tr><td>$pid<td>.*<td>977 KiB" "$work/plain" && ! grep -qE '<img|<script' "$work/plain" && ok "the index without a script" || not_ok "the index without a script" "not there" "$work/plain"
dom "/pid/$pid/viewer"
seen "the viewer draws" '<canvas id="picture"[^>]*style="height: [1-9][0-9]+px' '<pre id="plain" hidden="">' \
	'<b>all</b> in use: 977 KiB' 'img/src=x'
dom "/viewer#g=scope"
seen "of all, another view by its address" '<canvas id="picture"[^>]*style="height' 'in use: 977 KiB'
dom "/pid/$pid/viewer?seconds=1"
seen "what is allocated meanwhile" 'is_known|nothing to draw'
is_saved() { get -f -o "$work/dom" -H "Authorization: Bearer $secret" "$url/pid/$pid/viewer?at=peak" 2>"$work/log"; }
await 15 is_saved || not_ok "the saved peak" "there is none" "$work/log" "$top/serve.err"
dom "/pid/$pid/viewer?at=peak"
seen "the pictures of a saved profile" '<canvas id="picture"[^>]*style="height' 'in use: 977 KiB'
# It is asked at once; on a busy machine the peak may be what it holds then all the same.
tell_to evil g
did_twice() { [ "$(grep -c ^DONE "$top/evil/target.out")" = 2 ]; }
await 10 did_twice || not_ok "it allocates more" "it does not" "$top/evil/target.out"
get -H "Authorization: Bearer $secret" "$url/pid/$pid/diff?at=peak&format=text" >"$work/dom"
grep -q '^peak -> now$' "$work/dom" && grep -qE '977 KiB -> 1.91 MiB: \+977 KiB|1.91 MiB -> 1.91 MiB: 0 B' "$work/dom" && ok "what changed since the peak" ||
	not_ok "what changed since the peak" "not so" "$work/dom"
await 10 has_metric '^heaptap_inuse_bytes.* 2000006$' || not_ok "it holds more" "it does not"
get -H "Authorization: Bearer $secret" "$url/pid/$pid/viewer" >"$work/dom"
sed -n '/<pre id="plain">/,/<\/pre>/p' "$work/dom" >"$work/plain"
grep -q '1.91 MiB' "$work/plain" && grep -q '&lt;' "$work/plain" && ! grep -qE '<img|<script' "$work/plain" && ok "without a script: the report as text" ||
	not_ok "without a script" "not there" "$work/plain"
# What grows and what changed, of these names. The first moment is from before it held anything.
has_stacks() {
	dom "/pid/$pid/?live=0"
	grep -q '>1.91 MiB.*img/src=x' "$work/dom"
}
await 10 has_stacks
seen "a process with its stacks" '>1.91 MiB.*img/src=x' '<form action="diff" method="get"' '<option value="20' 'What grows, by scope' \
	'&lt;script&gt;alert\(2\)'
from=$(sed -nE 's/.*<option value="([^"]*)".*/\1/p' "$work/dom" | tail -n 1)
dom "/pid/$pid/diff?from=$from"
seen "two moments, as a picture" 'id="back" href="[^"]*">&lt;/td&gt;&lt;script&gt; \(PID' '<option value="1">A: ' '<canvas id="picture"[^>]*style="height' '1.91 MiB' 'img/src=x' '<title>' 'Red grew'
dom "/pid/$pid/diff?at=peak"
seen "what changed since the peak, as a picture" 'id="back" href=' '<option value="0">difference' '<canvas id="picture"[^>]*style="height'
# a moment and a saved profile, either way round: of what was held first, and of 2000006 bytes
total_of() { # FROM TO
	get -f -H "Authorization: Bearer $secret" "$url/pid/$pid/diff?from=$1&to=$2&format=json" >"$work/json" && python3 -c "
import json
d = json.load(open('$work/json'))
print(d['before'], d['after'], d['total']['inuse_bytes_before'] or 0, d['total']['inuse_bytes_after'] or 0)"
}
peak_is_new() { [[ $(total_of "$from" peak) =~ ^20[^\ ]*Z\ peak\ (0|1000003)\ 2000006$ ]]; }
await 20 peak_is_new && ok "from a moment to the saved peak" || not_ok "from a moment to the saved peak" "not so" "$work/json"
[[ $(total_of peak "$from") =~ ^peak\ 20[^\ ]*Z\ 2000006\ (0|1000003)$ ]] && ok "from the saved peak to a moment" || not_ok "from the saved peak to a moment" "not so" "$work/json"
[ "$(total_of peak peak)" = "peak peak 2000006 2000006" ] && [ "$(total_of peak now)" = "peak now 2000006 2000006" ] && ok "two saved profiles; until now" ||
	not_ok "two saved profiles; until now" "not so" "$work/json"
answers 404 -H "Authorization: Bearer $secret" "$url/pid/$pid/diff?from=$from&to=last"
# refuses STATUS QUERY WORDS: what the answer says
refuses() {
	answers "$1" -H "Authorization: Bearer $secret" "$url/pid/$pid/diff?$2"
	get -H "Authorization: Bearer $secret" "$url/pid/$pid/diff?$2" >"$work/body"
	grep -qE -- "$3" "$work/body" && ok "says why: $2" || not_ok "says why: $2" "no '$3'" "$work/body"
}
refuses 404 "from=peak&to=limit" "process $pid has no saved profile at=limit"
for time in 2020-01-01T00:00:00Z 1960-01-01T00:00:00Z 2999-12-31T23:59:59Z; do
	refuses 404 "from=$time" "no moment of process [0-9]+ is stored near that time, only from 20[0-9TZ:-]+ to 20[0-9TZ:-]+"
	refuses 404 "from=peak&to=$time" "no moment of process [0-9]+ is stored near that time, only from 20[0-9TZ:-]+ to 20[0-9TZ:-]+"
done
refuses 400 "from=2026-02-30T00:00:00Z" "bad from: expected a time in UTC"
# leads NAME TO: /pid/N and the like are their pages without the slash
leads() {
	local head
	head=$(get -o "$work/body" -D - -H "Authorization: Bearer $secret" "$url$1" | tr -d '\r')
	grep -q '^HTTP/1.1 301' <<<"$head" && grep -qxF "Location: $2" <<<"$head" && ok "leads on: ${1//$pid/N}" ||
		not_ok "leads on: ${1//$pid/N}" "$head" "$work/body"
	get -f -L -o "$work/body" -H "Authorization: Bearer $secret" "$url$1" && ok "and there it is: ${1//$pid/N}" ||
		not_ok "and there it is: ${1//$pid/N}" "no" "$work/body"
}
leads "/pid/$pid" "$pid/"
leads "/pid/$pid?live=0" "$pid/?live=0"
leads "/pid/$pid/debug/pprof" pprof/
leads /debug/pprof pprof/
answers 404 -H "Authorization: Bearer $secret" "$url/pid"

# holds_on PATH SCREEN...: no fault on any of them
holds_on() {
	screens "$e2e_dir/page_checks.js" "$@"
	[ "$(grep -c ' checked ' "$work/said")" = $(($# - 1)) ] && ! grep -qv ' checked ' "$work/said" && ok "on $(($# - 1)) screens: ${1//$pid/N}" ||
		not_ok "on $(($# - 1)) screens: ${1//$pid/N}" "faults" "$work/said" "$work/log"
}
holds_on / 400x900:light 1000x900:dark 1600x900:light
holds_on "/pid/$pid/" 400x900:dark 1000x900:light 1600x900:dark
holds_on "/pid/$pid/viewer" 400x900:light 1600x900:dark
# prints PATH PATTERN...: on paper nothing is cut or dark, and each is in the text of what a printer gets
prints() {
	local name="on paper: ${1//$pid/N}" pattern
	: >"$work/paper"
	screens "$e2e_dir/page_print.js" "$1" 740x1000:print
	[ "$(cat "$work/said")" = "740x1000:print printed" ] && pdftotext -layout "$work/chromium/print.pdf" "$work/paper" 2>"$work/log" ||
		{ not_ok "$name" "faults" "$work/said" "$work/log"; return; }
	for pattern in "${@:2}"; do
		grep -qE -- "$pattern" "$work/paper" || { not_ok "$name" "not there: $pattern" "$work/paper"; return; }
	done
	ok "$name"
}
if have pdftotext; then
	prints / 'In use' '1\.91 MiB'
	prints "/pid/$pid/" 'Memory over time' 'What grows, by scope' '1\.91 MiB.*alert'
	prints "/pid/$pid/viewer" 'own code' 'itself .*with callees .*function' '1\.91 MiB .*img/src=x'
	[ -s "$work/paper" ] && ! grep -qE 'Auto-refresh|Reset zoom' "$work/paper" && ok "on paper: no controls" || not_ok "on paper: no controls" "" "$work/paper"
else
	skip "on paper" "no pdftotext"
fi
# a span of the chart, which begins with its second point
drag_shows() {
	screens "$e2e_dir/page_drag.js" "/pid/$pid/?live=0" 1000x900:light && grep -q ' changed .*img/src=x.* #from=[0-9]*&to=[0-9]*$' "$work/said"
}
await 60 drag_shows && ok "a span of the chart: what changed in it, by stack" || not_ok "a span of the chart" "does not show it" "$work/said" "$work/log"
screens "$e2e_dir/page_flame.js" "/pid/$pid/?live=0" 1000x900:light
grep -q 'hidden true false lines 1 Largest stacks over time .*img/src=x.* 12\.0 MiB open true says all .*img/src=x.*: 1 function.* nav true$' "$work/said" &&
	ok "the largest stacks over time; the flame graph in the page" || not_ok "the flame graph in the page" "not so" "$work/said" "$work/log"
screens "$e2e_dir/page_rows.js" "/pid/$pid/?live=0" 1000x900:light
grep -q 'bands 8 runs 2 stacked true within true newest live 10\.0 MiB .* other 6\.[0-9]* MiB failed true folded true without true hidden true markup 0$' "$work/said" &&
	ok "in use within resident memory by row, over half an hour" || not_ok "in use within resident memory by row" "not so" "$work/said" "$work/log"
screens "$e2e_dir/page_many.js" / 1600x900:light
grep -q ' rows 300 found 38 groups 8 growing 75 sorted true folded true compared 299$' "$work/said" && ok "300 processes: groups, filter, order: $(sed -n 's/.* drawn/drawn/p' "$work/said")" ||
	not_ok "300 processes" "not so" "$work/said" "$work/log"
exec {ask}>&- {answer}<&- # the browser ends
kill -USR1 "$server" # takes the probes out
is_paused() { get -H "Authorization: Bearer $secret" "$url/" | grep -q 'SIGUSR1'; }
await 10 is_paused || not_ok "the probes are out" "they are not" "$top/serve.err"
answers 409 -H "Authorization: Bearer $secret" "$url/pid/$pid/diff?at=peak"
grep -q "heap in use is unknown now.*/pid/$pid/viewer?at=peak$" "$top/body" && ! grep -q -- --value "$top/body" && ok "what cannot be compared: why, and what there is" ||
	not_ok "what cannot be compared" "not so" "$top/body"
answers 200 -H "Authorization: Bearer $secret" "$url/pid/$pid/viewer?at=peak"
kill -USR2 "$server"
end_server "pages"
e2e_end

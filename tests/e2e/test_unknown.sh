#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is in use of a process whose frees are not watched is not known: it is 0 nowhere, and every
# surface says why and what to do.
. "$(dirname "$0")/lib.sh"
e2e_init unknown
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
. "$e2e_dir/serve_lib.sh"
build_c busy -pthread && build_c family || { not_ok build "workloads"; e2e_end; }

# default_type FILE: the sample type on which a reader opens
default_type() {
	python3 - "$1" <<'END'
import gzip, sys
sys.path.insert(0, "tools/bench")
from ledger import fields_of
fields = list(fields_of(gzip.open(sys.argv[1]).read()))
strings = [value for number, value in fields if number == 6]
print(next((strings[value].decode() for number, value in fields if number == 14), ""))
END
}
comments() {
	"$heaptap" report -f json "$1" | sed -n '/^"comments":/,$p' | sed 's/^"comments":\[//;s/^"//;s/"[^"]*$//'
}
profile() { get -f -o "$top/$1.pb.gz" "$url/$2" && comments "$top/$1.pb.gz" >"$top/$1.comments"; }
page() { get -f -o "$top/$1" "$url/$2"; }

# over any limit, although most of the time it sleeps
begin busy "$bin/busy" 1 50000
busy=$target
begin steady
serve --listen 127.0.0.1:0 -p "$busy" --comm '^steady$'
is_unknown() { [ "$(metric "heaptap_inuse_complete{pid=\"$busy\"")" = 0 ]; }
await 30 is_unknown || { not_ok "over its limit" "in-use is known" "$top/serve.err"; e2e_end; }

page metrics metrics
grep -E "^heaptap_(scope_)?inuse_[a-z_]*\{pid=\"$busy\"" "$top/metrics" | grep -v '^heaptap_inuse_complete{' >"$top/samples"
[ -s "$top/samples" ] && not_ok "metrics: no sample of what is in use" "there are" "$top/samples" ||
	ok "metrics: no sample of what is in use"
[ "$(awk -v begin="heaptap_alloc_bytes_total{pid=\"$busy\"" 'index($0, begin) == 1 { print ($NF > 0) }' "$top/metrics")" = 1 ] &&
	grep -q "^heaptap_scope_alloc_bytes_total{pid=\"$busy\"" "$top/metrics" &&
	ok "metrics: what was allocated" || not_ok "metrics: what was allocated" "none" "$top/metrics"
steady=${pid_of[steady]}
grep -q "^heaptap_inuse_bytes{pid=\"$steady\"" "$top/metrics" && grep -q "^heaptap_inuse_complete{pid=\"$steady\".*} 1$" "$top/metrics" &&
	ok "metrics: of another process it is known" || not_ok "metrics: of another process" "unknown" "$top/metrics"

page index ""
row=$(grep "<tr><td>$busy<td><a href=\"pid/$busy/\">busy</a>" "$top/index")
[[ $row == *"</a><td>unknown<td><td>"*"heap in use is unknown: "*"heaptap record --tap "*"-p $busy"* ]] &&
	ok "page: not known, why, and the way out" || not_ok "page" "$row"

profile one "debug/pprof/heap?pid=$busy"
[ "$(default_type "$top/one.pb.gz")" = alloc_space ] && ok "pprof: opens on what was allocated" ||
	not_ok "pprof: opens on what was allocated" "$(default_type "$top/one.pb.gz")"
grep -q "^in-use: UNKNOWN\. .*heaptap record --tap .* -p $busy$" "$top/one.comments" && ok "pprof: says so, and the way out" ||
	not_ok "pprof: says so" "no" "$top/one.comments"
profile all debug/pprof/heap
[ "$(default_type "$top/all.pb.gz")" = inuse_space ] && grep -q "^in-use: UNKNOWN for 1 of 2 processes.*: PID $busy (busy)$" "$top/all.comments" &&
	ok "pprof of all: says of whom it is not known" || not_ok "pprof of all" "$(default_type "$top/all.pb.gz")" "$top/all.comments"

# forms that could not say it
for path in "debug/pprof/heap?debug=1&pid=$busy" "pid/$busy/pprof/heap"; do
	answers 503 "$url/$path"
	grep -q "^Heap in use is unknown\. .*heaptap record --tap .* -p $busy$" "$top/body" && ok "$path says why" ||
		not_ok "$path says why" "no" "$top/body"
done
answers 200 "$url/debug/pprof/allocs?debug=1&pid=$busy"
answers 200 "$url/pid/$busy/pprof/growth"
answers 200 "$url/debug/pprof/heap?debug=1&pid=$steady"

# Nothing is kept for a peak that nobody has seen; its end is.
taken=$(metric heaptap_kept_taken_total)
sleep 3
[ "$(metric heaptap_kept_taken_total)" = "$taken" ] && ok "no peak is kept" || not_ok "no peak is kept" "$taken, $(metric heaptap_kept_taken_total)"
kill -9 "$busy"
is_kept() { get -f -o "$top/last.pb.gz" "$url/debug/pprof/heap?pid=$busy&at=last"; }
await 20 is_kept 2>/dev/null && comments "$top/last.pb.gz" >"$top/last.comments"
grep . "$top/last.comments" | head -n 1 | grep -q '^kept: ended by signal 9, 20.*, in use unknown$' && ok "kept: the first line says why, and that it is not known" ||
	not_ok "kept: the first line" "no" "$top/last.comments"
[ "$(default_type "$top/last.pb.gz")" = alloc_space ] && ok "kept: opens on what was allocated" || not_ok "kept: opens on" "$(default_type "$top/last.pb.gz")"
page index ""
grep "<tr><td>$busy<td>busy<td>unknown<td>.*ended by signal 9" "$top/index" >/dev/null && ok "kept: the page says not known" ||
	not_ok "kept: the page" "no" "$top/index"
end_server "in-use unknown"
e2e_end

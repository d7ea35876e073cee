#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve says what the resident memory of each process is, as heaptap explain does: in /metrics, in the data of its page, in
# the page without a script, and in the profile that is saved before it ends. What is not known is left out, and never 0.
. "$(dirname "$0")/lib.sh"
e2e_init serve_rows
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
build_c grown && build_c family || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
sharing=own

cat >"$work/judge.py" <<'EOP'
import json, re, sys
pid, MiB = sys.argv[2], 1 << 20
metrics = open(sys.argv[3]).read()
series = dict(re.findall(r'^heaptap_resident_bytes\{pid="%s",[^}]*kind="([a-z0-9_]+)"\} (-?[0-9]+)$' % pid, metrics, re.M))
kind = lambda name: int(series.get(name, 0))
age = [float(n) for n in re.findall(r'^heaptap_resident_age_seconds\{pid="%s",[^}]*\} ([0-9.e+-]+)$' % pid, metrics, re.M)]
data = json.load(open(sys.argv[4])) if sys.argv[4] != "-" else {}
rows = data.get("rows", {})
listed = {row["row"]: row["bytes"] for row in rows.get("list", [])}
explained = json.load(open(sys.argv[5])) if sys.argv[5] != "-" else {}
near = lambda a, b, part=0.03, least=1 << 20: abs(a - b) <= max(part * abs(b), least)
ok = eval("(" + sys.argv[1] + ")")
if not ok:
    print(sys.argv[1], series, age, rows)
sys.exit(not ok)
EOP
# judge NAME EXPRESSION: of the metrics, the data of the page, and explain
judge() {
	local said
	said=$(python3 "$work/judge.py" "$2" "$pid" "$work/metrics" "${3:--}" "${4:--}" 2>&1) && ok "$1" || not_ok "$1" "$said" "$work/serve.err"
}
has_rows() { get -f -o "$work/metrics" "$url/metrics" && grep -q "^heaptap_resident_bytes{pid=\"$pid\"" "$work/metrics"; }
has_no_rows() { get -f -o "$work/metrics" "$url/metrics" && ! grep -q "^heaptap_resident_[a-z]*{pid=\"$pid\"" "$work/metrics"; }

# One that grows after its first reading; the second one comes after a minute, which is further down.
start "$bin/grown" || not_ok start "the target did not start" "$work/target.err"
pid=$target growing=$target
mkdir "$work/growing"
top=$work/growing
serve --listen 127.0.0.1:0 --rate 1 --max-overhead off -p "$growing"
growing_url=$url growing_server=$server top=$work
await 20 has_rows && ok "before it grows" || not_ok "before it grows" "no rows within 20 s" "$work/serve.err"
for how in "free 30" "mapp 16"; do step "$how"; done
exec {growing_in}>&"$target_in"

start "$bin/grown" || not_ok start "the target did not start" "$work/target.err"
pid=$target
for how in "live 48" "free 30" "mapp 16"; do step "$how"; done
serve --listen 127.0.0.1:0 --rate 1 --max-overhead off -p "$pid"
await 20 has_rows && ok "rows in /metrics" || not_ok "rows in /metrics" "none within 20 s" "$work/serve.err"
get -f -o "$work/json" "$url/pid/$pid/api"
get -f "$url/pid/$pid/" | sed -n '/<noscript>$/,/<.noscript>/p' >"$work/plain"
timeout 60 "$heaptap" explain -f json -p "$pid" >"$work/explained" 2>"$work/err"
judge "as planted" 'near(kind("live"), 20011 * 1008 + 48 * MiB * 1.012) and near(kind("anonymous"), 16 * MiB, 0.1)'
judge "as explain says" 'all(near(kind(r["row"]), r["bytes"]) for r in explained["rows"]) and near(sum(map(int, series.values())), explained["rss_bytes"])' - "$work/explained"
judge "the data of the page: the same" '{k: int(v) for k, v in series.items()} == listed and sum(listed.values()) == rows["rss_bytes"] and rows["took_ms"] > 0' "$work/json"
judge "over time" 'len(rows["hour"]["times_ms"]) == len(rows["day"]["times_ms"]) == 1 and set(rows["hour"]["bytes"]) == set(listed) and all(len(v) == 1 for v in rows["hour"]["bytes"].values()) and 0 <= data["time_ms"] - rows["time_ms"] < 60000' "$work/json"
judge "its age" 'len(age) == 1 and 0 <= age[0] < 60'
grep -q '<h2>Resident memory: ' "$work/plain" && grep -q '<td>malloc: live blocks' "$work/plain" && ok "the page without a script" ||
	not_ok "the page without a script" "no rows" "$work/plain"
[ "$(grep -c '^# TYPE heaptap_resident_bytes gauge$' "$work/metrics")" = 1 ] && [ "$(grep -c '^# HELP heaptap_resident_bytes ' "$work/metrics")" = 1 ] &&
	ok "one family" || not_ok "one family" "not one" "$work/metrics"
# not again before a minute is over
before=$(grep "^heaptap_resident_age_seconds{pid=\"$pid\"" "$work/metrics" | awk '{ print $NF }')
sleep 4
has_rows
judge "read once a minute at most" "age[0] - $before > 3.5"
# what it holds now, as a profile says it: with the age of the reading
get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$pid"
"$heaptap" report --notes "$work/p.pb.gz" >"$work/notes" 2>&1
tr -s ' \n' ' ' <"$work/notes" | grep -qE 'resident by row, read [0-9.]+ s before the end: live (6[5-9]|7[0-2])\.?[0-9]* MiB, .*by row at the beginning: unknown \(it was read only once\)' &&
	ok "a profile: rows, and when they were read" || not_ok "a profile: rows, and when they were read" "not so" "$work/notes"
# what pins, with the rows of then; and what its profile says without that
step "pins 200000"
# beside a load a reading may be late
has_pins() {
	get -f -o "$work/p.pb.gz" "$url/pid/$pid/debug/pprof/heap?pinned=1"
	"$heaptap" report --sort pinned "$work/p.pb.gz" >/dev/null 2>&1
}
await 30 has_pins || "$heaptap" report --notes "$work/p.pb.gz"
timeout 60 "$heaptap" explain -f json -p "$pid" >"$work/explained" 2>"$work/err"
"$heaptap" report --by function --sort pinned -f json "$work/p.pb.gz" >"$work/json" 2>"$work/err"
python3 - "$work/explained" "$work/json" >"$work/said" 2>&1 <<'EOP' && ok "who pins" || not_ok "who pins" "not so" "$work/said" "$work/err" "$work/serve.err"
import json, sys
explained, d = (json.load(open(path)) for path in sys.argv[1:])
pinned = sum(r["bytes"] for r in explained["rows"] if r["row"] == "pinned")
first = d["rows"][0]
assert first["name"] == "pins_them" and 10e6 < first["pinned_bytes"] <= pinned * 1.02 and first["pinned_bytes"] > 0.85 * pinned, (first, pinned)
live = [r["end_bytes"] for r in d["resident"]["rows"] if r["row"] == "live"]
assert abs(live[0] - next(r["bytes"] for r in explained["rows"] if r["row"] == "live")) < 1 << 20, live
EOP
get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$pid"
"$heaptap" report --sort pinned "$work/p.pb.gz" >"$work/said" 2>&1
[ $? = 1 ] && grep -q 'heaptap serve with ?pinned=1' "$work/said" && ok "not who pins without that" || not_ok "not who pins without that" "" "$work/said"
draws_pins() { get -f "$url/pid/$pid/viewer?pinned=1" | grep -q '"key":"pinned_space"'; }
await 30 draws_pins && ok "who pins: the flame graph" || not_ok "who pins: the flame graph" "" "$work/serve.err"
# killed: its last profile has them, and nothing else has
step "live 1"
kill -9 "$pid"
has_last() { get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$pid&at=last" 2>/dev/null; }
await 20 has_last || not_ok "the last profile" "none" "$work/serve.err"
"$heaptap" report --notes "$work/p.pb.gz" >"$work/notes" 2>&1
tr -s ' \n' ' ' <"$work/notes" | grep -qE 'kept: ended by signal 9, .* resident by row, read [0-9.]+ s before the end: live ' && ok "killed: the saved profile has the rows" ||
	not_ok "killed: the saved profile has the rows" "not there" "$work/notes"
"$heaptap" report "$work/p.pb.gz" 2>&1 | tr -s ' \n' ' ' | grep -qE 'Resident [0-9.]+ MiB, read [0-9.]+ s before the end: live ' && ok "killed: report says them" ||
	not_ok "killed: report says them" "not so" "$work/notes"
await 10 has_no_rows && ok "ended: no series, not 0" || not_ok "ended: no series, not 0" "there are" "$work/metrics"
end_server "with rows"

# several, one after the other, and one that ends meanwhile
for name in rows-a rows-b rows-c; do begin $name; done
serve --listen 127.0.0.1:0 --rate 1 --max-overhead off --comm '^rows-'
for name in rows-a rows-b rows-c; do
	pid=${pid_of[$name]}
	await 30 has_rows && ok "$name: read" || not_ok "$name: read" "not within 30 s" "$work/serve.err"
done
end_server "several"

# never
pid=${pid_of[rows-a]}
serve --listen 127.0.0.1:0 --rate 1 --max-overhead off --rows-interval 0 --comm '^rows-'
await 10 follows "$pid" || not_ok "--rows-interval 0" "not followed" "$work/serve.err"
sleep 2
get -f -o "$work/json" "$url/pid/$pid/api"
get -f -o "$work/p.pb.gz" "$url/pid/$pid/debug/pprof/heap?pinned=1"
"$heaptap" report --notes "$work/p.pb.gz" 2>&1 | tr -s ' \n' ' ' | grep -q 'pinned_space: unknown (resident memory is not read: --rows-interval 0)' &&
	ok "--rows-interval 0: not who pins" || not_ok "--rows-interval 0: not who pins" "not said" "$work/serve.err"
has_no_rows && judge "--rows-interval 0: nothing is read" '"rows" not in data' "$work/json" || not_ok "--rows-interval 0" "there are rows" "$work/metrics"
end_server "without rows"
timeout 20 "$heaptap" serve --rows-interval 30s --comm '^rows-' >"$work/out" 2>&1
[ $? = 2 ] && grep -q -- '--rows-interval is at least 1m' "$work/out" && ok "every 30 s: refused" || not_ok "every 30 s: refused" "not so" "$work/out"

# after a minute: what it was and what it is
pid=$growing url=$growing_url server=$growing_server
has_two() {
	get -f -o "$work/json" "$url/pid/$pid/api" && python3 -c "import json, sys; sys.exit(len(json.load(open('$work/json'))['rows']['hour']['times_ms']) < 2)"
}
await 90 has_two && has_rows || not_ok "a second reading" "none within 90 s" "$work/json"
judge "a second reading: what was freed is kept" 'near(kind("trimmable") + kind("pinned") + kind("kept"), 30 * MiB, 0.1) and
	near(rows["hour"]["bytes"]["anonymous"][1] - rows["hour"]["bytes"]["anonymous"][0], 16 * MiB, 0.1) and
	rows["hour"]["times_ms"][1] - rows["hour"]["times_ms"][0] >= 59000 and len(rows["day"]["times_ms"]) in (1, 2)' "$work/json"
judge "its growth is told by row" '"By row" in data["process"]["growth_note"] and "free kept by glibc +" in data["process"]["growth_note"]' "$work/json"
get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$pid"
"$heaptap" report "$work/p.pb.gz" 2>&1 | tr -s ' \n' ' ' | grep -qE 'By row[^.]*: free kept by glibc \+(29|30|31)|Resident [0-9.]+ -> [0-9.]+ MiB, read [0-9.]+ (s|ms) before the end: free kept by glibc \+' &&
	ok "its profile has both readings" || not_ok "its profile has both readings" "not so" "$work/json"
exec {growing_in}>&-
end_server "growing"
e2e_end

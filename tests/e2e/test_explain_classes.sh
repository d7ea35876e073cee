#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `heaptap explain`: live blocks by C++ class, what they pin, and what grew between two looks; with glibc's malloc and with
# jemalloc, stripped, without type_info, and linked in other ways.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init explain_classes
build_cxx classes || { not_ok build "classes.cc"; e2e_end; }
strip -o "$work/stripped" "$bin/classes"

explain() {
	timeout -k 5 60 "$heaptap" explain "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}

cat >"$work/judge.py" <<'EOS'
import json, sys
out, expression = sys.argv[1:3]
j = json.load(open(out))
rows = {r["row"]: r for r in j["rows"]}
classes = {c["name"]: c for c in j["classes"]}
blocks = lambda name: classes.get(name, {"blocks": 0})["blocks"]
near = lambda a, b, part=0.01: abs(a - b) <= part * b
change, MiB = j.get("change"), 1 << 20
bad = [] if eval("(" + expression + ")") else [expression]
if sum(r["bytes"] for r in rows.values()) != j["rss_bytes"]:
    bad.append("rows do not add up to RSS")
if change and sum(r["change"] for r in rows.values()) != change["rss_bytes"]:
    bad.append("changes do not add up to that of RSS")
print("; ".join(bad) or "as planted", {n: c["blocks"] for n, c in list(classes.items())[:6]}, change)
sys.exit(bool(bad))
EOS

judge() {
	local said
	[ "$status" = 0 ] && said=$(python3 "$work/judge.py" "$work/out" "$2" 2>&1) && ok "$1" ||
		not_ok "$1" "status $status; ${said:-}" "$work/err" "$work/out"
}

# has NAME EXPRESSION COMMAND...
has() {
	local name=$1 expression=$2
	shift 2
	start "$@" || { not_ok "$name" "it did not start" "$work/target.err"; return; }
	explain -p "$target" -f json
	judge "$name" "$expression"
	kill_target
}

held='blocks("shop::Session") == 20000 and blocks("shop::Order<int>") == 30000 and blocks("(anonymous namespace)::Local") == 5000
	and not [n for n in classes if "Plain" in n or "Base" in n] and len(classes) < 8'
near_held='near(blocks("shop::Session"), 20000) and near(blocks("shop::Order<int>"), 30000)'
# which is the same after it was read
start "$bin/classes" held
footprint "$target" >"$work/before"
explain -p "$target" -f json
footprint "$target" >"$work/after"
cmp -s "$work/before" "$work/after" && ok "the process is as it was" ||
	not_ok "the process is as it was" "$(diff "$work/before" "$work/after" | xargs)"
kill_target
has "classes" "$held and 'objects of the C++ class shop::Order<int>' in j['verdict']['advice'] and classes['shop::Session']['bytes'] == 20000 * 64" "$bin/classes" held
has "without symbols" "$held" "$work/stripped" held
OUT=classes_nortti build_cxx classes -fno-rtti && has "without type_info" "$held" "$bin/classes_nortti" held
OUT=classes_nopie build_cxx classes -no-pie && has "at a fixed address" "$held" "$bin/classes_nopie" held
OUT=classes_static build_cxx classes -static && has "a static executable" "$held" "$bin/classes_static" held
preload=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
if [ -n "$preload" ]; then
	has "jemalloc" "$near_held and not [n for n in classes if 'Plain' in n]" env LD_PRELOAD="$preload" "$bin/classes" held
else
	skip "jemalloc" "no jemalloc"
fi

# pins: the planted class and size first, within 10 %
pinned=$((20000 * 4016))
start "$bin/classes" pins
explain -p "$target" -f json
judge "pins: JSON" "near(classes['shop::Session']['pinned_bytes'], $pinned, 0.1)
	and near(max(j['glibc']['pinned_by'], key=lambda p: p['pinned_bytes'])['pinned_bytes'], $pinned, 0.1)
	and near(max(j['glibc']['pinned_by'], key=lambda p: p['alone_bytes'])['alone_bytes'], $pinned, 0.1)"
explain --pins -p "$target"
[ $status = 0 ] && tr '\n' ' ' <"$work/out" | grep -q 'most are objects of the C++ class shop::Session' && awk '/live blocks by size$/ { getline; sizes = $0 } /live blocks by C\+\+ class$/ { getline; classes = $0 }
	END { exit !(sizes ~ /^ +7[0-9]\.[0-9] MiB +7[0-9.]+ MiB +20.0k  41 to 56 bytes$/ &&
		classes ~ /^ +7[0-9]\.[0-9] MiB +- +20.0k  shop::Session$/) }' "$work/out" &&
	ok "pins: text" || not_ok "pins: text" "status $status" "$work/out" "$work/err"
explain -v -p "$target"
[ $status = 0 ] && awk '/ C\+\+ class, by the first word/ { getline; exit !/20.0k  shop::Session$/ }' "$work/out" &&
	ok "-v: classes" || not_ok "-v: classes" "status $status" "$work/out" "$work/err"
awk '/ live blocks by size$/ { getline; exit !/20.0k  41 to 56 bytes$/ }' "$work/out" && ok "-v: sizes" || not_ok "-v: sizes" "" "$work/out"
kill_target

# two looks: what grows, by row, size and class
start "$bin/classes" grow
explain --for 3s -p "$target" -f json
judge "--for: what grows" '2.9 < change["seconds"] < 20 and rows["live"]["change"] > 2 * MiB and "RSS grew by" in change["text"]
	and "live blocks" in change["text"] and "Of the C++ class shop::Order<int> there are" in change["text"]
	and "cannot tell" not in j["verdict"]["advice"]'
explain --for 2s -p "$target"
[ $status = 0 ] && grep -qE '^ +[0-9.]+ [KMG]iB +[0-9.]+ % +\+[0-9.]+ [KMG]iB  malloc: live blocks' "$work/out" &&
	grep -qE '^ .* \+[0-9.]+ MiB  total \(RSS\)$' "$work/out" && ok "--for: text" || not_ok "--for: text" "status $status" "$work/out" "$work/err"

# ends_early NAME SIGNALLED PATTERN: --for 60s ends at once, with what there is
waits() { [ "$(pgrep -P "$explainer" | wc -l)" = 1 ]; }
begin() {
	: >"$work/err"
	"$heaptap" explain --for 60s -p "$target" >"$work/out" 2>"$work/err" </dev/null &
	owned explainer
	await 10 waits
	sleep 2.5
}
end() {
	await 20 is_gone "$explainer" || kill -9 "$explainer"
	wait "$explainer"
	status=$?
}
begin
kill -INT "$explainer"
end
[ $status = 0 ] && grep -qE 'RSS grew by .* in [2-9]\.[0-9]+ s' "$work/out" && ok "--for: Ctrl-C shows what there is" ||
	not_ok "--for: Ctrl-C shows what there is" "status $status" "$work/out" "$work/err"
begin
kill_target
end
[ $status = 0 ] && grep -q 'this is only the first reading: the process has ended' "$work/err" && grep -q 'malloc: live blocks' "$work/out" &&
	! grep -q 'RSS grew' "$work/out" && ok "--for: the process ends" || not_ok "--for: the process ends" "status $status" "$work/out" "$work/err"
sh -c 'sleep 3; exec sleep 30' &
owned target
explain --for 5s -p "$target"
[ $status = 0 ] && grep -q 'this is only the first reading: the process has executed another program' "$work/err" && grep -q 'total (RSS)' "$work/out" &&
	ok "--for: another program" || not_ok "--for: another program" "status $status" "$work/out" "$work/err"
kill "$target" && wait "$target" 2>/dev/null
start "$bin/classes" held
explain --for 1s -p "$target" -f json
judge "--for: nothing changes" 'abs(change["rss_bytes"]) < MiB and "RSS hardly changed" in change["text"] and "Live malloc blocks did not grow" in change["text"] and "grew" not in change["text"]'

# a process by its name
cp "$bin/classes" "$work/explain-by-name"
kill_target
start "$work/explain-by-name" held
explain -p explain-by-name -f json
judge "-p NAME" "j['pid'] == $target"
"$work/explain-by-name" held <"$e2e_never" >/dev/null &
owned second
is_named() { [ "$(cat /proc/$second/comm 2>/dev/null)" = explain-by-name ]; }
exec {never_in}<>"$e2e_never"
await 10 is_named
explain -p explain-by-name
[ $status = 1 ] && grep -qE "'explain-by-name' means 2 processes; give one: -p [0-9]+, [0-9]+$" "$work/err" && ok "-p NAME: two of it" ||
	not_ok "-p NAME: two of it" "status $status" "$work/err"
explain -p no-such-program
[ $status = 1 ] && grep -q "no running process has the name 'no-such-program'" "$work/err" && ok "-p NAME: none of it" ||
	not_ok "-p NAME: none of it" "status $status" "$work/err"
explain --for 0.1s -p 1
[ $status = 2 ] && grep -q 'a time from 1s to 24h' "$work/err" && ok "--for: too short" || not_ok "--for: too short" "status $status" "$work/err"
exec {never_in}>&-
kill -9 "$second"
wait "$second" 2>/dev/null
kill_target

# beside a recording: those that are older than it
start "$bin/classes" grow
attach --rate 1
rows_are_read
sleep 3
stop_recorder
explain -p "$target" -f json
cp "$work/heaptap.out" "$work/shown"
"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>"$work/err"
said=$(python3 -c '
import json, sys
report, now = (json.load(open(name)) for name in sys.argv[1:])
before = {c["class"]: c for c in report["allocated_before"]["classes"]}
orders = next(c["blocks"] for c in now["classes"] if c["name"] == "shop::Order<int>")
recorded = sum(row["inuse_objects"] for row in report["rows"])
print(recorded, "recorded,", orders, "live later, older:", before)
sys.exit(not (recorded > 1000 and before["shop::Session"]["objects"] == 20000 and
	30000 <= before["shop::Order<int>"]["objects_high"] and before["shop::Order<int>"]["objects"] <= orders - recorded + 200))' "$work/json" "$work/out" 2>&1) &&
	grep -q 'by C++ class: ' "$work/shown" && ok "older than a recording, by class" || not_ok "older than a recording, by class" "$said" "$work/shown" "$work/err"
kill_target
e2e_end

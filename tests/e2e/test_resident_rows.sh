#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Resident memory by row at the beginning and at the end of a recording: a planted program grows by blocks that live, by freed ones
# that malloc keeps, and by memory that it maps. What could not be read is unknown, and the heap only if it was proved.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init resident_rows
build_c grown && build_c peaks || { not_ok build "workloads"; e2e_end; }

cat >"$work/judge.py" <<'EOP'
import json, sys
j, MiB = json.load(open(sys.argv[1])), 1 << 20
r = j["resident"]
change = lambda label: sum((row["end_bytes"] or 0) - (row["begin_bytes"] or 0) for row in r["rows"] if row["label"] == label)
at = lambda when, label: sum(row[when] or 0 for row in r["rows"] if row["label"] == label)
near = lambda a, b, part=0.03, least=1 << 20: abs(a - b) <= max(part * b, least)
bad = [] if eval("(" + sys.argv[2] + ")") else [sys.argv[2]]
if r and r["rows"] and None not in (r["begin_bytes"], r["end_bytes"], r["rows"][0]["begin_bytes"], r["rows"][0]["end_bytes"]):
    for when in "begin_bytes", "end_bytes":
        if sum(row[when] for row in r["rows"]) != r[when]:
            bad.append("the rows do not add up to " + when)
print("; ".join(bad), json.dumps(r))
sys.exit(bool(bad))
EOP
# judge NAME EXPRESSION: of the report's JSON
judge() {
	local said
	"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>"$work/err"
	said=$(python3 "$work/judge.py" "$work/json" "$2" 2>&1) && ok "$1" || not_ok "$1" "$said" "$work/heaptap.err" "$work/err"
}
# shows NAME FILE PATTERN: whatever its lines
shows() { tr -s ' \n' ' ' <"$2" | grep -qE -- "$3" && ok "$1" || not_ok "$1" "no '$3'" "$2" "$work/heaptap.err"; }
# grown ARGS...: recorded from before it grows until after
grown() {
	start ${program:-"$bin/grown"}
	attach "$@"
	rows_are_read
	for how in "live 48" "free 30" "mapp 16"; do step "$how"; done
}

for way in "--rate 1" --tap; do
	grown $way
	stop_recorder
	cp "$work/heaptap.out" "$work/shown"
	judge "$way: as planted" 'near(change("live"), 48 * MiB * 1.012) and near(change("free kept by glibc"), 30 * MiB) and
		near(change("mapped directly"), 16 * MiB) and near(at("begin_bytes", "live"), 20011 * 1008) and
		r["begin_heap_is_read"] and r["end_heap_is_read"] and r["why_not"] is None'
	shows "$way: one line" "$work/shown" \
		'Resident 2[0-9.]+ -> 1[0-9.]+ MiB: live \+4[89]\.[0-9]+? MiB, free kept by glibc \+(29|30|31)\.[0-9]+? MiB, mapped directly \+1[67]\.[0-9]+? MiB|By row: live \+4[89]'
	"$heaptap" report --notes "$work/p.pb.gz" >"$work/notes" 2>&1
	shows "$way: the notes have all rows" "$work/notes" 'resident by row: live 19\.[0-9]+ -> 6[78]\.[0-9]+ MiB, free kept by glibc .*, mapped directly .*, files '
	judge "$way: what was allocated before" 'j["allocated_before"] and near(j["allocated_before"]["objects"], 20011, 0.3, 20) and
		j["allocated_before"]["objects_low"] <= 20014 and 20011 <= j["allocated_before"]["objects_high"] and
		j["allocated_before"]["bytes_low"] <= 20014 * 1008 and 20011 * 1008 <= j["allocated_before"]["bytes_high"] < 30 * MiB'
	judge "$way: ... by size" '[c for c in j["allocated_before"]["classes"] if c["from_bytes"] == 985 and c["objects_low"] <= 20014 and
		20011 <= c["objects_high"] and near(c["objects"], 20011, 0.3, 20) and near(c["bytes"], c["objects"] * 1008, 0.01)]'
	shows "$way: ... and said" "$work/shown" 'by size: 985 to 1000 bytes (1[5-9]|2[0-6])\.[0-9]k \('
	shows "$way: said" "$work/shown" 'Allocated before the recording, still live: (1[5-9]|2[0-6])\.[0-9]k blocks( \([0-9.]+k to [0-9.]+k\))?, [12][0-9.]+ MiB \('
	for limit in "--max-retained 25M 1" "--max-retained 40M 0" "--max-unexplained 10M 1" "--max-unexplained 20% 0"; do
		set -- $limit
		"$heaptap" check "$1" "$2" "$work/p.pb.gz" >"$work/check" 2>&1
		[ $? = "$3" ] && ok "$way: check $1 $2" || not_ok "$way: check $1 $2" "status, not $3" "$work/check"
	done
	kill -0 "$target" && step "live 1" && ok "$way: the process works on" || not_ok "$way: the process works on" "it does not"
	finish_target
done

# Tiny blocks that were hardly sampled, beside many samples of large ones, are not older; what is certain of larger ones is said.
for way in "--rate 64K" "--tap --rate 64K"; do
	start "$bin/grown"
	step "pins 160"
	attach $way
	rows_are_read
	step "larg 20"
	step "tiny 20000"
	stop_recorder
	judge "$way: tiny blocks are not older" 'j["allocated_before"] and 15000 < j["allocated_before"]["objects_low"] <= 20020 and
		20011 <= j["allocated_before"]["objects_high"] and all(c["objects_low"] <= 20020 for c in j["allocated_before"]["classes"])'
	finish_target
done

# What is freed of it is gone from it.
grown --rate 1
step "drop 5003"
stop_recorder
judge "some of it freed" 'j["allocated_before"] and near(j["allocated_before"]["objects"], 15008, 0, 20)'
finish_target

# It allocates while its blocks are listed: these are not older. Its top stays, and a cache has blocks.
start "$bin/grown"
step "free 300"
step "pins 160"
attach --rate 1
rows_are_read
echo "live 250" >&"$target_in"
sleep 1.2
stop_recorder
judge "growing at the end" 'j["allocated_before"] and r["end_bytes"] > 100 * MiB and
	all(c["objects_low"] <= 22000 for c in j["allocated_before"]["classes"] if c["from_bytes"] == 985)'
kill -9 "$target"

# It has ended: what it was is not known, and not 0.
grown --rate 1
finish_target
wait_recorder
"$heaptap" check --max-retained 1G "$work/p.pb.gz" >"$work/check" 2>&1
[ $? = 2 ] && grep -q 'unknown: by row at the end: unknown (the process had ended)' "$work/check" && ok "ended: check cannot say" ||
	not_ok "ended: check cannot say" "status" "$work/check"
judge "ended: unknown" 'j["allocated_before"] is None and r["end_bytes"] is None and all(row["end_bytes"] is None for row in r["rows"]) and
	near(at("begin_bytes", "live"), 20011 * 1008) and r["why_not"] == "by row at the end: unknown (the process had ended)"'
"$heaptap" report --sort pinned "$work/p.pb.gz" >"$work/out" 2>&1
[ $? = 1 ] && grep -q 'it has no pinned_space: only heaptap record' "$work/out" && ok "ended: not who pins" || not_ok "ended: not who pins" "" "$work/out"
shows "ended: said" "$work/heaptap.out" 'Resident [0-9.]+ -> [0-9.]+ MiB[^;]*; by row at the end: unknown \(the process had ended\)'

# The heap is not proved: what the mappings say, and why it is not more.
program="env GLIBC_TUNABLES=glibc.malloc.hugetlb=2 $bin/grown"
if [ "$(awk '/^Hugepagesize/ { print $2 }' /proc/meminfo)" = 2048 ]; then
	grown --rate 1
	stop_recorder
	judge "not proved: by mapping" 'not r["end_heap_is_read"] and change("live") == 0 and change("mapped directly") == 0 and
		near(change("anonymous") + change("brk heap") + change("heap not read"), 96 * MiB, 0.1) and "heap not read" in r["why_not"]'
	"$heaptap" report --notes "$work/p.pb.gz" >"$work/notes" 2>&1
	shows "not proved: not who pins" "$work/notes" 'pinned_space: unknown \(an arena of malloc: '
	shows "not proved: said" "$work/heaptap.out" '(anonymous|anonymous memory|brk heap|heap not read) \+9[0-9.]+ MiB.*; heap not read: an arena of malloc'
	finish_target
fi
program=

# check records it by itself
start "$bin/grown"
timeout 60 "$heaptap" check -d 3s --max-retained 10M --max-unexplained 1% -f junit -o "$work/check" -p "$target" 2>"$work/err"
[ $? = 0 ] && grep -q 'tests="2" failures="0" errors="0"' "$work/check" && ok "check -p: kept" || not_ok "check -p: kept" "status" "$work/check" "$work/err"
finish_target
timeout 60 "$heaptap" check --max-retained 10M -- true >"$work/check" 2>&1
[ $? = 2 ] && grep -q -- '--max-retained needs a running process' "$work/check" && ok "check of a command: refused" ||
	not_ok "check of a command: refused" "status" "$work/check"

# So many mappings cannot be read in time: the size is known at once, and the end does not wait for long.
most=$(($(cat /proc/sys/vm/max_map_count) - 200))
start "$bin/grown"
step "maps $((most < 60000 ? most : 60000))"
attach --rate 1
step "live 1"
stopped=$(date +%s%N)
stop_recorder
judge "many mappings: the sizes alone" 'r["begin_bytes"] > 100 * MiB and r["end_bytes"] > 100 * MiB and not r["rows"] and
	r["why_not"].startswith("by row at the beginning: unknown (")'
judge "many mappings: the end does not wait for long" 'j["time_ns"] - '$stopped' < 1.6e9'
shows "many mappings: said" "$work/heaptap.out" 'Resident [0-9.]+ -> [0-9.]+ MiB.*; by row at the beginning: unknown \('
finish_target

# Of several processes there are no rows, so what is held is compared with how they grew. The largest is told.
start "$bin/grown"
first=$target first_in=$target_in
start "$bin/grown"
step "live 10"
record_start -p "$first,$target" --rate 1
rows_are_read
step "live 48"
stop_recorder
judge "two processes: no rows, and why" 'not r["rows"] and j["rss_end_bytes"] > 80 * MiB and
	r["why_not"].startswith("by row: unknown (several processes were recorded; the largest, PID '$target' (grown): resident ")'
shows "two processes: one sentence" "$work/heaptap.out" 'Resident [0-9.]+ -> [0-9.]+ MiB: blocks in use account for the growth; by row: unknown \(several processes were recorded; the largest, PID '$target' .*: live \+4[89]\.[0-9]+ MiB'
finish_target
echo end >&"$first_in"
await 10 is_gone "$first"

# A started program had nothing before; at the end it runs on, or has ended.
{ printf 'live 48\nmapp 16\n'; sleep 20; } | timeout -s INT -k 10 60 "$heaptap" record --max-overhead off --rate 1 -d 8s --force -o "$work/p.pb.gz" -- "$bin/grown" \
	>"$work/target.out" 2>"$work/heaptap.err"
judge "a program that was started, and runs on" 'near(change("live"), 68 * MiB, 0.1) and near(change("mapped directly"), 16 * MiB, 0.2) and
	r["end_heap_is_read"] and r["why_not"] is None and j["allocated_before"] is None'
launch --rate 1 -- "$bin/peaks" 0
judge "a program that has ended: why not" 'not r["rows"] and r["why_not"] == "by row at the end: unknown (the process had ended)"'
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Who pins: a planted program frees all small blocks but every 32nd, and the stacks of these have what `heaptap explain` says
# is pinned; by every block, by samples, by a tap, in glibc's heap and in jemalloc's. (Missing: see test_resident_rows.sh.)
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init pins
build_c grown && build_c tree || { not_ok build "grown.c"; e2e_end; }

cat >"$work/judge.py" <<'EOP'
import json, sys
truth = sum(r["bytes"] for r in json.load(open(sys.argv[1]))["rows"] if r["row"] in ("pinned", "jemalloc_pinned"))
d, part = json.load(open(sys.argv[2])), float(sys.argv[3])
first, total = d["rows"][0], d["total"]["pinned_bytes"]
low, high = first["pinned_bytes_low"], first["pinned_bytes_high"]
said = first["name"], first["pinned_bytes"], low, high, "all", total, "truth", truth
assert truth > 10e6 and first["name"] == "pins_them" and abs(first["pinned_bytes"] - truth) <= part * truth, said
assert sum(r["pinned_bytes"] for r in d["rows"]) == total and low <= first["pinned_bytes"] <= high, said
assert d["rate_bytes"] == 1 or low < high, said
EOP
# pins NAME PART ARGS...: what the stack pins is within PART of the truth
pins() {
	local name=$1 part=$2
	shift 2
	start ${program:-"$bin/grown"}
	attach "$@"
	rows_are_read
	step "pins 200000"
	timeout 60 "$heaptap" explain -f json -p "$target" >"$work/truth" 2>"$work/err"
	stop_recorder
	finish_target
	"$heaptap" report --by function --sort pinned -f json "$work/p.pb.gz" >"$work/json" 2>>"$work/err" &&
		python3 "$work/judge.py" "$work/truth" "$work/json" "$part" 2>"$work/said" && ok "$name: as planted" ||
		not_ok "$name: as planted" "$(tail -1 "$work/said")" "$work/err" "$work/heaptap.err"
}

pins "every block" 0.05 --rate 1
"$heaptap" report --sort pinned "$work/p.pb.gz" >"$work/report" 2>&1
[[ $(grep -A1 ' PINNED ' "$work/report" | tail -1) =~ ^\ *1[45]\.[0-9]\ MiB\ .*pins_them ]] &&
	tr -s ' \n' ' ' <"$work/report" | grep -qE 'These blocks pin 1[45]\.[0-9] MiB of 1[45]\.[0-9] MiB: ' &&
	ok "the table" || not_ok "the table" "" "$work/report"
"$heaptap" report --by scope --sort pinned -f json "$work/p.pb.gz" >"$work/json" &&
	python3 -c "import json; d = json.load(open('$work/json')); assert d['rows'][0]['pinned_bytes'] == d['total']['pinned_bytes'] > 0" &&
	ok "by scope" || not_ok "by scope" "" "$work/json"
"$heaptap" report --at peak -f json "$work/p.pb.gz" | grep -q pinned_bytes && not_ok "not at the peak" "" || ok "not at the peak"
pins "samples" 0.15 --rate 512
# A child that comes later is not read, so what all blocks pin is unknown, and the rows are those of one.
start env E2E_MORE=1 "$bin/tree" pins-tree 0
attach --rate 1 --follow
step go
sleep 1
stop_recorder
finish_target
"$heaptap" report --notes "$work/p.pb.gz" >"$work/notes" 2>&1
tr -s ' \n' ' ' <"$work/notes" | grep -qE 'pinned_space: unknown \(several processes were recorded; the largest, PID '$target' \(pins-tree\): resident ' &&
	ok "with a child: unknown" || not_ok "with a child: unknown" "" "$work/notes" "$work/heaptap.err"
pins "a tap" 0.15 --rate 512 --tap
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
if [ -n "$jemalloc" ]; then
	program="env LD_PRELOAD=$jemalloc $bin/grown"
	pins "jemalloc" 0.15 --rate 1
	program=
else
	skip "jemalloc" "there is no libjemalloc.so.2"
fi

e2e_end

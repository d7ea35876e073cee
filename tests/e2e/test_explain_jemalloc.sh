#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `heaptap explain` on programs with jemalloc whose heap is known: every count as mallctl() has it, rows that add up to
# RSS, the cause; shared, preloaded, and linked into a program without symbols.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init explain_jemalloc
preload=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
[ -n "$preload" ] || { skip "explain jemalloc" "no jemalloc"; e2e_end; }
build_c jemalloc_heaps "$preload" -pthread || { not_ok build "jemalloc_heaps.c"; e2e_end; }

explain() {
	timeout -k 5 60 "$heaptap" explain "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}

cat >"$work/judge.py" <<'EOS'
import json, sys
out, info, expression = sys.argv[1:4]
j = json.load(open(out))
rows = {r["row"]: r["bytes"] for r in j["rows"]}
row = lambda name: rows.get("jemalloc_" + name, 0)
trees = j["jemalloc"]
t = trees[0] if trees else {"bins": []}
counts = {a: int(b) for a, b in (line.split() for line in open(info))}
near = lambda a, b, part=0.01, least=65536: abs(a - b) <= max(part * b, least)
text, rss, cause, MiB = j["verdict"]["text"] + j["verdict"]["advice"], j["rss_bytes"], j["verdict"]["cause"], 1 << 20
everywhere = "stats.arenas.4096."
bad = []
def want(what, is_so):
    if not is_so:
        bad.append(what)
def same(what, mine, jemallocs):
    want("%s: %d, jemalloc has %d" % (what, mine, jemallocs), mine == jemallocs)
want("rows add up to %d, RSS is %d" % (sum(rows.values()), rss), sum(rows.values()) == rss)
want("%d trees: %s" % (len(trees), t.get("why_not")), len(trees) == 1 and t["is_proved"])
if not bad and "busy" not in expression:
    want("moved", rows.get("moved", 0) == 0)
    same("live", t["live_bytes"], counts["stats.allocated"])
    same("active", t["active_bytes"], counts["stats.active"])
    same("retained", t["retained_bytes"], counts["stats.retained"])
    same("dirty", t["dirty_bytes"], counts[everywhere + "pdirty"] * 4096)
    same("muzzy", t["muzzy_bytes"], counts[everywhere + "pmuzzy"] * 4096)
    # the header of a block, and what was lost to alignment
    want("base %d, jemalloc has %d" % (t["base_bytes"], counts[everywhere + "base"]),
         0 <= t["base_bytes"] - counts[everywhere + "base"] < 16384)
    resident = counts["stats.resident"] - counts["stats.active"] - t["dirty_bytes"] # jemalloc counts no muzzy page
    want("resident metadata %d of %d" % (row("own"), resident), 0 < row("own") <= resident + 65536)
    bins = {b["to_bytes"]: b for b in t["bins"]}
    i = slab_free = 0
    while "arenas.bin.%d.size" % i in counts:
        size = counts["arenas.bin.%d.size" % i]
        mine = bins.get(size, {"slabs": 0, "blocks": 0, "regions": 0})
        slabs, live = [counts[everywhere + "bins.%d.%s" % (i, what)] for what in ("curslabs", "curregs")]
        same("slabs of %d" % size, mine["slabs"], slabs)
        same("regions of %d" % size, mine["regions"], slabs * counts["arenas.bin.%d.nregs" % i])
        same("blocks of %d" % size, mine["blocks"], live)
        slab_free += mine["regions"] * size - live * size
        i += 1
    want("rows have more than there is", row("live") + row("pinned") <= t["active_bytes"] and row("pinned") <= slab_free)
want(expression, eval("(" + expression + ")"))
print("; ".join(bad) or "as planted")
sys.exit(bool(bad))
EOS

# planted NAME PROGRAM HOW EXPRESSION [VARIABLE=VALUE...]
planted() {
	local name=$1 program=$2 how=$3 expression=$4 said
	shift 4
	start env "$@" "$program" "$how" "$work/info" || { not_ok "$name" "it did not start" "$work/target.err"; return; }
	explain -p "$target" -f json
	step info
	[ "$status" = 0 ] && said=$(python3 "$work/judge.py" "$work/out" "$work/info" "$expression" 2>&1) &&
		ok "$name" ||
		not_ok "$name" "status $status; ${said:-}" "$work/err" "$work/out"
	explain -p "$target"
	[ $status = 0 ] && grep -q 'jemalloc (5.*read and verified' "$work/out" && ok "$name: text" || not_ok "$name: text" "status $status" "$work/out" "$work/err"
	finish_target
}

live='cause == "jemalloc_live" and 89600000 < row("live") <= t["live_bytes"] and "leak from a cache" in text'
pinned='cause == "jemalloc_pinned" and near(row("live"), 40000 * 56, 0.1) and near(row("pinned"), 360000 * 56, 0.05) and "blocks of 49 to 64 bytes have" in text'
dirty='cause == "jemalloc_dirty" and near(row("dirty"), 43 * MiB, 0.02) and "background_thread:true" in text and "would return 43" in text'
arenas='row("pinned") > 20 * MiB and row("dirty") > 5 * MiB and 15000 <= t["live_blocks"]'
keep=MALLOC_CONF=dirty_decay_ms:-1
planted "live blocks" "$bin/jemalloc_heaps" live "$live"
planted "pinned slabs" "$bin/jemalloc_heaps" pinned "$pinned"
start "$bin/jemalloc_heaps" pinned "$work/info"
explain --pins -p "$target"
[ $status = 0 ] && awk '/live blocks by size$/ { getline; exit !/^ +1[01]\.[0-9] MiB +1[01]\.[0-9] MiB +(19|20)[0-9.]+k  49 to 64 bytes$/ }' "$work/out" &&
	ok "pins" || not_ok "pins" "status $status" "$work/out" "$work/err"
finish_target
planted "dirty pages" "$bin/jemalloc_heaps" dirty "$dirty" $keep
planted "muzzy pages" "$bin/jemalloc_heaps" muzzy 'row("dirty") > 40 * MiB and t["muzzy_bytes"] > 40 * MiB' MALLOC_CONF=dirty_decay_ms:5,muzzy_decay_ms:-1
planted "arenas and thread caches" "$bin/jemalloc_heaps" arenas "$arenas" $keep
planted "busy: two threads allocate meanwhile" "$bin/jemalloc_heaps" busy \
	'"busy" and near(t["active_bytes"], counts["stats.active"], 0.02) and near(t["live_bytes"], counts["stats.allocated"], 0.02)'
archive=$(ls /usr/lib/*/libjemalloc.a 2>/dev/null | head -n 1)
if [ -n "$archive" ] && OUT=jemalloc_inside build_c jemalloc_heaps "$archive" -pthread -lm -lstdc++ -s; then
	planted "linked into a program without symbols" "$bin/jemalloc_inside" pinned "$pinned"
else
	skip "linked into a program without symbols" "no libjemalloc.a"
fi
e2e_end

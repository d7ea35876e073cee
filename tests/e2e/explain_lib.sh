# SPDX-License-Identifier: MIT
# explain_lib.sh - `heaptap explain` of planted heaps (workloads/heaps.c), for test_explain.sh and for other glibcs
# (tests/siblings/test_glibc.sh); sourced after lib.sh. $heaps is the program.
heaps=$bin/heaps

explain() {
	timeout -k 5 60 "$heaptap" explain "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}

cat >"$work/judge.py" <<'EOF'
import json, os, re, sys, xml.etree.ElementTree as xml
out, info, trimmed, expression, name, causes = sys.argv[1:7]
j = json.load(open(out))
rows = {r["row"]: r["bytes"] for r in j["rows"]}
row = lambda name: rows.get(name, 0)
glibc = j["glibc"] or {"arenas": [], "mmapped_blocks": 0}
arenas = [a for a in glibc["arenas"] if a["system_bytes"]]
total = lambda name: sum(a[name] for a in arenas)
near = lambda a, b, part=0.01, least=65536: abs(a - b) <= max(part * b, least)
cause, text, rss, MiB = j["verdict"]["cause"], j["verdict"]["text"] + j["verdict"]["advice"], j["rss_bytes"], 1 << 20
bad = []
def want(what, is_so):
    if not is_so:
        bad.append(what)
want("rows add up to %d, RSS is %d" % (sum(rows.values()), rss), sum(rows.values()) == rss)
if info != "-":
    heaps = [h for h in xml.parse(info).getroot().findall("heap")]
    want("%d arenas, malloc has %d" % (len(arenas), len(heaps)), len(arenas) == len(heaps))
    for a, h in zip(arenas, heaps):
        t = {(e.get("type")): e for e in h.findall("total")}
        at = a["address"] + ": "
        has_top = "INFO_WITHOUT_TOP" not in os.environ
        n, rest = int(t["rest"].get("count")) - has_top, int(t["rest"].get("size"))
        want(at + str(a["why_not"]), a["is_proved"])
        want(at + "size", int(h.find("system").get("size")) == a["system_bytes"])
        fast = t.get("fast", {"count": 0, "size": 0}) # 2.43 has none
        want(at + "fast chunks", (int(fast.get("count")), int(fast.get("size"))) == (a["fast_chunks"], a["fast_bytes"]))
        want(at + "chunks in bins", n == a["bins_chunks"])
        # malloc_info() counts flags of a chunk in a bin as bytes: 1 or 5 for each
        want(at + "bytes in bins and top", 0 <= rest - a["bins_bytes"] - has_top * a["top_bytes"] <= 5 * n)
        want(at + "free chunks", (a["free_chunks"], a["free_bytes"]) == (n + a["fast_chunks"], a["bins_bytes"] + a["fast_bytes"]))
        want(at + "cached blocks", a["cached_blocks"] == a["caches_blocks"])
        want(at + "unknown bytes", a["unknown_bytes"] == 0 or "smashed" in expression)
    mmapped = xml.parse(info).getroot().findall("total")
    mmapped = [e for e in mmapped if e.get("type") == "mmap"][0]
    want("mmapped blocks", (int(mmapped.get("count")), int(mmapped.get("size"))) == (glibc["mmapped_blocks"], glibc["mmapped_bytes"]))
    want("moved", row("moved") == 0)
if trimmed != "-":
    want("a trim returned %s KiB, not %d" % (trimmed, row("trimmable") >> 10), near(row("trimmable"), int(trimmed) << 10))
want(expression, eval("(" + expression + ")"))
planted = re.match(r'cause == "(\w+)"', expression)
if planted:
    print(name, "right" if cause == planted[1] else "wrong:" + cause, sep="\t", file=open(causes, "a"))
print("; ".join(bad) or "as planted")
sys.exit(bool(bad))
EOF

# judge NAME INFO TRIMMED EXPRESSION
judge() {
	local said
	[ "$status" = 0 ] && said=$(python3 "$work/judge.py" "$work/out" "$2" "$3" "$4" "$1" "$work/causes" 2>&1) &&
		ok "$1" ||
		not_ok "$1" "status $status; ${said:-}" "$work/err" "$work/out"
}

# planted HOW EXPRESSION [VARIABLE=VALUE]: a quiet program, exact to the chunk
planted() {
	local how=$1
	start env -C "$work" ${3:-} "$heaps" "$how" "$work/info.xml" || { not_ok "$how" "it did not start"; return; }
	step info
	footprint "$target" >"$work/before"
	explain -p "$target" -f json
	footprint "$target" >"$work/after"
	step trim
	judge "$how" "$work/info.xml" "$(sed -n 's/^DONE trimmed //p' "$work/target.out")" "$2"
	cmp -s "$work/before" "$work/after" && ok "$how: the process is as it was" ||
		not_ok "$how: the process is as it was" "$(diff "$work/before" "$work/after" | xargs)"
	finish_target
}

# planted_all: every way to leave a heap behind
planted_all() {
	planted live 'cause == "live" and 200000 <= max(glibc["sizes"], key=lambda s: s["bytes"])["blocks"] <= 200003 and 200000 <= total("live_blocks") <= 200003 and near(row("live"), 200000 * 208)'
	planted trim 'cause == "trimmable" and near(row("trimmable"), 100000 * 1008) and "malloc_trim(0) would return" in text'
	planted top 'cause == "trimmable" and near(row("trimmable"), 30000 * 1008, 0.02) and "of which free() keeps up to 40.0 MiB: MALLOC_TRIM_THRESHOLD_=" in text'
	planted pinned '100000 <= total("live_blocks") <= 100003 and near(row("pinned"), 100000 * 80) and "57 to 72 bytes pin" in text'
	planted binned '25000 <= total("live_blocks") <= 25003 and near(row("pinned"), 25000 * 1008) and "985 to 1000 bytes pin" in text'
	planted arenas 'cause == "arenas" and len(arenas) == 38 and "MALLOC_ARENA_MAX" in text'
	planted spread 'len(arenas) == 38 and row("trimmable") > 37 * 5000 * 300 * 0.9'
	planted deep 'cause == "trimmable" and len(arenas) == 2 and 200 <= total("live_blocks") <= 205 and arenas[1]["system_bytes"] > 128 * MiB'
	planted mmapped 'glibc["mmapped_blocks"] == 40 and near(row("live"), 40 << 20, 0.02)'
	planted advised 'cause == "live" and glibc["mmapped_blocks"] == 4 and near(row("live"), 32 << 20, 0.01)'
	planted trimmed 'row("trimmable") < 65536 and total("free_bytes") > 100000 * 1000'
	planted foreign '50000 <= total("live_blocks") <= 50003 and near(row("brk"), 40960, 0, 8192)'
	planted untouched 'cause == "live" and near(row("live"), 200000 * 208)'
	planted zeros 'cause == "live" and near(row("live"), 8 << 20) and glibc["mmapped_blocks"] == 2'
	planted forked 'cause == "forked" and near(row("live"), 200000 * 208)'
	planted smashed '"smashed" and 0 < row("unreadable") < 8192 and 199900 <= total("live_blocks") <= 200000'
}

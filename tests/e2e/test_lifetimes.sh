#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_lifetimes.sh - a program whose blocks have known sizes and live for known times (workloads/lifetimes.c): at rate
# 1 each is counted once and in its bin, whoever sees it; at a coarse one the sums are right within their errors. Who
# allocates most that is temporary is named.
. "$(dirname "$0")/lib.sh"
e2e_init lifetimes
have python3 || skip_all "python3 is not installed"
build_c lifetimes || { not_ok build "lifetimes.c"; e2e_end; }

# counted NAME RATE QUICK BRIEF LONG KEPT: what report says of $work/p.pb.gz; a finished or stopped recording
counted() {
	[ "$record_status" = 0 ] || not_ok "$1" "record: status $record_status" "$work/heaptap.err"
	"$heaptap" report --by function -f json "$work/p.pb.gz" >"$work/json" 2>"$work/err" &&
		python3 - "$work/json" "$work/target.out" "${@:2}" >"$work/verdict" 2>&1 <<'P' && ok "$1" || not_ok "$1" "see below" "$work/verdict" "$work/err"
import json, math, sys
d = json.load(open(sys.argv[1]))
longest = {s[1]: int(s[2]) for s in map(str.split, open(sys.argv[2])) if s[:1] == ["LIVED"]}
rate, *cnt = map(int, sys.argv[3:])
rows = {r["name"]: r for r in d["rows"]}
bad = 0

def is_right(what, is_it, *rest):
    global bad
    bad += not is_it
    print("" if is_it else "WRONG", what, *rest)

def right(what, got, n, size):
    p = 1 if rate == 1 else -math.expm1(-size / rate)
    is_right(what, abs(got - n) <= 4 * math.sqrt(n * (1 - p) / p), got, "is", n)

# the shortest that each lives
sites = {"site_quick": (32, 0), "site_brief": (32, 100000), "site_long": (4096, 50000000), "site_kept": (700, None)}
for (name, (size, least)), n in zip(sites.items(), cnt):
    r = rows.get(name)
    if not r:
        is_right(name, n * size < 20 * rate and rate > 1, "is missing")
        continue
    lives, sizes = r["lifetimes"], r["sizes"]
    right(name + ", sizes", sum(b["objects"] for b in sizes), n, size)
    is_right(name + ", one size", [b["from_bytes"] <= size < b["to_bytes"] for b in sizes] == [True], sizes)
    is_right(name + ", freed", abs(sum(b["objects"] for b in lives) - r["freed_objects"]) <= len(lives),
             r["freed_objects"], lives)
    if rate == 1:
        is_right(name + ", bytes", r["freed_bytes"] == r["freed_objects"] * size, r["freed_bytes"])
        is_right(name + ", share is exact", r["temporary_share_low"] == r["temporary_share_high"])
    if least is None:
        is_right(name + ", none is freed", lives == [] and r["freed_objects"] == 0, lives)
        continue
    right(name + ", lifetimes", sum(b["objects"] for b in lives), n, size)
    is_right(name + ", none too short", all(b["to_ns"] is None or b["to_ns"] > least for b in lives), lives)
    is_right(name + ", none too long", all(b["from_ns"] <= longest[name] for b in lives), lives, longest)
    if name == "site_quick":
        quick = sum(b["objects"] for b in lives if b["to_ns"] and b["to_ns"] <= 1000000)
        is_right("site_quick, most are", quick > n / 2, lives)

t = d["total"]
share = t["temporary_objects"] / sum(b["objects"] for b in t["sizes"])
is_right("the total's share", abs(share - t["temporary_share"]) < 1e-3, share, t["temporary_share"])
truth = (cnt[0] + cnt[1]) / sum(cnt) # but for those that a busy machine delays
half = max(t["temporary_share_high"] - truth, truth - t["temporary_share_low"], 0)
width = (t["temporary_share_high"] - t["temporary_share_low"]) / 2
is_right("its interval", half <= 3 * width + 0.1, truth, t["temporary_share_low"], t["temporary_share_high"])
sys.exit(bad != 0)
P
}
of_process() {
	start "${@:2}"
	eval "attach $1"
	work_recorded
}

# all ways to attach: tests/bpf/test_bins.c
launch --rate 1 -n 0 -q -- "$bin/lifetimes"
counted "every one" 1 10007 1009 503 211
"$heaptap" report --sort temporary "$work/p.pb.gz" >"$work/text" 2>&1
[ "$(sed -n '/^TEMPORARY/{n;p}' "$work/text" | grep -c ' exact  *32 B to 63 B .* site_quick')" = 1 ] &&
	ok "who allocates most that is temporary" || not_ok "who allocates most that is temporary" "is not first" "$work/text"
"$heaptap" report --by lifetime -f json "$work/p.pb.gz" >"$work/json" 2>"$work/err"
"$heaptap" report --by size -f json "$work/p.pb.gz" >"$work/sizes" 2>>"$work/err"
python3 - "$work" >"$work/verdict" 2>&1 <<'P' && ok "rows add up to what was allocated" || not_ok "rows add up" "they do not" "$work/verdict" "$work/err"
import json, sys
for name in "json", "sizes":
    d = json.load(open(f"{sys.argv[1]}/{name}"))
    assert sum(r["value"] for r in d["rows"]) == d["total"]["value"], d
    assert sum(r["objects"] for r in d["rows"]) == d["total"]["objects"], d
    bytes_of = {r["name"]: r["value"] for r in d["rows"]}
    assert name != "sizes" or (bytes_of["32 B to 63 B"] >= 32 * 11016 and bytes_of["4 KiB to 8 KiB"] >= 4096 * 503), d
    kept = [r for r in d["rows"] if r["name"] == "(not freed)"]
    assert name == "sizes" or kept[0]["objects"] >= 211, d
    assert not [r for r in d["rows"] if r["name"] == "(not known)"], d
P
launch --rate 16k -n 0 -q -- "$bin/lifetimes" 300000 100 8000 3000
counted "one in 16 KiB" 16384 300000 100 8000 3000

if [ "${HEAPTAP_VM:-0}" = 0 ]; then
	of_process "--rate 1 --tap=only --tap-exactly" "$bin/lifetimes"
	counted "the tap" 1 10007 1009 503 211
	lib=$e2e_top/.build/libheaptap-sampler.so
	of_process "--rate 1 --source usdt" env LD_PRELOAD="$lib" HEAPTAP_SAMPLER_RATE=1 "$bin/lifetimes"
	counted "a sampler in the program" 1 10007 1009 503 211
fi

# The same of a process that is followed; of what changed within a time nothing is said of it.
if have curl; then
	. "$e2e_dir/serve_lib.sh"
	begin lifetimes "$bin/lifetimes"
	serve --listen 127.0.0.1:0 --rate 1 --comm '^lifetimes$' --max-overhead off
	await 20 follows "${pid_of[lifetimes]}" || not_ok "follows" "does not" "$top/serve.err"
	work_of lifetimes
	heap="$url/debug/pprof/heap?pid=${pid_of[lifetimes]}"
	work=$top/lifetimes record_status=0
	get -f -o "$work/p.pb.gz" "$heap" || record_status=1
	counted "a process that serve follows" 1 10007 1009 503 211
	work=$top
	"$heaptap" report --by lifetime "$heap&seconds=1" >"$work/text" 2>"$work/err"
	[ $? = 1 ] && says "$work/err" 'the lifetimes of its blocks are unknown' && ok "within a time: says that it is unknown" ||
		not_ok "within a time" "does not say so" "$work/text" "$work/err"
	end_server "serve"
fi
e2e_end

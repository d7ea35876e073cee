#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_samplers.sh - programs that sample themselves, with samplers that others have published: Datadog's allocator of Rust,
# from crates.io. Part of `make torture`: its bindings take minutes to build.
# timeout: 900
. tests/e2e/lib.sh
e2e_init samplers
have python3 || skip_all "python3 is not installed"
bash "$loads/rust_ddheap/build" "$bin" >"$work/build.log" 2>&1 ||
	skip_all "cannot be built here: $(grep -m1 -iE 'error|not found' "$work/build.log")"

start "$bin/ddheap"
"$heaptap" doctor -p "$target" >"$work/doctor" 2>&1
says "$work/doctor" ddheap && ok "doctor finds it" || not_ok "doctor" "does not name ddheap" "$work/doctor"
record_start -p "$target"
await 20 says "$work/heaptap.err" "has its own sampler (ddheap of" || :
tell go
await 30 says "$work/target.out" '^DONE'
stop_recorder
finish_target
"$heaptap" report --notes "$work/p.pb.gz" >"$work/text" 2>&1
says "$work/text" 'source: usdt (ddheap)' && ok "its samples are read" || not_ok "its samples" "are not read" "$work/text" "$work/heaptap.err"
"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>"$work/err"
found=$(python3 - "$work/json" <<'PYTHON' 2>"$work/told"
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
told = []
for site, held, allocated in (("site_kept", 100e6, 100e6), ("site_grown", 50e6, 55e6), ("site_freed", 0, 200e6)):
    its = [r for r in rows if site in json.dumps(r)]
    inuse, alloc = (sum(r[key] for r in its) for key in ("inuse_bytes", "alloc_bytes"))
    # one sample stands for some 512 KiB; four standard errors
    for value, truth in ((inuse, held), (alloc, allocated)):
        error = (truth * 524288) ** 0.5
        assert abs(value - truth) <= 4 * error, (site, value, truth, error)
    told.append(f"{site} {inuse / 1e6:.0f} of {held / 1e6:.0f} MB")
print("; ".join(told))
PYTHON
) && ok "sums: $found" || not_ok "sums" "they are off" "$work/told" "$work/text"
! says "$work/text" '^ *1 .* dd_' && says "$work/text" 'site_kept' && ok "the first frame is the program's" ||
	not_ok "the first frame" "is the sampler's" "$work/text"
e2e_end

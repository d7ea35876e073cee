#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_explain_python.sh - heaptap explain of CPython, of each version that is here: its small objects are what its own statistics say, before and after most
# of them are freed, and the rows add up.
. "$(dirname "$0")/lib.sh"
e2e_init explain_python
have python3 || skip_all "python3 is not installed"
pythons=(python3)
for one in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.{7..99}.*/bin/python3; do
	[ -x "$one" ] && pythons+=("$one")
done

cat >"$work/target.py" <<'END'
import sys
kept = [str(i) * 9 for i in range(500000)]
def say():
    sys._debugmallocstats()
    print("READY", flush=True)
say()
sys.stdin.readline()
kept = kept[::10]
say()
sys.stdin.readline()
END
cat >"$work/judge.py" <<'END'
import json, re, sys
told = open(sys.argv[2]).read().split("Small block threshold")[-1]
said = lambda words: int(re.findall(r"^# " + words + r" += +([0-9,]+)$", told, re.M)[-1].replace(",", ""))
d = json.load(open(sys.argv[1]))
rows = {row["row"]: row["bytes"] for row in d["rows"]}
live, free = said("bytes in allocated blocks"), said("bytes in available blocks")
assert abs(rows["python_live"] - live) < 0.005 * live + 20000, (rows, live)
# beside free blocks there are headers and ends of pools; blocks that were never used may not be resident
assert free <= rows["python_free"] * 1.02 + 600000, (rows, free)
assert sum(rows.values()) == d["rss_bytes"], (rows, d["rss_bytes"])
if len(sys.argv) > 3:
    assert d["verdict"]["cause"] == sys.argv[3], d["verdict"]
END
# judge NAME [CAUSE]
judge() {
	local name=$1
	shift
	timeout 60 "$heaptap" explain -f json -p "$target" >"$work/out" 2>"$work/err"
	python3 "$work/judge.py" "$work/out" "$work/target.err" "$@" 2>"$work/said" && ok "$name" || not_ok "$name" "not so" "$work/said" "$work/err"
}
is_twice_ready() { [ "$(grep -c READY "$work/target.out")" = 2 ]; }
for python in "${pythons[@]}"; do
	"$python" -c 'import sys; sys._debugmallocstats()' 2>&1 | grep -q 'bytes in allocated blocks' || continue
	name=$("$python" --version 2>&1)
	start "$python" "$work/target.py" || { not_ok "$name" "did not start" "$work/target.err"; continue; }
	judge "$name: small objects, as sys._debugmallocstats() says" python_live
	tell go
	await 10 is_twice_ready || not_ok "$name: frees" "it did not" "$work/target.err"
	judge "$name: of ten one is left: free in pools" python_free
	tell end
done
e2e_end

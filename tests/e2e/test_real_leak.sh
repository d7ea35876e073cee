#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A leak planted in the middle of a real program: an extension of sqlite3 that loses blocks on one
# path. At the default rate it is the first row of the report, with the right size, and its stack
# goes through the extension.
. "$(dirname "$0")/lib.sh"
e2e_init real_leak

have sqlite3 || skip_all "sqlite3 is not installed"
OUT=leakymodule.so build_c leaky_module -shared -fPIC || skip_all "sqlite3ext.h is not installed"
# A table of some MiB in memory, indexes, and 40 000 remembered texts of 1000 bytes; half of them
# begin with x and are lost.
cat >"$work/load.sql" <<S
.load $bin/leakymodule
create table t(id integer primary key, v text);
S
cat >"$work/work.sql" <<'S'
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
	insert into t select i, hex(randomblob(40)) from n;
create index byv on t(v);
select count(normalise(v)) from t;
select sum(remember(case when id % 2 then 'x' else 'y' end || substr(hex(zeroblob(500)), 2))) from
	(select id from t union all select id from t);
.print DONE
S
start_sqlite() {
	rm -f "$work/target.in"
	mkfifo "$work/target.in"
	: >"$work/target.out"
	sqlite3 :memory: <"$work/target.in" >"$work/target.out" 2>"$work/target.err" &
	owned target
	exec {target_in}>"$work/target.in"
	cat "$work/load.sql" >&"$target_in"
	tell ".print READY"
	await 20 says "$work/target.out" READY
}
start_sqlite || not_ok "sqlite3" "did not start" "$work/target.err"
attach -n 5
cat "$work/work.sql" >&"$target_in"
await 60 is_done || not_ok "sqlite3" "did not finish" "$work/target.err"
stop_recorder
tell ".quit"
finish_target
[ "$record_status" = 0 ] || not_ok "record" "status $record_status" "$work/heaptap.err"

"$heaptap" report "$work/p.pb.gz" --by function --format json >"$work/functions.json" 2>"$work/report.err"
"$heaptap" report "$work/p.pb.gz" --format json >"$work/stacks.json" 2>>"$work/report.err"
"$heaptap" report "$work/p.pb.gz" >"$work/report.txt" 2>>"$work/report.err"
python3 - "$work" >"$work/verdict" 2>&1 <<'P'
import json, sys
top = json.load(open(sys.argv[1] + "/stacks.json"))
text = json.dumps(top)
rows = top["rows"] if isinstance(top, dict) else top
first = json.dumps(rows[0])
print("first:", first[:300])
for name in ("cache_copy", "cache_store", "remember"):
    if name not in first:
        print("MISSING", name)
P
! grep -q MISSING "$work/verdict" && grep -q "^first:" "$work/verdict" &&
	ok "the leaking function is the first row of the report" ||
	not_ok "first row of the report" "is another one" "$work/verdict" "$work/report.txt" "$work/report.err"
grep -m1 -n "cache_copy" "$work/report.txt" >/dev/null && ok "and in the text" ||
	not_ok "text report" "does not name it" "$work/report.txt"
grep -q cache_copy "$work/heaptap.out" && ok "and in what record prints at its end" ||
	not_ok "what record prints" "does not name it" "$work/heaptap.out"
# 20 000 lost and 60 kept (one slot: all texts are as long), of 1000 bytes: 20 MB. At one sample per
# 64 KiB the standard error is sqrt(20 MB * 64 KiB) = 1.15 MB: four of them
bytes=$(go tool pprof -sample_index=inuse_space -unit=B -focus=cache_store -top "$work/p.pb.gz" 2>/dev/null |
	awk '$NF == "cache_copy" { sub("B", "", $1); print $1; exit }')
if [ -z "$bytes" ]; then
	skip "its size" "no go tool pprof"
elif [ "$bytes" -gt 15400000 ] && [ "$bytes" -lt 24600000 ]; then
	ok "its size: $bytes bytes of 20 MB"
else
	not_ok "its size" "$bytes bytes, must be about 20 MB"
fi
e2e_end

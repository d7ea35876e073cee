#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 1200
# Programs that hold memory when they are recorded, by probes and by the tap: nothing is called older than the recording that was
# not there when it began, by size and by C++ class as `heaptap explain` has them then, and the rows add up.
# BEFORE_ONLY=PATTERN: these.
COMPARE=none
. "$(dirname "$0")/../e2e/lib.sh"
e2e_init before
own=$work/own
mkdir -p "$own"

cat >"$work/judge.py" <<'EOP'
import json, sys
report, first = (json.load(open(name)) for name in sys.argv[1:3])
rows, before, glibc = report["resident"]["rows"], report["allocated_before"], first["glibc"]
bad = []
for when in "begin_bytes", "end_bytes":
    if sum(row[when] or 0 for row in rows) != report["resident"][when]:
        bad.append("the rows do not add up to " + when)
there = sum(a["live_blocks"] for a in glibc["arenas"]) + glibc["mmapped_blocks"]
size = {s["from_bytes"]: s["blocks"] for s in glibc["sizes"]}
types = {c["name"]: c["blocks"] for c in first["classes"]}
# the program ran while it was read
more = lambda low, cnt: low > cnt * 1.005 + 50
if before and more(before["objects_low"], there):
    bad.append("%d older blocks at least, of %d" % (before["objects_low"], there))
for c in before["classes"] if before else []:
    cnt = types.get(c["class"], 0) if c["class"] else size.get(c["from_bytes"], 0)
    if more(c["objects_low"], cnt):
        bad.append("%s: %d at least, of %d" % (c["class"] or c["from_bytes"], c["objects_low"], cnt))
if sys.argv[3] == "known--rate 1" and not (before and before["objects_low"] > 0 and before["classes"]):
    bad.append("nothing is known to be older")
known = before and "%d of %d (%d to %d), %d classes" % (before["objects"], there, before["objects_low"], before["objects_high"], len(before["classes"]))
print("; ".join(bad) or "older: %s" % known)
sys.exit(bool(bad))
EOP

# recorded NAME WANT PROGRAM...: it says READY, works when it is told $line, and says DONE. WANT known: where every allocation is
# kept, some blocks are certainly older; of a runtime with a heap of its own it is unknown. The process is the one that it
# names in $own/pid, if it does.
recorded() {
	local name=$1 want=$2 way said pid
	shift 2
	[[ $name == ${BEFORE_ONLY:-*} ]] || return
	have "$1" || { skip "$name" "no $1"; return; }
	for way in "--rate 1" "--rate 16K" "" "--tap"; do
		start "$@" || { not_ok "$name $way" "it did not start" "$work/target.err"; kill_target; continue; }
		pid=$(cat "$own/pid" 2>/dev/null || echo "$target")
		record_start -p "$pid" $way
		rows_are_read
		timeout 60 "$heaptap" explain -f json -p "$pid" >"$work/first" 2>"$work/err"
		tell "${line:-go}"
		await 60 says "$work/target.out" ^DONE
		sleep 1
		stop_recorder
		"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>>"$work/err"
		said=$(python3 "$work/judge.py" "$work/json" "$work/first" "$want$way" 2>&1) && ok "$name $way: $said" ||
			not_ok "$name $way" "$said" "$work/heaptap.err" "$work/err"
		kill_target
	done
}

recorded python known env PYTHONMALLOC=malloc python3 -uc 'a = [bytes(1000) for i in range(50000)]
print("READY")
input()
b = [bytes(1000) for i in range(20000)] + [bytes(24) for i in range(50000)]
del a[::2]
print("DONE")
input()'
line="insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select randomblob(500) from n;
.print DONE"
recorded sqlite3 known stdbuf -oL sqlite3 -cmd 'create table t(b);' \
	-cmd 'insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select randomblob(500) from n;' \
	-cmd '.print READY' :memory:
line=
recorded node any node -e 'const keep = [];
for (let i = 0; i < 3000; i++) keep.push(Buffer.alloc(20000, 1));
console.log("READY");
process.stdin.on("data", () => {
	for (let i = 0; i < 3000; i++) keep.push(Buffer.alloc(20000, 1));
	console.log("DONE");
});'
if have javac && have java; then
	cat >"$own/Older.java" <<-'END'
		import java.nio.ByteBuffer;
		import java.util.*;
		public class Older {
			static List<ByteBuffer> keep = new ArrayList<>();
			static void more() { for (int i = 0; i < 2000; i++) keep.add(ByteBuffer.allocateDirect(20000)); }
			public static void main(String[] a) throws Exception {
				more();
				System.out.println("READY");
				System.in.read();
				more();
				System.out.println("DONE");
				Thread.sleep(100000);
			}
		}
	END
	(cd "$own" && javac Older.java) >"$work/log" 2>&1
	recorded java any java -Xmx100m -cp "$own" Older
else
	skip java "no javac"
fi
# a backend of postgres
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if [[ postgres == ${BEFORE_ONLY:-*} ]] && [ -x "$pg/postgres" ] && have psql && have setpriv; then
	chmod 711 "$work" "$own" && mkdir -p "$own/pg" && chown postgres "$own/pg"
	as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
	"${as[@]}" "$pg/initdb" -D "$own/pg/data" >"$work/log" 2>&1
	"${as[@]}" "$pg/postgres" -D "$own/pg/data" -k "$own/pg" -c listen_addresses= >"$work/log" 2>&1 &
	postgres=$!
	e2e_pids="$e2e_pids $postgres"
	await 20 test -S "$own/pg/.s.PGSQL.5432"
	cat >"$own/backend" <<-END
		rm -f $own/answers
		exec 3> >(exec ${as[*]} psql -h $own/pg -qAt postgres >$own/answers)
		told() { until grep -q ^\$1 $own/answers 2>/dev/null; do sleep 0.1; done; }
		echo "prepare p as select * from pg_class; select 'PID ' || pg_backend_pid();" >&3
		told PID
		sed -n 's/^PID //p' $own/answers >$own/pid
		echo READY
		read line
		echo "select count(*) from (select md5(i::text) m from generate_series(1, 100000) i order by m offset 0) s; select 'DONE';" >&3
		told DONE
		echo DONE
		sleep 100
	END
	recorded postgres known bash "$own/backend"
	rm -f "$own/pid"
	kill -INT "$postgres"
else
	skip postgres "not installed"
fi
e2e_end

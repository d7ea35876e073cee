#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_explain_runtimes.sh - heaptap explain of programs whose runtime has a heap of its own, of each version that is here: its
# size is what the program says, and the rows add up. RUNTIME_NODES, RUNTIME_GOS, RUNTIME_JAVAS: others as well.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init explain_runtimes

cat >"$work/judge.py" <<'END'
import json, sys
j, said, expression = json.load(open(sys.argv[1])), [int(w) for w in sys.argv[2].split()], sys.argv[3]
rows = {r["row"]: r["bytes"] for r in j["rows"]}
row, cause, MiB = lambda name: rows.get(name, 0), j["verdict"]["cause"], 1 << 20
java, go, v8 = (j["runtimes"].get(name, {}) for name in ("java", "go", "v8"))
near = lambda a, b, part=0.02, least=MiB: abs(a - b) <= max(part * b, least)
print(said, rows, j["runtimes"], cause)
sys.exit(not (sum(rows.values()) == j["rss_bytes"] and abs(row("moved")) < 0.02 * j["rss_bytes"] and eval("(" + expression + ")")))
END
# judge NAME EXPRESSION: said[0] and so on are the numbers behind the last READY
judge() {
	timeout 60 "$heaptap" explain -f json -p "$target" >"$work/out" 2>"$work/err" </dev/null
	python3 "$work/judge.py" "$work/out" "$(sed -n 's/^READY //p' "$work/target.out" | tail -n 1)" "$2" >"$work/said" 2>&1 &&
		ok "$1" || not_ok "$1" "not so" "$work/said" "$work/err"
}
is_twice_ready() { [ "$(grep -c READY "$work/target.out")" = 2 ]; }

cat >"$work/Held.java" <<'END'
import java.lang.management.*;
public class Held {
	public static void main(String[] a) throws Exception {
		byte[][] keep = new byte[60000][];
		for (int i = 0; i < keep.length; i++) keep[i] = new byte[1000];
		System.gc();
		MemoryUsage u = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
		System.out.println("READY " + u.getUsed() + " " + u.getCommitted());
		System.in.read();
		System.out.println(keep.length);
	}
}
END
if have javac && (cd "$work" && javac --release 11 Held.java) >"$work/log" 2>&1; then
	for java in java /usr/lib/jvm/temurin-*/bin/java ${RUNTIME_JAVAS:-}; do
		have "$java" || continue
		name=$("$java" -version 2>&1 | sed -n '1s/.*"\(.*\)".*/Java \1/p')
		for gc in G1 Serial Parallel; do
			start "$java" -XX:+Use${gc}GC -Xmx192m -cp "$work" Held || { not_ok "$name, $gc" "did not start" "$work/target.err"; continue; }
			# committed: without the survivor space that is empty
			judge "$name, $gc: its heap" 'cause == "java" and java["reserved_bytes"] == 192 * MiB and
				near(java["last_counted_used_bytes"], said[0], 0.03, 2 * MiB) and near(java["committed_bytes"], said[1], 0.1, 9 * MiB) and
				said[0] < row("java") + 2 * MiB and row("java") <= java["committed_bytes"]'
			tell end
		done
	done
	start java -XX:-UsePerfData -XX:+UseSerialGC -Xmx192m -cp "$work" Held
	judge "Java without counters: by mapping" 'not java and row("anonymous") > 60 * MiB'
	tell end
else
	skip Java "no javac"
fi

build_go go_heap >/dev/null 2>&1 || skip Go "no Go"
for program in "$bin/go_heap" ${RUNTIME_GOS:-}; do
	[ -x "$program" ] || continue
	name=$(strings "$program" 2>/dev/null | grep -m 1 -o '^go1\.[0-9.]*$' || echo Go)
	# What the runtime returns is taken by the kernel only when memory is short, so it stays resident.
	start env GODEBUG=madvdontneed=0 "$program" || { not_ok "$name" "did not start"; continue; }
	judge "$name: spans in use, as runtime.MemStats says" 'cause == "go_live" and near(go["span_bytes"], said[0], 0.01, 256 << 10) and
		near(row("go_live"), said[0], 0.05) and said[2] * 0.95 <= row("go_free") <= said[1] + MiB'
	tell go
	await 20 is_twice_ready || not_ok "$name: frees" "it did not"
	judge "$name: of ten one is left: free" 'near(go["span_bytes"], said[0], 0.02, 256 << 10) and said[2] * 0.95 <= row("go_free") <= said[1] + MiB'
	tell end
done
# more than is searched for what names the spans: these are not in the heap itself
if [ -x "$bin/go_heap" ]; then
	start "$bin/go_heap" 400 || not_ok "Go: 400 MiB" "did not start"
	judge "Go: 400 MiB in large objects" 'near(row("go_live"), said[0], 0.05) and row("anonymous") < 8 * MiB'
	tell end
fi

cat >"$work/held.js" <<'END'
const keep = [], v8 = require('v8');
for (let i = 0; i < 300000; i++) keep.push({ a: i, b: 'x' + i });
gc();
console.log('READY', v8.getHeapStatistics().total_physical_size, v8.getHeapStatistics().used_heap_size);
process.stdin.on('data', () => process.exit(keep.length ? 0 : 1));
END
for node in node ${RUNTIME_NODES:-}; do
	have "$node" || { skip Node "no node"; continue; }
	name="Node $("$node" --version)"
	start "$node" --expose-gc "$work/held.js" || { not_ok "$name" "did not start" "$work/target.err"; continue; }
	judge "$name: pages of V8" 'v8["isolates"] == 1 and near(row("v8"), said[0], 0.05, 2 * MiB) and v8["allocated_bytes"] > said[1] * 0.95'
	tell end
done

# record and serve have the same rows
. "$e2e_dir/serve_lib.sh"
sharing=own
if have node && have curl && start node --expose-gc "$work/held.js"; then
	timeout 60 "$heaptap" record -d 1s -p "$target" -o "$work/p.pb.gz" >"$work/said" 2>&1 </dev/null
	grep -q 'Resident .*V8 heap [34][0-9]' "$work/said" && ok "record: its row" || not_ok "record: its row" "" "$work/said"
	serve --listen 127.0.0.1:0 -p "$target"
	has_row() { get -f -o "$work/metrics" "$url/metrics" && grep -qE "^heaptap_resident_bytes\{pid=\"$target\",.*kind=\"v8\"\} [34][0-9]{7}$" "$work/metrics"; }
	await 20 has_row && ok "serve: its row" || not_ok "serve: its row" "" "$work/metrics" "$work/serve.err"
	tell end
fi
e2e_end

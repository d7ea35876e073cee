#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 600
# `heaptap explain` of programs as Debian has them, held against what each says of its own memory.
# PROGRAMS_ONLY=PATTERN: these.
COMPARE=none
. "$(dirname "$0")/../e2e/lib.sh"
e2e_init explained
own=$work/own
mkdir -p "$own"

# wanted NAME PROGRAM...: is it asked for, and are they here?
wanted() {
	local name=$1 program
	shift
	[[ $name == ${PROGRAMS_ONLY:-*} ]] || return 1
	for program; do
		have "$program" || [ -x "$program" ] || { skip "$name" "no $program"; return 1; }
	done
}
# begin_it COMMAND...: in the background; its pid in $it
begin_it() {
	"$@" >"$work/it.out" 2>&1 &
	it=$!
	e2e_pids="$e2e_pids $it"
}
end_it() {
	kill "$it" 2>/dev/null
	wait "$it" 2>/dev/null
}
# explained NAME EXPRESSION NUMBER...: of the rows, and of the numbers that the program says, own[0] and so on
explained() {
	local name=$1 expression=$2 said
	shift 2
	timeout 60 "$heaptap" explain -f json -p "$it" >"$work/json" 2>"$work/err"
	said=$(python3 - "$work/json" "$expression" "$@" 2>&1 <<'EOP'
import json, sys
j, own, MiB = json.load(open(sys.argv[1])), [float(n) for n in sys.argv[3:]], 1 << 20
rows = {r["row"]: r["bytes"] for r in j["rows"]}
row, rss, cause = lambda *names: sum(rows.get(name, 0) for name in names), j["rss_bytes"], j["verdict"]["cause"]
je = j["jemalloc"][0] if j["jemalloc"] else {}
near = lambda a, b, part=0.02, least=MiB: abs(a - b) <= max(part * b, least)
print(j["verdict"]["text"], own, "" if sum(rows.values()) == rss and eval("(" + sys.argv[2] + ")") else "NOT SO: " + str(rows))
EOP
	)
	[[ $said == *"NOT SO"* || $said == *Traceback* || -z $said ]] && not_ok "$name" "$said" "$work/err" "$work/json" || ok "$name | $said"
}

if wanted redis redis-server redis-cli; then
	begin_it redis-server --port 0 --unixsocket "$own/redis" --save '' --dir "$own"
	await 10 test -S "$own/redis"
	cli() { redis-cli -s "$own/redis" "$@"; }
	info() { cli info memory | tr -d '\r' | sed -n "s/^$1://p"; }
	cli eval "for i = 1, 400000 do redis.call('set', 'key:' .. i, string.rep('x', 100)) end" 0 >/dev/null
	explained "redis, full" 'near(je["live_bytes"], own[0]) and near(je["active_bytes"], own[1])' "$(info allocator_allocated)" "$(info allocator_active)"
	cli eval "for i = 1, 400000 do if i % 10 ~= 0 then redis.call('del', 'key:' .. i) end end" 0 >/dev/null
	cli memory purge >/dev/null
	explained "redis, after 90 % were deleted" 'near(je["live_bytes"], own[0]) and near(je["active_bytes"], own[1]) and cause == "jemalloc_pinned"' \
		"$(info allocator_allocated)" "$(info allocator_active)"
	end_it
fi
if wanted memcached memcached; then
	begin_it memcached -u root -m 128 -s "$own/memcached"
	await 10 test -S "$own/memcached"
	stored=$(python3 -c "
import socket
s = socket.socket(socket.AF_UNIX)
s.connect('$own/memcached')
f = s.makefile('rb')
for i in range(200000):
    s.sendall(b'set k%d 0 0 200 noreply\r\n' % i + b'x' * 200 + b'\r\n')
s.sendall(b'stats\r\nstats slabs\r\n')
own, ends = {}, 0
while ends < 2:
    words = f.readline().split()
    ends += words == [b'END']
    if words[:1] == [b'STAT']:
        own[words[1]] = words[2]
print(int(own[b'bytes']), int(own[b'total_malloced']))")
	explained memcached 'own[0] < row("live") < own[1] * 1.1 + 4 * MiB' $stored
	end_it
fi
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if wanted postgres "$pg/postgres" psql setpriv; then
	chmod 711 "$work" "$own" && mkdir -p "$own/pg" && chown postgres "$own/pg"
	as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
	"${as[@]}" "$pg/initdb" -D "$own/pg/data" >"$work/log" 2>&1
	begin_it "${as[@]}" "$pg/postgres" -D "$own/pg/data" -k "$own/pg" -c listen_addresses=
	postgres=$it
	await 20 test -S "$own/pg/.s.PGSQL.5432"
	mkfifo "$own/sql"
	"${as[@]}" psql -h "$own/pg" -qAt postgres <"$own/sql" >"$own/answers" 2>&1 &
	e2e_pids="$e2e_pids $!"
	exec {sql}>"$own/sql"
	echo "set work_mem = '200MB'; select count(*) from (select md5(i::text) m from generate_series(1, 400000) i order by m offset 0) s;
		select pg_backend_pid(), sum(total_bytes) from pg_backend_memory_contexts;" >&"$sql"
	await 60 grep -q '|' "$own/answers"
	it=$(sed -n 's/|.*//p' "$own/answers")
	explained "postgres, after a sort" 'row("live") < own[0] * 1.3 + 2 * MiB' "$(sed -n 's/.*|//p' "$own/answers")"
	exec {sql}>&-
	it=$postgres
	kill -INT "$it"
	end_it
fi
if wanted node-buffers node; then
	begin_it node -e 'const keep = []; for (let i = 0; i < 1000; i++) keep.push(Buffer.alloc(100000, 1));
		console.log(process.memoryUsage().arrayBuffers); setInterval(() => keep, 1e6)'
	await 20 grep -q . "$work/it.out"
	explained "node with Buffers" 'near(row("live"), own[0], 0.1, 16 * MiB) and row("v8") > MiB' "$(cat "$work/it.out")"
	end_it
fi
if wanted jvm java javac; then
	cat >"$own/Direct.java" <<-'END'
		import java.lang.management.*;
		import java.nio.ByteBuffer;
		public class Direct {
			public static void main(String[] a) throws Exception {
				ByteBuffer[] keep = new ByteBuffer[1000];
				for (int i = 0; i < keep.length; i++) {
					keep[i] = ByteBuffer.allocateDirect(65536);
					for (int k = 0; k < 65536; k += 64) keep[i].put(k, (byte) 1);
				}
				for (BufferPoolMXBean b : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class))
					if (b.getName().equals("direct")) System.out.println(b.getMemoryUsed());
				Thread.sleep(100000);
				System.out.println(keep.length);
			}
		}
	END
	(cd "$own" && javac Direct.java) >"$work/log" 2>&1
	begin_it java -Xmx100m -cp "$own" Direct
	await 30 grep -q . "$work/it.out"
	explained "a JVM with direct buffers" 'own[0] < row("live") < own[0] + 64 * MiB and row("java") > MiB / 4' "$(cat "$work/it.out")"
	end_it
fi
if wanted php php; then
	begin_it php -r '$a = []; for ($i = 0; $i < 500000; $i++) $a[] = str_repeat("x", 100); echo memory_get_usage(true), "\n"; sleep(100);'
	await 20 grep -q . "$work/it.out"
	explained "PHP, whose heap is its own" 'near(row("anonymous", "named"), own[0], 0.1, 4 * MiB) and row("live") < 8 * MiB' "$(cat "$work/it.out")"
	end_it
fi
if wanted nginx nginx; then
	cat >"$own/nginx.conf" <<-END
		daemon off; master_process off; pid $own/nginx.pid; error_log $own/nginx.log; worker_rlimit_nofile 200000;
		events { worker_connections 100000; }
		http { access_log off; server { listen unix:$own/nginx; return 200 ok; } }
	END
	begin_it nginx -c "$own/nginx.conf"
	await 20 test -S "$own/nginx"
	sleep 1
	# of its source: a connection has 232 bytes, and two events of 96 each
	explained "nginx, which has room for 100,000 connections" 'near(row("live"), own[0] * (232 + 2 * 96), 0.1, MiB) and cause == "live"' 100000
	end_it
fi
if wanted rust rustc; then
	cat >"$own/server.rs" <<-'END'
		use std::{alloc::*, collections::HashMap, env, io::*, os::unix::net::UnixListener, sync::atomic::*};
		struct Counted;
		static BLOCKS: AtomicUsize = AtomicUsize::new(0);
		static BYTES: AtomicUsize = AtomicUsize::new(0);
		unsafe impl GlobalAlloc for Counted {
			unsafe fn alloc(&self, l: Layout) -> *mut u8 {
				BLOCKS.fetch_add(1, Ordering::Relaxed);
				BYTES.fetch_add(l.size(), Ordering::Relaxed);
				System.alloc(l)
			}
			unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
				BLOCKS.fetch_sub(1, Ordering::Relaxed);
				BYTES.fetch_sub(l.size(), Ordering::Relaxed);
				System.dealloc(p, l)
			}
		}
		#[global_allocator]
		static HEAP: Counted = Counted;
		fn main() {
			let mut kept: HashMap<usize, Vec<u8>> = HashMap::new();
			for stream in UnixListener::bind(env::args().nth(1).unwrap()).unwrap().incoming() {
				let mut lines = BufReader::new(stream.unwrap());
				let mut line = String::new();
				lines.read_line(&mut line).unwrap();
				match line.trim() {
					"put" => for i in 0..300000 { kept.insert(i, vec![1; 100 + i % 400]); },
					_ => kept.retain(|i, _| i % 10 == 0),
				}
				let (blocks, bytes) = (BLOCKS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
				writeln!(lines.get_mut(), "{} {}", blocks, bytes).unwrap();
			}
		}
	END
	rustc -O -o "$own/server" "$own/server.rs" >"$work/log" 2>&1 || not_ok rust "it is not compiled" "$work/log"
	begin_it "$own/server" "$own/rust"
	await 20 test -S "$own/rust"
	ask() { python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
print(s.makefile().readline())' "$own/rust" "$1"; }
	blocks='sum(a["live_blocks"] for a in j["glibc"]["arenas"]) + j["glibc"]["mmapped_blocks"]'
	full=$(ask put)
	explained "a Rust server" "near($blocks, own[0], 0.001, 50) and near(row('live'), own[1] + 16 * own[0], 0.03)" $full
	explained "... after 90 % were deleted" "near($blocks, own[0], 0.001, 50) and row('pinned') + row('trimmable') + row('kept') > 0.95 * (own[3] - own[1])" \
		$(ask del) $full
	end_it
fi
venv=$(realpath -m "${SIBLINGS_BUILD:-.build/siblings}")/venv/bin/python
if wanted pandas "$venv"; then
	begin_it "$venv" -uc 'import signal, time
import numpy, pandas
frame = pandas.DataFrame({c: numpy.arange(500000) + ord(c) for c in "abcdefghij"})
def drop(*_):
    global frame
    del frame
    print("gone")
signal.signal(signal.SIGUSR1, drop)
print(frame.memory_usage().sum())
while True:
    time.sleep(100)'
	await 60 grep -q . "$work/it.out"
	bytes=$(head -n 1 "$work/it.out")
	explained "python with pandas" 'row("live") > own[0] * 0.99' "$bytes"
	live=$(python3 -c 'import json, sys; print({r["row"]: r["bytes"] for r in json.load(open(sys.argv[1]))["rows"]}["live"])' "$work/json")
	kill -USR1 "$it"
	await 20 grep -q gone "$work/it.out"
	explained "... after the frame was dropped" 'near(own[1] - row("live"), own[0], 0.02)' "$bytes" "${live:-0}"
	end_it
fi
if wanted python python3; then
	begin_it python3 -uc 'import time; a = [bytes(1000) for i in range(50000)]; b = [str(i) for i in range(10**6)]; print(50000 * 1033, 10**6 * 56); time.sleep(100)'
	await 20 grep -q . "$work/it.out"
	explained "python with bytes and small objects" 'own[0] * 0.98 < row("live") < own[0] + 24 * MiB and own[1] * 0.95 < row("python_live") < own[1] * 1.3 + 8 * MiB' $(cat "$work/it.out")
	end_it
fi
e2e_end

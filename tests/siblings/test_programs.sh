#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 1200
# Programs as Debian and the registries have them, recorded with the command that a person types, without an option that
# changes what is recorded: most answers are a number of bytes in use; none is 0 where it is unknown. Those that are busy
# and not started by heaptap may be UNKNOWN: then the answer has the command that knows.
# PROGRAMS_ONLY=PATTERN: these.
COMPARE=none
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/lib.sh"
e2e_init programs
own=$work/own
mkdir -p "$own"
known=0 asked=0
unknown_ones=

# judged NAME: of p.pb.gz and what was printed
judged() {
	local said
	said=$("$heaptap" report -f json "$work/p.pb.gz" 2>"$work/err" | python3 -c "
import json, sys
d = json.load(sys.stdin)
text = open('$work/said').read()
total = d['total'].get('inuse_bytes')
if d['inuse'] == 'unknown':
    assert total is None, f'{total} bytes in use, and unknown'
    assert 'unknown' in text.lower() and 'heaptap ' in text, 'unknown, and not said with a command that knows'
    print('unknown')
else:
    peak = (d.get('peak') or {}).get('bytes') or 0
    print(f\"{d['inuse']}: {(total or 0) / 1e6:.2f} MB in use, peak {peak / 1e6:.2f} MB\")
" 2>&1)
	asked=$((asked + 1))
	case $said in
	unknown) unknown_ones="$unknown_ones $1" ;;
	*"MB in use"*) known=$((known + 1)) ;;
	*) not_ok "$1" "$(tail -n 1 <<<"$said")" "$work/said" "$work/err"; return ;;
	esac
	ok "$1 | $said"
}
# wanted NAME PROGRAM...: is it asked for, and are they here?
wanted() {
	local name=$1 program
	shift
	[[ $name == ${PROGRAMS_ONLY:-*} ]] || return 1
	for program; do
		have "$program" || [ -e "$program" ] || { skip "$name" "no $program"; return 1; }
	done
}
# of_running NAME ARGS...: heaptap record -d 5s ARGS
of_running() {
	local name=$1
	shift
	(cd "$work" && timeout 90 "$heaptap" record --force -o p.pb.gz -d 5s "$@") >"$work/said" 2>&1 || {
		not_ok "$name" "heaptap's status is $?" "$work/said"
		return
	}
	judged "$name"
}
# started NAME ARGS...: heaptap record ARGS, where ARGS have -- COMMAND
started() {
	local name=$1
	shift
	(cd "$own" && timeout 180 "$heaptap" record --force -o "$work/p.pb.gz" "$@") >"$work/out" 2>"$work/said" || {
		not_ok "$name" "the status is $?" "$work/said"
		return
	}
	judged "$name"
}
# begin_it COMMAND...: in the background; its pid in $it
begin_it() {
	"$@" >"$work/it.out" 2>&1 </dev/null &
	it=$!
	e2e_pids="$e2e_pids $it"
}
end_it() {
	kill "$@" 2>/dev/null
	wait "$@" 2>/dev/null
}
# every COMMAND: again and again, in the background; its pid in $load
every() {
	(trap 'kill $(jobs -p) 2>/dev/null' EXIT; while "$@" >/dev/null 2>&1 || sleep 0.1; do :; done) &
	load=$!
	e2e_pids="$e2e_pids $load"
}

if wanted redis redis-server redis-benchmark; then
	begin_it redis-server --port 0 --unixsocket "$own/redis" --save '' --dir "$own"
	await 10 test -S "$own/redis"
	every redis-benchmark -s "$own/redis" -q -n 100000 -r 100000 -d 200 -t set,lpush,hset
	of_running redis -p "$it"
	end_it "$load" "$it"
fi
if wanted mariadb mariadbd mariadb-install-db mariadb-slap; then
	mkdir -p "$own/maria" && mariadb-install-db --no-defaults --user=root --datadir="$own/maria" >"$work/log" 2>&1
	begin_it mariadbd --no-defaults --user=root --datadir="$own/maria" --skip-networking --socket="$own/maria.sock"
	await 30 test -S "$own/maria.sock"
	every mariadb-slap --no-defaults --socket="$own/maria.sock" --auto-generate-sql --concurrency=4 --number-of-queries=2000
	of_running mariadb -p "$it"
	end_it "$load" "$it"
fi
pg=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if wanted postgres "$pg/postgres" pgbench setpriv; then
	chmod 711 "$work" "$own" && mkdir -p "$own/pg" && chown postgres "$own/pg"
	as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
	"${as[@]}" "$pg/initdb" -D "$own/pg/data" >"$work/log" 2>&1
	begin_it "${as[@]}" "$pg/postgres" -D "$own/pg/data" -k "$own/pg" -c listen_addresses=
	await 20 test -S "$own/pg/.s.PGSQL.5432"
	sleep 1
	"${as[@]}" pgbench -h "$own/pg" -i -q postgres >>"$work/log" 2>&1
	every "${as[@]}" pgbench -h "$own/pg" -c 4 -T 30 postgres
	of_running postgres --follow -p "$it"
	end_it "$load"
	kill -QUIT "$it"
	wait "$it" 2>/dev/null
fi
if wanted memcached memcached; then
	begin_it memcached -u root -s "$own/memcached"
	await 10 test -S "$own/memcached"
	begin_it_load() {
		python3 -c "
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect('$own/memcached')
for i in range(10 ** 9):
    s.sendall(b'set k%d 0 0 200\r\n' % (i % 100000) + b'x' * 200 + b'\r\n')
    s.recv(100)
"
	}
	every begin_it_load
	of_running memcached -p "$it"
	end_it "$load" "$it"
fi
if wanted nginx nginx; then
	mkdir -p "$own/www" && head -c 20000 /dev/urandom >"$own/www/x"
	cat >"$own/nginx.conf" <<-END
		daemon off; error_log stderr; pid $own/nginx.pid; worker_processes 1; events {}
		http { access_log off; client_body_temp_path $own; proxy_temp_path $own; fastcgi_temp_path $own; uwsgi_temp_path $own;
			scgi_temp_path $own; gzip on; gzip_types *; server { listen unix:$own/nginx.sock; root $own/www; } }
	END
	chmod 755 "$work" "$own"
	begin_it nginx -c "$own/nginx.conf"
	nginx=$it
	await 10 test -S "$own/nginx.sock"
	every curl -s -o /dev/null --compressed --unix-socket "$own/nginx.sock" 'http://x/x' 'http://x/x' 'http://x/x'
	of_running nginx -p "$(pgrep -P "$nginx" | head -n 1)"
	if wanted haproxy haproxy; then
		cat >"$own/haproxy.cfg" <<-END
			global
			 maxconn 100
			defaults
			 mode http
			 timeout client 9s
			 timeout server 9s
			 timeout connect 9s
			listen all
			 bind unix@$own/haproxy.sock
			 server nginx unix@$own/nginx.sock
		END
		begin_it haproxy -f "$own/haproxy.cfg"
		await 10 test -S "$own/haproxy.sock"
		end_it "$load"
		every curl -s -o /dev/null --unix-socket "$own/haproxy.sock" 'http://x/x' 'http://x/x' 'http://x/x'
		of_running haproxy -p "$it"
		end_it "$it"
	fi
	end_it "$load" "$nginx"
fi
wanted convert convert && started convert -- convert -size 1500x1500 plasma:red-blue -blur 0x4 "$own/x.png"
wanted ffmpeg ffmpeg && started ffmpeg -- ffmpeg -nostdin -loglevel error -f lavfi -i testsrc=d=4:s=640x360 -y "$own/x.mp4"
printf '#include <regex>\n#include <map>\n#include <iostream>\nint main() { std::regex r("a+b*"); std::map<int, std::string> m; std::cout << m[1]; }\n' >"$own/x.cc"
wanted g++ g++ && started g++ --follow -- g++ -O2 -c x.cc
if wanted git git; then
	git init -q "$own/repo" && for i in {1..300}; do seq "$i" 3000 >"$own/repo/f$i"; done
	git -C "$own/repo" add -A && git -C "$own/repo" -c user.name=x -c user.email=x@localhost commit -qm x
	started git --follow -- git -C "$own/repo" gc -q
fi
wanted sqlite3 sqlite3 && started sqlite3 -- sqlite3 :memory: "create table t (a integer primary key, b text);
	insert into t select value, hex(randomblob(50)) from generate_series(1, 300000); select count(*), max(b) from t order by b"
wanted libreoffice soffice && { echo hello >"$own/x.txt"; started libreoffice --follow -- soffice --headless --convert-to pdf --outdir "$own" "$own/x.txt"; }
if wanted rust-musl rustc; then
	printf 'fn main() { let k: Vec<String> = (0..200000).map(|i| format!("line {i}")).collect(); println!("{}", k.len()) }\n' >"$own/x.rs"
	rustc -O --target x86_64-unknown-linux-musl -o "$own/rust_musl" "$own/x.rs" 2>"$work/log" && started rust-musl -- "$own/rust_musl" ||
		skip rust-musl "rustc has no such target"
fi
wanted ripgrep rg && started ripgrep -- rg -c 'static' /usr/include
wanted bat batcat && started bat -- batcat --color=always --paging=never /usr/include/stdio.h

py=$got/venv/bin/python
cat >"$own/frames.py" <<'END'
import sys, time
what = sys.argv[1]
keep = []
if what == "pandas":
    import numpy
    import pandas as pd
    while True:
        frame = pd.DataFrame({"a": numpy.arange(20000), "b": numpy.random.rand(20000)})
        keep = keep[-20:] + [frame.groupby(frame.a % 100).sum()]
        time.sleep(0.01)
import pyarrow as pa
while True:
    keep = keep[-200:] + [pa.array([len(keep)] * 20000)]
    time.sleep(0.01)
END
for what in pandas pyarrow; do
	wanted $what "$py" && "$py" -c "import $what" 2>"$work/log" || continue
	begin_it "$py" "$own/frames.py" $what
	sleep 3
	of_running $what -p "$it"
	end_it "$it"
done
if wanted sharp node "$got/node_modules/sharp"; then
	begin_it env NODE_PATH="$got/node_modules" node -e "
const sharp = require('sharp'), keep = [];
setInterval(async () => { keep.push(await sharp({ create: { width: 800, height: 600, channels: 3, background: 'red' } }).blur(3).png().toBuffer()); }, 50)"
	sleep 1
	of_running sharp -p "$it"
	end_it "$it"
fi
if wanted node-buffers node; then
	begin_it node -e "const keep = []; setInterval(() => { keep.push(Buffer.alloc(100000, 1)); if (keep.length > 500) keep.shift(); }, 5)"
	sleep 1
	of_running node-buffers -p "$it"
	end_it "$it"
fi
if wanted jvm java javac; then
	cat >"$own/Direct.java" <<-'END'
		import java.nio.ByteBuffer;
		import java.util.ArrayDeque;
		public class Direct {
			public static void main(String[] a) throws Exception {
				ArrayDeque<ByteBuffer> keep = new ArrayDeque<>();
				for (;;) {
					keep.add(ByteBuffer.allocateDirect(65536));
					if (keep.size() > 300) keep.remove();
					Thread.sleep(5);
				}
			}
		}
	END
	(cd "$own" && javac Direct.java) >"$work/log" 2>&1
	begin_it java -Xmx200m -cp "$own" Direct
	sleep 3
	of_running jvm -p "$it"
	end_it "$it"
fi
if wanted go-cgo go; then
	cat >"$own/cgo.go" <<-'END'
		package main

		// #include <stdlib.h>
		import "C"
		import (
			"time"
			"unsafe"
		)

		func main() {
			var keep []unsafe.Pointer
			for {
				keep = append(keep, C.malloc(3000))
				if len(keep) > 5000 {
					C.free(keep[0])
					keep = keep[1:]
				}
				time.Sleep(time.Millisecond)
			}
		}
	END
	GO111MODULE=off CGO_ENABLED=1 GOFLAGS= GOCACHE="$bin/go-cache" go build -o "$own/cgo" "$own/cgo.go" 2>"$work/log"
	begin_it "$own/cgo"
	sleep 1
	of_running go-cgo -p "$it"
	end_it "$it"
fi
if wanted ruby ruby; then
	begin_it ruby -e 'keep = []; loop { keep << "x" * 5000; keep.shift if keep.size > 2000; sleep 0.001 }'
	sleep 1
	of_running ruby -p "$it"
	end_it "$it"
fi
fpm=$(ls /usr/sbin/php-fpm* 2>/dev/null | head -n 1)
if wanted php-fpm "${fpm:-php-fpm}"; then
	printf '[global]\nerror_log = %s/fpm.log\n[www]\nlisten = %s/fpm.sock\nuser = root\npm = static\npm.max_children = 2\n' "$own" "$own" >"$own/fpm.conf"
	begin_it "$fpm" -F -R -y "$own/fpm.conf"
	await 10 test -S "$own/fpm.sock"
	of_running php-fpm --comm "^$(basename "$fpm" | cut -c 1-15)"
	end_it "$it"
fi
if wanted chromium chromium; then
	begin_it chromium --headless --no-sandbox --disable-gpu --user-data-dir="$own/chromium" --remote-debugging-port=0 \
		'data:text/html,<script>let k=[];setInterval(()=>{k.push(new Array(1e4).fill(1));document.body.append(k.length)},20)</script><body>'
	sleep 4
	renderer=$(pgrep -f -- "--type=renderer.*--user-data-dir=$own|--user-data-dir=$own.*--type=renderer" | head -n 1)
	[ -n "$renderer" ] || renderer=$(pgrep -f -- '--type=renderer' | head -n 1)
	[ -n "$renderer" ] && of_running chromium -p "$renderer" || skip chromium "no renderer began"
	end_it "$it"
fi
if wanted rsyslogd rsyslogd logger; then
	printf 'module(load="imuxsock" SysSock.Use="off")\ninput(type="imuxsock" Socket="%s/log")\n*.* %s/messages\n' "$own" "$own" >"$own/rsyslog.conf"
	begin_it rsyslogd -n -f "$own/rsyslog.conf" -i "$own/rsyslogd.pid"
	await 10 test -S "$own/log"
	every logger -u "$own/log" --socket-errors=off "a line"
	of_running rsyslogd -p "$it"
	end_it "$load" "$it"
fi

# The peak of a command in bytes, as others count it.
massif_peak() {
	# valgrind dies of a breakpoint that a probe elsewhere has in a file that it translates
	for _ in 1 2 3; do
		rm -f "$work/massif"
		(cd "$own" && timeout 600 valgrind -q --tool=massif --peak-inaccuracy=0.0 --massif-out-file="$work/massif" "$@") >"$work/log" 2>&1
		[ $? = 133 ] || break
	done
	sed -n 's/^mem_heap_B=//p' "$work/massif" 2>/dev/null | sort -n | tail -n 1
}
# heaptrack has no memalign(), with which x264 allocates most: it is shown posix_memalign() instead. Its own reader is ended by
# std::bad_alloc at what it recorded of cc1plus: the sum is made here, of "+ SIZE STACK ADDRESS" and "- ADDRESS".
heaptrack_peak() {
	[ -e "$own/memalign.so" ] || printf '#include <stdlib.h>\nvoid *memalign(size_t a, size_t n) { void *p; return posix_memalign(&p, a, n) ? 0 : p; }\n' |
		gcc -shared -fPIC -O1 -x c -o "$own/memalign.so" - || return
	rm -f "$work"/tracked.*
	(cd "$own" && LD_PRELOAD=$own/memalign.so timeout 300 heaptrack --raw -o "$work/tracked" "$@") >"$work/log" 2>&1 || return
	case $(echo "$work"/tracked.*) in *.zst) zstdcat "$work"/tracked.* ;; *) zcat "$work"/tracked.* ;; esac | python3 -c "
import sys
sizes, now, peak = {}, 0, 0
for kind, *words in (line.split() or [''] for line in sys.stdin):
    if kind == '+':
        sizes[words[2]] = int(words[0], 16)
        now += sizes[words[2]]
        peak = max(peak, now)
    elif kind == '-':
        now -= sizes.pop(words[0], 0)
print(peak)"
}
# peak_of NAME COMMAND...: it is theirs
peak_of() {
	local name=$1 theirs ours way
	shift
	wanted "$name" "$1" || return
	(cd "$own" && timeout 300 "$heaptap" record --force --rate 1 -o "$work/p.pb.gz" -- "$@") >"$work/out" 2>"$work/said"
	ours=$("$heaptap" report -f json "$work/p.pb.gz" 2>"$work/err" | python3 -c "import json, sys; print(json.load(sys.stdin)['peak']['bytes'])")
	for way in massif heaptrack; do
		wanted "$name" ${way/massif/valgrind} || continue
		theirs=$(${way}_peak "$@")
		[ -n "$theirs" ] && [ -n "$ours" ] && [ $((ours * 100)) -ge $((theirs * 97)) ] && [ $((ours * 100)) -le $((theirs * 103)) ] &&
			ok "$name | $ours bytes, $way $theirs" || not_ok "$name" "${ours:-?} bytes, $way ${theirs:-?}" "$work/said" "$work/log"
	done
}
peak_of peak-sqlite3 sqlite3 :memory: "create table t (a integer primary key, b text);
	insert into t select value, hex(randomblob(50)) from generate_series(1, 100000); select count(*), max(b) from t order by b"
peak_of peak-ffmpeg ffmpeg -nostdin -loglevel error -f lavfi -i testsrc=d=2:s=640x360 -y x.mp4
[ -e "$own/x.ii" ] || ! have g++ || g++ -E "$own/x.cc" -o "$own/x.ii"
peak_of peak-g++ "$(g++ -print-prog-name=cc1plus 2>/dev/null || echo cc1plus)" -quiet -O1 -fpreprocessed x.ii -o x.s

echo "# in use is known of $known of $asked programs; unknown:${unknown_ones:- none}"
[ -n "${PROGRAMS_ONLY:-}" ] || { [ $((known * 24)) -ge $((asked * 20)) ] && [ "$asked" -ge 12 ] && ok "in use by default: $known of $asked" ||
	not_ok "in use by default" "$known of $asked; unknown:$unknown_ones"; }
e2e_end

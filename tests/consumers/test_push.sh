#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_push.sh - profiles pushed to a gRPC and a Connect server that are made of the interfaces and
# other people's libraries: what arrives is the profile, and nothing is lost or waits when the
# server is away, slow, out of sorts, or gone and back.
# timeout: 600
. tests/consumers/lib.sh
consumer_init push
top=$work
modules=$B/consumers
why=$(tests/consumers/get_modules "$modules") || skip_all "$why"
if ! ${CC:-cc} -std=gnu11 -O1 -g -D_GNU_SOURCE -Iinclude -Iuser -I"$B/gen" -o "$work/push_once" \
	tests/consumers/push_once.c "$B/libheaptap.a" -lprotobuf-c -lcurl -lz -lm >"$work/log" 2>&1 ||
	! ${PROTOC_C:-protoc-c} --proto_path=user/serve --descriptor_set_out="$work/push.bin" \
		pyroscope.proto >>"$work/log" 2>&1; then
	not_ok setup "push_once cannot be built" "$work/log"
	exit 1
fi
scoped=$work/scoped.pb.gz
"$work/make_profile" --scopes "$scoped" || exit 1
servers=
lanes=
trap 'for s in $lanes; do kill "$s" 2>/dev/null; done; wait; rm -rf "$top"' EXIT
# beside LANE: runs it in a folder of its own; show_lanes: what they said, one after the other
beside() {
	(
		work=$top/$1
		trap 'for s in $servers; do kill "$s" 2>/dev/null; done' EXIT
		mkdir "$work"
		"$1"
		exit "$consumer_failed"
	) >"$top/$1.tap" 2>&1 &
	lanes="$lanes $!"
}
show_lanes() {
	local lane
	for lane in $lanes; do wait "$lane" || consumer_failed=1; done
	lanes=
	for lane; do cat "$top/$lane.tap"; done
}

# serve KIND PORT OUT [OPTION]...: its port in $port, its process in $server
serve() {
	local kind=$1 want=$2 got=$3
	shift 3
	: >"$work/port"
	NODE_PATH=$modules/node_modules node tests/consumers/push_server.js "$kind" "$want" "$got" \
		--proto user/serve/parca.proto --descriptors "$top/push.bin" "$@" \
		>"$work/port" 2>"$work/server.err" &
	server=$!
	servers="$servers $server"
	for _ in $(seq 100); do
		port=$(cat "$work/port")
		[ -z "$port" ] || return 0
		kill -0 $server 2>/dev/null || break
		sleep 0.1
	done
	not_ok "$kind" "the server does not start" "$work/server.err"
	exit 1
}
stop() {
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
}
push() { timeout 60 "$top/push_once" "$@" >"$work/stats" 2>"$work/push.err" || echo "status $?" >>"$work/stats"; }
# counted NAME WORD...: each name=value is in the line of counts
counted() {
	local name=$1 word
	shift
	for word; do
		if ! grep -qE "(^| )$word( |\$)" "$work/stats"; then
			cat "$work/push.err" >>"$work/stats"
			not_ok "$name" "no '$word'" "$work/stats"
			return
		fi
	done
	ok "$name"
}
# js NAME FILE EXPRESSION: of `all`, the requests that arrived
js() {
	local name=$1 file=$2
	if node -e '
		const all = require("fs").readFileSync(process.argv[1], "utf8").split("\n")
			.filter(Boolean).map(JSON.parse);
		const total = (list) => list.reduce((a, s) => a.map((v, i) => v + s.sums[i]), [0, 0, 0, 0]);
		const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
		if (!eval(process.argv[2])) { console.log(JSON.stringify(all, null, 1)); process.exit(1); }
	' "$file" "$3" >"$work/js.out" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "not true: $3" "$work/js.out"
	fi
}
# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
lines() { wc -l <"$1"; }
free_port() {
	node -e 'const s = require("net").createServer();
		s.listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); });'
}
# No turn of the loop took longer: nothing in it waits for a server.
quick='longest_ms=([0-9]{1,2}|[12][0-9]{2})'
label="--label job=test --label pid=42 --label comm=server"

# fails_twice NAME: what is sent to the server at $port, in both formats, is tried again and kept
fails_twice() {
	local kind
	for kind in parca pyroscope; do
		push --failures 2 "$kind+http://127.0.0.1:$port" "$scoped"
		counted "$kind: $1" sent=0 waiting=1 'failed=([2-9]|[1-9][0-9])' "$quick"
	done
}
# stranger WHAT: a server that is none of ours; WHAT is done with each connection `c`
stranger() {
	: >"$work/port"
	node -e 'const s = require("net").createServer((c) => { c.on("error", () => {}); eval(process.argv[1]); });
		s.listen(0, "127.0.0.1", () => console.log(s.address().port));' "$1" >"$work/port" 2>&1 &
	server=$!
	servers="$servers $server"
	for _ in $(seq 100); do
		port=$(cat "$work/port")
		[ -z "$port" ] || return 0
		sleep 0.1
	done
	not_ok "a strange server" "does not start" "$work/port"
	exit 1
}
umask 077
echo "me:s3cret" >"$top/basic"
have openssl && openssl req -x509 -newkey rsa:2048 -nodes -keyout "$top/key" -out "$top/cert" \
	-days 2 -subj /CN=localhost -addext 'subjectAltName=IP:127.0.0.1' >"$top/log" 2>&1 || rm -f "$top/cert"

## what arrives
pushed() {
	serve parca 0 "$work/parca"
	push $label "parca+http://127.0.0.1:$port" "$scoped"
	counted "parca: sent" added=1 sent=1 refused=0 failed=0 waiting=0 dropped=0
	js "parca: one request, a series for each scope and pool" "$work/parca" \
		'all.length === 1 && all[0].series.length === 8'
	js "parca: the sum over the series is the process" "$work/parca" \
		'same(total(all[0].series), [286, 776025, 102, 115005])'
	js "parca: labels of the series" "$work/parca" 'all[0].series.some((s) => same(s.labels, {
		__name__: "memory", job: "test", pid: "42", comm: "server", scope: "Top/conn", thread: "net" })
		&& same(s.sums, [10, 20025, 6, 9005]))'
	js "parca: rows have no labels, profiles no comments" "$work/parca" \
		'all[0].series.every((s) => same(Object.keys(s.byLabel), [""]) && s.comments === 0)'
	push $label "parca+http://127.0.0.1:$port" "$profile"
	counted "parca: another profile" sent=1
	js "parca: inlined and foreign names arrive" "$work/parca" 'all[1].series.some((s) =>
		s.functions.includes("größe_ändern(Übergröße)") && s.functions.includes("load"))'
	push --count 20 $label "parca+http://127.0.0.1:$port" "$scoped"
	counted "parca: twenty after each other" added=20 sent=20 failed=0
	stop

	serve pyroscope 0 "$work/pyroscope"
	push $label "pyroscope+http://127.0.0.1:$port" "$scoped"
	counted "pyroscope: sent" added=1 sent=1 refused=0 failed=0 waiting=0
	js "pyroscope: one series, which is the process" "$work/pyroscope" 'all[0].series.length === 1
		&& same(all[0].series[0].sums, [286, 776025, 102, 115005])'
	js "pyroscope: labels of the series" "$work/pyroscope" 'same(all[0].series[0].labels, {
		__name__: "memory", job: "test", pid: "42", comm: "server", service_name: "server",
		__delta__: "false" })'
	js "pyroscope: rows have scope, pool and labels, no task" "$work/pyroscope" '
		same(all[0].series[0].byLabel["scope=Top/conn,thread=net"], 9005) &&
		same(all[0].series[0].byLabel["query=select,scope=Top/A/B,thread=low-*"], 30000) &&
		!Object.keys(all[0].series[0].byLabel).some((k) => k.includes("task"))'
	js "pyroscope: every location has a line" "$work/pyroscope" 'all[0].series[0].bare === 0'
	js "pyroscope: headers" "$work/pyroscope" 'all[0].headers["content-type"] === "application/proto" &&
		all[0].headers["connect-protocol-version"] === "1"'
	push --basic-file "$top/basic" --tenant team-a "pyroscope+http://127.0.0.1:$port" "$scoped"
	js "pyroscope: tenant and basic auth" "$work/pyroscope" \
		'all[1].headers["x-scope-orgid"] === "team-a" && all[1].headers.authorization === "Basic bWU6czNjcmV0"'
	push --tenant "$(printf 'a\r\nx-evil: 1')" "pyroscope+http://127.0.0.1:$port" "$scoped"
	expect "pyroscope: a tenant that would be two headers is refused at start" "$work/push.err" 'control characters'
	push $label "pyroscope+http://127.0.0.1:$port/no/such/prefix" "$scoped"
	counted "pyroscope: 404 is tried a few times" sent=0 refused=1 failed=5 waiting=0 'last_error=HTTP'
	stop

	## TLS, tokens
	if [ -s "$top/cert" ]; then
		echo t0ken >"$work/token"
		serve parca 0 "$work/tls" --key "$top/key" --cert "$top/cert" --token t0ken
		push --count 5 --ca "$top/cert" --token-file "$work/token" "parca+https://127.0.0.1:$port" "$scoped"
		counted "parca: TLS and a token" sent=5 failed=0
		echo wrong >"$work/token"
		push --failures 1 --ca "$top/cert" --token-file "$work/token" "parca+https://127.0.0.1:$port" "$scoped"
		counted "parca: a wrong token is kept and tried again" sent=0 refused=0 waiting=1
		expect "parca: grpc-message is decoded" "$work/stats" \
			'last_error=UNAUTHENTICATED: a "token" is wänted: 100 %$'
		(sleep 1; echo t0ken >"$work/token") &
		push --seconds 10 --ca "$top/cert" --token-file "$work/token" "parca+https://127.0.0.1:$port" "$scoped"
		counted "parca: a token that is replaced is read again" sent=1 waiting=0 'failed=[1-9][0-9]*'
		push --failures 1 --token-file "$work/token" "parca+https://127.0.0.1:$port" "$scoped"
		counted "parca: a certificate that nobody vouches for" sent=0 waiting=1
		expect "parca: the reason is said" "$work/stats" 'certificate'
		chmod 644 "$work/token"
		push --ca "$top/cert" --token-file "$work/token" "parca+https://127.0.0.1:$port" "$scoped"
		expect "a token that others can read is refused at start" "$work/push.err" 'others can read'
		stop
		serve pyroscope 0 "$work/tls2" --key "$top/key" --cert "$top/cert"
		push --count 5 --ca "$top/cert" "pyroscope+https://127.0.0.1:$port" "$scoped"
		counted "pyroscope: TLS" sent=5 failed=0
		stop
	else
		ok "TLS # SKIP no openssl"
	fi

	## what a server may do
	serve parca 0 "$work/fail" --fail 'UNAVAILABLE,ABORTED,-,INVALID_ARGUMENT,UNKNOWN*'
	push --count 3 "parca+http://127.0.0.1:$port" "$scoped"
	counted "parca: again what may work, once what is refused, five times what is unclear" \
		added=3 sent=1 refused=2 failed=8 waiting=0
	js "parca: as often as that" "$work/fail" 'all.length === 2 + 1 + 1 + 5'
	stop
	serve pyroscope 0 "$work/fail2" --fail 'Unavailable,ResourceExhausted,-,InvalidArgument'
	push --count 2 "pyroscope+http://127.0.0.1:$port" "$scoped"
	counted "pyroscope: again what may work, once what is refused" added=2 sent=1 refused=1 failed=3
	expect "pyroscope: the reason is said" "$work/stats" 'planted InvalidArgument'
	stop
	serve parca 0 "$work/slow" --delay 1500
	push --failures 1 --timeout 500 "parca+http://127.0.0.1:$port" "$scoped"
	counted "a slow server is given up" sent=0 waiting=1 "$quick"
	push "parca+http://127.0.0.1:$port" "$scoped"
	counted "a slow server is waited for, not in the loop" sent=1 "$quick"
	stop
	stranger ''
	push --failures 2 --timeout 400 "parca+http://127.0.0.1:$port" "$scoped"
	counted "a server that says nothing" sent=0 waiting=1 'failed=([2-9]|[1-9][0-9])' "$quick"
	stop
	stranger 'c.end("220 mail.example.com ESMTP\r\n")'
	fails_twice "a server of another kind"
	stop
	# Answers with success, and without end.
	stranger 'c.write("HTTP/1.1 200 OK\r\n\r\n"); setInterval(() => c.write("x".repeat(1 << 16)), 1)'
	push --failures 1 "pyroscope+http://127.0.0.1:$port" "$scoped"
	counted "an answer without end is cut off" sent=0 waiting=1 'failed=[1-9][0-9]*' "$quick"
	stop

	# Speaks HTTP/2, and then nonsense: frames of no kind, of no end, and of no stream.
	stranger 'c.write(Buffer.from("000000040000000000", "hex")); let n = 0;
		const t = setInterval(() => { c.write(require("crypto").randomBytes(999)); if (++n > 50) { clearInterval(t); c.end(); } }, 1)'
	push --failures 2 "parca+http://127.0.0.1:$port" "$scoped"
	counted "parca: nonsense in HTTP/2" sent=0 waiting=1 'failed=([2-9]|[1-9][0-9])' "$quick"
	stop
	stranger 'c.resetAndDestroy ? c.resetAndDestroy() : c.destroy()'
	fails_twice "a server that hangs up"
	stop
	# Elsewhere is not asked: what is sent is not for everybody.
	stranger 'c.end("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")'
	push --failures 1 "pyroscope+http://127.0.0.1:$port" "$scoped"
	counted "pyroscope: elsewhere is not asked" sent=0 'last_error=HTTP status 302.*'
	stop

	## away, and back
	port=$(free_port)
	push --count 20 --failures 1 --spool "$work/spool" --spool-count 12 "parca+http://127.0.0.1:$port" "$scoped"
	counted "down: the newest are kept, the oldest dropped and counted" added=20 sent=0 waiting=12 dropped=8
	[ "$(find "$work/spool" -name '*.push' | wc -l)" = 12 ] && ok "down: twelve files" ||
		not_ok "down: twelve files" "not twelve"
	printf x | dd of="$(find "$work/spool" -name '*.push' | sort | head -n 1)" bs=1 seek=100 conv=notrunc 2>/dev/null
	serve parca "$port" "$work/back"
	push --spool "$work/spool" "parca+http://127.0.0.1:$port"
	counted "back: a later process sends them, a damaged one is passed over" sent=11 corrupt=1 waiting=0
	js "back: they are what they were" "$work/back" 'all.length === 11 &&
		all.every((r) => same(total(r.series), [286, 776025, 102, 115005]))'
	stop
	[ -z "$(find "$work/spool" -name '*.push*')" ] && ok "back: no file is left" ||
		not_ok "back: no file is left" "there is one"

	# The server goes and comes while profiles are pushed; killed, not stopped.
	serve parca 0 "$work/restart"
	(
		for _ in 1 2 3; do
			sleep 0.7
			kill -9 "$server" 2>/dev/null
			sleep 0.7
			NODE_PATH=$modules/node_modules node tests/consumers/push_server.js parca "$port" \
				"$work/restart" --proto user/serve/parca.proto >/dev/null 2>&1 &
			server=$!
			echo "$server" >"$work/last"
		done
	) &
	restarter=$!
	push --count 100 --every 40 --seconds 20 --spool "$work/spool2" "parca+http://127.0.0.1:$port" "$scoped"
	counted "restarts: all arrive" added=100 sent=100 refused=0 waiting=0 dropped=0 'failed=[1-9][0-9]*'
	wait $restarter
	servers="$servers $(cat "$work/last")"
	# Killed between taking a request and answering it, a server gets that one twice: not fewer.
	[ "$(lines "$work/restart")" -ge 100 ] && ok "restarts: none is lost" ||
		not_ok "restarts: none is lost" "$(lines "$work/restart") of 100"

	# Killed ourselves: what was on the disk is sent by the next one.
	port=$(free_port)
	"$top/push_once" --count 5 --every 20 --seconds 30 --spool "$work/spool3" "parca+http://127.0.0.1:$port" \
		"$scoped" >/dev/null 2>&1 &
	pusher=$!
	has_spooled() { [ "$(find "$work/spool3" -name '*.push' | wc -l)" = 5 ]; }
	until_true 20 has_spooled || not_ok "killed" "five are not spooled" "$work/stats"
	push --seconds 1 --spool "$work/spool3" "parca+http://127.0.0.1:$port" "$scoped"
	expect "a spool belongs to one process" "$work/push.err" 'another heaptap'
	kill -9 $pusher
	wait $pusher 2>/dev/null
	serve parca "$port" "$work/killed"
	push --spool "$work/spool3" "parca+http://127.0.0.1:$port"
	counted "killed: what waited is sent by the next process" sent=5 waiting=0 corrupt=0
	stop
}

## heaptap serve: what a process holds arrives, at each interval and at the end
served() {
	cat >"$work/holder.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	static char *volatile blocks[100];
	char c;

	if (read(0, &c, 1) != 1)
		return 1;
	for (int i = 0; i < 100; i++)
		blocks[i] = malloc(1000);
	for (int i = 0; i < 40; i++)
		free(blocks[i]);
	if (write(1, "held\n", 5) != 5)
		return 1;
	return read(0, &c, 1) == 1;
}
END
	# follow OPTION...: a daemon in $daemon, which follows a process of its own that has allocated then
	follow() {
		rm -f "$work/in"
		mkfifo "$work/in"
		# Not what the last ones have said: the new ones begin when they get to it.
		: >"$work/serve.err"
		: >"$work/held"
		"$work/holder" <"$work/in" >"$work/held" &
		holder=$!
		exec 8>"$work/in"
		"$B/heaptap" serve --listen 127.0.0.1:0 --sharing own --rate 1 -p $holder "$@" >"$work/serve.err" 2>&1 &
		daemon=$!
		servers="$servers $holder $daemon"
		until_true 30 grep -q 'serving 1 proc' "$work/serve.err" ||
			not_ok "serve $*" "does not begin" "$work/serve.err"
		echo >&8
		until_true 30 grep -q held "$work/held" || not_ok "serve $*" "nothing is held" "$work/serve.err"
	}
	# fetch_metrics: of the daemon, into $work/metrics
	fetch_metrics() {
		local at
		at=$(sed -nE 's,^heaptap: serving .* on http://127.0.0.1:([0-9]*)/.*,\1,p' "$work/serve.err")
		exec 7<>"/dev/tcp/127.0.0.1/$at"
		printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' >&7
		cat <&7 >"$work/metrics"
		exec 7>&-
	}
	# end_follow NAME: by SIGTERM. Five seconds are for the last push, as many for the last profiles; the rest
	# is for a busy machine.
	end_follow() {
		local began=$SECONDS
		kill -TERM $daemon
		wait $daemon && [ $((SECONDS - began)) -le 25 ] && ok "$1" ||
			not_ok "$1" "not ended in $((SECONDS - began)) s with 0" "$work/serve.err"
		exec 8>&-
		wait $holder
	}
	# refused NAME WHAT OPTION...
	refused() {
		local name=$1 what=$2 status
		shift 2
		timeout 20 "$B/heaptap" serve -p $$ "$@" >"$work/serve.err" 2>&1
		status=$?
		[ $status = 2 ] && expect "serve: refused: $name" "$work/serve.err" "$what" ||
			not_ok "serve: refused: $name" "status $status" "$work/serve.err"
	}
	refused "an address of no kind" "push: 'http://" --push http://127.0.0.1:1
	refused "a password in the address" "no user or password" --push parca+http://me:secret@127.0.0.1:1
	grep -q 'me:secret' "$work/serve.err" && not_ok "serve: a password is not repeated" "it is" "$work/serve.err" ||
		ok "serve: a password is not repeated"
	echo nobody >"$work/half"
	refused "a user without a password" "USER:PASSWORD" --push parca+http://127.0.0.1:1 --push-basic-file "$work/half"
	refused "a tenant that would be two headers" "printable" --push pyroscope+http://127.0.0.1:1 \
		--push-tenant "$(printf 'a\r\nx: 1')"
	refused "no certificates" "No such file" --push parca+https://127.0.0.1:1 --push-ca-file "$work/none"
	refused "two authorizations" "exclude each other" --push parca+http://127.0.0.1:1 \
		--push-basic-file "$top/basic" --push-token-file "$top/basic"
	refused "a tenant for nobody" "needs --push URL" --push-tenant a
	refused "a target twice" "twice" --push parca+http://127.0.0.1:1 --push parca+http://127.0.0.1:1
	refused "a label without a value" "KEY=VALUE" --push parca+http://127.0.0.1:1 --label job=
	refused "a label that is heaptap's" "KEY=VALUE" --push parca+http://127.0.0.1:1 --label pid=1
	refused "an interval of nothing" "--push-interval" --push parca+http://127.0.0.1:1 --push-interval 0
	refused "labels of nothing" "needs --push URL" --label a=b
	if [ "$(id -u)" != 0 ]; then
		ok "serve --push # SKIP needs root"
	elif ! ${CC:-cc} -O1 -o "$work/holder" "$work/holder.c" >"$work/log" 2>&1; then
		not_ok "serve --push" "the process cannot be built" "$work/log"
	else
		held='[100, 100000, 60, 60000]'
		serve parca 0 "$work/served"
		follow --push "parca+http://127.0.0.1:$port" --push-interval 1 --label env=test --label job=mine
		until_true 20 grep -q '60000' "$work/served"
		js "serve: the process arrives by itself" "$work/served" "
			all.some((r) => same(total(r.series), $held))"
		js "serve: its labels" "$work/served" "same(all[0].series[0].labels, { __name__: 'memory',
			env: 'test', job: 'mine', node: require('os').hostname(), pid: '$holder', comm: 'holder',
			scope: all[0].series[0].labels.scope, thread: all[0].series[0].labels.thread })"
		fetch_metrics
		expect "serve: metrics" "$work/metrics" \
			"^heaptap_push_sent_total.target=\"parca.http://127.0.0.1:$port\". [1-9]" \
			'^heaptap_push_failed_total.* 0$' '^heaptap_push_dropped_total.* 0$'
		end_follow "serve: SIGTERM ends it"
		stop

		# The interval is never over: what arrives is the last profile.
		serve parca 0 "$work/last_parca"
		first=$server first_port=$port
		serve pyroscope 0 "$work/last_pyroscope"
		follow --push "parca+http://127.0.0.1:$first_port" --push "pyroscope+http://127.0.0.1:$port" --push-interval 24h
		end_follow "serve: SIGTERM, with two targets"
		for kind in parca pyroscope; do
			js "serve: the last profile, to $kind" "$work/last_$kind" \
				"all.length === 1 && same(total(all[0].series), $held)"
		done
		stop
		server=$first
		stop

		# Nobody is there: it waits in the folder, for a daemon that comes later.
		port=$(free_port)
		follow --push "parca+http://127.0.0.1:$port" --push-interval 24h --push-spool "$work/spool4"
		end_follow "serve: SIGTERM, the target is down"
		[ "$(find "$work/spool4" -name '*.push' | wc -l)" = 1 ] && ok "serve: the last profile is spooled" ||
			not_ok "serve: the last profile is spooled" "it is not" "$work/serve.err"
		serve parca "$port" "$work/spooled"
		follow --push "parca+http://127.0.0.1:$port" --push-interval 24h --push-spool "$work/spool4"
		until_true 20 grep -q '60000' "$work/spooled"
		js "serve: and sent by the next daemon" "$work/spooled" "same(total(all[0].series), $held)"
		end_follow "serve: SIGTERM of that one"
		stop
		stranger ''
		follow --push "parca+http://127.0.0.1:$port" --push-interval 24h
		end_follow "serve: SIGTERM, the target says nothing"
		stop

		# With TLS of an own authority, and a token; with a tenant and a password.
		if [ -s "$top/cert" ]; then
			echo t0ken >"$work/own"
			serve parca 0 "$work/own_tls" --key "$top/key" --cert "$top/cert" --token t0ken
			follow --push "parca+https://127.0.0.1:$port" --push-interval 1 --push-ca-file "$top/cert" \
				--push-token-file "$work/own"
			until_true 20 grep -q '60000' "$work/own_tls" && ok "serve: --push-ca-file and --push-token-file" ||
				not_ok "serve: --push-ca-file and --push-token-file" "nothing arrives" "$work/serve.err"
			end_follow "serve: SIGTERM, TLS"
			stop
		fi
		serve pyroscope 0 "$work/tenants"
		follow --push "pyroscope+http://127.0.0.1:$port" --push-interval 1 --push-tenant team-b \
			--push-basic-file "$top/basic"
		until_true 20 grep -q '60000' "$work/tenants"
		js "serve: --push-tenant and --push-basic-file" "$work/tenants" \
			'all[0].headers["x-scope-orgid"] === "team-b" && all[0].headers.authorization === "Basic bWU6czNjcmV0"'
		end_follow "serve: SIGTERM, a tenant"
		stop

		# The target is away and the disk is full: the oldest go and are counted, recording goes on.
		mkdir "$work/small"
		if mount -t tmpfs -o size=16k,mode=700 heaptap "$work/small" 2>"$work/log"; then
			trap 'for s in $servers; do kill "$s" 2>/dev/null; done; umount -l "$work/small" 2>/dev/null' EXIT
			head -c 12000 /dev/zero >"$work/small/other"
			port=$(free_port)
			follow --push "parca+http://127.0.0.1:$port" --push-interval 1 --push-spool "$work/small/spool"
			has_failed() { fetch_metrics; grep -qE '^heaptap_push_failed_total.* [2-9]' "$work/metrics"; }
			until_true 30 has_failed || not_ok "serve: disk full" "no try fails" "$work/metrics"
			fetch_metrics
			expect "serve: disk full: it goes on" "$work/metrics" '^heaptap_inuse_bytes.* 60000$' \
				'^heaptap_push_waiting.* [1-9]'
			# At the end what waits has no room.
			end_follow "serve: SIGTERM, the disk is full"
			find "$work/small/spool" -name '*.push' -size -1 | grep -q . &&
				not_ok "serve: disk full: no half of a request is left" "one is" || :
			umount "$work/small"
		else
			ok "serve: disk full # SKIP no tmpfs here"
		fi
	fi
}

# The second mostly waits.
beside pushed
beside served
show_lanes pushed served
consumer_end

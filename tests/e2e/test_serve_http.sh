#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve and clients that mean it ill or die: what is malformed, too large, too slow or too
# many; tokens; processes that are killed while they are looked at, and heaptap itself. Nothing hangs,
# nothing leaks, and what is allocated meanwhile is recorded to the byte.
. "$(dirname "$0")/lib.sh"
e2e_init serve_http
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
build_c family || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
sharing=own

abuse() {
	timeout 120 python3 "$e2e_dir/http_abuse.py" "127.0.0.1:$port" "$@" >"$top/abuse" 2>&1
}
# abused NAME COMMAND...
abused() {
	local name=$1
	shift
	abuse "$@" && ok "$name" || not_ok "$name" "not so" "$top/abuse"
}
# A saved profile is a descriptor, too, and may be taken at any time.
fd_cnt() { ls -l "/proc/$server/fd" | grep -vc 'memfd:heaptap kept'; }
rss_kb() { awk '/^VmRSS/ { print $2 }' "/proc/$server/status"; }
few_fds() { [ "$(fd_cnt)" -le "$fds" ]; }

begin http-a
begin http-b
begin http-c
# A server of their own for many who say nothing.
serve --listen 127.0.0.1:0 --rate 1 -p "${pid_of[http-c]}"
crowded=$server
grep -q "^heaptap: serving 1 process on " "$top/serve.err" && ok "serving 1 process" || not_ok "serving 1 process" "not said" "$top/serve.err"
python3 "$e2e_dir/http_abuse.py" "${url#http://}" crowd 400 $((5 * e2e_patience)) >"$top/crowd" 2>&1 &
crowd=$!
serve --listen 127.0.0.1:0 --rate 1 --comm '^http-[ab]$'
port=${url##*:}
work_of http-a
all=$url/debug/pprof/heap

# one snapshot for those who ask at the same time
abused "twelve requests at once" together 12 /debug/pprof/heap "$top/at"
moments=$(for i in 0 1 2 3 4 5 6 7 8 9 10 11; do "$compare" time "$top/at$i"; done | sort -u | wc -l)
[ "$moments" -ge 1 ] && [ "$moments" -le 5 ] && ok "twelve requests: $moments snapshots" ||
	not_ok "twelve requests share snapshots" "$moments of them"

# before it is measured: what is allocated once
abuse malformed 500 60
for page in / /metrics /debug/pprof/heap /debug/pprof/ "/pid/${pid_of[http-a]}/pprof/heap"; do
	get -f "$url$page" >/dev/null || not_ok "$page" "it is not answered"
done
fds=$(fd_cnt) rss=$(rss_kb)

# what is refused (a NUL ends a path, and what stands before it is a page or none)
tries="414,0:url 431,0:header 431,0:headers 413,0:body 411,0:chunked 400:no-addresses 404:nul \
	404:nul-inside 200,400,404:raw-nul 404:dots 404:escaped-dots 404:escaped-slash 404:absolute \
	400,404:proxy 404:pid-dots 421:rebound 405:delete 405:post 405:put-symbol 400:get-body 400:no-host 400:two-hosts"
# shellcheck disable=SC2086 # one try each
abuse statuses $tries
for try in $tries; do
	grep -q "^$try as it should be\$" "$top/abuse" && ok "${try%%:*} for ${try#*:}" ||
		not_ok "${try%%:*} for ${try#*:}" "$(grep "^$try " "$top/abuse" || tail -n 1 "$top/abuse")"
done
get -I "$url/" | tr -d '\r' >"$top/head"
grep -qi "^content-security-policy: default-src 'none'; .*frame-ancestors 'self'" "$top/head" && grep -qi '^x-frame-options: SAMEORIGIN$' "$top/head" &&
	ok "no page of somebody else has this one in it" || not_ok "no page of somebody else has this one in it" "it may" "$top/head"
answers 400 "$url/pprof/heap"
grep -q "/pid/PID/pprof/heap" "$top/body" && grep -q " ${pid_of[http-b]}" "$top/body" &&
	ok "which process: they are listed" || not_ok "which process: they are listed" "no" "$top/body"
answers 404 "$url/pid/${pid_of[http-c]}/pprof/symbol"
for page in / /healthz /metrics /debug/pprof/ /debug/pprof/heap '/debug/pprof/allocs?seconds=60' \
	"/pid/${pid_of[http-a]}/pprof/heap" "/pid/${pid_of[http-a]}/pprof/symbol" \
	"/pid/${pid_of[http-a]}/pprof/cmdline" "/pid/${pid_of[http-a]}/pprof/growth?seconds=60"; do
	answers 200 -m 5 -I "$url$page"
	[ -s "$top/body" ] && ! grep -q '^HTTP' "$top/body" && not_ok "HEAD $page" "it has a body"
done
abused "pipelined requests" pipelined 50

# Many that are malformed (with TESTS_WHOLE=1 10000), while a process allocates; slow ones, and too many
python3 "$e2e_dir/http_abuse.py" "127.0.0.1:$port" slow 5 40 >"$top/slow" 2>&1 &
slow=$!
(for i in 1 2 3 4 5 6 7 8 9 10 11 12; do get "$all" >/dev/null; done) &
scrapes=$!
samples=$(metric heaptap_samples_total)
malformed_cnt=$(is_whole && echo 10000 || echo 3000)
abuse malformed "$malformed_cnt" 110 &
malformed=$!
sleep 0.3
work_of http-b
wait $malformed && ok "$malformed_cnt malformed requests" || not_ok "$malformed_cnt malformed requests" "not taken" "$top/abuse"
wait $scrapes
answers 200 -m 10 "$url/healthz"
[ "$(metric heaptap_samples_total)" -gt "$samples" ] && ok "capture goes on" || not_ok "capture goes on" "no samples"
exact_of http-b "what was allocated meanwhile, to the byte"
wait $slow && ok "slow clients are ended" || not_ok "slow clients are ended" "no" "$top/slow"
wait $crowd && ok "many connections that say nothing" || not_ok "many connections that say nothing" "no" "$top/crowd"
kill -TERM "$crowded"
await 20 is_gone "$crowded" || not_ok "many connections that say nothing" "the server does not end"
# Who waits for a profile of much later and hangs up leaves room for others: there is some for 64.
abused "clients that have gone" gone 100 "/debug/pprof/heap?seconds=3000"
answers_again() { [ "$(get -o "$top/body" -w '%{http_code}' "$all?seconds=1")" = 200 ]; }
await 20 answers_again && ok "those who have gone are forgotten" || not_ok "those who have gone are forgotten" "no" "$top/body"
# Nor do those who wait for a long time, and stay: eight beginnings, then forty at one.
waiting=
ask_long() {
	curl -s -m 60 -o "$top/long$1" -w '%{http_code}' "$all?seconds=3600" >"$top/code$1" &
	waiting="$waiting $!"
	owned
}
for i in 1 2 3 4 5 6 7 8; do
	ask_long $i
	sleep 0.2
done
refused_cnt() { cat "$top"/code* | grep -o 503 | wc -l; }
four_are_refused() { [ "$(refused_cnt)" = 4 ]; }
await 10 four_are_refused && grep -q "4 profiles with seconds= above 60 are being made.*request at most 60 seconds" "$top/long8" &&
	ok "eight profiles of an hour: four are refused, and told why" || not_ok "eight profiles of an hour" "$(refused_cnt) are refused" "$top/long8"
answers 200 -m 30 "$all?seconds=1"
answers 200 -m 30 "$all"
kill $waiting 2>/dev/null
wait $waiting 2>/dev/null
rm -f "$top"/code* "$top"/long*
await 20 answers_again
waiting=
for i in {1..40}; do ask_long $i; done
more_are_refused() { [ "$(refused_cnt)" -ge 8 ]; }
await 10 more_are_refused && ok "forty profiles of an hour: there is room for others" || not_ok "forty profiles of an hour" "$(refused_cnt) are refused"
answers 200 -m 30 "$all?seconds=1"
answers 200 -m 30 "$all"
kill $waiting 2>/dev/null
wait $waiting 2>/dev/null
abused "clients that do not read" unread 50 20 /debug/pprof/heap
await 30 few_fds && ok "no descriptor is left: $fds" || not_ok "no descriptor is left" "$fds before, $(fd_cnt) now"
grown=$(($(rss_kb) - rss))
[ $grown -lt 8192 ] && ok "memory: $grown kB more" || not_ok "memory" "$rss kB, and $grown kB more"

# killed while a profile of it is made: its end, or what it held, and never a wait
died=
for i in 1 2 3 4; do
	begin http-b
	await 5 follows "${pid_of[http-b]}" || not_ok "killed in a snapshot" "not followed"
	work_of http-b
	pid=${pid_of[http-b]}
	page=/pid/$pid/pprof/heap
	[ $((i % 2)) = 0 ] || page=/pid/$pid/debug/pprof/heap
	get -o "$top/body" -w '%{http_code}\n' "$url$page" >"$top/code" &
	asked=$!
	sleep 0.0$((2 * i - 1))
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	wait $asked || died="$died curl"
	died="$died $(cat "$top/code")"
done
case $(printf '%s\n' $died | sort -u | xargs) in
200 | 404 | '200 404') ok "killed in a snapshot:$died" ;;
*) not_ok "killed in a snapshot" "answers$died" "$top/serve.err" ;;
esac
answers 200 "$all?pid=${pid_of[http-a]}"

# no room for what is made
if have prlimit; then
	prlimit --pid "$server" --fsize=512:unlimited
	answers 500 "$all?pid=${pid_of[http-a]}"
	grep -q "cannot make the profile: File too large" "$top/body" && ok "no room: it is said" ||
		not_ok "no room: it is said" "no" "$top/body"
	answers 200 "$url/healthz"
	prlimit --pid "$server" --fsize=unlimited:unlimited
	answers 200 "$all?pid=${pid_of[http-a]}"
else
	skip "no room" "no prlimit"
fi

# killed, and again at the same address: no probe is left, and it works as before
kill -9 "$server"
wait "$server" 2>/dev/null
await 10 same_memory http-a && ok "killed: no probe is left" || not_ok "killed: no probe is left" "one is" "$top/text"
serve --listen "127.0.0.1:$port" --rate 1 -p "${pid_of[http-c]}"
work_of http-c
exact_of http-c "and again at the same port"
end_server "the second server"
serve --listen "unix:$top/socket" --rate 1 -p "${pid_of[http-a]}"
kill -9 "$server"
wait "$server" 2>/dev/null
serve --listen "unix:$top/socket" --rate 1 -p "${pid_of[http-a]}"
answers 200 --unix-socket "$top/socket" http://any/healthz
if have setpriv; then
	setpriv --reuid=65534 --clear-groups curl -s -m 10 --unix-socket "$top/socket" http://any/healthz \
		>"$top/body" 2>&1 && not_ok "the socket is for its owner" "others may" "$top/body" ||
		ok "the socket is for its owner"
fi
end_server "the server of a socket that was left"
mkdir "$top/strange"
chown 65534:65534 "$top/strange"
refused "a socket in a folder of somebody else" "/strange' belongs to user 65534" --listen "unix:$top/strange/socket" -p "${pid_of[http-a]}"

# tokens
echo 0123456789abcdef0123 >"$top/token"
chmod 600 "$top/token"
serve --listen 0.0.0.0:0 --token-file "$top/token" -p "${pid_of[http-a]}"
port=${url##*:} url=http://127.0.0.1:${url##*:}
for wrong in '' 0 0123456789abcdef012 0123456789abcdef01234 1123456789abcdef0123 0123456789ABCDEF0123; do
	answers 401 -H "Authorization: Bearer $wrong" "$url/metrics"
done
answers 401 "$url/metrics"
answers 401 -H "Authorization: 0123456789abcdef0123" "$url/metrics"
answers 401 -d 0x1 "$url/pprof/symbol"
answers 401 "$url/metrics?token=0123456789abcdef0123"
answers 200 -H "Authorization: Bearer 0123456789abcdef0123" "$url/metrics"
answers 200 -u pprof:0123456789abcdef0123 -d 0x1 "$url/pprof/symbol"
answers 200 -u pprof:0123456789abcdef0123 -H 'Host: any.example' "$url/healthz"
python3 - "$port" >"$top/crowd" 2>&1 <<'END' && ok "one address cannot keep others out" ||
import socket, sys

port, held = int(sys.argv[1]), []
for _ in range(160):
    one = socket.create_connection(("127.0.0.1", port), 5)
    held.append(one)
    try:
        one.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    except OSError:
        pass  # this one it did not want
other = socket.create_connection(("127.0.0.1", port), 5, ("127.0.0.2", 0))
other.sendall(b"GET /healthz HTTP/1.1\r\nHost: any.example\r\nAuthorization: Bearer 0123456789abcdef0123\r\n\r\n")
answer = other.recv(100)
sys.exit(not answer.startswith(b"HTTP/1.1 200 "))
END
	not_ok "one address cannot keep others out" "no answer for another" "$top/crowd"
end_server "the server with a token"
for address in 0.0.0.0:0 '[::]:0'; do
	refused "$address without a token" "--token-file" --listen "$address" -p "${pid_of[http-a]}"
done
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: who is followed, what is served to the byte, what is refused, what is left behind.
. "$(dirname "$0")/lib.sh"
e2e_init serve
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"

build_c family && OUT=family-static build_c family -static && build_c forks && build_c execs || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"

# by name
by_name() {
	begin heapy-a
	begin heapy-x
	begin other
	serve --listen 127.0.0.1:0 --rate 1 --comm '^heapy' --exclude '^heapy-x$'
	port=${url##*:}
	follows "${pid_of[heapy-a]}" && ok "follows who is there" || not_ok "follows who is there" "no" "$top/serve.err"
	# a client that never asks to the end
	(exec 9<>"/dev/tcp/127.0.0.1/$port" && printf 'GET / HTTP/1.1\r\nHos' >&9 && timeout 40 cat <&9) >"$top/slow" &
	slow=$!

	begin heapy-b
	await 5 follows "${pid_of[heapy-b]}" && ok "follows who comes later" ||
		not_ok "follows who comes later" "not within 5 s" "$top/serve.err"
	for name in heapy-a heapy-b heapy-x other; do work_of $name; done
	exact_of heapy-a "heap?pid="
	served heapy-b "/pid/N/heap" "$url/pid/${pid_of[heapy-b]}/debug/pprof/heap" --alloc
	served heapy-b "/pid/N/allocs" "$url/pid/${pid_of[heapy-b]}/debug/pprof/allocs" --alloc
	served heapy-a "heap of all: one" "$url/debug/pprof/heap" --alloc --label "pid=${pid_of[heapy-a]}"
	served heapy-b "heap of all: the other" "$url/debug/pprof/heap" --alloc --label "pid=${pid_of[heapy-b]}"
	pids=$("$compare" labels "$top/heapy-b/p.pb.gz" pid | sort | xargs)
	want=$(printf '%s\n' "${pid_of[heapy-a]}" "${pid_of[heapy-b]}" | sort | xargs)
	[ "$pids" = "$want" ] && ok "nobody else is in it" || not_ok "nobody else is in it" "pids $pids, not $want"
	sum=$(awk '$1 == "TOTAL" { print $2 }' <("$compare" total "$top/heapy-a/p.pb.gz"))
	shown=$(get "$url/metrics" | awk '/^heaptap_inuse_bytes\{/ { n += $NF } END { printf "%d", n }')
	[ "$sum" = "$shown" ] && ok "metrics say the same: $sum bytes" || not_ok "metrics say the same" "$shown, the profile $sum"
	used=$(cat /proc/"$server"/stat $(pgrep -P "$server" -x 'heaptap-guard|heaptap-reader' | sed 's,.*,/proc/&/stat,') |
		awk '{ n += $14 + $15 } END { print n }')
	shown=$(get "$url/metrics" | awk '$1 == "heaptap_cpu_seconds_total" { printf "%d", $2 * 100 }')
	[ "${shown:-0}" -ge "$used" ] && ok "its CPU time is that of all its processes" ||
		not_ok "its CPU time is that of all its processes" "$shown ticks, they used $used"
	same_memory heapy-a && not_ok "a probe is in who is followed" "none is seen" ||
		ok "a probe is in who is followed"
	same_memory other && ok "no probe in who is not followed" ||
		not_ok "no probe in who is not followed" "its text differs" "$top/text"

	# a difference in time
	begin heapy-d
	await 5 follows "${pid_of[heapy-d]}" || not_ok "follows heapy-d" "not within 5 s" "$top/serve.err"
	get -f -o "$top/heapy-d/delta.pb.gz" "$url/debug/pprof/allocs?seconds=3&pid=${pid_of[heapy-d]}" &
	delta=$!
	sleep 0.7
	work_of heapy-d
	wait $delta
	cp "$top/heapy-d/delta.pb.gz" "$top/heapy-d/p.pb.gz"
	work=$top/heapy-d record_status=0 same "seconds=3: what is allocated meanwhile" --alloc
	work=$top
	get -f -o "$top/delta.pb.gz" "$url/debug/pprof/heap?seconds=1&pid=${pid_of[heapy-d]}"
	set -- $("$compare" total "$top/delta.pb.gz")
	[ "${2:-0}" -gt 0 ] && [ "$4 $5" = "0 0" ] && ok "seconds=1: nothing allocated, all in use" ||
		not_ok "seconds=1: nothing allocated, all in use" "total $*"

	# many at once
	loads_pids=
	for i in 1 2 3 4 5 6 7 8; do
		get -f -o "$top/many$i" "$url/debug/pprof/heap?pid=${pid_of[heapy-a]}" &
		loads_pids="$loads_pids $!"
	done
	wait $loads_pids
	same_cnt=0
	for i in 1 2 3 4 5 6 7 8; do
		[ "$("$compare" total "$top/many$i")" = "$("$compare" total "$top/many1")" ] && same_cnt=$((same_cnt + 1))
	done
	[ $same_cnt = 8 ] && "$compare" exact "$top/many8" "$top/heapy-a/target.out" --alloc >/dev/null &&
		ok "eight requests at once" || not_ok "eight requests at once" "$same_cnt are equal"

	if have go || [ -x /usr/local/go/bin/go ]; then
		go=$(command -v go || echo /usr/local/go/bin/go)
		(cd "$top" && PPROF_TMPDIR=$top HOME=${HOME:-$top} timeout 120 "$go" tool pprof -top -nodecount=400 -unit=B \
			"$url/debug/pprof/heap?pid=${pid_of[heapy-a]}") >"$top/top" 2>"$top/top.err"
		bytes=$("$compare" total "$top/many1" | awk '{ print $2 }')
		grep -q "site_malloc_large" "$top/top" && grep -q "of ${bytes}B total" "$top/top" &&
			ok "go tool pprof fetches: $bytes bytes" ||
			not_ok "go tool pprof" "no site_malloc_large, or not $bytes bytes" "$top/top" "$top/top.err"
	else
		skip "go tool pprof" "go is not installed"
	fi

	# requests
	answers 200 "$url/healthz"
	answers 200 "$url/"
	grep -q "pid/${pid_of[heapy-a]}/debug/pprof/heap" "$top/body" && ok "index: links" || not_ok "index: links" "none" "$top/body"
	answers 200 -I "$url/debug/pprof/heap"
	answers 200 "$url/debug/pprof/heap"
	for header in 'Content-Type: application/octet-stream' 'X-Content-Type-Options: nosniff' \
		'Content-Disposition: attachment; filename="heap"'; do
		grep -qi "^$header" "$top/head" && ok "$header" || not_ok "$header" "missing" "$top/head"
	done
	grep -qi '^Content-Encoding' "$top/head" && not_ok "no Content-Encoding" "there is one" "$top/head"
	answers 404 "$url/debug/pprof/heap?pid=${pid_of[other]}"
	grep -qi '^X-Go-Pprof: 1' "$top/head" && grep -qi '^Content-Type: text/plain' "$top/head" &&
		ok "an error for pprof" || not_ok "an error for pprof" "not marked as one" "$top/head"
	answers 404 "$url/nothing"
	answers 404 --path-as-is "$url/../../etc/passwd"
	answers 404 --path-as-is "$url/%2e%2e/etc/passwd"
	answers 400 "$url/debug/pprof/heap?pid=x"
	answers 400 "$url/debug/pprof/heap?seconds=100000"
	answers 400 "$url/debug/pprof/heap?debug=1&seconds=1"
	answers 405 -d 'a=b' "$url/debug/pprof/heap"
	answers 405 -X DELETE "$url/"
	answers 400 -X GET -d 'a=b' "$url/"
	answers 431 -H "X-Long: $(head -c 60000 /dev/zero | tr '\0' a)" "$url/"
	# hung up behind half a request: more of them than connections are possible
	python3 - "$port" <<'END' || not_ok "half requests" "cannot connect"
import socket, sys
for i in range(200):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
    s.sendall(b"GET / HT")
    s.close()
END
	answers 200 -m 3 "$url/healthz"
	printf '\001\002 nonsense\r\n\r\n' | timeout 5 bash -c "exec 9<>/dev/tcp/127.0.0.1/$port; cat >&9; cat <&9" >"$top/nonsense" 2>&1
	answers 200 "$url/healthz"

	# what is refused at start
	refused "a port in use" "in use" --listen "127.0.0.1:$port" --comm nobody
	refused "another machine without a token" "--token-file" --listen 0.0.0.0:0 --comm nobody
	echo 0123456789abcdef0123 >"$top/token"
	chmod 644 "$top/token"
	refused "a token that others can read" "others" --listen 127.0.0.1:0 --token-file "$top/token" --comm nobody
	refused "nothing to track" "nothing to track" --listen 127.0.0.1:0
	refused "a bad expression" "regular expression" --listen 127.0.0.1:0 --comm '('
	refused "a process that is not there" "not a running process" --listen 127.0.0.1:0 -p 2147483647

	# the end of a process
	kill -9 "${pid_of[heapy-b]}"
	await 5 follows_not "${pid_of[heapy-b]}" && ok "lets go who ends" || not_ok "lets go who ends" "not within 5 s"
	if have bpftool || [ -x /usr/sbin/bpftool ]; then
		bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)
		left() { timeout 20 "$bpftool" map dump name live 2>/dev/null | grep -c "\"tgid\": ${pid_of[$1]},"; }
		nothing_left() { [ "$(left heapy-b)" = 0 ]; }
		[ "$(left heapy-a)" -gt 0 ] && ok "samples of who lives are in the map" ||
			not_ok "samples of who lives are in the map" "none found"
		await 5 nothing_left && ok "its samples are gone from the map" ||
			not_ok "its samples are gone from the map" "$(left heapy-b) are left"
	fi
	exact_of heapy-a "the others are as they were"
	for counter in live_full totals_full stacks_full contexts_full scratch_busy events_lost missed_frees; do
		n=$(metric "heaptap_losses_total{reason=\"$counter\"}")
		[ "$n" = 0 ] || not_ok "no losses" "$counter: $n"
	done
	await 30 is_gone "$slow" && ok "a slow client is ended" || not_ok "a slow client is ended" "not within 30 s"
	end_server "serve by name"
	for name in heapy-a heapy-d; do
		await 10 same_memory $name && ok "no probe is left in $name" || not_ok "no probe is left in $name" "its text differs" "$top/text"
	done
}

# children, and programs that become others
children_and_execs() {
	begin forks env E2E_MODE=follow E2E_CHILD_DELAY_MS=2500 "$bin/forks"
	begin named "$bin/execs" "$bin/family"
	begin execs "$bin/execs" "$bin/family"
	begin statics "$bin/execs" "$bin/family-static"
	serve --listen 127.0.0.1:0 --rate 1 --exe '/(forks|execs)$' -p "${pid_of[named]}" -p "${pid_of[statics]}"
	for name in forks named execs statics; do tell_to $name go; done
	ended_cnt() { [ "$(grep -c '^END' "$top/forks/target.out")" = 2 ]; }
	await 20 ended_cnt || not_ok "children" "not done" "$top/forks/target.out"
	cp "$top/forks/target.out" "$top/forks/all.out"
	for pid in $(awk '$1 == "PID" && !seen[$2]++ { print $2 }' "$top/forks/all.out"); do
		of_pid "$pid" "$top/forks/all.out" >"$top/forks/target.out"
		who=parent
		[ "$pid" = "${pid_of[forks]}" ] || who="child"
		E2E_SHOW=4 served forks "fork: $who" "$url/debug/pprof/heap?pid=$pid" --alloc
	done
	for name in named execs statics; do
		await 10 says "$top/$name/target.out" '^BEFORE' || not_ok "$name" "does not work"
		exact_of $name "before exec: $name"
		tell_to $name exec
	done
	await 5 follows_not "${pid_of[execs]}" && ok "lets go who is another program" ||
		not_ok "lets go who is another program" "not within 5 s" "$top/serve.err"
	is_ready_again() { [ "$(cat "$top"/{named,statics}/target.out | grep -c ^READY)" = 4 ]; }
	await 10 is_ready_again || not_ok "exec" "no second program"
	sleep 0.5
	for name in named statics; do
		work_of $name
		sed -i '1,/^BEFORE/d' "$top/$name/target.out"
		exact_of $name "after exec: what the new program holds: $name"
	done
	"$heaptap" report --notes "$top/statics/p.pb.gz" >"$top/notes"
	grep -q "not exact since the exec at" "$top/notes" && ! grep -q "(exact)" "$top/notes" && ok "after exec: the time unseen is said" ||
		not_ok "after exec: the time unseen is said" "" "$top/notes"
	"$heaptap" report --notes "$top/named/p.pb.gz" >"$top/notes"
	! grep -q "not exact since" "$top/notes" && ok "after exec: and only of whom it is" ||
		not_ok "after exec: and only of whom it is" "" "$top/notes"
	end_server "serve children and execs"
	for name in forks named execs statics; do
		await 10 same_memory $name && ok "no probe is left in $name" || not_ok "no probe is left in $name" "its text differs" "$top/text"
	done
}

# with a token, by pid, on a unix socket
by_other_ways() {
	chmod 600 "$top/token"
	serve --listen 0.0.0.0:0 --token-file "$top/token" -p "${pid_of[other]}"
	url=http://127.0.0.1:${url##*:}
	# Who only asks whether it is there needs none.
	answers 200 "$url/healthz"
	answers 401 "$url/metrics"
	answers 401 -H 'Authorization: Bearer 0123456789abcdef0124' "$url/metrics"
	answers 200 -H 'Authorization: Bearer 0123456789abcdef0123' "$url/metrics"
	answers 200 -u 'pprof:0123456789abcdef0123' "$url/debug/pprof/heap?pid=${pid_of[other]}"
	end_server "serve with a token"
	serve --listen "unix:$top/socket" --user 0 --exe "/heapy-[ad]$" --min-rss 1k
	[ "$(stat -c %a "$top/socket")" = 600 ] && ok "a socket for its owner" || not_ok "a socket for its owner" "$(stat -c %a "$top/socket")"
	cnt=$(get --unix-socket "$top/socket" http://x/metrics | awk '/^heaptap_followed_processes/ { print $2 }')
	[ "$cnt" = 2 ] && ok "--user, --exe, --min-rss: 2 processes" || not_ok "--user, --exe, --min-rss" "$cnt processes" "$top/serve.err"
	end_server "serve on a unix socket"
	[ -e "$top/socket" ] && not_ok "the socket is removed" "it is there" || ok "the socket is removed"
	serve --listen 127.0.0.1:0 --exe "/heapy-[ad]$" --min-rss 1g
	[ "$(metric heaptap_followed_processes)" = 0 ] && ok "--min-rss 1g: nobody" || not_ok "--min-rss 1g" "somebody" "$top/serve.err"
	end_server "serve nobody"
}

# Others of its processes are followed: both mostly wait.
one_after_the_other() {
	by_name
	by_other_ways
}
beside apart one_after_the_other
beside apart children_and_execs
together
e2e_end

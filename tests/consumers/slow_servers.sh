#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_servers.sh - the real Parca and the real Pyroscope: heaptap pushes to both, Parca scrapes, and both
# are asked by process and by scope. What they answer is compared with what the program itself says it holds.
#
#	PARCA=.../parca PYROSCOPE=.../pyroscope PROFILECLI=.../profilecli tests/consumers/slow_servers.sh
#
# They are not in Debian: built from their sources with `go build ./cmd/parca`, and
# `go build -tags "netgo embedassets" ./cmd/pyroscope` and `./cmd/profilecli`; an index.html in the folder
# that the user interface is built into is enough. One that is not given is left out.
# timeout: 600
. tests/e2e/lib.sh
e2e_init servers
for tool in curl python3 go; do
	have $tool || skip_all "$tool is not installed"
done
[ -n "${PARCA:-}${PYROSCOPE:-}" ] || skip_all "no server: PARCA and PYROSCOPE name their programs"
build_c scope_grow "-I$e2e_top/include" || { not_ok build "scope_grow"; e2e_end; }
ports=($(python3 -c 'import socket
all = [socket.socket() for _ in range(5)]
for s in all: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in all))'))
inuse=memory:inuse_space:bytes:space:bytes

is_ready_or_gone() { is_gone "$begun" || curl -s -f -m 5 -o "$work/ready" "$1"; }
# begin NAME URL COMMAND...: a server, until it answers at URL
begin() {
	local name=$1 url=$2
	shift 2
	(cd "$work" && exec "$@") >"$work/$name.log" 2>&1 </dev/null &
	begun=$!
	e2e_pids="$e2e_pids $begun"
	await 60 is_ready_or_gone "$url"
	curl -s -f -m 5 -o "$work/ready" "$url" ||
		{ tail -n 4 "$work/$name.log" >"$work/last"; not_ok "$name" "does not begin" "$work/last"; e2e_end; }
}

start "$bin/scope_grow" 4 || { not_ok start "the target did not start" "$work/target.err"; e2e_end; }
address=127.0.0.1:${ports[0]}
pushes=
if [ -n "${PARCA:-}" ]; then
	cat >"$work/parca.yaml" <<END
object_storage: { bucket: { type: FILESYSTEM, config: { directory: "$work/parca" } } }
scrape_configs:
  - job_name: scraped
    scrape_interval: 2s
    params: { pid: ["$target"] }
    static_configs: [{ targets: ["$address"] }]
    profiling_config:
      pprof_config:
        memory: { enabled: true, path: /debug/pprof/heap }
        block: { enabled: false }
        goroutine: { enabled: false }
        mutex: { enabled: false }
        process_cpu: { enabled: false }
END
	parca=http://127.0.0.1:${ports[1]}
	begin parca "$parca/api/profiles/types" "$PARCA" --config-path="$work/parca.yaml" \
		--http-address="127.0.0.1:${ports[1]}" --log-level=warn --debuginfod-upstream-servers= \
		--debuginfo-cache-dir="$work"
	pushes="$pushes --push parca+http://127.0.0.1:${ports[1]} --push-debuginfo"
fi
if [ -n "${PYROSCOPE:-}" ]; then
	pyroscope=http://127.0.0.1:${ports[2]}
	# Its parts find each other at the address of an interface and at the port 9095. It takes a minute.
	begin pyroscope "$pyroscope/ready" "$PYROSCOPE" -server.http-listen-port="${ports[2]}" \
		-memberlist.bind-port="${ports[3]}" -memberlist.bind-addr=127.0.0.1 \
		-embedded-grafana.listen-port="${ports[4]}" -usage-stats.enabled=false \
		-self-profiling.disable-push=true -log.level=warn
	pushes="$pushes --push pyroscope+http://127.0.0.1:${ports[2]}"
fi

# The last that the program said: of a scope (bytes), and in all.
holds() { awk -v s="$1" '$1 == "HOLDS" && $6 == s { n[$5] = $2 } END { for (t in n) sum += n[t]; print sum + 0 }' "$work/target.out"; }
holds_in_all() { awk '$1 == "HOLDS" { n[$5 " " $6] = $2 } END { for (i in n) sum += n[i]; print sum }' "$work/target.out"; }

# shellcheck disable=SC2086
"$heaptap" serve --listen "$address" --rate 1 --push-interval 2s -p "$target" $pushes \
	--label job=pushed 2>"$work/serve.err" </dev/null &
server=$!
e2e_pids="$e2e_pids $server"
await 20 says "$work/serve.err" '^heaptap: serving' || { not_ok serve "does not begin" "$work/serve.err"; e2e_end; }
since_s=$(date +%s)
step "grow 2"
step "grow 1"
scope=App/s29 pool='worker-*'

# is NAME WANT COMMAND...: within 30 s it answers so
answers() { [ "$("${@:2}" 2>"$work/query.err" | tee "$work/answer")" = "$1" ]; }
is() {
	local name=$1
	shift
	await 30 answers "$@" && ok "$name: $1" ||
		not_ok "$name" "'$(head -c 300 "$work/answer")', not '$1'" "$work/query.err" "$work/serve.err"
}
now_rfc() { date -u +%Y-%m-%dT%H:%M:%SZ -d "@$1"; }

# parca_inuse MATCHERS: the last value in bytes, summed over the series that match
parca_inuse() {
	curl -s -m 20 -G "$parca/api/profiles/query_range" --data-urlencode "query=$inuse{$1}" \
		--data-urlencode "start=$(now_rfc "$since_s")" --data-urlencode "end=$(now_rfc $(($(date +%s) + 2)))" |
		python3 -c 'import json, sys
series = json.load(sys.stdin).get("series", [])
print(sum(int(max(s["samples"], key=lambda m: m["timestamp"]).get("value", 0)) for s in series))'
}
# parca_top MATCHERS: functions, of the profiles merged
parca_top() {
	curl -s -m 20 -G "$parca/api/profiles/query" --data-urlencode "mode=MODE_MERGE" \
		--data-urlencode "reportType=REPORT_TYPE_PPROF" --data-urlencode "merge.query=$inuse{$1}" \
		--data-urlencode "merge.start=$(now_rfc "$since_s")" \
		--data-urlencode "merge.end=$(now_rfc $(($(date +%s) + 2)))" |
		python3 -c 'import base64, json, sys
sys.stdout.buffer.write(base64.b64decode(json.load(sys.stdin)["pprof"]))' >"$work/parca.pb.gz"
	go tool pprof -top "$work/parca.pb.gz" 2>&1
}
names_grow() { "$@" | tee "$work/names" | grep -q 'scope_grow\|grow'; }

if [ -n "${PARCA:-}" ]; then
	is "Parca, pushed, by process" "$(holds_in_all)" parca_inuse "job=\"pushed\", pid=\"$target\""
	is "Parca, pushed, by scope" "$(holds $scope)" parca_inuse "job=\"pushed\", scope=\"$scope\""
	is "Parca, pushed, by thread pool" "$(holds App/conn)" parca_inuse "job=\"pushed\", scope=\"App/conn\", thread=\"$pool\""
	is "Parca, scraped, by process" "$(holds_in_all)" parca_inuse 'job="scraped"'
	await 30 names_grow parca_top "job=\"pushed\", pid=\"$target\"" &&
		ok "Parca names the functions of what was pushed bare" ||
		not_ok "Parca names the functions" "it does not" "$work/names" "$work/parca.log"
fi

# pyroscope_series LABEL VALUE MATCHERS: the last value of the series of that group
pyroscope_series() {
	curl -s -m 20 -H 'content-type: application/json' "$pyroscope/querier.v1.QuerierService/SelectSeries" -d "$(
		python3 -c 'import json, sys
print(json.dumps({"profileTypeID": sys.argv[1], "labelSelector": "{" + sys.argv[2] + "}", "step": 2,
	"groupBy": [sys.argv[3]], "start": int(sys.argv[4]) * 1000, "end": int(sys.argv[5]) * 1000}))' \
			"$inuse" "$3" "$1" "$since_s" "$(($(date +%s) + 2))"
	)" | python3 -c 'import json, sys
found = 0
for s in json.load(sys.stdin).get("series", []):
	if {"name": sys.argv[1], "value": sys.argv[2]} in s.get("labels", []):
		points = [p for p in s["points"] if p.get("value")]
		found += int(max(points, key=lambda p: int(p["timestamp"]))["value"])
print(found)' "$1" "$2"
}
pyroscope_names() {
	curl -s -m 20 -G "$pyroscope/pyroscope/render" --data-urlencode "query=$inuse{$1}" \
		--data-urlencode "from=$since_s" --data-urlencode "until=$(date +%s)" --data-urlencode format=json |
		python3 -c 'import json, sys
print("\n".join(json.load(sys.stdin)["flamebearer"]["names"]))'
}
if [ -n "${PYROSCOPE:-}" ]; then
	is "Pyroscope, pushed, by process" "$(holds_in_all)" pyroscope_series pid "$target" 'job="pushed"'
	is "Pyroscope, pushed, by scope" "$(holds $scope)" pyroscope_series scope "$scope" "pid=\"$target\""
	is "Pyroscope, pushed, by thread pool" "$(holds App/conn)" pyroscope_series thread "$pool" "pid=\"$target\""
	await 30 names_grow pyroscope_names "pid=\"$target\"" && ok "Pyroscope names the functions" ||
		not_ok "Pyroscope names the functions" "it does not" "$work/names" "$work/pyroscope.log"
fi
if [ -n "${PYROSCOPE:-}" ] && [ -n "${PROFILECLI:-}" ]; then
	# Pyroscope does not fetch itself: its client gives it what was fetched.
	curl -s -f -m 20 -o "$work/fetched.pb.gz" "http://$address/debug/pprof/heap?pid=$target"
	"$PROFILECLI" upload --url="$pyroscope" --override-timestamp --extra-labels=service_name=fetched \
		"$work/fetched.pb.gz" >"$work/upload" 2>&1 || not_ok "profilecli upload" "fails" "$work/upload"
	is "Pyroscope, fetched, by process" "$(holds_in_all)" pyroscope_series service_name fetched 'service_name="fetched"'
	is "Pyroscope, fetched, by scope" "$(holds $scope)" pyroscope_series scope "$scope" 'service_name="fetched"'
fi
pushed_all() {
	curl -s -m 10 "http://$address/metrics" >"$work/metrics"
	! grep -E '^heaptap_push_(refused|dropped)_total.* [1-9]' "$work/metrics" >"$work/lost"
}
pushed_all && ok "nothing was refused or dropped" || not_ok "nothing was refused or dropped" "some were" "$work/lost" "$work/serve.err"
kill -TERM "$server"
await 20 is_gone "$server" || not_ok "SIGTERM ends heaptap" "not within 20 s"
e2e_end

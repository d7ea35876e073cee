#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_prometheus.sh - the metrics of a live server in other people's hands: promtool and Prometheus'
# Python library read them, a real Prometheus scrapes them and answers by process and by scope, the
# dashboard's queries and the alert rules are understood and name what is there.
. tests/e2e/lib.sh
e2e_init prometheus
for tool in prometheus promtool curl python3; do
	have $tool || skip_all "$tool is not installed"
done
build_c scope_grow "-I$e2e_top/include" || { not_ok build "scope_grow"; e2e_end; }
grafana=$e2e_top/tools/grafana

# heaptap and a process that holds something
start "$bin/scope_grow" 4 || not_ok start "the target did not start" "$work/target.err"
"$heaptap" serve --listen 127.0.0.1:0 --rate 1 --metrics-scopes 25 -p "$target" 2>"$work/serve.err" </dev/null &
server=$!
e2e_pids="$e2e_pids $server"
await 20 says "$work/serve.err" '^heaptap: serving' || { not_ok serve "does not begin" "$work/serve.err"; e2e_end; }
address=$(sed -nE 's,^heaptap: serving .* on http://([^/]*)/.*,\1,p' "$work/serve.err")
# held COLUMN THREAD SCOPE: what the process says of them (1 bytes, 3 allocated bytes)
held() { awk -v c="$1" -v t="$2" -v s="$3" '$1 == "HOLDS" && $5 == t && $6 == s { n = $(c + 1) } END { print n }' "$work/target.out"; }
held_in_all() { awk '$1 == "HOLDS" { n[$5 " " $6] = $2 } END { for (i in n) sum += n[i]; print sum }' "$work/target.out"; }
step "grow 2"

# files
has_rows() { curl -s -f "http://$address/metrics" | grep -q '^heaptap_resident_bytes{'; }
await 30 has_rows || not_ok "resident memory by row" "none within 30 s"
both() {
	curl -s -f -o "$work/text" "http://$address/metrics"
	curl -s -f -H 'Accept: application/openmetrics-text; version=1.0.0' -o "$work/open" "http://$address/metrics"
}
both
timeout 30 promtool check metrics <"$work/text" >"$work/lint" 2>&1 && [ ! -s "$work/lint" ] &&
	ok "promtool has nothing to say" || not_ok "promtool check metrics" "it complains" "$work/lint"
python=
for p in python3 /usr/bin/python3; do $p -c 'import prometheus_client.openmetrics' 2>/dev/null && python=$p; done
if [ -n "$python" ]; then
	# a profile may be saved between the two
	is_same() { both && $python tests/consumers/metrics_parse.py "$work/text" "$work/open" >"$work/parsed" 2>&1 && [ ! -s "$work/parsed" ]; }
	await 20 is_same
	[ -s "$work/parsed" ] && not_ok "text and OpenMetrics are the same, for the Python library" "not" "$work/parsed" ||
		ok "text and OpenMetrics are the same, for the Python library"
else
	skip "the Python library" "prometheus_client is not installed"
fi
timeout 30 promtool check rules "$grafana/heaptap.rules.yml" >"$work/rules" 2>&1 && ok "promtool check rules" ||
	not_ok "promtool check rules" "refused" "$work/rules"
cp "$grafana/heaptap.rules.yml" tests/consumers/heaptap.rules.test.yml "$work/"
timeout 60 promtool test rules "$work/heaptap.rules.test.yml" >"$work/rules" 2>&1 && ok "the rules fire when they should" ||
	E2E_SHOW=40 not_ok "the rules fire when they should" "not" "$work/rules"

# a real Prometheus
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus=http://127.0.0.1:$port
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s }
rule_files: [heaptap.rules.yml]
scrape_configs:
  - job_name: heaptap
    static_configs: [{ targets: ["$address"] }]
END
prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --log.level=warn \
	--web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 </dev/null &
e2e_pids="$e2e_pids $!"
# query EXPR: the value of the one sample, rounded
query() {
	curl -s -m 10 -G --data-urlencode "query=$1" "$prometheus/api/v1/query" |
		python3 -c 'import json, sys
r = json.load(sys.stdin)["data"]["result"]
print(round(float(r[0]["value"][1])) if len(r) == 1 else f"{len(r)} results")' 2>/dev/null
}
answers() { [ "$(query "$1")" = "$2" ]; }
# says_of NAME EXPR VALUE [SECONDS]: a look takes longer than await takes it to
says_of() {
	await "${4:-4}" answers "$2" "$3" && ok "$1: $3" || not_ok "$1" "$(query "$2"), not $3" "$work/prometheus.log" "$work/serve.err"
}
says_of "Prometheus scrapes" 'up{job="heaptap"}' 1 8
says_of "by process" "sum by (pid) (heaptap_inuse_bytes{comm=\"scope_grow\"})" "$(held_in_all)"
says_of "by scope" 'sum by (scope) (heaptap_scope_inuse_bytes{scope="App/s29"})' "$(held 1 scope_grow App/s29)"
says_of "by thread pool" 'sum by (thread) (heaptap_scope_inuse_bytes{thread="worker-*"})' "$(held 1 'worker-*' App/conn)"
says_of "the sum over scopes is the process" 'sum(heaptap_scope_inuse_bytes) - sum(heaptap_inuse_bytes)' 0
unit=$(curl -s -m 10 "$prometheus/api/v1/metadata?metric=heaptap_inuse_bytes" | python3 -c 'import json, sys
print(json.load(sys.stdin)["data"]["heaptap_inuse_bytes"][0]["unit"])' 2>/dev/null)
[ "$unit" = bytes ] && ok "it was OpenMetrics: the unit is known" || not_ok "it was OpenMetrics" "unit '$unit'"
step "churn 3000"
step "grow 1"
says_of "allocated, by scope" 'heaptap_scope_alloc_bytes_total{scope="App/s29"}' "$(held 3 scope_grow App/s29)"
says_of "grown, by process" 'sum(heaptap_inuse_bytes)' "$(held_in_all)"
says_of "increased" 'increase(heaptap_alloc_objects_total[1m]) > bool 3000' 1
for counter in heaptap_alloc_bytes_total heaptap_scope_alloc_bytes_total heaptap_scope_alloc_objects_total \
	heaptap_losses_total heaptap_samples_total heaptap_cpu_seconds_total; do
	answers "sum(resets($counter[1m]))" 0 || not_ok "no counter is reset" "$counter is: $(query "sum(resets($counter[1m]))")"
done
ok "counters have been looked at for resets"

# the dashboard
step "grow 1"
ask_all() {
	timeout 60 python3 tests/consumers/dashboard.py "$prometheus" "$grafana/heaptap.json" \
		"$grafana/heaptap.rules.yml" "$work/text" >"$work/dashboard" 2>&1 &&
		! grep -qv '^#' "$work/dashboard"
}
await 1 ask_all && ok "dashboard and rules: $(tail -n 1 "$work/dashboard")" ||
	not_ok "dashboard and rules" "faults" "$work/dashboard"

kill_target
says_of "who has ended is gone" 'count(heaptap_inuse_bytes) or vector(0)' 0
kill -TERM "$server"
await 20 is_gone "$server" || not_ok "SIGTERM ends heaptap" "not within 20 s"
e2e_end

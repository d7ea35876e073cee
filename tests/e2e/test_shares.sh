#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: a process that takes all that it can of the tables that all share. What others hold is
# exact all the same; what it loses is said in the log, once, in its own profile, and in the metrics.
. "$(dirname "$0")/lib.sh"
e2e_init shares
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"

build_c family && build_c many_stacks || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"

begin modest
begin many_stacks "$bin/many_stacks" 30000
serve --listen 127.0.0.1:0 --rate 1 --max-stacks 2000 --max-live 20000 \
	--comm '^modest$' --comm '^many_stacks$'
await 5 follows "${pid_of[modest]}" || not_ok modest "is not followed" "$top/serve.err"
await 5 follows "${pid_of[many_stacks]}" || not_ok many_stacks "is not followed" "$top/serve.err"
work_of many_stacks
work_of modest
exact_of modest "who comes after it is exact"

said() { [ "$(grep -c "PID ${pid_of[many_stacks]} .*has used up its share of the table of $1" "$top/serve.err")" = "$2" ]; }
await 10 said stacks 1 && await 10 said 'live samples' 1 && ok "the log says it" ||
	not_ok "the log says it" "not so" "$top/serve.err"
sleep 6
said stacks 1 && ok "once" || not_ok "once" "not so" "$top/serve.err"
grep -q "PID ${pid_of[modest]} .*share" "$top/serve.err" &&
	not_ok "the log says nothing of the other one" "it does" "$top/serve.err" ||
	ok "the log says nothing of the other one"

ledger_of() {
	get -f -o "$top/$1.pb.gz" "$url/debug/pprof/heap?pid=${pid_of[$1]}" &&
		"$heaptap" report --notes "$top/$1.pb.gz" >"$top/notes" 2>&1
}
ledger_of many_stacks
grep -q 'share_live 1[0-9]\{4\} ' "$top/notes" && grep -q 'share_stacks [0-9]\{4,\} ' "$top/notes" &&
	ok "its profile says what it lost" || not_ok "its profile says what it lost" "not so" "$top/notes"
ledger_of modest
grep -q 'share_' "$top/notes" && not_ok "the other one's does not" "it does" "$top/notes" ||
	ok "the other one's does not"
[ "$(metric 'heaptap_losses_total{reason="share_stacks"}')" -gt 1000 ] 2>/dev/null &&
	ok "and so do the metrics" || {
	get "$url/metrics" >"$top/metrics"
	not_ok "and so do the metrics" "$(grep share "$top/metrics")"
}
end_server shares
e2e_end

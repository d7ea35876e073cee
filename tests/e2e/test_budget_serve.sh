#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The overhead budget of heaptap serve: with its defaults, with others while it runs, and by signals. As in
# test_budget.sh, what a target gets done per CPU second of its own is what is compared.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/budget_lib.sh"
e2e_init budget_serve
. "$e2e_dir/serve_lib.sh"
have curl || skip_all "curl is not installed"
build_c busy && start_reference || { not_ok build "workload"; e2e_end; }

## serve with its defaults, beside two of them
start "$bin/busy" 1 || not_ok start "the target did not start" "$work/target.err"
"$bin/busy" 1 <"$work/target.in" >/dev/null &
owned other
await_pace 5
alone=$pace
serve --listen 127.0.0.1:0 -p "$target" -p $other
metric() { curl -s -S -m 30 "$url/metrics" | awk -v name="$1" -v pid="pid=\"$2\"" 'index($0, name) == 1 && index($0, pid) && !found++ { print $NF }'; }
is_off() { [ "$(metric heaptap_overhead_step "$target")" = 3 ] && [ "$(metric heaptap_overhead_step $other)" = 3 ]; }
await_used 20 "$target" is_off && ok "serve: neither is recorded any more" ||
	not_ok serve "the step is '$(metric heaptap_overhead_step "$target")'" "$work/serve.err"
await_pace 5 # to settle
keeps_pace 10 "$alone" && ok "serve: safe with its defaults" ||
	not_ok "serve" "its pace was $alone times the reference's and is $pace" "$work/serve.err"
end_reference
kill -STOP $other # it has shown what it is for, and would compute to the end
is_cheap() { ratio=$(metric heaptap_overhead_ratio "$target") && below "$ratio" 0.06; }
await_used 20 "$target" is_cheap && ok "serve: overhead $ratio" || not_ok "serve: overhead" "'$ratio'" "$work/serve.err"
curl -s -m 30 -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$target"
[[ "$(notes)" == *"stopped recording"* ]] && ok "serve: its profiles say so" ||
	not_ok "serve: profile" "no word of it" "$work/serve.err"

end_server serve
kill_target

## Other limits while it runs
other_limits() {
	# It does not allocate all the time, but with probes for a third of it or more.
	start "$bin/busy" 1 300000 || not_ok start "the target did not start" "$work/target.err"
	cat >"$work/serve.toml" <<-END
		listen = "127.0.0.1:0"
		pid = [$target]
		max-overhead = "off"
		max-overhead-host = "off"
	END
	serve --config "$work/serve.toml"
	await_pace 30
	[ "$(metric heaptap_overhead_step "$target")" = 0 ] || not_ok "no limit" "something is given up" "$work/serve.err"
	kill -USR1 $server
	await 10 says "$work/serve.err" 'all probes are removed' || not_ok "SIGUSR1" "is not heard" "$work/serve.err"
	hits() { curl -s -S -m 30 -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$target" && ledger alloc_hits; }
	before=$(hits)
	await_pace 5
	[ -n "$before" ] && [ "$(hits)" = "$before" ] && ok "SIGUSR1: no probe is hit any more" ||
		not_ok "SIGUSR1" "$before hits became $(hits)" "$work/serve.err"
	kill -USR2 $server
	goes_on() { [ "$(hits)" -gt "$before" ]; }
	await 20 goes_on && ok "SIGUSR2: recording goes on" || not_ok "SIGUSR2" "no hits" "$work/serve.err"
	sed -i '3s/.*/max-overhead = "5%"/' "$work/serve.toml"
	kill -HUP $server
	is_at_step() { [ "$(metric heaptap_overhead_step "$target")" = "$1" ]; }
	await_used 20 "$target" is_at_step 3 && says "$work/serve.err" 'overhead limits are now: 5 % (or 1 % of one CPU) of each process, none of the host' &&
		ok "SIGHUP: a limit where there was none" || not_ok "SIGHUP: a limit" "it is not kept" "$work/serve.err"
	sed -i '3s/.*/max-overhead = "off"/' "$work/serve.toml"
	kill -HUP $server
	await 60 is_at_step 0 && ok "SIGHUP: without a limit everything comes back" ||
		not_ok "SIGHUP: no limit" "the step is '$(metric heaptap_overhead_step "$target")'" "$work/serve.err"
	curl -s -m 30 -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=$target"
	notes=$(notes)
	[[ "$notes" == *"(no limit)"* && "$notes" == *"stopped recording"* && "$notes" == *"tracking frees again"* ]] &&
		ok "SIGHUP: the profile tells all of it" || not_ok "SIGHUP: profile" "$notes" "$work/serve.err"
	end_server "serve, other limits"
	kill_target
}

## serve with its defaults and a server of 300 requests a second
few_requests() {
	if [ "${HEAPTAP_VM:-0}" = 0 ] && build_c requests; then
		start "$bin/requests" 3300 1 60000 || not_ok start "the target did not start" "$work/target.err"
		serve --listen 127.0.0.1:0 -p "$target"
		sleep 12
		is_known() { known=$(metric heaptap_inuse_complete "$target") && [ "$known" = 1 ]; }
		await 10 is_known # where others take the processor, the measurement takes longer
		percent=$(sed -nE 's/.*tracking everything costs ([0-9.]+) % of one CPU.*/\1/p' "$work/serve.err" | head -n 1)
		if [ "$known" = 1 ]; then
			ok "serve: in-use of 300 requests/s is known"
		elif [ -n "$percent" ] && below 1 "$percent"; then
			skip "serve: in-use of 300 requests/s" "here their 6000 hits take $percent % of a CPU, and the limit is 1 %"
		else
			not_ok "serve: in-use of 300 requests/s" "'$known'" "$work/serve.err"
		fi
		end_server "serve, 300 requests/s"
		kill_target
	else
		skip "serve: 300 requests/s" "its program cannot be built, or the machine is emulated"
	fi
}

beside apart other_limits
beside apart few_requests
together
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scopes on real recordings: the numbers that the specification of scopes asks for, to the byte with
# --rate 1 and within their intervals with sampling; tasks, labels, pauses; very many instances.
. "$(dirname "$0")/lib.sh"
e2e_init scopes

scope_flags="-I$e2e_top/include"
build_c scope_table $scope_flags && build_c scope_triple $scope_flags && build_c scope_switch $scope_flags &&
	build_c scope_pool $scope_flags && build_cxx scope_server $scope_flags ||
	{ not_ok build "the workloads"; e2e_end; }

# scopes_are NAME [OPTION...]: the profile says of scopes what the program says
scopes_are() {
	local name=$1
	shift
	"$e2e_dir/scope_compare.py" "$@" "$heaptap" "$work/p.pb.gz" "$work/target.out" >"$work/differences" 2>&1
	[ "$record_status$target_status" = 00 ] && ! grep -qv '^#' "$work/differences" && ok "$name" ||
		not_ok "$name" "status $record_status, target $target_status" "$work/differences" \
			"$work/heaptap.err" "$work/target.err"
}
# record_scopes [HEAPTAP ARGS...] -- COMMAND...
record_scopes() {
	local args=()
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	start "$@" || not_ok "$*" "did not start" "$work/target.err"
	attach "${args[@]}"
	run_target 100
	stop_recorder
	finish_target
}

# recorded WHAT HEAPTAP ARGS... -- COMMAND...: exactly what the program says
recorded() {
	local what=$1
	shift
	record_scopes --rate 1 "$@"
	scopes_are "$what"
}
# README's three: queries below different labels are one path, which held at least what it holds.
triple() {
	launch --rate 1 -q -- "$bin/scope_triple"
	"$heaptap" report --by scope --format json -n 0 "$work/p.pb.gz" >"$work/report"
	python3 - "$work/report" <<-'P' && ok "scope, label and task: the peak" || not_ok "scope, label and task: the peak" "below what is held" "$work/report"
	import json, sys
	rows = {row["path"]: row for row in json.load(open(sys.argv[1]))["rows"]}
	task, above = rows["Executor/query"], rows["Executor"]
	sys.exit(0 if task["peak_bytes"] >= task["inuse_bytes"] == 540000 and task["peak_is_minimum"] and
		above["peak_bytes"] == 541000 and not above["peak_is_minimum"] else f"{task} {above}")
	P
	"$heaptap" report --by instance -n 0 "$work/p.pb.gz" >"$work/report"
	grep -q '^In use after exit: 264 KiB in 270 blocks of 30 tasks' "$work/report" && ok "scope, label and task: ended" ||
		not_ok "scope, label and task: ended" "not said" "$work/report"
}
nested() {
	recorded nested -- "$bin/scope_table" nested
	no_losses "nested: no losses"
	# Peaks are exact: 400 bytes below Top, whatever was freed since.
	"$heaptap" report --by scope --format json -n 0 "$work/p.pb.gz" >"$work/report"
	python3 - "$work/report" <<-'P' && ok "peaks" || not_ok "peaks" "differ" "$work/report"
	import json, sys
	peak = {row["path"]: row["peak_bytes"] for row in json.load(open(sys.argv[1]))["rows"]}
	must = {"Top": 400, "Top/A": 200, "Top/A/B": 100, "Top/B": 100}
	sys.exit(0 if {k: peak[k] for k in must} == must else f"{peak}")
	P
}
# What is outstanding after the end of its task is a list of its own; what is gone is not in it.
task_1() {
	recorded "task 1" -- "$bin/scope_table" task 1
	"$heaptap" report --by instance "$work/p.pb.gz" >"$work/report"
	grep -q '^In use after exit: 5 B in 1 block of 1 task' "$work/report" &&
		ok "outstanding after exit" || not_ok "outstanding after exit" "not said" "$work/report"
}
task_2() {
	recorded "task 2" -- "$bin/scope_table" task 2
	[ "$(ledger instances_ended)" = 1 ] &&
		ok "an instance that is over is forgotten once" ||
		not_ok "an instance that is over is forgotten once" "count: $(ledger instances_ended)"
}
signal() {
	record_scopes --rate 1 -- "$bin/scope_table" signal
	scopes_are "signals that interrupt pushes" --sums
}
names() {
	record_scopes --rate 1 --max-live 200000 -- "$bin/scope_table" names
	scopes_are "a million names" --sums
	[ "$(ledger scopes_full)" -gt 0 ] && ok "a million names: those that are too many are counted" ||
		not_ok "a million names: those that are too many are counted" "none" "$work/heaptap.err"
}
beside names
beside nested
beside triple
for scenario in before handover reuse interleaved "realloc new" deep underflow labels pause; do
	beside recorded "$scenario" -- "$bin/scope_table" $scenario
done
beside task_1
beside task_2
for mode in $e2e_modes; do
	beside recorded "task 1, $mode" --attach-mode=$mode -- "$bin/scope_table" "task" 1
done
beside recorded "realloc, charged to where it began" --realloc-scope origin -- "$bin/scope_table" realloc origin
beside signal

# Started by heaptap: tagged from the first allocation on.
started() {
	launch --rate 1 -- "$bin/scope_table" nested
	target_status=0
	grep -v '^EXPECT_SUM' "$work/target.out" >"$work/out" && mv "$work/out" "$work/target.out"
	scopes_are "started by heaptap"
}
beside started

# A child that is followed has its own scopes, and an exec begins anew.
followed() {
	record_scopes --rate 1 --follow -- "$bin/scope_table" fork
	"$heaptap" report --by scope --format json -n 0 "$work/p.pb.gz" >"$work/report"
	python3 - "$work/report" <<-'P' && ok "a followed child" || not_ok "a followed child" "differs" "$work/report"
	import json, sys
	rows = {row["path"]: row for row in json.load(open(sys.argv[1]))["rows"]}
	has = {path: rows[path]["exclusive_inuse_bytes"] for path in ("Parent", "Parent/Child")}
	# The parent's two blocks of 100; the child's 200. What it inherited is the parent's.
	sys.exit(0 if has == {"Parent": 200, "Parent/Child": 200} else str(has))
	P
}
beside followed

# A server with a leak in one kind of query; sampled: within the intervals.
beside recorded "server" -- "$bin/scope_server"
beside recorded "a pool's workers are in the scope of who posted" -- "$bin/scope_pool"
sampled() {
	record_scopes --rate 4k -- "$bin/scope_server"
	scopes_are "server, sampled" --sampled
}
beside sampled
together

# Very many instances.
record_scopes --rate 1 -- "$bin/scope_switch" live 10000 8 $(is_whole && echo 2000 || echo 1000)
scopes_are "10 000 live instances on 8 threads, a million switches a second"
no_losses "10 000 live instances: no losses"
[ "$(ledger instances_full)$(ledger scopes_full)" = 00 ] && ok "10 000 live instances: no context lost" ||
	not_ok "10 000 live instances: no context lost" "$(ledger instances_full) $(ledger scopes_full)"
# in any case more than there are places for (HT_INSTANCES_CAP)
short_cnt=$(is_whole && echo 1000000 || echo 400000)
start "$bin/scope_switch" short $short_cnt 8
attach --rate 1
before=$(awk '/^VmRSS/ { print $2 }' /proc/$recorder/status)
run_target 110
after=$(awk '/^VmRSS/ { print $2 }' /proc/$recorder/status)
stop_recorder
finish_target
scopes_are "$short_cnt short instances"
ended=$(ledger instances_ended)
[ "$ended" = $((short_cnt / 1000 * 999)) ] && ok "$short_cnt short instances: all but those that hold something are forgotten" ||
	not_ok "$short_cnt short instances: all but those that hold something are forgotten" "forgotten: $ended"
[ $((after - before)) -lt 2048 ] && ok "$short_cnt short instances: heaptap's memory stays as it is" ||
	not_ok "$short_cnt short instances: heaptap's memory stays as it is" "$before KiB, then $after KiB"
e2e_end

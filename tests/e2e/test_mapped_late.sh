#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A library with an allocator inside that a recorded program loads, and uses at once. Until it is probed it is not seen: then
# nothing is exact, and the file is named.
. "$(dirname "$0")/lib.sh"
e2e_init mapped_late

OUT=libplugin_own.so build_c plugin_own -shared -fPIC && build_c dlopens -ldl || { not_ok build "workloads"; e2e_end; }
export E2E_PLUGIN=$bin/libplugin_own.so E2E_MODE=late
said="libplugin_own\.so' was probed [0-9.]+ (us|ms|s) after it was mapped: earlier blocks are not included"

told() { tr -s ' \n' ' ' <"$3" | grep -qE -- "$2" && ok "$1" || not_ok "$1" "no '$2'" "$3"; }
untold() { tr -s ' \n' ' ' <"$3" | grep -qE -- "$2" && not_ok "$1" "there is '$2'" "$3" || ok "$1"; }
reports() {
	"$heaptap" report "$work/p.pb.gz" >"$work/report" 2>&1
	"$heaptap" report -f json "$work/p.pb.gz" >"$work/json" 2>&1
}
# late NAME ARGS...: used at once
late() {
	local name=$1
	shift
	start env E2E_PAUSE_MS=0 "$bin/dlopens"
	attach "$@"
	run_target
	await 10 says "$work/heaptap.err" "was probed"
	stop_recorder
	finish_target
	reports
	told "$name: said at once" "$said" "$work/heaptap.err"
	told "$name: the report says it" "Not seen: .*$said; heap in use is at least the number shown" "$work/report"
	untold "$name: nothing is exact" "exact" "$work/report"
	told "$name: JSON" '"is_lossy": *true' "$work/json"
	[ "$(ledger late_files)" = 1 ] && ok "$name: counted" || not_ok "$name: counted" "$(ledger late_files)"
	"$heaptap" check --max-inuse 100M "$work/p.pb.gz" >"$work/check" 2>&1
	[ $? = 2 ] && ok "$name: a limit cannot be said to be kept" || not_ok "$name: a limit" "status" "$work/check"
}
# whole NAME: it was seen from its first call on
whole() {
	reports
	told "$1: nothing was missed" '"is_lossy": *false' "$work/json"
	untold "$1: nothing is said" "after it was mapped" "$work/report"
}
for mode in $e2e_modes; do late "$mode" --rate 1 --attach-mode=$mode; done
late "with its children" --rate 1 --follow
late tap --tap
E2E_KNOWN=1 exact "loaded before" -- "$bin/dlopens"
whole "loaded before"
start env E2E_KNOWN=1 "$bin/dlopens"
record_work --tap
whole "loaded before, tapped"
E2E_PAUSE_MS=0 exact_launched "started" -- "$bin/dlopens"
whole "started"
E2E_PAUSE_MS=0 exact_launched "started, with its children" --follow -- "$bin/dlopens"
whole "started, with its children"

if have curl; then
	. "$e2e_dir/serve_lib.sh"
	E2E_PAUSE_MS=0 begin late "$bin/dlopens"
	serve --listen 127.0.0.1:0 --rate 1 -p "${pid_of[late]}"
	await 20 follows "${pid_of[late]}"
	is_complete() { [ "$(metric "heaptap_inuse_complete{pid=\"${pid_of[late]}\"")" = "$1" ]; }
	await 20 is_complete 1 && ok "served: complete before" || not_ok "served: complete before" "no"
	work_of late
	await 20 is_complete 0 && ok "served: not complete" || not_ok "served: not complete" "it is"
	get -f -o "$work/index" "$url/"
	told "served: the page says why" "libplugin_own\.so.{1,6} was probed" "$work/index"
	get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=${pid_of[late]}"
	reports
	told "served: its profile says it" "$said" "$work/report"
	end_server "served"
fi
e2e_end

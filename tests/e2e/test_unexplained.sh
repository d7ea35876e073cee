#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that grow by what is not held: each answer says so before its rows, and what it can be; a limit is not said to be
# kept then.
. "$(dirname "$0")/lib.sh"
e2e_init unexplained

build_c unexplained && OUT=unexplained-nameless build_c unexplained -DNAMELESS || { not_ok build "unexplained.c"; e2e_end; }
strip -o "$work/nameless" "$bin/unexplained-nameless"
export E2E_FILE=$work/file

told() { tr -s ' \n' ' ' <"$3" | grep -qE -- "$2" && ok "$1" || not_ok "$1" "no '$2'" "$3"; }
untold() { tr -s ' \n' ' ' <"$3" | grep -qE -- "$2" && not_ok "$1" "there is '$2'" "$3" || ok "$1"; }
# judged NAME STATUS: the verdict on 1 MiB in use
judged() {
	"$heaptap" check --max-inuse 1M "$work/p.pb.gz" >"$work/check" 2>&1
	local status=$?
	[ $status = "$2" ] && ok "$1: check" || not_ok "$1: check" "status $status, not $2" "$work/check"
}
# grown MODE PROGRAM ARGS...: recorded while it grows; what the recording shows is in $work/shown
grown() {
	local mode=$1 program=$2
	shift 2
	start env E2E_MODE="$mode" "$program"
	attach "$@"
	rows_are_read
	run_target
	sleep 0.5
	stop_recorder
	finish_target
	cp "$work/heaptap.out" "$work/shown"
	sed -n '2,$p' "$work/shown" >"$work/second"
}
by_row='The process grew by 6[0-9.]+ MiB, of which ([0-9.]+ K|0 )i?B is in use. By row: mapped directly \+6[0-9.]+ MiB'
grew='The process grew by 6[0-9.]+ MiB, of which [0-9]+ % is explained: [0-9.]+ KiB is in use. The rest may be memory that it mapped'

grown map "$bin/unexplained" --rate 1
told "mapped: said first" "^$by_row" "$work/second"
"$heaptap" report -f json "$work/p.pb.gz" >"$work/json"
told "mapped: JSON" '"unexplained_bytes": *6[0-9]{7}' "$work/json"
judged "mapped" 2
told "mapped: check says why" "$by_row" "$work/check"
grown map "$bin/unexplained" --rate 1 -q
told "mapped, -q: said" "$by_row" "$work/heaptap.err"
grown map "$bin/unexplained" --rate 16M
told "mapped, nothing sampled: said" "$by_row" "$work/heaptap.err"
grown map "$bin/unexplained" --tap
cat "$work/heaptap.err" >>"$work/shown" # where it is said if there was no sample
told "mapped, tapped: said" "The process grew by 6[0-9.]+ MiB" "$work/shown"
E2E_MODE=map launch --rate 1 -- "$bin/unexplained"
told "mapped, from the start: said" "The process grew by 6[0-9.]+ MiB" "$work/heaptap.err"
judged "mapped, from the start" 2
E2E_NOWAIT=1 E2E_MODE=map timeout 60 "$heaptap" check --max-growth 1M --max-inuse 1M -- "$bin/unexplained" >"$work/check" 2>&1
[ $? = 2 ] && ok "mapped: checked while it runs" || not_ok "mapped: checked while it runs" "status" "$work/check"

grown unseen "$work/nameless" --rate 1
told "not seen: said first, with the file" "^The process grew by 6.* an allocator that is not seen \(.*/nameless\)" "$work/second"
judged "not seen" 2

grown kept "$bin/unexplained" --rate 1
told "kept: said first, with the moment" "^The process grew by 6[0-9.]+ MiB, but only [0-9.]+ KiB is in use. 6[0-9.]+ MiB were in use at [0-9:]{8}: its allocator keeps" "$work/second"
judged "kept" 0

grown file "$bin/unexplained" --rate 1
untold "a file is no growth" "The process grew" "$work/shown"
judged "a file" 0

if have curl; then
	. "$e2e_dir/serve_lib.sh"
	E2E_MODE=map begin mapped "$bin/unexplained"
	serve --listen 127.0.0.1:0 --rate 1 -p "${pid_of[mapped]}"
	await 20 follows "${pid_of[mapped]}"
	get -f -o "$work/before.pb.gz" "$url/debug/pprof/heap?pid=${pid_of[mapped]}"
	work_of mapped
	page_says() { get -f -o "$work/page" "$url/pid/${pid_of[mapped]}/" && grep -qE "The process grew by 6" "$work/page"; }
	await 20 page_says && ok "served: the page says it" || not_ok "served: the page says it" "no" "$work/page"
	get -f -o "$work/index" "$url/"
	told "served: the list says it" "The process grew by 6" "$work/index"
	get -f -o "$work/p.pb.gz" "$url/debug/pprof/heap?pid=${pid_of[mapped]}"
	"$heaptap" report "$work/p.pb.gz" >"$work/report" 2>&1
	told "served: its profile says it" "$grew" "$work/report"
	"$heaptap" diff "$work/before.pb.gz" "$work/p.pb.gz" >"$work/diff" 2>&1
	told "served: the difference of before and after says it" "The process grew by 6[0-9.]+ MiB, of which [0-9]+ % is explained: [0-9.]+ .?i?B more is in use" "$work/diff"
	"$heaptap" diff "$work/p.pb.gz" "$work/before.pb.gz" >"$work/diff" 2>&1
	untold "served: the other way round it does not" "grew" "$work/diff"
	end_server "served"
fi
e2e_end

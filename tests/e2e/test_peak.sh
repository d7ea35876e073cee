#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The peak: of a command that has ended, and of a process; in the summary, in reports, in the file for other readers; of
# several processes; and who was not recorded.
. "$(dirname "$0")/lib.sh"
e2e_init peak
have python3 || skip_all "python3 is not installed"
build_c peaks || { not_ok build "workload"; e2e_end; }
truth=40100000 kept=100000

# told NAME EXPRESSION [REPORT ARGS...]: of the report d as JSON, and its rows by name
told() {
	local name=$1 expression=$2
	shift 2
	"$heaptap" report -f json "$@" "$work/p.pb.gz" >"$work/json" 2>"$work/err" && python3 -c "
import json
d = json.load(open('$work/json'))
rows = {r['name']: r['inuse_bytes'] for r in d['rows'] if r['inuse_bytes']}
assert ($expression), (d['at'], d['peak'], d['total']['inuse_bytes'], rows)" 2>"$work/told" && ok "$name" ||
		not_ok "$name" "$expression" "$work/err" "$work/told" "$work/heaptap.err"
}
# shows NAME PATTERN [REPORT ARGS...]: the report as text
shows() {
	local name=$1 pattern=$2
	shift 2
	"$heaptap" report "$@" "$work/p.pb.gz" >"$work/report" 2>&1
	grep -qE -- "$pattern" "$work/report" && ok "$name" || not_ok "$name" "no '$pattern'" "$work/report"
}

for mode in $e2e_modes; do
	launch --rate 1 --attach-mode=$mode -- "$bin/peaks" 700
	[ "$(cat "$work/target.out")" = "PEAK $truth" ] || not_ok "$mode: the program" "" "$work/target.out" "$work/heaptap.err"
	grep -qE '^Peak: 38\.2 MiB \(exact\) in 140 blocks at [0-9.]+ m?s;' "$work/heaptap.err" && grep -q 'rows are of this moment' "$work/heaptap.err" &&
		grep -qE '^ 1 +28\.6 MiB .*hold_most' "$work/heaptap.err" && ok "$mode: the summary is of the peak" ||
		not_ok "$mode: the summary is of the peak" "" "$work/heaptap.err"
	grep -qE '^In use: 97\.7 KiB \(exact\) in 100 blocks at the end' "$work/heaptap.err" && ok "$mode: and says the end" ||
		not_ok "$mode: and says the end" "" "$work/heaptap.err"
	told "$mode: JSON is of the end, and has the peak" "d['at'] == 'end' and d['total']['inuse_bytes'] == $kept and
		d['peak']['bytes'] == d['peak']['bytes_low'] == d['peak']['bytes_high'] == $truth and d['peak']['objects'] == 140 and
		7e8 < d['peak']['at_ns'] < d['duration_ns']"
	told "$mode: --at peak" "d['at'] == 'peak' and rows == { 'hold_most': 30000000, 'hold_first': 10000000, 'fill_table': $kept }" \
		--at peak --by function
	told "$mode: --at TIME" "d['at'] == 'time' and 2e8 < d['at_ns'] < 7e8 and rows.get('hold_first') == 10000000 and
		not rows.get('hold_most') and d['rows'][0]['inuse_objects'] is None" --at 0.5s --by function
done
shows "text is of the peak" '^ 1 +28\.6 MiB .*hold_most'
shows "text --at end" '^ 1 +97\.7 KiB .*fill_table' --at end
shows "text --at end says the peak" '^Peak: 38\.2 MiB \(exact\) in 140 blocks at .*, 75 % of it by hold_most' --at end
shows "growth is not of the peak" '^Peak: 38\.2 MiB .*75 % of it by hold_most' --sort growth
shows "ages are not" '--at shows heap in use of one profile: not with .*age' --by age --at peak
shows "no dump without blocks" '--at TIME has bytes, but no numbers of blocks' --at 0.5s -f heap
shows "no order by them" '--at TIME has bytes, but no numbers of blocks' --at 0.5s --sort objects
shows "no such moment" 'peak, end, or a time since the begin' --at noon
"$heaptap" report -o "$work/x.html" "$work/p.pb.gz" && grep -q '"title":"in use at the peak"' "$work/x.html" &&
	ok "the picture is of the peak" || not_ok "the picture is of the peak" ""
"$heaptap" report --at end -o "$work/x.html" "$work/p.pb.gz" && grep -q '"title":"in use",.*"title":"in use at the peak"' "$work/x.html" &&
	ok "the picture of the end has both" || not_ok "the picture of the end has both" ""
"$heaptap" report -f collapsed --at peak "$work/p.pb.gz" | grep -q 'hold_most 30000000$' && ok "collapsed --at peak" ||
	not_ok "collapsed --at peak" ""

[ -x /usr/local/go/bin/go ] && PATH=$PATH:/usr/local/go/bin
export PPROF_TMPDIR=$work
if have go && timeout 300 go tool pprof -top -unit=B -sample_index=peak_space "$work/p.pb.gz" >"$work/out" 2>"$work/err"; then
	grep -q '^Type: peak_space' "$work/out" && grep -qE '^ +30000000B .* hold_most' "$work/out" &&
		ok "go tool pprof reads it" || not_ok "go tool pprof reads it" "" "$work/out"
else
	skip "go tool pprof reads it" "go tool pprof cannot be run here"
fi

# Blocks of 1 MB are all kept at 64 KiB but for one in millions; of the table few are.
launch -r 64k -- "$bin/peaks"
told "samples" "abs(d['peak']['bytes'] - $truth) < 500000 and d['peak']['bytes_low'] < $truth < d['peak']['bytes_high']"

# A process that runs: of the end, with the peak beside it.
start "$bin/peaks" driven
attach --rate 1
run_target || not_ok "a process" "not done" "$work/target.out"
stop_recorder
grep -qE '^Peak: 38\.2 MiB \(exact\) in 140 blocks at .*, 75 % of it by hold_most' "$work/heaptap.out" &&
	grep -qE '^ 1 +97\.7 KiB .*fill_table' "$work/heaptap.out" && ok "a process: the end, and its peak" ||
	not_ok "a process: the end, and its peak" "" "$work/heaptap.out" "$work/heaptap.err"
finish_target
shows "a report of it" '^ 1 +97\.7 KiB .*fill_table'
shows "a report of its peak" '^ 1 +28\.6 MiB .*hold_most' --at peak

# What has ended holds nothing any more: two after each other have the peak of one.
twice='"$0" 0 leave; "$0" 100 leave; exit 0'
launch --rate 1 --follow -- sh -c "$twice" "$bin/peaks"
told "two processes after each other" "$truth <= d['peak']['bytes'] < $truth + 1000000 and d['total']['inuse_bytes'] >= 2 * $truth" --by process
"$heaptap" report --by process "$work/p.pb.gz" >"$work/report"
[ "$(grep -cE 'peaks \(PID [0-9]+\)' "$work/report")" -ge 1 ] && ok "by process" || not_ok "by process" "" "$work/report"
told "by process, at the end" "sorted(v for n, v in rows.items() if n.startswith('peaks (PID ')) == [$truth, $truth]" --by process
grep -q 'not recorded' "$work/heaptap.err" && not_ok "--follow: none is missing" "" "$work/heaptap.err" || ok "--follow: none is missing"
launch --rate 1 -- sh -c "$twice" "$bin/peaks"
grep -q '^2 child processes were not recorded: --follow records children$' "$work/heaptap.err" && ok "children that were not recorded" ||
	not_ok "children that were not recorded" "" "$work/heaptap.err"
e2e_end

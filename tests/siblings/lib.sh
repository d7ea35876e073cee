# SPDX-License-Identifier: MIT
# lib.sh - what these tests share; sourced after tests/e2e/lib.sh.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
got=$(realpath -m "${SIBLINGS_BUILD:-.build/siblings}")

# answer NAME TRUTH WANT FILE: judges the recording in $work (judge.py)
answer() {
	local name=$1 line
	shift
	"$heaptap" report --no-pager "$work/p.pb.gz" >"$work/report.txt" 2>&1
	"$heaptap" report --notes "$work/p.pb.gz" >"$work/notes.txt" 2>&1
	"$heaptap" report -f json "$work/p.pb.gz" >"$work/report.json" 2>/dev/null
	"$heaptap" check --max-inuse 100G --max-growth 100G/min "$work/p.pb.gz" >"$work/check.txt" 2>&1
	echo $? >"$work/check.status"
	line=$(python3 "$here/judge.py" "$@" "$work" 2>&1) && ok "$name | $line" ||
		not_ok "$name" "$line" "$work/report.txt" "$work/check.txt" "$work/heaptap.err"
}
# sibling NAME WANT FILE COMMAND...: recorded in each way: every allocation, sampled, by the tap. A command that cannot be had
# ends with 77.
sibling() {
	local name=$1 want=$2 file=$3 way truth
	shift 3
	for way in ${SIBLINGS_WAYS:-rate1 sampled tap}; do
		if ! start "$@"; then
			kill -9 "$target" 2>/dev/null
			wait "$target" 2>/dev/null
			[ $? = 77 ] && skip "$name" "$(tail -n 1 "$work/target.err")" || not_ok "$name" "it did not start" "$work/target.err"
			exec {target_in}>&-
			return
		fi
		case $way in
		rate1) attach --rate 1 ;;
		sampled) attach --rate 16K ;;
		tap) attach --tap --rate 16K ;;
		esac
		run_target 120
		truth=$(awk '$1 == "EXPECT" { print $2 }' "$work/target.out")
		stop_recorder 60
		finish_target
		[ "$record_status" = 0 ] && answer "$name, $way" "${truth:--1}" "$want" "$file" ||
			not_ok "$name, $way" "heaptap's status is $record_status" "$work/heaptap.err" "$work/target.err"
	done
}
# only PATTERN: is NAME one of those that SIBLINGS_ONLY names?
only() { [[ $1 == ${SIBLINGS_ONLY:-*} ]]; }

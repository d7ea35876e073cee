#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_diff.sh - two recordings and their difference: of the same server nothing is more than chance, of one that leaves
# ten times as much its function is; exactly, with --rate 1; the pictures of a recording; files and errors.
. "$(dirname "$0")/lib.sh"
e2e_init diff
have python3 || skip_all "python3 is not installed"
build_c requests || { not_ok build "workload"; e2e_end; }

# recorded NAME RATE LEAVES_EVERY: 4 s of a server that leaves a block in so many requests, in $work/NAME.pb.gz
recorded() {
	start "$bin/requests" 2000 10 3000 "$3" || { not_ok "$1" "does not start" "$work/target.err"; return 1; }
	await 10 says "$work/target.out" '^AT'
	timeout 60 "$heaptap" record -q --max-overhead off --rate "$2" -d 4s --force -o "$work/$1.pb.gz" -p "$target" \
		>"$work/record.out" 2>&1 || not_ok "$1" "not recorded" "$work/record.out"
	kill_target
}
# told NAME EXPRESSION: of the difference d, in Python
told() {
	python3 -c "
import json
d = json.load(open('$work/diff.json'))
rows = {r['name'].split(' < ')[0]: r for r in d['rows']}
assert $2, d" >"$work/told" 2>&1 && ok "$1" || not_ok "$1" "$2" "$work/told"
}
diff_of() { "$heaptap" diff -f json "$work/$1.pb.gz" "$work/$2.pb.gz" >"$work/diff.json" 2>"$work/diff.err"; }

recorded same1 2048 20 && recorded same2 2048 20 && recorded more 2048 2 || e2e_end
diff_of same1 same2
told "one server, recorded twice: no more than chance" "d['total']['is_significant'] is False"
diff_of same1 more
told "one that leaves ten times as much" "d['total']['is_significant'] and rows['request_site']['is_significant']"
told "by how much" "rows['request_site']['inuse_bytes_delta_low'] > rows['request_site']['inuse_bytes_before']"
diff_of more same1
told "and the other way round" "d['total']['inuse_bytes_delta_high'] < 0"
"$heaptap" diff "$work/same1.pb.gz" "$work/same1.pb.gz" >"$work/text" 2>&1
grep -qE '  [0-9]+ rows?: unchanged \(within sampling noise\)$' "$work/text" && ok "text: nothing has changed" ||
	not_ok "text: nothing has changed" "not said so" "$work/text"
"$heaptap" diff "$work/same1.pb.gz" "$work/more.pb.gz" >"$work/text" 2>&1
grep -q 'beyond sampling noise$' "$work/text" && grep -qE '^ +\+[0-9.]+ .iB +\+[0-9.]+ \+[0-9.]+ .iB .* serve' "$work/text" &&
	[ "$(awk '{ if (length > n) n = length } END { print n }' "$work/text")" -le 100 ] &&
	ok "text: in 100 columns" || not_ok "text" "" "$work/text"
"$heaptap" report --base "$work/same1.pb.gz" "$work/more.pb.gz" 2>&1 | cmp -s - "$work/text" && ok "report --base is the same" ||
	not_ok "report --base" "differs"

"$heaptap" report -f html -o "$work/x.html" "$work/more.pb.gz" 2>"$work/err" && [ "$(stat -c %a "$work/x.html")" = 600 ] &&
	grep -q '<title>' "$work/x.html" && grep -q '"serve"' "$work/x.html" && ! grep -qE '(src|href)=' "$work/x.html" &&
	ok "html: one file, nothing fetched" || not_ok html "" "$work/err"
"$heaptap" diff -f html -o "$work/d.html" "$work/same1.pb.gz" "$work/more.pb.gz" 2>"$work/err" &&
	grep -q '"sides":{"names":\[".*/same1.pb.gz"' "$work/d.html" && grep -q 'beyond sampling noise$' "$work/d.html" &&
	! grep -qE '(src|href)=' "$work/d.html" && ok "a difference as html" || not_ok "a difference as html" "" "$work/err"

# refused NAME STATUS SENTENCE ARGS...
refused() {
	local name=$1 status=$2 sentence=$3 got
	shift 3
	timeout 10 "$heaptap" "$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got = "$status" ] && grep -qF -- "$sentence" "$work/err" && [ ! -s "$work/out" ] && ok "$name" ||
		not_ok "$name" "status $got" "$work/err" "$work/out"
}
echo no profile >"$work/text.pb.gz"
refused "one profile" 2 "give two profiles, BEFORE and AFTER" diff "$work/more.pb.gz"
refused "three" 2 "unexpected argument" diff "$work/more.pb.gz" "$work/more.pb.gz" "$work/more.pb.gz"
refused "one that is none" 1 "is not a readable profile" diff "$work/more.pb.gz" "$work/text.pb.gz"
refused "a file that is not there" 1 "No such file" diff "$work/gone.pb.gz" "$work/more.pb.gz"
refused "a format that it has not" 2 "--format" diff -f heap "$work/more.pb.gz" "$work/more.pb.gz"
refused "a picture of rows" 2 "has all stacks: not with --by or --top" diff -f html --by thread "$work/more.pb.gz" "$work/more.pb.gz"
refused "a profile of rows" 2 "has all stacks: not with --by or --top" diff -f pprof --top 3 "$work/more.pb.gz" "$work/more.pb.gz"
refused "a profile of nothing known" 1 "is not a readable profile" diff -f pprof "$work/more.pb.gz" "$work/text.pb.gz"
refused "a folder that is not there" 1 "gone" report -o "$work/gone/x" "$work/more.pb.gz"
ln -s "$work/same1.pb.gz" "$work/link.txt"
"$heaptap" report -o "$work/link.txt" "$work/more.pb.gz" 2>"$work/err"
"$heaptap" report "$work/same1.pb.gz" >/dev/null 2>&1 && [ ! -L "$work/link.txt" ] &&
	ok "a link is replaced, not followed" || not_ok "a link" "" "$work/err"
e2e_end

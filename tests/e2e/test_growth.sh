#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_growth.sh - a server that leaks 1 KiB ten times a second under 2 MB/s of churn: what leaks is named, with an
# interval that has the truth; of the same server without the leak nothing is; how old what is in use is. E2E_RUNS recordings of each
# (6, and 3 of that without), beside each other, of E2E_SECONDS (20). Sampling is chance: a third of those of the leak may miss it, and
# one of the others may name something; with 20 and more runs none.
#
# The leak is 10 KiB/s, so at 8 KiB, which record chooses for this server, it is 25 samples in 20 s. At 64 KiB it is 3,
# of which nothing can be said yet; that is tried, too.
. "$(dirname "$0")/lib.sh"
e2e_init growth
have python3 || skip_all "python3 is not installed"
build_cxx leaky_server || { not_ok build "workload"; e2e_end; }
runs=${E2E_RUNS:-6}
none_runs=${E2E_RUNS:-$(is_whole && echo 6 || echo 3)}
seconds=${E2E_SECONDS:-20}

recordings=$work
# recorded NAME RATE RUNS [leak]: RATE auto: as it is when none is given; in $recordings/NAME-N.pb.gz, what record said in
# $recordings/NAME-N.out
recorded() {
	local i pids= rate=
	[ "$2" = auto ] || rate="--rate $2"
	start "$bin/leaky_server" "${@:4}" || { not_ok "$1" "does not start" "$work/target.err"; return 1; }
	sleep 2 # its cache is full
	for ((i = 0; i < $3; i++)); do
		# shellcheck disable=SC2086 # an option and its value
		timeout 120 "$heaptap" record --max-overhead off $rate -d "${seconds}s" --force -o "$recordings/$1-$i.pb.gz" \
			-p "$target" >"$recordings/$1-$i.out" 2>"$recordings/$1-$i.err" </dev/null &
		pids="$pids $!"
		owned
	done
	wait $pids
	kill_target
}
# rows NAME RUNS: "VERDICT LOW HIGH FUNCTION" of each function in each recording
rows() {
	local i
	for ((i = 0; i < $2; i++)); do
		"$heaptap" report --sort growth --by function -f json "$work/$1-$i.pb.gz" >"$work/json.$i" 2>>"$work/err"
	done
	python3 -c "
import json
for i in range($2):
    for r in json.load(open(f'$work/json.{i}'))['rows']:
        if r['inuse_bytes']:
            print(r['growth'], r['growth_bytes_per_s_low'], r['growth_bytes_per_s_high'], r['name'].replace(' ', ''))"
}

beside recorded leak auto "$runs" leak
beside recorded none auto "$none_runs"
together
[ "$e2e_failed" = 0 ] || e2e_end
named=$(grep -l '^Grows: .*remember.*KiB/s (95 %: ' "$work"/leak-*.out | wc -l)
[ $((3 * named)) -ge $((2 * runs)) ] && ok "record names what leaks in $named of $runs" ||
	not_ok "record names what leaks" "in $named of $runs" "$work"/leak-*.out
other=$(grep '^Grows: ' "$work"/leak-*.out | grep -vc 'remember\|more$')
[ "$other" = 0 ] && ok "and nothing else" || not_ok "and nothing else" "in $other of $runs" "$work"/leak-*.out

rows leak $runs >"$work/rows"
covered=$(awk '/remember/ && $2 <= 10240 && $3 >= 10240' "$work/rows" | wc -l)
[ $((3 * covered)) -ge $((2 * runs)) ] && ok "the interval has the truth in $covered of $runs" ||
	not_ok "the interval has the truth" "in $covered of $runs" "$work/rows"
grows=$(grep -c '^grows .*remember' "$work/rows")
[ $((3 * grows)) -ge $((2 * runs)) ] && ok "report says that it grows in $grows of $runs" ||
	not_ok "report says that it grows" "in $grows of $runs" "$work/rows"

named=$(grep -l '^Grows: ' "$work"/none-*.out | wc -l)
[ "$named" -le $((none_runs < 20)) ] && ok "without the leak nothing is named in $((none_runs - named)) of $none_runs" ||
	not_ok "without the leak nothing is named" "but in $named of $none_runs" "$work"/none-*.out
rows none $none_runs >"$work/rows"
total=$(grep -c . "$work/rows")
grows=$(grep -c '^grows' "$work/rows")
[ $((20 * grows)) -le $((total + 40)) ] && ok "$grows of $total rows seem to grow by chance" ||
	not_ok "rows that seem to grow by chance" "$grows of $total" "$work/rows"

"$heaptap" report --sort growth "$work/leak-0.pb.gz" >"$work/text" 2>&1
grep -qE '^ *[+][0-9.]+ KiB/s .* [0-9.]+ KiB .* leaky_server.cc:[0-9]+$' "$work/text" &&
	[ "$(awk '{ if (length > n) n = length } END { print n }' "$work/text")" -le 100 ] &&
	ok "text: in 100 columns" || not_ok text "" "$work/text"

# by age: what leaks is what is old; the rows add up
"$heaptap" report --by function --older-than 5s -f json "$work/leak-0.pb.gz" >"$work/json" 2>"$work/err"
python3 -c "
import json
rows = [r for r in json.load(open('$work/json'))['rows'] if r['inuse_bytes']]
assert 'remember' in rows[0]['name'] and rows[0]['share'] > 0.9, rows
assert rows[0]['age_s']['oldest'] > $seconds / 2 and 5 < rows[0]['age_s']['median'] < $seconds, rows[0]" \
	>"$work/told" 2>&1 && ok "what is older than 5 s is what leaks" || not_ok "older than 5 s" "" "$work/told" "$work/err"
"$heaptap" report --by age -f json "$work/leak-0.pb.gz" >"$work/json" 2>"$work/err"
python3 -c "
import json
d = json.load(open('$work/json'))
assert sum(r['inuse_bytes'] for r in d['rows']) == d['total']['inuse_bytes'] > 0
begin = [0 if r['name'].startswith('under') else float(r['name'].split()[0]) for r in d['rows']]
assert len(begin) > 3 and begin == sorted(begin, reverse=True) and begin[0] >= 5, begin" >"$work/told" 2>&1 &&
	ok "by age: the rows add up, the oldest first" || not_ok "by age" "" "$work/told" "$work/err"
"$heaptap" diff --by age -n 0 -f json "$work/leak-0.pb.gz" "$work/leak-0.pb.gz" >"$work/json" 2>"$work/err"
python3 -c "
import json
d = json.load(open('$work/json'))
assert len(d['rows']) > 3 and sum(r['inuse_bytes_before'] for r in d['rows']) == d['total']['inuse_bytes_before'] > 0, d
assert not any(r['inuse_bytes_delta'] for r in d['rows']), d['rows']" >"$work/told" 2>&1 &&
	ok "diff by age" || not_ok "diff by age" "" "$work/told" "$work/err"
"$heaptap" report --older-than 10m "$work/leak-0.pb.gz" >"$work/out" 2>"$work/err" && grep -q 'No sampled block has been in use for that long' "$work/out" &&
	! grep -q 'Nothing was sampled' "$work/out" && ok "--older-than 10m: nothing is that old" || not_ok "--older-than 10m" "status $?" "$work/out" "$work/err"
"$heaptap" report --older-than 6s "$work/leak-0.pb.gz" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q 'the nearest bounds are 5 s and 7 s' "$work/err" && ok "an age between bounds is refused" ||
	not_ok "an age between bounds" "" "$work/err"

seconds=4
recorded short 64k 1 leak
rows short 1 >"$work/rows"
[ -s "$work/rows" ] && ! grep -q '^grows' "$work/rows" && ! grep -q '^Grows' "$work/short-0.out" &&
	ok "a few seconds at the default rate: it cannot be said yet" || not_ok "a few seconds" "" "$work/rows" "$work/short-0.out"

"$heaptap" report --sort growth -f collapsed "$work/leak-0.pb.gz" >"$work/out" 2>"$work/err"
[ $? = 2 ] && grep -q -- '--sort growth and pinned need --format text or json' "$work/err" && ok "not as flame graph" ||
	not_ok "not as flame graph" "" "$work/err"
e2e_end

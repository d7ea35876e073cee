#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_check.sh - the gate: of a server whose memory stays none is broken, of one that leaks all are; what commands left at
# their end; tasks that ended; a profile of before; text, JSON and JUnit; what cannot be said, and what is refused.
# E2E_CHECKS recordings of each server (3), E2E_CHECKS_BESIDE (3) at a time, of E2E_CHECK_SECONDS (15): the long form,
# 100 of 30 s of a leak of 20 KB/s, lets at most 2 of each be wrong. timeout: 1200
. "$(dirname "$0")/lib.sh"
e2e_init check
have python3 || skip_all "python3 is not installed"
build_cxx leaky_server && build_c leaves && build_c busy && build_cxx scope_server -I"$e2e_top/include" ||
	{ not_ok build "workloads"; e2e_end; }
runs=${E2E_CHECKS:-3}
beside=${E2E_CHECKS_BESIDE:-3}
seconds=${E2E_CHECK_SECONDS:-15}
# so that the short form has the samples that 30 s of 20 KB/s have
leaks=$((runs > 9 ? 20 : 80))

check_growth() {
	timeout 300 "$heaptap" check -q -d "${seconds}s" -p $pid >"$work/$name-$i.out" 2>&1 </dev/null
	got=$?
}
# servers NAME ARGS...: checks of one server, in the background; the statuses in $work/NAME.status
servers() {
	local name=$1 i=0 k pids pid
	shift
	mkfifo "$work/$name.in"
	"$bin/leaky_server" "$@" <"$work/$name.in" >/dev/null &
	pid=$!
	exec {input}>"$work/$name.in"
	sleep 1.5 # its cache is full
	while [ $i -lt "$runs" ]; do
		pids=
		for ((k = 0; k < beside && i < runs; k++, i++)); do
			(
				check_growth
				# a server that had to wait for a processor, and then did all at once what was due
				[ $got = 2 ] && grep -q 'more slowly at the end' "$work/$name-$i.out" && check_growth
				echo $got >>"$work/$name.status"
			) &
			pids="$pids $!"
		done
		wait $pids
	done
	exec {input}>&-
	wait $pid
}
servers steady &
owned steady
servers leak leak $leaks &
owned leak

# checked NAME STATUS ARGS...: what it wrote in $work/out, what it said in $work/err
checked() {
	local name=$1 want=$2 got
	shift 2
	timeout 60 "$heaptap" check "$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got = "$want" ] && ok "$name" || not_ok "$name" "status $got, not $want" "$work/out" "$work/err"
}
# says_of NAME PATTERN FILE
told() { grep -qE -- "$2" "$work/${3:-out}" && ok "$1" || not_ok "$1" "no '$2'" "$work/${3:-out}"; }
# in_json NAME EXPRESSION: of the object d and its first limit l
in_json() {
	python3 -c "
import json
d = json.load(open('$work/out'))
l = d['limits'][0]
assert $2, d" >"$work/told" 2>&1 && ok "$1" || not_ok "$1" "$2" "$work/told" "$work/out"
}

## commands
checked "nothing is left" 0 --rate 1 --max-inuse 0 -- "$bin/leaves" 0
told "exactly" '^pass     in use: 0 B exactly; limit 0 B$'
checked "3 MB are left" 1 --rate 1 --max-inuse 2m --profile "$work/three.pb.gz" -- "$bin/leaves" 3000000
told "and where, and the way there" '2.86 MiB  left_site leaves.c:[0-9]+ < main leaves.c:[0-9]+$'
checked "as many as are allowed" 0 --rate 1 --max-inuse 3000000 -- "$bin/leaves" 3000000
checked "sampled" 0 -q -f json --max-inuse 4m -- "$bin/leaves" 3000000
in_json "an interval" "l['inuse_bytes_low'] < 3e6 < l['inuse_bytes_high'] < 4 << 20 and d['confidence'] == 0.99"
checked "too near" 2 -q -f json --max-inuse 3000000 -- "$bin/leaves" 3000000
in_json "a finer rate would tell" "l['verdict'] == 'unknown' and (l['needed_rate_bytes'] or 4096) < 4096 and '--rate' in l['advice']"
checked "a command that fails" 2 --rate 1 --max-inuse 1 -- "$bin/leaves" 3000000 3
told "its status" "the command failed: it exited with status 3" err
told "and in the result" "^unknown  the command failed"
checked "no time for growth" 2 --rate 1 -- "$bin/leaves" 1000
told "how much it takes" "A recording of [0-9]+ s would probably settle it: -d [0-9]+"
checked "what a command writes is not in the result" 0 -q -f json --max-inuse 10m -- sh -c 'echo hello'
in_json "which is JSON" "l['verdict'] == 'kept'"
told "it goes to standard error" '^hello$' err
checked "children, too" 1 -q --rate 1 --follow --max-inuse 2m -- sh -c "$bin/leaves 3000000 0; exit 0"
checked "one that runs on is ended" 0 --rate 1 --max-inuse 1m -d 1s -- "$bin/leaves" 1000 0 600
await 10 eval '! pgrep -f "$bin/leaves 1000 0 600" >/dev/null' && ok "it has ended" || not_ok "it has ended" "it runs"
checked "nothing was sampled of little" 2 --max-inuse 0 -- "$bin/leaves" 10
"$bin/leaves" 1000 0 8 &
checked "a process that ends half-way" 0 --rate 1 --max-inuse 1m -d 50s -p $!
checked "a command that is not there" 2 -- /nonexistent/command

checked "what a command allocates before the tap is lost" 2 --tap --max-inuse 1g -- "$bin/leaves" 3000000 0 1
grep -q 'is tapped' "$work/err" && told "and no limit is kept" "The profile has losses, which may exceed the limit" || skip "no limit is kept" "there is no tap here"

## a recording that was cut short is none of the whole
# cut_short NAME SIGNAL ARGS...: heaptap is sent SIGNAL when it records
cut_short() {
	local name=$1 signal=$2 check got
	shift 2
	: >"$work/err" # of the check before
	timeout 60 "$heaptap" check --rate 1 --max-inuse 1m "$@" >"$work/out" 2>"$work/err" </dev/null &
	owned check
	await 20 eval 'grep -q "^heaptap: recording" "$work/err"' || not_ok "$name: begins" "it does not" "$work/err"
	kill -"$signal" "$(pgrep -P $check)" # of timeout
	wait $check
	got=$?
	[ $got = 2 ] && grep -q '^unknown  the recording ended early: stopped by the user$' "$work/out" && ok "$name" ||
		not_ok "$name" "status $got" "$work/out" "$work/err"
}
"$bin/leaves" 1000 0 60 &
owned runs_on
cut_short "of a process" INT -d 50s -p $runs_on
kill -0 $runs_on && ok "it runs on" || not_ok "it runs on" "it has ended"
kill $runs_on
cut_short "of a command" TERM -- "$bin/leaves" 1000 0 601
await 10 eval '! pgrep -f "$bin/leaves 1000 0 601" >/dev/null' && ok "which is ended" || not_ok "which is ended" "it runs"

## a profile of before, and saved ones
checked "as much as before" 0 --rate 1 --base "$work/three.pb.gz" -- "$bin/leaves" 3000000
checked "2 MiB more" 1 -f json --rate 1 --base "$work/three.pb.gz" --max-increase 1m -- "$bin/leaves" 5097152
in_json "and where" "l['inuse_bytes_delta'] == 2097152 and l['inuse_bytes_before'] == 3000000 and 'left_site' in l['rows'][0]['name']"
checked "less than a part" 0 --rate 1 --base "$work/three.pb.gz" --max-increase 80% -- "$bin/leaves" 5097152
checked "a file" 1 --max-inuse 2m "$work/three.pb.gz"
checked "a file is too short for growth" 2 "$work/three.pb.gz"
checked "a file that is none" 2 "$0"
pushd "$work" >/dev/null
checked "to standard output by its name" 0 -o - --max-inuse 4m three.pb.gz
popd >/dev/null
told "and not to a file" "^pass     in use: 2.86 MiB exactly"
[ -e "$work/-" ] && not_ok "no file of that name" "there is one" || ok "no file of that name"
checked "no base, no recording" 2 --rate 1 --base "$work/none.pb.gz" -- touch "$work/recorded"
[ -e "$work/recorded" ] && not_ok "it is read before" "the command ran" "$work/err" || ok "it is read before"

## tasks that have ended
checked "tasks that ended hold memory" 1 -f json --rate 1 --max-exited-scope 0 -- "$bin/scope_server" 60 2
in_json "which" "l['inuse_bytes'] == 20000 and ' #' in l['rows'][0]['name'].replace('report', ' #', 1) and l['omitted_cnt'] == 15"
checked "as much as is allowed" 0 --rate 1 --max-exited-scope 20000 -- "$bin/scope_server" 60 2
checked "no scopes" 2 --rate 1 --max-exited-scope 0 -- "$bin/leaves" 1000

## the keys of JSON are those that the manual explains
python3 - "$work/three.pb.gz" "$heaptap" "$e2e_top/user/man/heaptap-check.1" >"$work/told" 2>&1 <<'END' && ok "the manual has the keys of JSON" || not_ok "the manual has the keys of JSON" "" "$work/told"
import json, re, subprocess, sys
d = json.loads(subprocess.run([sys.argv[2], "check", "-f", "json", "--max-inuse", "1", "--max-growth", "1k/s", "--max-exited-scope", "1",
                               "--base", sys.argv[1], sys.argv[1]], stdout=subprocess.PIPE).stdout)
page = open(sys.argv[3]).read()
told = set(re.findall(r"[a-z]+(?:_[a-z]+)*", page[page.index(".SH JSON"):page.index(".SH EXIT")]))
def keys(v):
    if isinstance(v, dict):
        return set(v).union(*map(keys, v.values()))
    return set().union(*map(keys, v)) if isinstance(v, list) else set()
missing = {k for k in keys(d) - told if not re.match("inuse_bytes_delta_(low|high)$", k)}
assert len(keys(d)) > 20 and not missing, missing
END
## JUnit, with a name that is hostile
hostile=$'a\x1b[31m<&">\xff'
cp "$bin/leaves" "$work/$hostile"
checked "JUnit" 1 -q -f junit --rate 1 --max-inuse 1k --max-growth 1k/min -- "$work/$hostile" 3000000
python3 -c "
import xml.etree.ElementTree as x
s = x.parse('$work/out').getroot()
assert (s.tag, s.get('tests'), s.get('failures'), s.get('errors')) == ('testsuite', '2', '1', '1'), s.attrib
assert [c.get('name') for c in s] == ['growth', 'inuse'], s
assert 'left_site' in s[1][0].text and s[1][0].tag == 'failure', s" >"$work/told" 2>&1 && ok "it is sound" ||
	not_ok "it is sound" "" "$work/told" "$work/out"
checked "text" 1 -q --rate 1 --max-inuse 1k -- "$work/$hostile" 3000000
LC_ALL=C grep -qP '[\x00-\x08\x0e-\x1f]' "$work/out" && not_ok "no control characters" "" "$work/out" || ok "no control characters"

## what is used that cannot be known
start "$bin/busy" 2 150000 || not_ok "busy" "does not start" "$work/target.err"
checked "frees are too dear to watch" 2 --max-inuse 1g --max-overhead 1 -d 4s -p "$target"
kill_target
told "unknown is not 0" "^unknown  in use: not known"
told "the command that would know" "heaptap check --max-inuse 1g --max-overhead 1 -d 4s -p $target --max-overhead [0-9of]+$" err
checked "of a command" 2 --max-inuse 1g --max-overhead 1 -d 4s -- sh -c 'exec "$0" 2 150000 <>"$1"' "$bin/busy" "$e2e_never"
told "before what is started" "heaptap check --max-inuse 1g --max-overhead 1 -d 4s --max-overhead [0-9of]+ -- sh -c 'exec \"[$]0\" 2 150000 <>\"[$]1\"' $bin/busy $e2e_never$" err

## what is refused
# refused NAME SENTENCE ARGS...
refused() {
	local name=$1 sentence=$2 got
	shift 2
	timeout 10 "$heaptap" check "$@" >"$work/out" 2>"$work/err" </dev/null
	got=$?
	[ $got = 2 ] && grep -qF -- "$sentence" "$work/err" && [ ! -s "$work/out" ] && ok "$name" ||
		not_ok "$name" "status $got" "$work/err" "$work/out"
}
refused "nothing" "nothing to check"
refused "a rate without a time" "such as 100k/min" --max-growth 100k -p 1
refused "no part" "such as 10%" --base x --max-increase ten -p 1
refused "an exponent" "such as 64k" --max-inuse 1e3 -p 1
refused "an exponent in a rate" "such as 100k/min" --max-growth 1e3/min -p 1
refused "more than all that is retained" "a percentage of resident memory, from 0% to 100%" --max-retained 101% -p 1
refused "more than all that is unexplained" "a percentage of resident memory, from 0% to 100%" --max-unexplained 100.5% -p 1
refused "a negative part" "such as 10%" --max-retained -5% -p 1
refused "more than what" "needs --base FILE" --max-increase 5% -p 1
refused "a profile on standard output" "--profile needs a file" --profile - -p 1
refused "a profile of before from standard input" "--base needs a file" --base - -p 1
refused "no confidence" "at least 50 and below 100" --confidence 100 -p 1
refused "no time" "at least 5 s" -d 3s -p 1
refused "a warm-up of what" "--max-growth" --warm-up 5s --max-inuse 1m -p 1
refused "a file and a process" "exclude each other" -p 1 "$work/three.pb.gz"
refused "a file is recorded" "is a recorded profile" --rate 1 "$work/three.pb.gz"
refused "a process that is not there" "no process" -p 4194303

## growth
wait $steady $leak
# at most so many of N
few=$((runs / 50))
broken=$(grep -c '^1$' "$work/steady.status")
[ "$broken" -le $few ] && ok "memory that stays: $broken of $runs broken, $(grep -c '^2$' "$work/steady.status") unknown" ||
	not_ok "memory that stays" "$broken of $runs broken" "$work"/steady-*.out
broken=$(grep -c '^1$' "$work/leak.status")
[ "$broken" -ge $((runs - few)) ] && ok "a leak: $broken of $runs broken" || not_ok "a leak" "$broken of $runs broken" "$work"/leak-*.out
grep -qE '/min  .*Store::remember leaky_server.cc' "$work/leak-0.out" && ok "and where" || not_ok "and where" "" "$work/leak-0.out"
e2e_end

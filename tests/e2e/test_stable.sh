#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What .github/STABLE.md promises is there: every name of tests/e2e/stable.txt (options, JSON keys, metrics, sample types)
# and the exit statuses. The ABI of tags is held by tests/e2e/test_tags_spec.sh and tests/scope/. STABLE_WRITE=1 adds the
# names that are new to the list: look at them first, because they cannot be taken back.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init stable
have python3 || skip_all "python3 is not installed"
have curl || skip_all "curl is not installed"
build_c family && build_c scope_triple -Iinclude || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
names=$e2e_dir/stable.txt
stable() { python3 "$e2e_dir/stable.py" "$@" >>"$work/have" 2>"$work/stable.err" || not_ok "stable.py $1" "it fails" "$work/stable.err"; }
# answer NAME COMMAND...: an answer in JSON; its exit status is looked at elsewhere
answer() {
	local name=$1
	shift
	timeout 60 "$@" >"$work/$name.json" 2>"$work/$name.err"
	stable json "$name" "$work/$name.json"
}

: >"$work/have"
stable options "$heaptap"
profile=$work/p.pb.gz
launch --rate 1 -- "$bin/scope_triple"
for by in stack scope thread age; do answer report "$heaptap" report -f json --by $by "$profile"; done
answer report "$heaptap" report -f json --sort growth "$profile"
answer diff "$heaptap" diff -f json "$profile" "$profile"
answer check "$heaptap" check -f json --max-inuse 1k "$profile"
stable samples "$profile"
start "$bin/family"
attach --rate 1
rows_are_read
work_recorded
stable samples "$work/p.pb.gz"
answer report "$heaptap" report -f json --sort pinned "$work/p.pb.gz"
mv "$work/p.pb.gz" "$work/running.pb.gz"
launch --rate 1 -- "$bin/scope_triple"

begin stable
pid=${pid_of[stable]}
serve --listen 127.0.0.1:0 --rate 1 --past-interval 1s -p "$pid" --push parca+http://127.0.0.1:9 --push-debuginfo
work_of stable
answer doctor "$heaptap" doctor --json -p "$pid"
answer explain "$heaptap" explain -f json --pins -p "$pid"
answer explain "$heaptap" explain -f json --for 1s -p "$pid"
has_rows() { get "$url/pid/$pid/api" | grep -q '"rows":.*"times_ms":\[[0-9]'; }
await 30 has_rows
answer index curl -sf "$url/api"
answer process curl -sf "$url/pid/$pid/api"
answer growth curl -sf "$url/pid/$pid/growth"
get "$url/metrics" >"$work/metrics"
stable metrics "$work/metrics"
sort -u -o "$work/have" "$work/have"
[ -z "${STABLE_WRITE:-}" ] || sort -u "$names" "$work/have" -o "$names"

# gone LIST: what it has and heaptap has not
gone() { LC_ALL=C comm -23 <(LC_ALL=C sort -u "$1") <(LC_ALL=C sort -u "$work/have"); }
for kind in option json metric sample; do
	grep "^$kind " "$names" >"$work/list"
	gone "$work/list" >"$work/gone"
	[ -s "$work/list" ] && [ ! -s "$work/gone" ] && ok "$kind: $(wc -l <"$work/list") names are there" ||
		not_ok "$kind" "$(wc -l <"$work/gone") of $(wc -l <"$work/list") are gone" "$work/gone"
done
{ cat "$names"; echo "option record --gone"; echo "json report rows[].gone"; } >"$work/list"
[ "$(gone "$work/list" | wc -l)" -ge 2 ] && ok "a name that is gone is found" || not_ok "a name that is gone is found" "it is not"
end_server "the server"

# exits STATUS COMMAND...
exits() {
	local want=$1
	shift
	(cd "$work" && timeout 60 "$heaptap" "$@") >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ $status = "$want" ] && ok "exit status $want: $1 ${*: -1}" || not_ok "exit status $want: $*" "it is $status" "$work/err"
}
start "$bin/family" || not_ok "family" "does not begin" "$work/target.err"
exits 0 record --force -d 1 -n 0 -p "$target"
exits 1 record --force -d 1 -p 4194305
exits 2 record --no-such-option
exits 3 record --force -- sh -c 'exit 3'
exits 137 record --force -- sh -c 'kill -9 $$'
exits 125 record --force -- "$work/none"
exits 0 report "$profile"
exits 1 report "$work/none"
exits 2 report --by nothing "$profile"
exits 0 diff "$profile" "$profile"
exits 1 diff "$profile" "$work/none"
exits 2 diff "$profile"
exits 0 check --max-inuse 10m "$profile"
exits 1 check --max-inuse 1k "$profile"
exits 2 check --max-inuse 1k "$work/none"
exits 0 explain -p "$target"
exits 1 explain -p 4194305
exits 2 explain
exits 0 doctor -p "$target"
exits 1 doctor -p 4194305
exits 2 doctor --no-such-option
exits 0 convert --to collapsed "$profile" -
exits 1 convert --to collapsed "$work/none" -
exits 2 convert
exits 0 symbolize -o "$work/s.pb.gz" "$profile"
exits 1 symbolize "$work/none"
exits 2 symbolize --no-such-option
exits 0 version
exits 2 serve
exits 2 nothing
finish_target
e2e_end

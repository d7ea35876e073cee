#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_go_pprof.sh - `go tool pprof` reads our profiles: values of all four types, inlines, labels,
# comments, names that are not ASCII, mappings without code of their own; scopes as labels.
. tests/consumers/lib.sh
consumer_init go_pprof
[ -x /usr/local/go/bin/go ] && PATH=$PATH:/usr/local/go/bin
have go || skip_all "no go"
export PPROF_TMPDIR=$work HOME=${HOME:-$work}
# Built when first used, from the module proxy where the distribution has no copy of it.
timeout 300 go tool pprof -h >"$work/help" 2>&1 || grep -q -- -sample_index "$work/help" ||
	skip_all "go tool pprof cannot be built here"

pprof() { timeout 60 go tool pprof "$@" "$profile" >"$work/out" 2>"$work/err" || cat "$work/err" >>"$work/out"; }

pprof -top -unit=B
expect "default type is in-use space" "$work/out" '^Type: inuse_space' \
	'100% of 7796B total' '^ +4096B .* 4096B .* libother\.so\+0x1234$' \
	'^ +3000B .* 7096B .* app::parse\(std::string const&\)$' '^ +700B .* größe_ändern\(Übergröße\)$' \
	'^ +0 .* 3700B .* load \(inline\)$' '^ +0 .* 3700B .* main$'
expect "file, build id, time and comments" "$work/out" '^File: server$' \
	'^Build ID: 0123456789abcdef0123456789abcdef01234567$' '^Time: (2023-11-1|Nov 1)' \
	'^ledger: missed_frees 5'
pprof -top -unit=B -sample_index=alloc_space
expect "allocated space" "$work/out" '^Type: alloc_space' '100% of 14796B total' \
	'^ +10000B .* 14096B .* app::parse'
pprof -top -sample_index=inuse_objects
expect "in-use objects" "$work/out" '^Type: inuse_objects' '100% of 11 total'
pprof -top -sample_index=alloc_objects
expect "allocated objects" "$work/out" '^Type: alloc_objects' '100% of 18 total'
pprof -traces
expect "traces have labels and inlines" "$work/out" '^ +thread: +worker-1' '^ +thread: +main' \
	'^ +700B +größe_ändern' '^ +load \(inline\)$'
pprof -peek 'app::parse'
expect "peek has callers and callees" "$work/out" '4096B .* \|   run$' '3000B .* \|   load$' \
	'4096B .* \|   libother\.so\+0x1234$'
pprof -top -tagfocus=worker-1 -unit=B
expect "labels select" "$work/out" '^ +4096B .* libother\.so\+0x1234$' '4096B, 52\.54% of 7796B'
pprof -raw
expect "mappings and lines survive" "$work/out" '/usr/lib/libother\.so fedcba9876543210 \[FN\]' \
	'load /src/load\.c:22' 'main /src/main\.c:12'

heaptap=${HEAPTAP:-./heaptap} before=$profile
"$work/make_profile" --later "$work/later.pb.gz" && "$heaptap" diff -f pprof -o "$work/diff.pb.gz" "$before" "$work/later.pb.gz" 2>"$work/out" ||
	not_ok "a difference" "none" "$work/out"
profile=$work/diff.pb.gz
pprof -top -unit=B -nodefraction=0
expect "a difference: what is less is negative" "$work/out" '^Type: inuse_space' '^difference: .*later.pb.gz minus .*profile.pb.gz$' \
	'^ +8997000B .* app::parse' '^ +-4096B .* libother\.so\+0x1234$'
pprof -top -sample_index=inuse_objects -nodefraction=0
expect "a difference: blocks" "$work/out" '^ +8997 .* app::parse' '^ +-1 .* libother'
pprof -top -unit=B -tagfocus=worker-1
expect "a difference: labels" "$work/out" 'Showing nodes accounting for -4096B'
"$heaptap" diff -f pprof --value alloc "$before" "$work/later.pb.gz" >"$work/diff.pb.gz" 2>"$work/out"
pprof -top -unit=B
expect "a difference of what was allocated, from standard output" "$work/out" '^Type: alloc_space' '^ +8997000B .* app::parse'

profile=$work/scopes.pb.gz
"$work/make_profile" --scopes "$profile" && "$work/make_profile" --check "$profile" >"$work/out" 2>&1 ||
	not_ok "scopes" "the profile is not valid" "$work/out"
# Go up to 1.20 writes one digit and other dates.
pprof -tags
expect "scopes, tasks and labels are tags" "$work/out" '^ scope: Total 107\.4[0-9]?kB' \
	' 29\.30?kB .*: Top/A/B$' ' (1\.95|2\.0)kB .*: read\\/write$' '^ task: Total ' \
	' 7\.81?kB .*: 7$' '^ task_state: Total 5(\.0)?B' ' 5(\.0)?B .*: exited$' \
	' 38\.(09|1)kB .*: select$'
pprof -top -unit=B -tagfocus='scope=^Top/A(/|$)'
expect "a scope and what is below it" "$work/out" '59000B, 51\.30% of 115005B total'
pprof -top -unit=B -tagfocus='scope=^Top/A$'
expect "a scope alone" "$work/out" '20000B, 17\.39% of 115005B total'
pprof -top -unit=B -tagfocus='task=7'
expect "a task" "$work/out" '8000B, 6\.96% of 115005B total'
pprof -top -unit=B -tagignore='task_state=exited'
expect "tasks that live" "$work/out" 'Showing nodes accounting for 115000B'
pprof -top -unit=B -tagroot=scope
expect "scopes are root frames" "$work/out" '^ +0 .* 40000B 34\.78%  Top$' \
	'^ +0 .* 9005B +7\.83%  Top/conn$' '^ +115005B .* serve$'
pprof -comments
grep -q 'scope_peak\|instance:' "$work/out" && not_ok "peaks and tasks are no comments" "they are" "$work/out" ||
	ok "peaks and tasks are no comments"
consumer_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the command line says and writes: results on stdout, everything else on stderr, exit status,
# files.
. "$(dirname "$0")/lib.sh"
e2e_init output

build_c family && build_c threads || { not_ok build "workloads"; e2e_end; }
launch --rate 1 -- "$bin/family"
cp "$work/target.out" "$work/both.out"
grep -q "^heaptap: recording PID [0-9]* (.*family)" "$work/heaptap.err" && ok "says what it records" ||
	not_ok "says what it records" "" "$work/heaptap.err"
grep -q "wrote .*p.pb.gz" "$work/heaptap.err" && ok "says what it wrote" || not_ok "says what it wrote" "" "$work/heaptap.err"
grep -q site_malloc_large "$work/both.out" && ok "prints the largest holders" ||
	not_ok "prints the largest holders" "" "$work/both.out"
# 7 of the largest: the mapped blocks of site_malloc_large (5.2 MB) come before site_realloc_grow (5.0 MB)
grep -v "^EXPECT\|^READY\|^DONE" "$work/both.out" >"$work/top"
[ "$(grep -n -m1 site_malloc_large "$work/top" | cut -d: -f1)" -lt "$(grep -n -m1 site_realloc_grow "$work/top" | cut -d: -f1)" ] &&
	ok "largest first" || not_ok "largest first" "" "$work/top"
launch --rate 1 -n 0 -- "$bin/family"
[ "$(grep -vc "^EXPECT\|^READY\|^DONE" "$work/target.out")" = 0 ] && ok "-n 0: nothing on stdout" ||
	not_ok "-n 0" "prints" "$work/target.out"
launch -q -n 0 --rate 1 -- "$bin/family"
[ "$(grep -c . "$work/heaptap.err")" -le 1 ] && ok "--quiet: no more than the first line" ||
	not_ok "--quiet" "says more" "$work/heaptap.err"

# default file name, duration, a file that is there already
start env E2E_MODE=race E2E_MS=60000 "$bin/threads"
tell go
begin=$(date +%s%N)
(cd "$work" && timeout 30 "$heaptap" record -n 0 -d 2s -p "$target" >/dev/null 2>"$work/heaptap.err")
status=$?
took=$((($(date +%s%N) - begin) / 1000000))
[ $status = 0 ] && [ -s "$work/heaptap-$target.pb.gz" ] && ok "default file name" || not_ok "default file name" "status $status" "$work/heaptap.err"
[ $took -ge 2000 ] && [ $took -lt $((6000 * e2e_patience)) ] && ok "-d 2s: $took ms" || not_ok "-d 2s" "$took ms"
echo old >"$work/p.pb.gz"
timeout 30 "$heaptap" record -n 0 -d 1 -o "$work/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
gzip -t "$work/p.pb.gz" 2>/dev/null && ok "an existing file is replaced" || not_ok "an existing file is replaced" "" "$work/heaptap.err"
# not writable: told before anything is attached, and at once
begin=$(date +%s%N)
timeout 30 "$heaptap" record -n 0 -d 20 -o "$work/none/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
status=$?
took=$((($(date +%s%N) - begin) / 1000000))
[ $status = 1 ] && [ $took -lt $((3000 * e2e_patience)) ] && ! grep -q "^heaptap: recording" "$work/heaptap.err" && grep -q "cannot write" "$work/heaptap.err" &&
	ok "not writable: told before attaching" || not_ok "not writable" "status $status after $took ms" "$work/heaptap.err"
# to a pipe, and on a full disk
timeout 30 "$heaptap" record -q -n 0 -d 1 -o /dev/stdout -p "$target" 2>/dev/null | gzip -t && ok "to a pipe" || not_ok "to a pipe" ""
if [ -e /dev/full ]; then
	timeout 30 "$heaptap" record -q -n 0 -d 1 -o /dev/full -p "$target" >/dev/null 2>"$work/heaptap.err"
	status=$?
	[ $status = 1 ] && grep -qi "no space" "$work/heaptap.err" && ok "disk full: an error" || not_ok "disk full" "status $status" "$work/heaptap.err"
fi
# SIGTERM ends it normally
attach -n 0
kill -TERM "$recorder"
wait_recorder 20
[ "$record_status" = 0 ] && [ -s "$work/p.pb.gz" ] && ok "SIGTERM ends the recording normally" || not_ok "SIGTERM" "status $record_status" "$work/heaptap.err"
[ "$(ls "$work"/*.tmp 2>/dev/null | wc -l)" = 0 ] && ok "no temporary files are left" || not_ok "temporary files" "$(ls "$work")"
kill_target
# the comments a reader needs
launch --rate 1 -n 0 -- "$bin/family"
"$heaptap" report -f json "$work/p.pb.gz" | sed -n '/^"comments":/,$p' | sed 's/^"comments":\[//' | grep '^"' >"$work/comments"
missing=
for text in '^"heaptap [0-9.]*: record' '^"target: PID [0-9]* (family) /.*family' \
	'^"recorded: .* until the pro[a-z]* ended, since the program was started' \
	'^"source: uprobe ([a-z]*), [0-9]* sites.*; every allocation' \
	'^"counters: .* samples=[1-9][0-9]* '; do
	grep -q "$text" "$work/comments" || missing="$missing '$text'"
done
[ -z "$missing" ] && ok "comments" || not_ok "comments" "no$missing" "$work/comments"
# go tool pprof -top prints them all before its table
[ "$(grep -c . "$work/comments")" -le 8 ] && ok "at most eight of them when nothing was lost" ||
	not_ok "at most eight of them" "$(grep -c . "$work/comments")" "$work/comments"
grep -qE '^"(counters:.*=0[ "]|ledger: [a-z_]* 0 )' "$work/comments" && not_ok "no counter that is 0" "there is" "$work/comments" ||
	ok "no counter that is 0"
e2e_end

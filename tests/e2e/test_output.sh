#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the command line says and writes: results on stdout (on stderr beside a started program, whose stdout is its
# own), everything else on stderr, exit status, files.
. "$(dirname "$0")/lib.sh"
e2e_init output

build_c family && build_c threads || { not_ok build "workloads"; e2e_end; }
launch --rate 1 -- "$bin/family"
cp "$work/heaptap.err" "$work/both.out"
[ "$(grep -vc "^EXPECT\|^READY\|^DONE" "$work/target.out")" = 0 ] && ok "stdout is the program's alone" ||
	not_ok "stdout is the program's alone" "prints" "$work/target.out"
grep -q "^heaptap: recording PID [0-9]* (.*family)" "$work/heaptap.err" && ok "says what it records" ||
	not_ok "says what it records" "" "$work/heaptap.err"
grep -q "^saved .*p.pb.gz" "$work/both.out" && ok "says what it wrote" || not_ok "says what it wrote" "" "$work/both.out" "$work/heaptap.err"
grep -q site_malloc_large "$work/both.out" && ok "prints the largest holders" ||
	not_ok "prints the largest holders" "" "$work/both.out"
# 7 of the largest: the mapped blocks of site_malloc_large (5.2 MB) come before site_realloc_grow (5.0 MB)
cp "$work/both.out" "$work/top"
[ "$(grep -n -m1 site_malloc_large "$work/top" | cut -d: -f1)" -lt "$(grep -n -m1 site_realloc_grow "$work/top" | cut -d: -f1)" ] &&
	ok "largest first" || not_ok "largest first" "" "$work/top"
launch --rate 1 -n 0 -- "$bin/family"
[ "$(grep -vc "^EXPECT\|^READY\|^DONE" "$work/target.out")" = 0 ] && ! grep -q "^Held\|^In use\|^What" "$work/heaptap.err" && ok "-n 0: no rows" ||
	not_ok "-n 0" "prints" "$work/target.out" "$work/heaptap.err"
launch -q -n 0 --rate 1 -- "$bin/family"
[ ! -s "$work/heaptap.err" ] && ok "--quiet says nothing" || not_ok "--quiet" "speaks" "$work/heaptap.err"
launch -q --rate 1 -- "$bin/family"
[ "$(grep -vc "^EXPECT\|^READY\|^DONE" "$work/target.out")" = 0 ] && [ ! -s "$work/heaptap.err" ] &&
	[ -s "$work/p.pb.gz" ] && ok "--quiet prints no report" || not_ok "--quiet" "prints" "$work/target.out"

launch -v -n 0 --rate 1 -- "$bin/family"
[ "$(wc -l <"$work/heaptap.err")" -lt 200 ] && ok "--verbose: $(wc -l <"$work/heaptap.err") lines" ||
	not_ok "--verbose" "$(wc -l <"$work/heaptap.err") lines" "$work/heaptap.err"

# default file name, duration, a file that is there already
start env E2E_MODE=race E2E_MS=600000 E2E_REST_MS=10 "$bin/threads"
tell go
begin=$(date +%s%N)
(cd "$work" && timeout 30 "$heaptap" record -n 0 -d 2s -p "$target" >/dev/null 2>"$work/heaptap.err")
status=$?
took=$((($(date +%s%N) - begin) / 1000000))
name=$(basename "$(ls "$work"/threads-"$target"-*.pb.gz)")
stamp=$(date -u +%Y%m%d)
[ $status = 0 ] && [[ $name =~ ^threads-$target-20[0-9]{6}-[0-9]{6}\.pb\.gz$ ]] && [ -s "$work/$name" ] &&
	ok "default file name: COMM-PID-TIME" || not_ok "default file name" "'$name', status $status" "$work/heaptap.err"
[[ $name = threads-$target-$stamp-* || $(date -u +%Y%m%d) != "$stamp" ]] && ok "its time is UTC" ||
	not_ok "its time is UTC" "$name on $stamp"
[ "$(stat -c %a "$work/$name")" = 600 ] && ok "for its owner only" || not_ok "for its owner only" "$(stat -c %a "$work/$name")"
[ $took -ge 2000 ] && [ $took -lt $((6000 * e2e_patience)) ] && ok "-d 2s: $took ms" || not_ok "-d 2s" "$took ms"
echo old >"$work/p.pb.gz"
timeout 30 "$heaptap" record -n 0 -d 20 -o "$work/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
status=$?
[ $status = 1 ] && [ "$(cat "$work/p.pb.gz")" = old ] && grep -q -- "exists.*--force" "$work/heaptap.err" &&
	! grep -q "^heaptap: recording" "$work/heaptap.err" && ok "an existing file is left alone: told before attaching" ||
	not_ok "an existing file is left alone" "status $status" "$work/heaptap.err"
timeout 30 "$heaptap" record --force -n 0 -d 300ms -o "$work/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
gzip -t "$work/p.pb.gz" 2>/dev/null && ok "--force replaces it" || not_ok "--force replaces it" "" "$work/heaptap.err"
# a link that somebody has laid
echo precious >"$work/victim"
ln -s victim "$work/link.pb.gz"
timeout 30 "$heaptap" record -n 0 -d 300ms -o "$work/link.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
status=$?
timeout 30 "$heaptap" record --force -n 0 -d 300ms -o "$work/link.pb.gz" -p "$target" >/dev/null 2>>"$work/heaptap.err"
[ $status = 1 ] && [ "$(cat "$work/victim")" = precious ] && [ ! -L "$work/link.pb.gz" ] && gzip -t "$work/link.pb.gz" &&
	ok "a link is not followed, with --force neither" || not_ok "a link" "status $status" "$work/heaptap.err"
# a folder of somebody else, who can change what is written there
mkdir "$work/strange"
chown 65534:65534 "$work/strange"
env -u SUDO_UID timeout 30 "$heaptap" record -n 0 -d 300ms -o "$work/strange/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
status=$?
[ $status = 1 ] && [ -z "$(ls -A "$work/strange")" ] && grep -q "belongs to user 65534.*--force" "$work/heaptap.err" &&
	! grep -q "^heaptap: recording" "$work/heaptap.err" && ok "a stranger's folder is refused: told before attaching" ||
	not_ok "a stranger's folder is refused" "status $status" "$work/heaptap.err"
timeout 30 "$heaptap" record --force -n 0 -d 300ms -o "$work/strange/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
gzip -t "$work/strange/p.pb.gz" 2>/dev/null && ok "--force writes there" || not_ok "--force writes there" "" "$work/heaptap.err"
# There everything lies ready that a name made of the process's number could lead to.
(
	exec 2>"$work/heaptap.err" >/dev/null
	for i in 0 1 2 3; do
		for name in "heaptap-$BASHPID.pb.gz.$i.tmp" "laid.pb.gz.$BASHPID.$i.tmp" ".heaptap-$BASHPID.tmp.$i" "laid.pb.gz.$i.tmp"; do
			ln -s "$work/victim" "$work/strange/$name"
		done
	done
	ln -s "$work/victim" "$work/strange/laid.pb.gz"
	ln -s "$work/victim" "$work/strange/laid.pb.gz.$BASHPID.tmp"
	mkfifo "$work/strange/laid.pb.gz.tmp"
	chown -h 65534:65534 "$work/strange"/*laid* "$work/strange"/*heaptap-*
	exec "$heaptap" record --force -n 0 -d 300ms -o "$work/strange/laid.pb.gz" -p "$target"
)
status=$?
[ $status = 0 ] && [ "$(cat "$work/victim")" = precious ] && [ ! -L "$work/strange/laid.pb.gz" ] && gzip -t "$work/strange/laid.pb.gz" &&
	[ "$(stat -c %u:%a "$work/strange/laid.pb.gz")" = 0:600 ] && ok "what lies ready there is not followed" ||
	not_ok "what lies ready there is not followed" "status $status" "$work/heaptap.err"
# A FIFO that nobody reads, where root writes and where --force says so.
mkdir "$work/sticky"
chmod 1777 "$work/sticky"
for folder in sticky strange; do
	mkfifo "$work/$folder/fifo.pb.gz"
	chown 65534:65534 "$work/$folder/fifo.pb.gz"
	timeout 30 "$heaptap" record --force -n 0 -d 300ms -o "$work/$folder/fifo.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
	status=$?
	[ $status = 1 ] && grep -q "others can change where it leads" "$work/heaptap.err" && ok "a stranger's FIFO is refused: $folder" ||
		not_ok "a stranger's FIFO is refused: $folder" "status $status" "$work/heaptap.err"
done
timeout 30 "$heaptap" record -n 0 -d 300ms -o "$work/sticky/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err" &&
	gzip -t "$work/sticky/p.pb.gz" && ok "a sticky folder will do" || not_ok "a sticky folder will do" "" "$work/heaptap.err"
# a file, and a link, that come while it is recorded
for come in 'echo theirs >"$work/late.pb.gz"' 'ln -s victim "$work/late.pb.gz"'; do
	rm -f "$work"/late*.pb.gz "$work/heaptap.err"
	"$heaptap" record -n 0 -o "$work/late.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err" &
	owned recorder
	await 30 record_began
	eval "$come"
	stop_recorder
	[ "$record_status" = 0 ] && [[ $(cat "$work/late.pb.gz") =~ ^(theirs|precious)$ ]] && gzip -t "$work/late-1.pb.gz" &&
		grep -q "late-1.pb.gz" "$work/heaptap.err" && ok "what comes meanwhile is left alone, the profile kept: ${come%% *}" ||
		not_ok "what comes meanwhile" "status $record_status, $(ls "$work")" "$work/heaptap.err"
done
# not writable: told before anything is attached, and at once
begin=$(date +%s%N)
timeout 30 "$heaptap" record -n 0 -d 20 -o "$work/none/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err"
status=$?
took=$((($(date +%s%N) - begin) / 1000000))
[ $status = 1 ] && [ $took -lt $((3000 * e2e_patience)) ] && ! grep -q "^heaptap: recording" "$work/heaptap.err" && grep -q "cannot write" "$work/heaptap.err" &&
	ok "not writable: told before attaching" || not_ok "not writable" "status $status after $took ms" "$work/heaptap.err"
# to standard output: nothing else is there
for out in - /dev/stdout; do
	(cd "$work" && timeout 30 "$heaptap" record -d 300ms -o $out -p "$target" 2>"$work/heaptap.err" >"$work/stdout.pb.gz")
	gzip -t "$work/stdout.pb.gz" 2>/dev/null && [ ! -e "$work/-" ] && grep -q "Heap profile\|PID $target" "$work/heaptap.err" &&
		ok "-o $out: the profile on stdout, the report on stderr" || not_ok "-o $out" "" "$work/heaptap.err"
done
timeout 30 "$heaptap" record -q -d 300ms -o - -p "$target" 2>"$work/heaptap.err" | gzip -t && [ "$(grep -vc warning "$work/heaptap.err")" = 0 ] &&
	ok "-q -o - to a pipe" || not_ok "-q -o - to a pipe" "" "$work/heaptap.err"
# Ctrl-C of an ssh sends no signal: its end of the pipe is closed
"$heaptap" record -n 0 -o - -p "$target" 2>"$work/heaptap.err" > >(exec sleep 2) &
owned reader
await 20 is_gone "$reader" && wait "$reader"
status=$?
[ $status = 1 ] && grep -q "standard output was closed" "$work/heaptap.err" &&
	ok "-o -: ends when its reader is gone" || not_ok "-o -: its reader is gone" "status $status" "$work/heaptap.err"
timeout 30 "$heaptap" record -o - --rate 1 -- "$bin/family" 2>"$work/heaptap.err" >"$work/stdout.pb.gz" </dev/null
gzip -t "$work/stdout.pb.gz" 2>/dev/null && grep -q "^DONE" "$work/heaptap.err" &&
	ok "-o -: what the program prints goes to stderr" || not_ok "-o - with a program" "" "$work/heaptap.err"
if have script; then
	script -qec "timeout 20 '$heaptap' record -d 10 -o - -p $target" /dev/null >"$work/heaptap.err" </dev/null
	status=$?
	[ $status = 1 ] && grep -q "terminal" "$work/heaptap.err" && ok "-o - is refused on a terminal" ||
		not_ok "-o - is refused on a terminal" "status $status" "$work/heaptap.err"
	# the live line, as a terminal shows it
	script -qec "timeout 20 '$heaptap' record --max-overhead off -n 0 -d 3 -o '$work/live.pb.gz' -p $target" /dev/null >"$work/live" </dev/null
	tr '\r' '\n' <"$work/live" | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | grep "in use" >"$work/lines"
	grep -qE "^heaptap: [0-9.]+ s: in use [0-9.]+ ([KMG]i)?B \([+-][0-9.]+ ([KMG]i)?B/s\), cost [0-9.]+ %" "$work/lines" &&
		[ "$(awk '{ if (length > m) m = length } END { print m + 0 }' "$work/lines")" -lt 80 ] &&
		ok "live line: $(tail -n 1 "$work/lines")" || not_ok "live line" "" "$work/lines" "$work/live"
	grep -q "heaptap: reading the heap of PID $target (Ctrl-C skips it)" "$work/live" &&
		ok "live line: the heap is read at the end" || not_ok "live line: the heap is read at the end" "" "$work/live"
	# a limit that ends the watching of frees
	script -qec "timeout 20 '$heaptap' record --max-overhead 0.1 -n 0 -d 6 -o '$work/live2.pb.gz' -p $target" /dev/null >"$work/live" </dev/null
	grep -q "in use unknown" "$work/live" && ok "live line: in use unknown" || not_ok "live line: in use unknown" "" "$work/live"
else
	skip "terminal" "no script(1)"
fi
# on a full disk
if [ -e /dev/full ]; then
	for arg in doctor version "doctor -p $target" "record --help"; do
		# shellcheck disable=SC2086 # the words of a command
		"$heaptap" $arg >/dev/full 2>"$work/heaptap.err"
		status=$?
		[ $status = 1 ] && grep -q "standard output could not be written\|cannot write to standard output" "$work/heaptap.err" &&
			ok "a full standard output: $arg" || not_ok "a full standard output: $arg" "status $status" "$work/heaptap.err"
	done
	timeout 30 "$heaptap" record -q -n 0 -d 300ms -o /dev/full -p "$target" >/dev/null 2>"$work/heaptap.err"
	status=$?
	[ $status = 1 ] && grep -qi "no space" "$work/heaptap.err" && ok "disk full: an error" || not_ok "disk full" "status $status" "$work/heaptap.err"
fi
# and where no file may become large: what cannot be kept is shown
(ulimit -f 1 && exec timeout 30 "$heaptap" record -d 300ms -o "$work/limit.pb.gz" -p "$target") 2>&1 | cat >"$work/shown"
status=${PIPESTATUS[0]}
[ $status = 1 ] && grep -q "cannot write '.*limit.pb.gz': no file may be larger than 1.00 KiB here (ulimit -f)" "$work/shown" && grep -q "^Held (allocated" "$work/shown" &&
	! grep -q "wrote" "$work/shown" && [ ! -e "$work/limit.pb.gz" ] && ok "file size limit: an error, and the report" ||
	not_ok "file size limit" "status $status" "$work/shown"
(ulimit -f 1 && timeout 30 "$heaptap" record -q -d 300ms -o - -p "$target" 2>"$work/heaptap.err" >"$work/limit.pb.gz")
status=$?
[ $status = 1 ] && grep -q "cannot write '-': no file may be larger" "$work/heaptap.err" && ok "file size limit, standard output: an error" ||
	not_ok "file size limit, standard output" "status $status" "$work/heaptap.err"
"$heaptap" record -q -d 300ms -o "$work/whole.pb.gz" -p "$target" >/dev/null 2>&1
(ulimit -f 1 && timeout 30 "$heaptap" report --format json "$work/whole.pb.gz" 2>"$work/heaptap.err" >"$work/report")
status=$?
[ $status = 1 ] && grep -qi "file too large" "$work/heaptap.err" && ok "file size limit, a report: an error" ||
	not_ok "file size limit, a report" "status $status" "$work/heaptap.err"
# the ending of FILE chooses the format
ends() { # NAME FILE WORD COMMAND...
	"$heaptap" "${@:4}" -o "$work/$2" >/dev/null 2>"$work/heaptap.err" && grep -aq -- "$3" "$work/$2" && ok "$1" ||
		not_ok "$1" "" "$work/heaptap.err"
}
ends "report -o x.html" x.html '<html\|<!DOCTYPE' report "$work/whole.pb.gz"
# forms that heaptap does not write: which there are is said, and nothing is written under their names
unwritten() { # WORDS ARG...
	timeout 30 "$heaptap" "${@:2}" >"$work/report" 2>"$work/heaptap.err"
	status=$?
	[ $status = 2 ] && grep -qF -- "$1" "$work/heaptap.err" && [ ! -s "$work/report" ] && ! ls "$work"/no.* >/dev/null 2>&1 &&
		ok "unwritten: ${*:2}" || not_ok "unwritten: ${*:2}" "status $status" "$work/heaptap.err"
}
for ending in svg speedscope.json; do
	unwritten "use the ending .html, .json, .collapsed, .folded or .heap, or --format" report -o "$work/no.$ending" "$work/whole.pb.gz"
	unwritten "use the ending .html, .json, .pb.gz or .pprof, or --format" diff -o "$work/no.$ending" "$work/whole.pb.gz" "$work/whole.pb.gz"
	unwritten "save the profile as .pb.gz; heaptap report turns it into .html, .json, .collapsed or .heap" record -d 1 -o "$work/no.$ending" -p "$target"
done
for form in svg speedscope; do
	unwritten "text, json, collapsed, heap or html" report --format $form "$work/whole.pb.gz"
done
ends "report -f text -o x.svg: as it was told" x.svg '^Held' report -f text "$work/whole.pb.gz"
ends "report -o x.json" x.json '^{' report "$work/whole.pb.gz"
ends "report -f text -o x.json: as it was told" y.json '^Held' report -f text "$work/whole.pb.gz"
ends "diff -o x.html" d.html '<html\|<!DOCTYPE' diff "$work/whole.pb.gz" "$work/whole.pb.gz"
ends "diff -o x.pb.gz" d.pb.gz . diff "$work/whole.pb.gz" "$work/whole.pb.gz"
gzip -t "$work/d.pb.gz" && ok "a profile" || not_ok "diff -o x.pb.gz" "no profile"
"$heaptap" check --max-inuse 1t -o "$work/c.xml" "$work/whole.pb.gz" 2>/dev/null
grep -q '<testsuite' "$work/c.xml" && ok "check -o x.xml" || not_ok "check -o x.xml" "" "$work/c.xml"
timeout 30 "$heaptap" record -d 1 -o "$work/r.html" -p "$target" >/dev/null 2>"$work/heaptap.err"
status=$?
[ $status = 2 ] && [ ! -e "$work/r.html" ] && grep -q "heaptap report -o $work/r.html $work/r.pb.gz" "$work/heaptap.err" && ok "record -o x.html: what to do" ||
	not_ok "record -o x.html" "status $status" "$work/heaptap.err"
timeout 30 "$heaptap" record --html "$work/page.html" -o "$work/page.pb.gz" -- perl -e '@a = map { "x" x 1000 } 1 .. 20000' >"$work/target.out" 2>"$work/heaptap.err"
grep -q '<canvas id="picture"' "$work/page.html" && "$heaptap" report "$work/page.pb.gz" >"$work/report" 2>&1 && grep -q "^saved $work/page.html: open it" "$work/heaptap.err" &&
	ok "record --html: a page beside the profile" || not_ok "record --html" "no page" "$work/heaptap.err"
timeout 30 "$heaptap" record --html "$work/page.html" -o "$work/other.pb.gz" -- ls / >"$work/target.out" 2>"$work/heaptap.err"
status=$?
[ $status = 125 ] && [ ! -e "$work/other.pb.gz" ] && grep -q "page.html' exists: give another name with --html FILE" "$work/heaptap.err" && ok "record --html: another file stays" ||
	not_ok "record --html: another file" "status $status" "$work/heaptap.err"
(ulimit -f 1 && "$heaptap" record -q -o - --rate 1 -- sh -c 'head -c 9000 /dev/zero >"$0/own"; echo $? >"$0/own.status"' "$work" 2>&1 | cat >/dev/null)
[ "$(cat "$work/own.status")" = 153 ] && ok "file size limit: as ever for the program" || # 128 + SIGXFSZ
	not_ok "file size limit: for the program" "$(cat "$work/own.status"), not 153"
# SIGTERM ends it normally
attach -n 0
kill -TERM "$recorder"
wait_recorder 20
[ "$record_status" = 0 ] && [ -s "$work/p.pb.gz" ] && ok "SIGTERM ends the recording normally" || not_ok "SIGTERM" "status $record_status" "$work/heaptap.err"
[ "$(ls -A "$work" | grep -c '\.tmp$')" = 0 ] && ok "no temporary files are left" || not_ok "temporary files" "$(ls "$work")"
kill_target
# the comments a reader needs
launch --rate 1 -n 0 -- "$bin/family"
"$heaptap" report -f json "$work/p.pb.gz" | sed -n '/^"comments":/,$p' | sed 's/^"comments":\[//' | grep '^"' >"$work/comments"
missing=
for text in '^"heaptap [0-9.]*: record' '^"target: PID [0-9]* (family) /.*family' \
	'^"recorded: .* until the pro[a-z]* ended, from the start of the program' \
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

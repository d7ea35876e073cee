#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What heaptap convert writes and refuses: endings, pipes, files that exist, forms that a profile does not have, names that
# would break a form. tests/consumers/test_dumps.sh has the numbers.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init convert
have python3 || skip_all "no python3"
dumps=$e2e_top/tests/golden/import
profiles=$e2e_top/tests/golden/report

run() {
	"$heaptap" convert "$@" >"$work/out" 2>"$work/err"
	status=$?
}
# refused STATUS SENTENCE ARG...: that is said, and nothing is written
refused() {
	local want=$1 sentence=$2
	shift 2
	rm -f "$work"/no*
	run "$@" <"$profiles/server.pb.gz"
	[ $status = "$want" ] && grep -qF -- "$sentence" "$work/err" && [ ! -s "$work/out" ] && ! ls "$work"/no* >/dev/null 2>&1 &&
		ok "$sentence" || not_ok "$sentence" "status $status" "$work/err" "$work/out"
}

# each ending, and the same through pipes
for pair in pprof:.pb.gz pprof:.pprof collapsed:.collapsed collapsed:.folded heap_v2:.heap; do
	form=${pair%:*} file=$work/p${pair#*:}
	run "$profiles/server.pb.gz" "$file"
	said=$status
	run --to "$form" - - <"$profiles/server.pb.gz"
	[ $said = 0 ] && [ $status = 0 ] && [ -s "$file" ] && cmp -s "$file" "$work/out" && ok "$pair, and through pipes" ||
		not_ok "$pair" "status $said, $status" "$work/err"
done
run --to collapsed "$profiles/server.pb.gz" "$work/p.other"
[ $status = 0 ] && cmp -s "$work/p.other" "$work/p.collapsed" && ok "--to, whatever the ending" || not_ok "--to" "status $status" "$work/err"
for name in server scopes go; do
	run --force "$profiles/$name.pb.gz" "$work/p.pb.gz"
	for by in thread scope instance; do
		"$heaptap" report --notes --by $by "$profiles/$name.pb.gz" >>"$work/want" 2>&1
		"$heaptap" report --notes --by $by "$work/p.pb.gz" >>"$work/got" 2>&1
	done
	"$heaptap" report -f json "$profiles/$name.pb.gz" >>"$work/want" 2>&1
	"$heaptap" report -f json "$work/p.pb.gz" >>"$work/got" 2>&1
	grep -v '\.pb\.gz' "$work/want" >"$work/one"
	grep -v '\.pb\.gz' "$work/got" >"$work/two"
	[ -s "$work/one" ] && cmp -s "$work/one" "$work/two" && ok "$name: pprof keeps numbers, intervals, scopes, labels, notes" || not_ok "$name: pprof" "another report" "$work/two"
done
run --value alloc "$profiles/server.pb.gz" "$work/alloc.collapsed"
"$heaptap" report -f collapsed --value alloc "$profiles/server.pb.gz" >"$work/one"
[ $status = 0 ] && cmp -s "$work/one" "$work/alloc.collapsed" && ! cmp -s "$work/one" "$work/p.collapsed" && ok "--value alloc" ||
	not_ok "--value alloc" "status $status" "$work/err"

# what is there stays
echo precious >"$work/there.heap"
run "$profiles/server.pb.gz" "$work/there.heap"
[ $status = 1 ] && grep -q "there.heap' exists: give another name, or replace it with --force" "$work/err" &&
	[ "$(cat "$work/there.heap")" = precious ] && ok "a file that exists stays" || not_ok "a file that exists" "status $status" "$work/err"
run --force "$profiles/server.pb.gz" "$work/there.heap"
[ $status = 0 ] && cmp -s "$work/there.heap" "$work/p.heap" && ok "--force replaces it" || not_ok "--force" "status $status" "$work/err"
run "$work/there.heap" "$work/there.heap"
[ $status = 1 ] && run --force "$work/there.heap" "$work/there.heap" && [ $status = 0 ] && grep -q '^heap_v2/' "$work/there.heap" &&
	ok "of itself" || not_ok "of itself" "status $status" "$work/err"

# what is wrong is said
refused 2 "cannot tell the format from '$work/no': use the ending .pb.gz, .collapsed or .heap, or --to" - "$work/no"
for name in no.json no.speedscope.json no.svg; do
	refused 2 "cannot tell the format from '$work/$name': use the ending .pb.gz, .collapsed or .heap, or --to pprof, collapsed or heap_v2" - "$work/$name"
done
refused 2 "bad value 'speedscope' for --to: pprof, collapsed or heap_v2" --to speedscope - "$work/no.json"
refused 2 "standard output has no ending: give the format, --to" - -
refused 2 "--value does not apply to pprof" --value alloc - "$work/no.pb.gz"
refused 2 "--value does not apply to heap_v2" --value inuse - "$work/no.heap"
refused 1 "to heap_v2: it has no heap in use (inuse_space, inuse_objects); it has objects, space" \
	"$dumps/gperf-growth.heap" "$work/no.heap"
refused 1 "to collapsed: it has no allocations (alloc_space); it has inuse_objects, inuse_space" \
	--value alloc "$dumps/jemalloc-inuse.heap" "$work/no.collapsed"
refused 1 "cannot read '$work/absent': No such file" "$work/absent" "$work/no.heap"
head -c 300 "$dumps/jemalloc.heap" >"$work/cut"
refused 1 "'$work/cut' is not a readable profile: at line" "$work/cut" "$work/no.heap"
refused 1 "cannot write '$work/folder/no.heap': No such file or directory; choose another file" - "$work/folder/no.heap"
for form in pprof heap_v2; do
	"$heaptap" convert --to $form "$profiles/server.pb.gz" - >/dev/full 2>"$work/err"
	[ $? = 1 ] && grep -q "cannot write to standard output: No space left" "$work/err" && ok "$form: no room" || not_ok "$form: no room" "" "$work/err"
done
if have script; then
	script -qec "'$heaptap' convert --to pprof '$profiles/server.pb.gz' -" /dev/null >"$work/err" </dev/null
	[ $? = 2 ] && grep -q "standard output is a terminal" "$work/err" && ok "pprof is not for a terminal" || not_ok "a terminal" "" "$work/err"
fi

# names that would end a line, a string or a field: every form is whole, and is read again with the same sum
python3 - >"$work/hostile.heap" <<'END'
import os, sys
names = [b"semi;colon", b"tab\there \x1b[31mred", b'quote"back\\slash', b"not utf-8 \xff\xfe", b"x" * 10000, b"operator--", b"@ 0x1", "größe".encode(),
         b"\xc2\x9b31m", b"</script>"]
out = [b"--- symbol", b"binary=/bin/odd\x07name"]
out += [b"0x%x " % (4096 + 16 * i) + n for i, n in enumerate(names)] + [b"---", b"heap_v2/1", b"  t*: 10: 1000 [0: 0]"]
out += [b"  t1: 10: 1000 [0: 0] odd\x1b]0;thread\x07 \xff"]
for i in range(len(names)):
    out += [b"@ 0x%x" % (4097 + 16 * i), b"  t*: 1: 100 [0: 0]", b"  t1: 1: 100 [0: 0]"]
os.write(1, b"\n".join(out + [b"", b"MAPPED_LIBRARIES:", b""]))
END
for form in pb.gz collapsed heap; do
	run "$work/hostile.heap" "$work/hostile.out.$form"
	[ $status = 0 ] || not_ok "odd names: $form" "status $status" "$work/err"
done
for form in pb.gz heap; do
	"$heaptap" report -f json --by thread "$work/hostile.out.$form" 2>"$work/err" | grep -q '^"total":{"inuse_bytes":1000,' && ok "odd names: $form is read again" ||
		not_ok "odd names: $form" "is not read again" "$work/err"
done
python3 - "$work/hostile.out" >"$work/log" 2>&1 <<'END' && ok "odd names: collapsed is whole" || not_ok "odd names" "a form is broken" "$work/log"
import re, sys
lines = open(sys.argv[1] + ".collapsed", "rb").read().split(b"\n")
assert lines.pop() == b"" and len(lines) == 10 and all(re.fullmatch(rb"[^\x00-\x1f;]+ 100", l) for l in lines), lines
END
e2e_end

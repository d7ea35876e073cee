#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that carry their allocator: static, static-pie, stripped in degrees.
. "$(dirname "$0")/lib.sh"
e2e_init static

OUT=family-static build_c family -static || { not_ok build "family.c -static"; e2e_end; }
lossless "static" -- "$bin/family-static"
exact_launched "static, started" -- "$bin/family-static"
exact "static, 8 threads" -- env E2E_THREADS=8 "$bin/family-static"
OUT=family-static-pie build_c family -static-pie && exact "static-pie" -- "$bin/family-static-pie"
strip -g -o "$work/family-g" "$bin/family-static"
exact "static, without debug information" -- env "$work/family-g"

# dynamic and stripped: malloc is libc's, so all bytes are found, only the names are gone
build_c family
strip -o "$work/stripped" "$bin/family"
start "$work/stripped"
record_work --rate 1
total=$("$compare" sites "$work/p.pb.gz" 2>/dev/null | wc -l)
want=$(awk '/^EXPECT/ { n += $4 } END { print n }' "$work/target.out")
if have go; then
	got=$(go tool pprof -sample_index=inuse_space -unit=B -traces "$work/p.pb.gz" 2>/dev/null |
		awk '/^ *[0-9]+B / { sub("B", "", $1); n += $1 } END { print n + 0 }')
	[ "$record_status" = 0 ] && [ "$got" -ge "$want" ] && [ "$got" -le $((want + 65536)) ] &&
		ok "dynamic, stripped: all bytes, no names" ||
		not_ok "dynamic, stripped" "$got bytes, must be $want and a little" "$work/heaptap.err"
else
	skip "dynamic, stripped" "no go tool pprof"
fi

# the names come from a file beside it, by debug link or build id
strip -o "$work/linked" "$bin/family"
objcopy --only-keep-debug "$bin/family" "$work/linked.debug"
(cd "$work" && objcopy --add-gnu-debuglink=linked.debug linked)
start "$work/linked"
record_work --rate 1
sed -i 's/ family / linked /; s/^\(EXPECT [^ ]*\) [^ ]*/\1 linked/' "$work/target.out"
same "dynamic, stripped, names in a debug file" --alloc

# ... and so does the place of malloc, where it was linked in
for kind in static static-pie; do
	strip -o "$work/cut-$kind" "$bin/family-$kind" 2>/dev/null || continue
	objcopy --only-keep-debug "$bin/family-$kind" "$work/cut-$kind.debug"
	(cd "$work" && objcopy --add-gnu-debuglink="cut-$kind.debug" "cut-$kind")
	start "$work/cut-$kind"
	record_work --rate 1
	sed -i "s/ family-$kind / cut-$kind /; s/^\(EXPECT [^ ]*\) [^ ]*/\1 cut-$kind/" "$work/target.out"
	same "$kind, stripped, names in a debug file" --alloc
done

# nothing left by which malloc could be known: it must be said, in words
for kind in static static-pie; do
	strip -o "$work/bare" "$bin/family-$kind" 2>/dev/null || continue
	start "$work/bare"
	record_work --rate 1
	if [ "$target_status" != 0 ]; then
		not_ok "$kind, stripped" "the target's exit status is $target_status"
	elif grep -qi "no known allocator.*looked for" "$work/heaptap.err" && grep -q "it is static and stripped" "$work/heaptap.err"; then
		ok "$kind, stripped: says that no allocator was found, and what was looked for"
	else
		not_ok "$kind, stripped" "no message" "$work/heaptap.err"
	fi
done
e2e_end

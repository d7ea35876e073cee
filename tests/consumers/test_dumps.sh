#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_dumps.sh - `heaptap report` and `heaptap convert` of the heap profiles that jemalloc and gperftools write of a
# program whose bytes are known (dumped.c): values, threads, names, and jeprof's total beside.
. tests/consumers/lib.sh
consumer_init dumps
dumped=$work/dumped
rate_log=14
conf=prof:true,prof_final:true,prof_accum:true,lg_prof_sample:$rate_log,prof_prefix:$work/je
${CC:-cc} -std=gnu11 -g -O1 -o "$dumped" tests/consumers/dumped.c -pthread >"$work/log" 2>&1 ||
	{ not_ok setup "dumped.c cannot be built" "$work/log"; consumer_end; }

# rows BY FILE: the report as JSON in $work/json
rows() {
	"$B/heaptap" report --format json --by "$1" "$2" >"$work/json" 2>"$work/err" ||
		{ not_ok "report of $(basename "$2")" "it fails" "$work/err"; return 1; }
}
# value ROW KEY: of the row named so, empty if there is none
value() { sed -nE "s/.*\"name\":\"$1\",.*\"$2\":([0-9]+)[,}].*/\1/p" "$work/json" | head -n 1; }
# near NAME ROW KEY EXPECTED PERCENT
near() {
	local got low=$(($4 * (100 - $5) / 100)) high=$(($4 * (100 + $5) / 100))
	got=$(value "$2" "$3")
	[ -n "$got" ] && [ "$got" -ge "$low" ] && [ "$got" -le "$high" ] && ok "$1: $2: $3" ||
		not_ok "$1: $2: $3" "'$got', must be $low to $high" "$work/json"
}

total_of() { sed -nE 's/^"total":\{"inuse_bytes":([0-9]+),.*/\1/p' "$work/json"; }
jeprof_total() { timeout 120 jeprof --text --show_bytes "$@" 2>/dev/null | sed -nE 's/^Total: ([0-9]+) B/\1/p'; }
# same NAME GOT WANTED PERCENT
same() {
	[ -n "$2" ] && [ "$2" -ge $(($3 * (100 - $4) / 100)) ] && [ "$2" -le $(($3 * (100 + $4) / 100)) ] &&
		ok "$1" ||
		not_ok "$1" "'$2', must be $3 within $4 %"
}
# converted NAME DUMP PERCENT: in each form it is what the report of the dump says; of heap_v2 within PERCENT
converted() {
	local name="$1, converted" form total
	for form in pb.gz collapsed heap; do
		rm -f "$work/c.$form"
		"$B/heaptap" convert "$2" "$work/c.$form" >"$work/log" 2>&1 || not_ok "$name: $form" "it fails" "$work/log"
	done
	rows thread "$2" && mv "$work/json" "$work/first" && rows thread "$work/c.pb.gz" || return
	cmp -s "$work/first" "$work/json" && grep -q '"inuse_bytes_low":[0-9]' "$work/json" && ok "$name: pprof has the same numbers, intervals, threads" ||
		not_ok "$name: pprof" "another report" "$work/json"
	total=$(total_of)
	same "$name: collapsed" "$(awk '{ n += $NF } END { print n }' "$work/c.collapsed")" "$total" 0
	expect "$name: collapsed: names" "$work/c.collapsed" '^main;.*remember [0-9]+$|;main;remember [0-9]+$'
	rows thread "$work/c.heap" && same "$name: heap_v2" "$(total_of)" "$total" "$3"
	if have jeprof; then
		same "$name: heap_v2: jeprof's total" "$(jeprof_total "$work/c.heap")" "$total" "$3"
		timeout 120 jeprof --text "$work/c.heap" >"$work/text" 2>&1
		expect "$name: heap_v2: jeprof has names" "$work/text" ' remember$' ' load_index$'
	else
		ok "$name: heap_v2: jeprof's total # SKIP no jeprof"
	fi
}

# jemalloc NAME PROGRAM: rounds sizes up to 112, 3072, 5120, 327680. 12000 small objects at a rate
# of 16 KiB are some 600 samples: 20 % is five standard errors.
jemalloc() {
	local name=$1 total theirs
	rows function "$work/je.heap" || return
	near "$name" load_index inuse_bytes 9830400 2
	near "$name" remember inuse_bytes 10224000 20
	near "$name" handle alloc_bytes 15360000 20
	near "$name" handle inuse_bytes 0 0
	total=$(total_of)
	rows thread "$work/je.heap" || return
	near "$name" 'worker one' inuse_bytes 6816000 25
	near "$name" main inuse_bytes 13238400 15
	"$B/heaptap" report -v --top 3 "$work/je.heap" >"$work/text" 2>&1
	expect "$name: the allocator's frames are off, lines are there" "$work/text" \
		'^#1 ' '^        load_index  dumped\.c:[0-9]+$' '^        remember  dumped\.c:[0-9]+$'
	if ! have jeprof; then
		ok "$name: jeprof's total # SKIP no jeprof"
		return
	fi
	theirs=$(jeprof_total "$2" "$work/je.heap")
	# it cuts where we round, once per stack
	[ -n "$theirs" ] && [ $((total - theirs)) -ge -1 ] && [ $((total - theirs)) -le 20 ] &&
		ok "$name: jeprof's total" ||
		not_ok "$name: jeprof's total" "$total here, $theirs there"
}

lib=$(ldconfig -p | awk '/libjemalloc\.so\.2 .*x86-64/ { print $NF; exit }')
if [ -z "$lib" ]; then
	ok "jemalloc # SKIP libjemalloc is not installed"
elif ! MALLOC_CONF=$conf LD_PRELOAD=$lib "$dumped" >"$work/log" 2>&1 || [ -s "$work/log" ]; then
	ok "jemalloc # SKIP this libjemalloc has no profiler"
else
	mv "$work"/je.*.heap "$work/je.heap"
	jemalloc jemalloc "$dumped"
	mv "$work/je.heap" "$work/shared.heap"
	converted jemalloc "$work/shared.heap" 1
	if ${CC:-cc} -std=gnu11 -g -O1 -o "$work/static" tests/consumers/dumped.c -pthread \
		-Wl,-Bstatic -ljemalloc -Wl,-Bdynamic -lstdc++ -lm -ldl >"$work/log" 2>&1; then
		MALLOC_CONF=$conf "$work/static"
		mv "$work"/je.*.heap "$work/je.heap"
		jemalloc "jemalloc, static" "$work/static"
	else
		ok "jemalloc, static # SKIP no libjemalloc.a"
	fi
	"$B/heaptap" report --by function - <"$work/shared.heap" >"$work/before" 2>&1
	gzip -k "$work/shared.heap"
	"$B/heaptap" report --by function - <"$work/shared.heap.gz" >"$work/after" 2>&1
	[ -s "$work/before" ] && cmp -s "$work/before" "$work/after" && ok "compressed" ||
		not_ok compressed "another report" "$work/after"
	head -c 600 "$work/shared.heap" >"$work/cut.heap"
	"$B/heaptap" report "$work/cut.heap" >"$work/text" 2>"$work/err"
	[ $? = 1 ] && [ ! -s "$work/text" ] && grep -qE 'at line [0-9]+: ' "$work/err" &&
		ok "cut off: the line, and no report" ||
		not_ok "cut off" "no error" "$work/text" "$work/err"
	mv "$dumped" "$dumped.gone"
	"$B/heaptap" report -v --top 3 "$work/shared.heap" >"$work/text" 2>"$work/err"
	expect "file is gone: module and offset" "$work/text" '^        dumped\+0x[0-9a-f]+  dumped$'
	expect "file is gone: says so" "$work/err" "1 files of the profile are missing here"
	mv "$dumped.gone" "$dumped"
fi

lib=$(ldconfig -p | awk '/libtcmalloc\.so\.4 .*x86-64/ { print $NF; exit }')
if [ -z "$lib" ]; then
	ok "gperftools # SKIP libtcmalloc is not installed"
elif ! HEAPPROFILE=$work/gperf LD_PRELOAD=$lib "$dumped" >"$work/log" 2>&1 ||
	[ ! -s "$work/gperf.0001.heap" ]; then
	not_ok gperftools "no heap profile" "$work/log"
else
	rows function "$work/gperf.0001.heap"
	near gperftools load_index inuse_bytes 9000000 0
	near gperftools load_index inuse_objects 30 0
	near gperftools remember inuse_bytes 9900000 0
	near gperftools remember inuse_objects 12000 0
	near gperftools handle alloc_bytes 15000000 0
	near gperftools handle inuse_bytes 0 0
	converted gperftools "$work/gperf.0001.heap" 0
fi
# its samples, which a program has to ask for: what they stand for
if have jeprof; then
	rows function tests/golden/import/gperf-sample.heap
	same "gperftools, samples: jeprof's total" "$(jeprof_total "$dumped" tests/golden/import/gperf-sample.heap)" "$(total_of)" 1
else
	ok "gperftools, samples: jeprof's total # SKIP no jeprof"
fi
consumer_end

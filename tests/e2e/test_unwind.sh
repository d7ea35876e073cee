#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real programs without frame pointers: at least 99 % of the sampled stacks reach the thread's
# start. That a frame takes at most 120 ns is for `make bench` to say, on a quiet machine; here, where
# others may be at work, only what is far from it counts. E2E_FRAME_NS: another limit.
. "$(dirname "$0")/lib.sh"
e2e_init unwind

is() { awk "BEGIN { exit !($1) }"; }
# is_quick FRAMES NS
is_quick() { is "$2 <= ${E2E_FRAME_NS:-360} * $1"; }
# unwound NAME SAMPLES: the last profile's stacks
unwound() {
	local complete frames ns cut=0 i n reasons= name=$1
	local cuts=(no_mapping no_table no_row unsupported read_fault too_deep bad_cfa)
	if [ "$record_status" != 0 ]; then
		not_ok "$name" "heaptap's exit status is $record_status" "$work/heaptap.err"
		return
	fi
	n=($(ledger stacks_complete frames walk_ns "${cuts[@]/#/truncated_}"))
	complete=${n[0]} frames=${n[1]} ns=${n[2]}
	for i in "${!cuts[@]}"; do
		cut=$((cut + n[i + 3]))
		[ "${n[i + 3]}" = 0 ] || reasons="$reasons ${cuts[i]}=${n[i + 3]}"
	done
	if [ $((complete + cut)) -lt "$2" ]; then
		not_ok "$name: stacks" "only $((complete + cut)) samples, at least $2 are needed" "$work/heaptap.err"
		return
	fi
	is "$complete >= 0.99 * ($complete + $cut)" &&
		ok "$name: $complete of $((complete + cut)) stacks complete" ||
		not_ok "$name: stacks" "$complete of $((complete + cut)) complete;$reasons"
	if [ "${HEAPTAP_VM:-0}" != 0 ]; then
		skip "$name: time" "on an emulated machine"
		return
	fi
	is_quick "$frames" "$ns" &&
		ok "$name: $((ns / frames)) ns a frame, $((frames / (complete + cut))) frames a stack" ||
		not_ok "$name: time" "$((ns / frames)) ns a frame ($frames frames), at most ${E2E_FRAME_NS:-360}"
}

if have redis-server && have redis-benchmark; then
	redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no \
		--logfile "$work/redis.log" --dir "$work" >/dev/null 2>&1 &
	owned target
	await 10 test -S "$work/redis.sock"
	attach --rate 4k -n 0
	timeout 60 redis-benchmark -s "$work/redis.sock" -q -n 6000 -r 10000 -d 200 \
		-t set,lpush,sadd,hset,zadd,lrange_100 >/dev/null 2>&1
	stop_recorder
	unwound redis-server 1000
	kill "$target"
else
	skip redis-server "not installed"
fi
if have clang; then
	printf '#include <map>\n#include <string>\nint main() { std::map<std::string, std::string> m; m["a"] = "b"; return m.size(); }\n' >"$work/big.cc"
	launch --rate 16k -n 0 --follow -- clang++ -O1 -c "$work/big.cc" -o "$work/big.o"
	unwound "clang compiling" 1000
else
	skip "clang compiling" "not installed"
fi
python=$(PATH=/usr/bin:/bin command -v python3 || command -v python3)
if [ -n "$python" ]; then
	cat >"$work/job.py" <<'P'
import collections, json, re, sys
json.loads(json.dumps([1]))
print("READY", flush=True)
sys.stdin.readline()
kept = collections.OrderedDict()
def build(depth):
    return {"x" * depth: build(depth - 1), "y": list(range(depth))} if depth else [1.5, "end"]
for i in range(100):
    kept[i] = json.loads(json.dumps(build(20)))
    re.sub("(a+)b", lambda m: m.group(1).upper(), "aab" * 100)
print("DONE", flush=True)
sys.stdin.readline()
P
	start env PYTHONMALLOC=malloc "$python" "$work/job.py"
	record_work --rate 1k -n 0
	unwound "python3 with PYTHONMALLOC=malloc" 1000
fi
# C++ as it is released: no frame pointers, stripped; --launch with containers, exceptions, threads
build_cxx cxx -O3 && strip -o "$work/cxx" "$bin/cxx"
launch --rate 1 -n 0 -- "$work/cxx"
unwound "C++ release" 300
# Frames that hold arrays: 4 MiB, and one beyond it whose caller's rbp matters
cat >"$work/large.c" <<'P'
#include <alloca.h>
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
__attribute__((noinline)) static void site_leaf(void)
{
	kept = malloc(100);
}
__attribute__((noinline)) static int large(int n)
{
	volatile char room[(4 << 20) - 4096];
	room[n] = n;
	for (int i = 0; i < 5000; i++)
		site_leaf();
	return room[n];
}
__attribute__((noinline)) static int moderate(int n)
{
	volatile char room[300000];
	volatile char *more = alloca(n + 8);
	room[n] = more[n] = n;
	return large(n) + room[n] + more[n];
}
int main(int argc, char **argv)
{
	(void)argv;
	return moderate(argc) == 3 * argc ? 0 : 1;
}
P
if ${CC:-gcc} -O2 -fomit-frame-pointer -o "$work/large" "$work/large.c"; then
	# Some milliseconds in all, of which what else runs may take some: the best of three.
	for _ in 1 2 3; do
		launch --rate 1 -- "$work/large"
		is_quick $(ledger frames walk_ns) && break
	done
	unwound "frames of 4 MiB" 5000
	[ "$("$heaptap" report --by stack --format collapsed "$work/p.pb.gz" 2>/dev/null | grep -c 'main;moderate;large;site_leaf')" = 1 ] &&
		ok "frames of 4 MiB: the whole stack" ||
		not_ok "frames of 4 MiB: the whole stack" "main is not there" "$work/heaptap.err"
else
	not_ok "frames of 4 MiB" "does not build"
fi
build_c threads -O3 && strip -o "$work/threads" "$bin/threads"
start env E2E_MODE=race E2E_MS=400 E2E_THREADS=4 "$work/threads"
record_work --rate 4k -n 0
unwound "threads, stripped" 1000
if [ -x "$bin/rust-release" ] || { have cargo && bash "$loads/rust/build" "$bin" >/dev/null 2>&1; }; then
	start "$bin/rust-release"
	record_work --rate 1 -n 0
	unwound "Rust release" 300
else
	skip "Rust release" "cargo is not installed, or cannot build"
fi
e2e_end

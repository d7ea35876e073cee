#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve, and record, beside a process with libraries that do not answer when their names are looked up:
# the profiles of others do not wait for it. Two of them, with TESTS_WHOLE=1 three. timeout: 240
. "$(dirname "$0")/lib.sh"
e2e_init slow-names
have curl || skip_all "curl is not installed"
[ -e /dev/fuse ] || skip_all "this kernel has no FUSE"

build_c family && build_c mute_fuse && build_c slow_names -ldl && OUT=plugin.so build_c plugin -shared -fPIC ||
	{ not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
libraries=$(some 2 1 2 3)
library_cnt=$(wc -w <<<"$libraries")

start_fuses() {
	local i
	files=
	for i in $libraries; do
		mkdir -p "$top/mnt$i"
		begin "fuse$i" "$bin/mute_fuse" "$top/mnt$i" "$bin/plugin.so" 0
		files="$files $top/mnt$i/file"
	done
}
# all_fuses COMMAND
all_fuses() {
	local i
	for i in $libraries; do
		: >"$top/fuse$i/target.out"
		tell_to "fuse$i" "$1"
		await 5 says "$top/fuse$i/target.out" DONE || not_ok "$1" "mute_fuse does not answer"
	done
}
end_fuses() {
	local i
	for i in $libraries; do
		kill -9 "${pid_of[fuse$i]}"
		wait "${pid_of[fuse$i]}" 2>/dev/null
	done
	await 10 not_mounted || for i in $libraries; do umount -l "$top/mnt$i"; done
}
not_mounted() { ! grep -q " $top/mnt" /proc/mounts; }
# one that has such libraries
begin_slow() {
	start_fuses
	mkdir -p "$top/slowly"
	cp --remove-destination "$bin/slow_names" "$top/slowly/slowly"
	# shellcheck disable=SC2086 # one file each
	begin slowly "$top/slowly/slowly" $files
}
end_slow() {
	end_fuses
	kill -9 "${pid_of[slowly]}"
	wait "${pid_of[slowly]}" 2>/dev/null
}
# serve_both WHAT COMMAND: it and another one are followed and have allocated; then its libraries are, by COMMAND, mute. No profile is saved before: then
# their names were known
serve_both() {
	begin_slow
	begin slow-heapy
	serve --listen 127.0.0.1:0 --rate 1 --keep-files 0 --comm '^slow-heapy' --comm '^slowly'
	await 10 follows "${pid_of[slowly]}" && await 10 follows "${pid_of[slow-heapy]}" ||
		not_ok "$1" "not followed" "$top/serve.err"
	sleep 1
	work_of slowly
	work_of slow-heapy
	took "pid=${pid_of[slow-heapy]}"
	alone=$took
	all_fuses "$2"
}
# took QUERY [PATH]: of an answer, in $took; more than any limit if it was none
took() { took_ms 1000000 "$top/answer" "$url${2:-/debug/pprof/heap}?$1"; }
most() { [ "$took" -gt "${!1}" ] && printf -v "$1" %d "$took"; }
ask_slow() {
	curl -s -m 100 -o "$top/slow.pb.gz" -w '%{http_code} %{time_total}' \
		"$url/debug/pprof/heap?pid=${pid_of[slowly]}" >"$top/slow.txt" &
	asker=$!
}
says_missing() { zcat "$1" | grep -a -q 'names: missing of '$library_cnt' files that took too long'; }

# the profile is asked for while the other one is under way
what="libraries that do not answer"
serve_both "$what" mute
ask_slow
sleep 0.1
other=0 page=0 cnt=0
while kill -0 "$asker" 2>/dev/null; do
	took "pid=${pid_of[slow-heapy]}"
	most other
	took "" /healthz
	most page
	took "" /metrics
	most page
	cnt=$((cnt + 1))
	sleep 0.2
done
wait "$asker"
[ $cnt -ge 3 ] && [ $other -le $((alone + 2000)) ] &&
	ok "$what: another's profile within $other ms, $alone ms alone ($cnt times)" ||
	not_ok "$what: another's profile" "took $other ms, $alone ms alone ($cnt times)" "$top/serve.err"
[ $page -le 1000 ] && ok "$what: /healthz and /metrics within $page ms" ||
	not_ok "$what: /healthz and /metrics" "took $page ms" "$top/serve.err"
exact_of slow-heapy "$what: another process is served"
read -r status seconds <"$top/slow.txt"
[ "$status" = 200 ] && says_missing "$top/slow.pb.gz" &&
	ok "$what: its own profile says so, after $seconds s" ||
	not_ok "$what: its own profile" "status $status after $seconds s" "$top/serve.err"
once=0
for i in $libraries; do
	[ "$(grep -c "'$top/mnt$i/file' is too slow to look up" "$top/serve.err")" = 1 ] && once=$((once + 1))
done
grep 'is too slow to look up' "$top/serve.err" >"$top/said"
[ $once = "$library_cnt" ] && [ "$(wc -l <"$top/said")" = "$library_cnt" ] && ok "$what: said once for each" ||
	not_ok "$what: said once for each" "$once of $library_cnt were, $(wc -l <"$top/said") lines" "$top/said"
took "pid=${pid_of[slowly]}"
[ "$took" -le 3000 ] && says_missing "$top/answer" && ok "$what: the next one within $took ms" ||
	not_ok "$what: the next one" "took $took ms" "$top/serve.err"
took ""
[ "$took" -le 3000 ] && says_missing "$top/answer" && ok "$what: that of all processes within $took ms" ||
	not_ok "$what: that of all processes" "took $took ms" "$top/serve.err"
end_server "$what"
end_slow
kill -9 "${pid_of[slow-heapy]}"

# SIGTERM while it is under way, and its last profile is to be kept. To close an open file would be to wait for it, too
what="SIGTERM beside such"
serve_both "$what" "mute all"
ask_slow
sleep 1.5
kill -9 "${pid_of[slowly]}"
sleep 0.2
began=$(date +%s%N)
end_server "$what"
took=$((($(date +%s%N) - began) / 1000000))
[ $took -le 2000 ] && ok "$what: ends after $took ms" || not_ok "$what" "took $took ms" "$top/serve.err"
wait "$asker"
end_slow
kill -9 "${pid_of[slow-heapy]}"

# record of such a one
is_whole || e2e_end
what="record of such"
begin_slow
timeout -s INT -k 30 100 "$heaptap" record --force --rate 1 -d 6s -o "$top/p.pb.gz" -p "${pid_of[slowly]}" 2>"$top/record.err" &
recorder=$!
await 30 says "$top/record.err" '^heaptap: recording' || not_ok "$what" "does not begin" "$top/record.err"
work_of slowly
all_fuses "mute all"
began=$SECONDS
wait $recorder
status=$?
[ $status = 0 ] && [ $((SECONDS - began)) -le 60 ] && says_missing "$top/p.pb.gz" &&
	ok "$what: ends after $((SECONDS - began)) s" ||
	not_ok "$what" "status $status after $((SECONDS - began)) s" "$top/record.err"
end_slow
e2e_end

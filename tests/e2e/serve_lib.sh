#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# serve_lib.sh - what the tests of `heaptap serve` share: processes by name, servers, requests.
# Sourced after lib.sh and e2e_init:
#	. "$e2e_dir/serve_lib.sh"
# Workloads that begin() starts by name alone are copies of family, which is to be built.
top=$work
declare -A pid_of in_of
# apart COMMAND...: in the folder of its lane, for beside; names of processes are to differ where servers go by them
apart() {
	top=$work
	"$@"
}

# begin NAME [COMMAND...]: a process that waits for work; without a command one with this name
begin() {
	local name=$1
	shift
	mkdir -p "$top/$name"
	if [ $# = 0 ]; then
		cp --remove-destination "$bin/family" "$top/$name/$name"
		set -- "$top/$name/$name"
	fi
	work=$top/$name
	start "$@" || not_ok "start $name" "the target did not start" "$work/target.err"
	pid_of[$name]=$target in_of[$name]=$target_in
	work=$top
}
# work_of NAME: it allocates, and is done
work_of() {
	work=$top/$1 target=${pid_of[$1]} target_in=${in_of[$1]}
	run_target || not_ok "$1" "did not finish" "$work/target.err" "$work/target.out"
	work=$top
}
# tell_to NAME LINE
tell_to() {
	target_in=${in_of[$1]}
	tell "$2"
}
# serve ARGS...: a server; its pid in $server, its address in $url. sharing=own: without the programs for shared probes, which
# take a third of a second of a processor to load; for tests of something else that begin many
sharing=
serve() {
	: >"$top/serve.err"
	"$heaptap" serve ${sharing:+--sharing $sharing} "$@" >"$top/serve.out" 2>"$top/serve.err" </dev/null &
	owned server
	await 20 serves || not_ok "serve $*" "does not begin" "$top/serve.err"
	url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$top/serve.err")
}
serves() { says "$top/serve.err" '^heaptap: serving' || ! kill -0 "$server" 2>/dev/null; }
end_server() {
	kill -TERM "$server"
	await 20 is_gone "$server" || kill -9 "$server"
	wait "$server"
	status=$?
	[ $status = 0 ] && ok "$1: SIGTERM ends it" ||
		not_ok "$1: SIGTERM ends it" "its status is $status" "$top/serve.err"
}
get() { curl -s -S -m 60 "$@"; }
# get_metrics: without curl, which takes ten times as long as the answer; it is asked often. With the token $bearer
bearer=
get_metrics() {
	local address=${url#http://} host connection
	host=${address%:*}
	exec {connection}<>"/dev/tcp/${host//[][]/}/${address##*:}" || return
	printf 'GET /metrics HTTP/1.0\r\nHost: %s\r\n%b\r\n' "$address" "${bearer:+Authorization: Bearer $bearer\r\n}" >&"$connection"
	timeout 60 cat <&"$connection"
	exec {connection}>&-
}
metric() { get_metrics | awk -v name="$1" 'index($0, name) == 1 { print $NF; exit }'; }
follows() { get_metrics | grep "^heaptap_target_resident_bytes{pid=\"$1\"" >/dev/null; }
follows_not() { ! follows "$1"; }
# served NAME TITLE URL [COMPARE ARGS...]: that profile is what the process NAME says
served() {
	local name=$1 title=$2 from=$3
	shift 3
	work=$top/$name
	record_status=0
	get -f -o "$work/p.pb.gz" "$from" || record_status="curl $?"
	same "$title" "$@"
	work=$top
}
# exact_of NAME TITLE: the heap of the process NAME is what it says, cumulative columns too
exact_of() { served "$1" "$2" "$url/debug/pprof/heap?pid=${pid_of[$1]}" --alloc; }
# same_memory NAME: no probe is in it
same_memory() { timeout 20 python3 -IS "$e2e_dir/same_text.py" "${pid_of[$1]}" >"$top/text"; }
# answers STATUS CURL ARGS...
answers() {
	local want=$1 got name
	shift
	name="$* "
	name=${name//$url/}
	name=${name:0:70}
	got=$(get -o "$top/body" -D "$top/head" -w '%{http_code}' "$@")
	[ "$got" = "$want" ] && ok "$want for $name" ||
		not_ok "$want for $name" "$got, not $want" "$top/head" "$top/body"
}
refused() {
	local name=$1 what=$2
	shift 2
	timeout 20 "$heaptap" serve "$@" >"$top/out" 2>"$top/err"
	status=$?
	if { [ $status = 1 ] || [ $status = 2 ]; } && grep -q -- "$what" "$top/err"; then
		ok "refused: $name"
	else
		not_ok "refused: $name" "status $status, not said: $what" "$top/err"
	fi
}

# Servers beside those who would harm them.

# took_ms NONE OUT CURL ARGS...: how long that took, in $took; NONE if the answer was not one with status 200
took_ms() {
	local none=$1 out=$2 code seconds
	shift 2
	read -r code seconds < <(curl -s -m 100 -o "$out" -w '%{http_code} %{time_total}\n' "$@")
	took=$none
	[ "$code" != 200 ] || took=$((10#${seconds/./} / 1000))
}

# answers_within MS SECONDS PATH...: each answer meanwhile; the longest is in $longest
answers_within() {
	local limit=$1 end=$((SECONDS + $2)) took path
	shift 2
	longest=0
	while [ $SECONDS -lt $end ]; do
		for path; do
			took_ms 60000 /dev/null "$url$path"
			[ "$took" -gt "$longest" ] && longest=$took
		done
		sleep 0.1
	done
	[ "$longest" -le "$limit" ]
}
# in MB, the most that heaptap and the processes that it started have for themselves, until they end; into $top/most
watch_memory() {
	python3 - "$server" >"$top/most" <<-'EOF'
		import sys, time
		def children(pid):
		    with open(f"/proc/{pid}/task/{pid}/children") as f:
		        return [int(p) for p in f.read().split()]
		def family(pid):
		    try:
		        return [pid] + [p for child in children(pid) for p in family(child)]
		    except OSError:
		        return []
		def anon_kb(pid):
		    try:
		        with open(f"/proc/{pid}/status") as f:
		            return int(f.read().split("RssAnon:")[1].split()[0])
		    except (OSError, IndexError):
		        return 0
		most = 0
		while pids := family(int(sys.argv[1])):
		    most = max(most, sum(anon_kb(p) for p in pids))
		    time.sleep(0.02)  # to write to hundreds of MB takes longer
		print(most // 1024)
	EOF
}
end_process() {
	kill -9 "${pid_of[$1]}"
	wait "${pid_of[$1]}" 2>/dev/null
}
# start_fuse FILE [USER]: a file system of it; its file is $file
start_fuse() {
	mkdir -p "$top/mnt"
	begin fuse "$bin/mute_fuse" "$top/mnt" "$@"
	file=$top/mnt/file
}
end_fuse() {
	kill -9 "${pid_of[fuse]}"
	wait "${pid_of[fuse]}" 2>/dev/null
	await 10 not_mounted || umount -l "$top/mnt"
}
not_mounted() { ! grep -q " $top/mnt " /proc/mounts; }
fuse() { tell_to fuse "$1" && await 5 says "$top/fuse/target.out" DONE; }
# lay OVER COMMAND [NAME]: the process mutes, or of that name, has done so, and the file system obeys the command
lay() {
	local name=${3:-mutes}
	start_fuse "$bin/family"
	mkdir -p "$top/bin-mutes"
	cp --remove-destination "$bin/mute_target" "$top/bin-mutes/$name"
	begin "$name" "$top/bin-mutes/$name" "$1" "$file"
	tell_to "$name" go
	await 5 says "$top/$name/target.out" DONE || not_ok "$1" "the target did not do it" "$top/$name/target.err"
	fuse "$2"
}

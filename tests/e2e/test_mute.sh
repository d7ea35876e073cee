#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve, and record, beside processes that do not let themselves be read: files and pages of a file
# system of another user that does not answer. timeout: 240
. "$(dirname "$0")/lib.sh"
e2e_init mute
have curl || skip_all "curl is not installed"
[ -e /dev/fuse ] || skip_all "this kernel has no FUSE"

build_c family && build_c mute_fuse && build_c mute_target "-I$e2e_top/include" -Wl,-z,now ||
	{ not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
mkdir "$top/bin-mutes"
seconds=${E2E_MUTE_SECONDS:-6} # that each is looked at

# answers_within MS SECONDS PATH...: each answer meanwhile; the longest is in $longest
answers_within() {
	local limit=$1 end=$((SECONDS + $2)) took path
	shift 2
	longest=0
	while [ $SECONDS -lt $end ]; do
		for path; do
			took=$(curl -s -m 60 -o /dev/null -w '%{http_code} %{time_total}' "$url$path" |
				awk '{ printf "%d", $1 == 200 ? $2 * 1000 : 60000 }')
			[ "$took" -gt "$longest" ] && longest=$took
		done
		sleep 0.1
	done
	[ "$longest" -le "$limit" ]
}
# start_fuse FILE: a file system of it; its file is $file
start_fuse() {
	mkdir -p "$top/mnt"
	begin fuse "$bin/mute_fuse" "$top/mnt" "$1"
	file=$top/mnt/file
}
end_fuse() {
	kill -9 "${pid_of[fuse]}"
	wait "${pid_of[fuse]}" 2>/dev/null
	await 10 not_mounted || umount -l "$top/mnt"
}
not_mounted() { ! grep -q " $top/mnt " /proc/mounts; }
fuse() { tell_to fuse "$1" && await 5 says "$top/fuse/target.out" DONE; }
end_process() {
	kill -9 "${pid_of[$1]}"
	wait "${pid_of[$1]}" 2>/dev/null
}

# looked_at WHAT: the server, while it follows such a one
looked_at() {
	local what=$1 started
	answers_within 1000 "$seconds" /healthz /metrics && ok "$what: /healthz and /metrics within $longest ms" ||
		not_ok "$what: /healthz and /metrics" "took $longest ms" "$top/serve.err"
	begin heapy
	await 10 follows "${pid_of[heapy]}" || not_ok "$what" "a process that came later is not followed" "$top/serve.err"
	sleep 1
	work_of heapy
	started=$SECONDS
	exact_of heapy "$what: another process is served"
	[ $((SECONDS - started)) -le 4 ] || not_ok "$what: another process's profile" "took $((SECONDS - started)) s"
	started=$SECONDS
	end_server "$what"
	[ $((SECONDS - started)) -le 2 ] && ok "$what: SIGTERM within 2 s" ||
		not_ok "$what: SIGTERM" "took $((SECONDS - started)) s" "$top/serve.err"
	same_memory heapy && ok "$what: no probe is left" || not_ok "$what: a probe is left" "" "$top/text"
	end_process heapy
}

# laid OVER COMMAND WHAT WORDS: a file that is laid over what is read does not answer
laid() {
	local over=$1 mute=$2 what=$3 words=$4
	lay "$over" "$mute"
	serve --listen 127.0.0.1:0 --rate 1 --comm '^heapy' --comm '^mutes'
	await 10 follows "${pid_of[mutes]}" || not_ok "$what" "not followed" "$top/serve.err"
	get -m 30 -o /dev/null "$url/debug/pprof/heap?pid=${pid_of[mutes]}"
	looked_at "$what"
	says "$top/serve.err" "$words" && ok "$what: said" || not_ok "$what: said" "no '$words'" "$top/serve.err"
	end_fuse
	end_process mutes
}
# lay OVER COMMAND: the process mutes has done so, and the file system obeys the command
lay() {
	start_fuse "$bin/family"
	cp --remove-destination "$bin/mute_target" "$top/bin-mutes/mutes"
	begin mutes "$top/bin-mutes/mutes" "$1" "$file"
	tell_to mutes go
	await 5 says "$top/mutes/target.out" DONE || not_ok "$1" "the target did not do it" "$top/mutes/target.err"
	fuse "$2"
}
laid map "mute all" "a mapped file that does not answer" "does not let itself be read"
laid descriptor "mute" "a page over the scope descriptor" "does not let itself be read"
laid args "mute" "a page over the arguments" ""

# its own executable
start_fuse "$bin/family"
begin heapx "$file"
serve --listen 127.0.0.1:0 --rate 1 --comm '^heapy' --pid "${pid_of[heapx]}"
await 10 follows "${pid_of[heapx]}" || not_ok "an executable that does not answer" "not followed" "$top/serve.err"
fuse "mute all"
get -m 30 -o /dev/null "$url/debug/pprof/heap?pid=${pid_of[heapx]}"
looked_at "an executable that does not answer"
end_fuse
end_process heapx

# record of such a one ends
lay map "mute all"
started=$SECONDS
timeout -s INT -k 30 60 "$heaptap" record --force -q -d 1s -o "$top/p.pb.gz" -p "${pid_of[mutes]}" 2>"$top/record.err"
status=$?
[ $((SECONDS - started)) -lt 40 ] && ok "record: ends after $((SECONDS - started)) s" ||
	not_ok "record" "status $status after $((SECONDS - started)) s" "$top/record.err"
end_fuse
end_process mutes
e2e_end

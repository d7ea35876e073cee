#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve, and record, beside processes that do not let themselves be read: files and pages of a file
# system of another user that does not answer. timeout: 240
#
# E2E_MUTE_SECONDS: how long the server is looked at beside each (2).
. "$(dirname "$0")/lib.sh"
e2e_init mute
have curl || skip_all "curl is not installed"
[ -e /dev/fuse ] || skip_all "this kernel has no FUSE"

build_c family && build_c mute_fuse && build_c mute_target "-I$e2e_top/include" -Wl,-z,now ||
	{ not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
seconds=${E2E_MUTE_SECONDS:-2}

# took PID: until there is its profile, in $took; more than any limit if there was none
took() { took_ms 1000000 "$top/answer" "$url/debug/pprof/heap?pid=$1"; }

# looked_at WHAT: the server, while it follows such a one
looked_at() {
	local what=$1 started
	answers_within 1000 "$seconds" /healthz /metrics && ok "$what: /healthz and /metrics within $longest ms" ||
		not_ok "$what: /healthz and /metrics" "took $longest ms" "$top/serve.err"
	begin mute-heapy
	await 10 follows "${pid_of[mute-heapy]}" || not_ok "$what" "a process that came later is not followed" "$top/serve.err"
	sleep 1
	work_of mute-heapy
	started=$SECONDS
	exact_of mute-heapy "$what: another process is served"
	[ $((SECONDS - started)) -le 4 ] || not_ok "$what: another process's profile" "took $((SECONDS - started)) s"
	started=$SECONDS
	end_server "$what"
	[ $((SECONDS - started)) -le 2 ] && ok "$what: SIGTERM within 2 s" ||
		not_ok "$what: SIGTERM" "took $((SECONDS - started)) s" "$top/serve.err"
	await 10 same_memory mute-heapy && ok "$what: no probe is left" || not_ok "$what: a probe is left" "" "$top/text"
	end_process mute-heapy
}

# laid OVER COMMAND WHAT WORDS: a file that is laid over what is read does not answer
laid() {
	local over=$1 mute=$2 what=$3 words=$4
	lay "$over" "$mute"
	serve --listen 127.0.0.1:0 --rate 1 --comm '^mute-heapy' --comm '^mutes'
	await 10 follows "${pid_of[mutes]}" || not_ok "$what" "not followed" "$top/serve.err"
	get -m 30 -o /dev/null "$url/debug/pprof/heap?pid=${pid_of[mutes]}"
	looked_at "$what"
	says "$top/serve.err" "$words" && ok "$what: said" || not_ok "$what: said" "no '$words'" "$top/serve.err"
	end_fuse
	end_process mutes
}

# its own executable
executable() {
	start_fuse "$bin/family"
	begin heapx "$file"
	serve --listen 127.0.0.1:0 --rate 1 --comm '^mute-heapy' --comm '^mute-other' --pid "${pid_of[heapx]}"
	await 10 follows "${pid_of[heapx]}" || not_ok "an executable that does not answer" "not followed" "$top/serve.err"
	sleep 1
	work_of heapx
	begin mute-other
	await 10 follows "${pid_of[mute-other]}" || not_ok "an executable that does not answer" "another is not followed" "$top/serve.err"
	work_of mute-other
	took "${pid_of[mute-other]}"
	alone=$took
	fuse "mute all"
	get -m 30 -o /dev/null "$url/debug/pprof/heap?pid=${pid_of[heapx]}" &
	asker=$!
	sleep 0.1
	took "${pid_of[mute-other]}"
	[ "$took" -le $((alone + 2000)) ] && ok "an executable that does not answer: another's profile meanwhile within $took ms" ||
		not_ok "an executable that does not answer: another's profile meanwhile" "took $took ms, $alone ms alone" "$top/serve.err"
	wait $asker
	looked_at "an executable that does not answer"
	end_process mute-other
	end_fuse
	end_process heapx
}

# A network's file system that hangs for a while: its programs are known when it answers again.
hanging_disk() {
	OUT=family-static build_c family -static || not_ok build "a static program"
	start_fuse "$bin/family-static" 0
	begin heapx "$file"
	# of the file, not of what the program has in memory: its symbols
	fuse "mute $(($(readelf -SW "$file" | sed -n 's/.* \.symtab *SYMTAB *[0-9a-f]* \([0-9a-f]*\).*/0x\1/p') / 4096 * 4096))"
	serve --listen 127.0.0.1:0 --rate 1 --pid "${pid_of[heapx]}"
	await 20 says "$top/serve.err" "mnt/file' could not be read in time: .*retrying in 10 s" &&
		ok "a disk that hangs for a while: said" || not_ok "a disk that hangs for a while" "not said" "$top/serve.err"
	fuse "speak"
	is_probed() { sleep 0.3 && ! same_memory heapx; }
	await 30 is_probed && ok "a disk that hangs for a while: its program is probed afterwards" ||
		not_ok "a disk that hangs for a while: its program" "is not probed" "$top/serve.err" "$top/text"
	work_of heapx
	exact_of heapx "a disk that hangs for a while: its program is recorded"
	[ "$(work=$top/heapx && ledger failed_sites)" = 1 ] && ok "a disk that hangs for a while: the loss is counted" ||
		not_ok "a disk that hangs for a while: the loss" "failed_sites is '$(work=$top/heapx && ledger failed_sites)', must be 1"
	end_server "a disk that hangs for a while"
	end_process heapx
	end_fuse
}

# record of such a one ends
recorded() {
	lay map "mute all" mutely
	started=$SECONDS
	timeout -s INT -k 30 60 "$heaptap" record --force -q -d 1s -o "$top/p.pb.gz" -p "${pid_of[mutely]}" 2>"$top/record.err"
	status=$?
	[ $((SECONDS - started)) -lt 40 ] && ok "record: ends after $((SECONDS - started)) s" ||
		not_ok "record" "status $status after $((SECONDS - started)) s" "$top/record.err"
	end_fuse
	end_process mutely
}

# A file of another user is read for its names, but no probe is put into it: every fork() of the machine would wait for him.
foreign() {
	OUT=family-foreign build_c family -static || not_ok build "a static program"
	start_fuse "$bin/family-foreign"
	begin heapx "$file"
	"$heaptap" record --force -q -d 1s -o "$top/p.pb.gz" -p "${pid_of[heapx]}" 2>"$top/record.err" &
	recorder=$!
	await 5 says "$top/record.err" 'another user serves (FUSE) and is not probed' &&
		same_memory heapx && ok "record: a program on another user's file system is not probed" ||
		not_ok "record: a program on another user's file system" "is probed, or not named" "$top/record.err"
	wait $recorder
	end_process heapx
	end_fuse
}

# as an AppImage is mounted: not even root may open the files
denied() {
	OUT=family-denied build_c family -static || not_ok build "a static program"
	start_fuse "$bin/family-denied" 65534 alone
	chmod 711 "$(dirname "$top")" "$top"
	begin heapx setpriv --reuid 65534 --regid 65534 --clear-groups "$file"
	timeout 30 "$heaptap" record --force -q --rate 1 -d 1s -o "$top/p.pb.gz" -p "${pid_of[heapx]}" 2>"$top/record.err"
	"$heaptap" report --notes "$top/p.pb.gz" >"$top/notes" 2>&1
	says "$top/record.err" "mnt/file cannot be opened" && says "$top/notes" 'not seen: .*cannot be opened' &&
		! says "$top/notes" 'no losses|\(exact\)' && ok "record: a program on a file system of its user alone is said not to be seen" ||
		not_ok "record: a program on a file system of its user alone" "is not named" "$top/record.err" "$top/notes"
	end_process heapx
	end_fuse
}

# A process that executes a program, and is held there by a file that it closes. Who is told to follow another one neither reads
# it nor says a word about it.
unnamed() {
	have python3 || { skip "serve -p: not a word about others" "python3 is not installed"; return; }
	start_fuse "$bin/family"
	READY=ready begin held python3 -c 'import os, sys
file = open(sys.argv[1], "rb")
print("ready", flush=True)
sys.stdin.readline()
os.execv("/bin/sleep", ["sleep", "60"])' "$file"
	begin named
	fuse "mute all"
	tell_to held go
	is_held() { fuse count && says "$top/fuse/target.out" 'WAITING [1-9]'; }
	await 10 is_held || not_ok "serve -p: the other one" "is not held" "$top/fuse/target.out"
	serve --listen 127.0.0.1:0 --comm '^nobody-has-this-name$'
	await 20 says "$top/serve.err" "cannot read PID ${pid_of[held]}" && ok "serve --comm: says who cannot be read" ||
		not_ok "serve --comm: says who cannot be read" "it does not" "$top/serve.err"
	end_server "serve --comm"
	serve --listen 127.0.0.1:0 -p "${pid_of[named]}"
	await 10 follows "${pid_of[named]}" || not_ok "serve -p" "not followed" "$top/serve.err"
	sleep 4 # scans
	says "$top/serve.err" "PID ${pid_of[held]}" && not_ok "serve -p: not a word about others" "there is one" "$top/serve.err" ||
		ok "serve -p: not a word about others"
	end_server "serve -p"
	fuse speak
	end_fuse
	end_process held
	end_process named
}

served_beside() {
	laid map "mute all" "a mapped file that does not answer" "cannot \(be \)\?read"
	again laid descriptor "mute" "a page over the scope descriptor" "cannot \(be \)\?read"
	again laid args "mute" "a page over the arguments" ""
	executable
}
# They mostly wait.
beside apart served_beside
beside apart hanging_disk
beside apart recorded
beside apart foreign
beside apart denied
beside apart unnamed
E2E_BESIDE=${E2E_BESIDE:-3}
together
e2e_end

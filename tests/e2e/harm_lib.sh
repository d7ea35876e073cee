# SPDX-License-Identifier: MIT
# harm_lib.sh - what the tests that a tap does no harm share. After lib.sh, e2e_init and the build of busy.
#
# A case is a function that starts a target, has heaptap do something to it, and notes each fault (fault). It is queued by
# `harm NAME FUNCTION ARGS...` and tried E2E_TRIES times (1; with TESTS_WHOLE=1: 20), in a folder of its own, with one result.
# After each try nothing of heaptap may be left; what is left is killed, as is the target: a fault of one case wedges no other.
# Processes are ended by pid. heaptap's are known by a word in their environment, since orphans have no parent to be known by.
. "$e2e_dir/serve_lib.sh"
. "$e2e_dir/tap_lib.sh"

tries=${E2E_TRIES:-$(is_whole && echo 20 || echo 1)}
faults=() said= case_name=
e2e_own=$work/own
# Without what python3 says of a process that is gone. A first thread that has ended shows no memory.
is_same_text() {
	local tid=$target line= tasks
	{ read -r line <"/proc/$tid/maps"; } 2>/dev/null
	[ -n "$line" ] || { tasks=("/proc/$tid/task/"*) && tid=${tasks[-1]##*/}; }
	python3 -IS "$e2e_dir/same_text.py" "$tid" "$@" >"$work/differences" 2>/dev/null
}

# fault WHAT [FILE...]: it is shown with the files, as they are now
fault() {
	local file
	faults+=("$1")
	shift
	for file; do
		[ -s "$file" ] && sed "s|^|#   $(basename "$file"): |" "$file" | head -n "${E2E_SHOW:-12}" >>"$work/shown"
	done
}
# harm NAME FUNCTION ARGS...
harm() { beside try_case "$@"; }
# run_cases: each has its result
run_cases() {
	local cnt=$((e2e_ok_cnt + e2e_failed + ${#e2e_queue[@]}))
	E2E_BESIDE=${E2E_BESIDE:-4} together
	[ -n "${E2E_ONLY:-}" ] || [ $((e2e_ok_cnt + e2e_failed)) = $cnt ] ||
		not_ok "cases" "$((cnt - e2e_ok_cnt - e2e_failed)) have no result"
}
try_case() {
	local i
	case_name=$1
	shift
	[ -z "${E2E_ONLY:-}" ] || [[ $case_name =~ $E2E_ONLY ]] || return 0
	top=$work
	export E2E_OF=$work
	for ((i = 1; i <= tries; i++)); do
		faults=() said= server= recorder= target=
		: >"$work/shown"
		"$@"
		clear_up
		[ ${#faults[@]} = 0 ] || break
	done
	if [ ${#faults[@]} = 0 ]; then
		ok "$case_name${said:+: $said}$([ "$tries" = 1 ] || echo ", $tries times")"
	else
		not_ok "$case_name" "$([ "$tries" = 1 ] || echo "time $i: ")$(printf '%s; ' "${faults[@]}")"
		cat "$work/shown"
	fi
}
# ours: the processes of heaptap that this case has begun
ours() {
	local dir name variables
	for dir in /proc/[0-9]*; do
		{ read -r name <"$dir/comm"; } 2>/dev/null
		[[ $name == heaptap* ]] || continue
		variables=()
		{ mapfile -d '' -t variables <"$dir/environ"; } 2>/dev/null
		[[ "${variables[*]} " == *"E2E_OF=$work "* ]] && ! is_gone "${dir#/proc/}" && echo "${dir#/proc/}"
	done
}
has_none() { [ -z "$(ours)" ]; }
# where PID...: what each is, and where it waits
where() {
	local pid name
	for pid; do
		name=gone
		{ read -r name <"/proc/$pid/comm"; } 2>/dev/null
		echo "$name in state $(awk '/^State/ { print $2 }' "/proc/$pid/status" 2>/dev/null) in $(sed -E 's/^[^ ]* ([^+]*).*/\1/' "/proc/$pid/stack" 2>/dev/null | head -n 7 | paste -sd'<')"
	done
}
# What visits the target goes first: it may hold its threads.
end_ours() {
	local pid
	for pid in $(ours | sort -rn); do kill -9 "$pid" 2>/dev/null; done
}
# At the end of a lane and of the test: what heaptap holds would never end, so that goes first, and no wait is without limit.
end_children() {
	local pid
	for pid in $e2e_lanes; do is_child "$pid" && kill "$pid"; done 2>/dev/null
	end_ours
	for pid in $e2e_pids; do is_child "$pid" && kill -9 "$pid"; done 2>/dev/null
	for pid in $e2e_lanes $e2e_pids; do await 5 is_gone "$pid" && wait "$pid"; done 2>/dev/null
}
clear_up() {
	local left
	if ! await 5 has_none; then
		left=$(ours)
		fault "heaptap is not gone: $(where $left | sort | uniq -c | tr '\n' ';')"
		end_ours
	fi
	[ -z "${server:-}" ] || wait "$server" 2>/dev/null
	[ -z "${recorder:-}" ] || wait "$recorder" 2>/dev/null
	[ -z "${target:-}" ] || kill_target 2>/dev/null
}

# begin_target COMMAND...: with a C library of its own
begin_target() { start $own "$@" || fault "the target does not start" "$work/target.out" "$work/target.err"; }
# of_nobody PROGRAM: a copy of it that user 65534 may execute; what to say before it is in "${nobody[@]}"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
of_nobody() {
	cp --remove-destination "$bin/$1" "$work/$1"
	chmod 755 "$work" "$work/$1"
}
# ask LINE [SECONDS]: the target does it
ask() {
	local before done_cnt
	count_done
	before=$done_cnt
	tell "$1"
	await "${2:-10}" has_answered
	count_done
	[ "$done_cnt" -gt "$before" ] || fault "the target does not $1" "$work/target.out" "$work/target.err"
}
has_answered() { count_done; [ "$done_cnt" -gt "$before" ] || is_gone "$target"; }
# count_done: in $done_cnt. It is asked often: no process is started for it
count_done() {
	local line
	done_cnt=0
	while IFS= read -r line; do [[ $line != DONE* ]] || done_cnt=$((done_cnt + 1)); done <"$work/target.out"
}
# is_well: the target lives, and does not complain
is_well() {
	is_gone "$target" && return 1
	! says "$work/target.out" '^BAD'
}
# ends_well: its text is that of its files, it has noticed nothing, and its status is what it should be
ends_well() {
	if is_well; then
		await 5 is_same_text "$@" || fault "the text differs" "$work/differences"
		ends_itself
	else
		wait_target
		fault "the target is harmed: status $target_status" "$work/target.out" "$work/target.err" "$work/heaptap.err" "$work/serve.err"
	fi
	target=
}
wait_target() {
	await 5 is_gone "$target" || kill -9 "$target" 2>/dev/null
	exec {target_in}>&-
	wait "$target" 2>/dev/null
	target_status=$?
}
ends_itself() {
	exec {target_in}>&-
	await 5 is_gone "$target" || { fault "the target hangs: $(where "$target")"; kill -9 "$target"; }
	wait "$target" 2>/dev/null
	target_status=$?
	[ $target_status = 7 ] || fault "the target is harmed: status $target_status" "$work/target.out" "$work/target.err" "$work/heaptap.err" "$work/serve.err"
}

# begin_record ARGS...: a recording of $target by the tap (BASE: in another way), which has begun
begin_record() {
	: >"$work/heaptap.err"
	rm -f "$work/p.pb.gz"
	"$heaptap" record ${BASE---tap --max-overhead off} --force -n 0 -o "$work/p.pb.gz" -p "$target" "$@" \
		>"$work/heaptap.out" 2>"$work/heaptap.err" </dev/null &
	recorder=$!
	e2e_pids="$e2e_pids $recorder"
	await "${RECORD_LIMIT:-8}" record_began || fault "heaptap does not begin to record: $(where $(ours) | tr '\n' ';')" "$work/heaptap.err"
}
# end_record [STATUS]: it ends within 3 s, and says that or success; is_tapped is how it was done
end_record() {
	kill -INT "$recorder" 2>/dev/null
	have_record 3 "$@"
}
# have_record SECONDS [STATUS]: it ends by itself within that
have_record() {
	if await "$1" is_gone "$recorder"; then
		wait "$recorder"
		record_status=$?
		[ $record_status = 0 ] || [ $record_status = "${2:-0}" ] ||
			grep -q 'handles its system calls itself' "$work/heaptap.err" || fault "heaptap's status is $record_status" "$work/heaptap.err"
	else
		fault "heaptap does not end: $(where $(ours) | sort | uniq -c | tr '\n' ';')" "$work/heaptap.err"
		end_ours
		wait "$recorder" 2>/dev/null
	fi
	recorder=
	said=$(tapped_or_not "$work/heaptap.err")
}
# tapped_or_not FILE: how it was recorded, in words
tapped_or_not() {
	local why
	why=$(sed -n 's/.*cannot be tapped: \(.*\)/\1/p' "$1" | head -n 1)
	[ -n "$why" ] || why=$(sed -n 's/.*error: record: .*\(handles its system calls itself\).*/it \1/p' "$1")
	if [ -n "$why" ]; then echo "not tapped: ${why:0:100}"; elif grep -q 'is tapped' "$1"; then echo tapped; else echo "not tapped"; fi
}

# left_alone [ARGS...] -- COMMAND...: a short recording of a program; nothing happens to either
left_alone() {
	local args=()
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	begin_target "$@"
	begin_record -d "${RECORD_SECONDS:-0.3s}" "${args[@]}"
	have_record 8
	ends_well
}

# held [FILE]: bytes in use, as heaptap says
held() {
	local text
	text=$("$heaptap" report -f json "${1:-$work/p.pb.gz}" 2>/dev/null)
	[[ $text =~ '"total":{"inuse_bytes":'([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo -1
}
# within_tenth [FILE]: that is what the target says, to a tenth
within_tenth() {
	local is want
	want=$(awk '/^HELD/ { n = $2 } END { print n + 0 }' "$work/target.out")
	is=$(held "$@")
	said="$(awk -v is="$is" -v want="$want" 'BEGIN { printf "%.2f of %.2f MB", is / 1e6, want / 1e6 }')${said:+, $said}"
	[ "$want" -gt 0 ] && [ $((is * 10)) -ge $((want * 9)) ] && [ $((is * 10)) -le $((want * 11)) ] ||
		fault "the numbers are wrong: $said" "$work/heaptap.err"
}
# numbers STEP [ARGS...] -- COMMAND...: what it keeps after STEP (go, do), as it says itself
numbers() {
	local step=$1 args=()
	shift
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	begin_target "$@"
	begin_record --rate 1024 "${args[@]}"
	[ "$step" = go ] || ask "$step"
	ask go
	end_record
	within_tenth
	ends_well
}

# begin_serve ARGS...: a server that taps $target
begin_serve() {
	: >"$work/serve.err"
	url=
	"$heaptap" serve --listen 127.0.0.1:0 --sharing own -p "$target" --tap . --max-overhead off "$@" >"$work/serve.out" 2>"$work/serve.err" </dev/null &
	server=$!
	e2e_pids="$e2e_pids $server"
	await 15 serves
	url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$work/serve.err")
	[ -n "$url" ] || fault "serve does not begin within 15 s: $(where $(ours) | sort | uniq -c | tr '\n' ';')" "$work/serve.err"
}
is_decided() { says "$work/serve.err" "PID $target is tapped" || says "$work/serve.err" 'cannot be tapped'; }
await_tap() {
	await 20 is_decided || fault "serve neither taps nor says why not" "$work/serve.err"
	said=$(tapped_or_not "$work/serve.err")
}
# is_healthy: it answers within 1 s; with may_end, it may have ended meanwhile. slowest_ms: of the answers so far
answer_ms=1000 end_ms=2000 may_end= slowest_ms=0
is_healthy() {
	local began=${EPOCHREALTIME/./}
	[ -n "$url" ] || return
	took_ms 60000 /dev/null -m 5 "$url/healthz"
	# One that is ending does not listen any more.
	[ "$took" != 60000 ] || [ -z "$may_end" ] || [ $((${EPOCHREALTIME/./} - began)) -gt 1000000 ] || await 2 is_gone "$server"
	[ "$took" = 60000 ] || [ "$took" -le $slowest_ms ] || slowest_ms=$took
	[ "$took" -le $answer_ms ] || { [ -n "$may_end" ] && is_gone "$server"; } || fault "/healthz after $((took == 60000 ? 5000 : took)) ms, $(where $(ours) | sort | uniq -c | tr '\n' ';')" "$work/serve.err"
}
# end_serve: SIGTERM ends it within 2 s
end_serve() {
	local began=${EPOCHREALTIME/./} took
	kill -TERM "$server"
	await 4 is_gone "$server"
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	[ $took -le $end_ms ] || fault "SIGTERM: $(is_gone "$server" && echo "ended after $took ms" ||
		echo "still there after 4 s, $(where $(ours) | sort | uniq -c | tr '\n' ';')")" "$work/serve.err"
	# who ends must not say that a target cannot be tapped because of that
	says "$work/serve.err" 'Broken pipe' && fault "this explains nothing: $(grep -m 1 'Broken pipe' "$work/serve.err")" "$work/serve.err"
	is_gone "$server" || end_ours
	wait "$server" 2>/dev/null
	server=
}
# under_serve ACT COMMAND...: a server taps the program, ACT happens, it is as it should be
under_serve() {
	local act=$1
	shift
	begin_target "$@"
	begin_serve
	await_tap
	$act
	is_healthy
	is_healthy
	end_serve
}

# What several of them do.
other_of() { ldconfig -p | awk -v name="lib$1.so." 'index($1, name) == 1 && /x86-64/ { print $NF; exit }'; }
offsets_of() { # FILE NAME...
	local file=$1
	shift
	objdump -T "$file" | awk -v names=" $* " 'index(names, " " $NF " ") && /\.text/ { print $1 }' | sort -u
}
# pace_of: pairs in a second of its CPU time, whatever else the machine does; 0 if it does not get on
pace_of() {
	ask at
	sleep 0.5
	ask at
	awk '$1 == "AT" { n = $2 - pairs; us = $3 - cpu; pairs = $2; cpu = $3 } END { printf("%d\n", (n > 0 && us > 0) ? 1e6 * n / us : 0) }' "$work/target.out"
}
# begin_fuse [COMMAND]: a file that is not answered
begin_fuse() { # of user 65534, who owns the targets too; it goes by itself after some seconds, whatever becomes of this
	mkdir -p "$work/mnt"
	head -c 65536 /dev/zero >"$work/content"
	chmod 755 "$work" "$work/mnt"
	rm -f "$work/fuse.in"
	mkfifo "$work/fuse.in"
	timeout -k 1 25 "$bin/mute_fuse" "$work/mnt" "$work/content" 65534 <"$work/fuse.in" >"$work/fuse.out" 2>&1 &
	fuse=$!
	e2e_pids="$e2e_pids $fuse"
	exec {fuse_in}>"$work/fuse.in"
	await 5 says "$work/fuse.out" READY && tell_fuse "${1:-mute 0}"
}
tell_fuse() {
	local before
	before=$(grep -c ^DONE "$work/fuse.out")
	(echo "$1" >&"$fuse_in") 2>/dev/null || return 0 # it has ended
	await 5 eval '[ "$(grep -c ^DONE "$work/fuse.out")" -gt '"$before"' ] || is_gone "$fuse"'
}
end_fuse_file() {
	tell_fuse speak
	exec {fuse_in}>&-
	await 5 is_gone "$fuse" || kill "$fuse"
	wait "$fuse" 2>/dev/null
	await 5 not_mounted || umount -l "$work/mnt"
}
cgroup_of() { # VERSION
	local root
	if [ "$1" = 2 ]; then
		root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	else
		root=$(awk '$3 == "cgroup" && $4 ~ /(^|,)freezer(,|$)/ { print $2; exit }' /proc/mounts)
	fi
	[ -n "$root" ] && mkdir "$root/heaptap-e2e-$BASHPID" 2>/dev/null && cgroup=$root/heaptap-e2e-$BASHPID
}
freeze() { if [ -e "$cgroup/cgroup.freeze" ]; then echo 1 >"$cgroup/cgroup.freeze"; else echo FROZEN >"$cgroup/freezer.state"; fi; }
thaw() { if [ -e "$cgroup/cgroup.freeze" ]; then echo 0 >"$cgroup/cgroup.freeze"; else echo THAWED >"$cgroup/freezer.state"; fi; }
end_cgroup() {
	thaw
	await 5 rmdir "$cgroup" 2>/dev/null || fault "the control group stays"
}
# Whatever becomes of the test, nobody stays frozen.
watch_cgroup() {
	local lane=$BASHPID
	(
		trap '' INT TERM
		while [ -d "/proc/$lane" ]; do sleep 1; done
		thaw
		sleep 1
		rmdir "$cgroup"
	) </dev/null >/dev/null 2>&1 &
	watcher=$!
}

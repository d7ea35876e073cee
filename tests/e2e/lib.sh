#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lib.sh - what the end-to-end tests share: building workloads, driving them, recording them,
# comparing. Sourced by the tests, which are run from the top folder:
#	. tests/e2e/lib.sh
#	e2e_init NAME
# HEAPTAP names the program (./heaptap), COMPARE a ready comparer (else it is built from
# compare.c and libheaptap.a), E2E_BUILD where workloads are built (.build/e2e).
#
# Results are TAP lines; a test ends with e2e_end, whose status is 0 when nothing failed.
# Everything that waits has a limit; what was started is ended by its pid when the test exits.
set -u
e2e_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
e2e_top=$(cd "$e2e_dir/../.." && pwd)
loads=$e2e_dir/workloads
heaptap=$(realpath -m "${HEAPTAP:-./heaptap}")
bin=$(realpath -m "${E2E_BUILD:-.build/e2e}")
mkdir -p "$bin"
compare=${COMPARE:-$bin/compare}
work=
e2e_name=
e2e_failed=0
e2e_ok_cnt=0
e2e_pids=
e2e_lanes=
e2e_queue=()
e2e_never=                # a pipe that nothing is ever written to
declare -A e2e_unsaid=() # what a file held when it did not say something

ok() {
	echo "ok - $e2e_name: $1"
	e2e_ok_cnt=$((e2e_ok_cnt + 1))
}
# not_ok NAME WHY [FILE...]: the beginning of each file is shown
not_ok() {
	local name=$1 why=$2 file
	shift 2
	echo "not ok - $e2e_name: $name: $why"
	for file in "$@"; do
		[ -s "$file" ] && sed "s|^|#   $(basename "$file"): |" "$file" | head -n "${E2E_SHOW:-12}"
	done
	e2e_failed=$((e2e_failed + 1))
}
skip() { echo "ok - $e2e_name: $1 # SKIP $2"; }
skip_all() {
	skip all "$1"
	exit 0
}
have() { command -v "$1" >/dev/null 2>&1; }

# A pid that was waited for may be somebody else's by now: only what is our child still is killed.
is_child() { grep -q "^PPid:[[:space:]]*$BASHPID\$" "/proc/$1/status" 2>/dev/null; }
end_children() {
	local pid
	for pid in $e2e_lanes; do is_child "$pid" && kill "$pid"; done 2>/dev/null
	for pid in $e2e_pids; do is_child "$pid" && kill -9 "$pid"; done 2>/dev/null
	wait 2>/dev/null
}
# owned [NAME]: what was just started is ended with the test; NAME becomes its pid
owned() {
	[ $# = 0 ] || printf -v "$1" %s $!
	e2e_pids="$e2e_pids $!"
}
e2e_cleanup() {
	end_children
	[ -n "${E2E_KEEP:-}" ] && echo "# kept: $work" || rm -rf "$work"
}

# beside COMMAND...: is queued for together
beside() { e2e_queue+=("$(printf '%q ' "$@")"); }
# together: runs what was queued, as many at a time as there are processors (four at the most; E2E_BESIDE: as
# many as it says), each with a $work of its own; results come in the order of the queue. For what does not depend on time: the others
# compute, and probe the same C library.
together() {
	local top=$work cnt=${#e2e_queue[@]} lanes i ended
	local -A running=()
	lanes=$((${HEAPTAP_VM:-0} ? 1 : $(nproc 2>/dev/null || echo 1)))
	[ $lanes -le 4 ] || lanes=4
	lanes=${E2E_BESIDE:-$lanes}
	for ((i = 0; i < cnt; i++)); do
		if [ ${#running[@]} -ge $lanes ]; then
			wait -n -p ended "${!running[@]}"
			unset "running[$ended]"
		fi
		(
			trap end_children EXIT
			trap 'exit 130' INT TERM
			work=$top/beside$i e2e_pids= e2e_lanes=
			mkdir -p "$work"
			eval "${e2e_queue[i]}" >"$work.tap" 2>&1
		) &
		running[$!]=1
		e2e_lanes="$e2e_lanes $!"
	done
	wait "${!running[@]}"
	for ((i = 0; i < cnt; i++)); do
		cat "$work/beside$i.tap"
		e2e_ok_cnt=$((e2e_ok_cnt + $(grep -c '^ok' "$work/beside$i.tap")))
		e2e_failed=$((e2e_failed + $(grep -c '^not ok' "$work/beside$i.tap")))
		rm -rf "$work/beside$i"
	done
	e2e_queue=()
}

# by which limits of time are multiplied: an emulated machine is slow
e2e_patience=$((${HEAPTAP_VM:-0} ? 4 : 1))

# some N WORD...: of what repeats the same with other programs or flags, the first N; with TESTS_WHOLE=1 (make check-all) all
some() {
	local cnt=$1
	shift
	is_whole || set -- "${@:1:cnt}"
	echo "$@"
}
is_whole() { [ -n "${TESTS_WHOLE:-}" ]; }
# again COMMAND...: what repeats what this test has shown in another way: with TESTS_WHOLE=1 alone
again() { ! is_whole || "$@"; }

# e2e_every_mode: the attach modes that this kernel has. e2e_modes: those that this test goes through where what it is
# about does not depend on them: one, another for each test; with TESTS_WHOLE=1 all of them (make check-all).
# What the kernel has is asked once for all tests.
find_modes() {
	local boot features mode sum
	read -r boot </proc/sys/kernel/random/boot_id
	[ "$bin/features-$boot" -nt "$heaptap" ] ||
		{ "$heaptap" doctor --json >"$bin/features-$$" && mv "$bin/features-$$" "$bin/features-$boot"; } || true
	features=$(<"$bin/features-$boot")
	e2e_every_mode=
	for mode in session multi perf; do
		case $mode in
		session) grep -q '"uprobe_session":true' <<<"$features" ;;
		multi) grep -q '"uprobe_multi":true' <<<"$features" ;;
		perf) grep -q '"perf_uprobe":true' <<<"$features" ;;
		esac && e2e_every_mode="$e2e_every_mode $mode" || skip "attach mode $mode" "this kernel has none"
	done
	e2e_modes=$e2e_every_mode
	is_whole || {
		set -- $e2e_every_mode
		sum=$(cksum <<<"$e2e_name")
		shift $((${sum%% *} % ($# ? $# : 1)))
		e2e_modes=" ${1:-}"
	}
}
has_mode() {
	case " $e2e_every_mode " in *" $1 "*) return 0 ;; esac
	return 1
}
e2e_init() {
	e2e_name=$1
	work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-e2e-XXXXXX")
	chmod 755 "$work"
	e2e_never=$work/never
	mkfifo "$e2e_never"
	trap e2e_cleanup EXIT
	trap 'exit 130' INT TERM
	[ "$(id -u)" = 0 ] || skip_all "needs root"
	[ -x "$heaptap" ] || { echo "Bail out! $heaptap is not built"; exit 1; }
	find_modes
	if [ -z "${COMPARE:-}" ]; then
		build compare "$e2e_dir/compare.c" "${CC:-cc}" -std=gnu11 -O1 -g -D_GNU_SOURCE \
			-I"$e2e_top/include" -I"$e2e_top/user" -I"$e2e_top/.build/gen" \
			"$e2e_dir/compare.c" "$e2e_top/.build/libheaptap.a" -lbpf -ldw -lelf \
			-lcapstone -lprotobuf-c -liberty -llzma -lzstd -lz -lmicrohttpd -lm ||
			{ echo "Bail out! the comparer cannot be built"; exit 1; }
	fi
}
e2e_end() {
	echo "# $e2e_name: $e2e_ok_cnt ok, $e2e_failed failed"
	[ "$e2e_failed" = 0 ]
	exit
}

# Is there a tracefs that definitions can be read from? It stays mounted.
has_tracefs() { [ -w /sys/kernel/tracing/uprobe_events ] || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; }

# build OUT SOURCE COMMAND...: runs COMMAND -o $bin/OUT when OUT is missing or older than what it
# is made of. Of two tests at once one builds and the other waits: what is executed is not replaced.
build() {
	local out=$bin/$1 source=$2 lock=$bin/.$1.lock
	shift 2
	is_built || (
		flock 9
		is_built || build_now "$@"
	) 9>"$lock"
}
is_built() {
	local header
	for header in "$loads"/*.h; do [ "$out" -nt "$header" ] || return; done
	[ -x "$out" ] && [ "$out" -nt "$source" ] &&
		{ [ "$(basename "$out")" != compare ] || [ "$out" -nt "$e2e_top/.build/libheaptap.a" ]; }
}
build_now() {
	local temp
	temp=$(mktemp "$bin/build-XXXXXX")
	if timeout 120 "$@" -o "$temp" >"$temp.log" 2>&1; then
		chmod 755 "$temp"
		mv "$temp" "$out"
		rm -f "$temp.log"
	else
		sed 's/^/# /' "$temp.log" | head -20
		rm -f "$temp" "$temp.log"
		return 1
	fi
}
# was_built PROGRAM: an emulated machine has no compiler of that language, but what was built outside
was_built() { [ "${HEAPTAP_VM:-0}" != 0 ] && [ -e "$bin/$1" ]; }
c_flags="-std=gnu11 -O2 -g -D_GNU_SOURCE -Wall -Wextra -fno-builtin -fomit-frame-pointer -pthread"
# build_c NAME [FLAG...]: workloads/NAME.c -> $bin/NAME; with OUT=... under that name
build_c() {
	local name=$1
	shift
	build "${OUT:-$name}" "$loads/$name.c" ${CC:-gcc} $c_flags "$loads/$name.c" "$@"
}
build_cxx() {
	local name=$1
	shift
	build "${OUT:-$name}" "$loads/$name.cc" ${CXX:-g++} -std=c++17 -O2 -g -D_GNU_SOURCE -Wall -Wextra \
		-fomit-frame-pointer -pthread "$loads/$name.cc" "$@"
}
# build_go NAME: workloads/NAME.go -> $bin/NAME, with the user's cache, which has Go's own library
build_go() {
	build "$1" "$loads/$1.go" env GO111MODULE=off CGO_ENABLED=0 GOFLAGS= \
		sh -c 'exec go build "$1" "$2" "$0"' "$loads/$1.go"
}

# advised 'heaptap COMMAND...': the arguments of what heaptap advises; by default for 4 s where it says 10
advised() { is_whole && echo "${1#heaptap }" || sed 's/^heaptap //; s/ -d 10s / -d 4s /' <<<"$1"; }

# await SECONDS COMMAND...: until COMMAND succeeds; what the command takes counts after three times that.
# Most of a run is waiting, and what waits must leave the processors to the others: a turn starts no
# process of its own, and what is mostly waited for (says, is_gone) starts none either. A command that does
# is asked again after four times what it took, a fifth of a second at the most.
await() {
	local i never began turns pause end=$((SECONDS + 3 * $1 * e2e_patience + 5))
	for ((i = 0; i < $1 * 50 * e2e_patience && SECONDS < end; i += turns)); do
		began=${EPOCHREALTIME/[.,]/}
		"${@:2}" && return 0
		turns=$(((${EPOCHREALTIME/[.,]/} - began) * 4 / 20000 + 1))
		turns=$((turns < 10 ? turns : 10))
		printf -v pause '0.%02d' $((turns * 2))
		# open no longer than a turn: what COMMAND starts must not inherit it
		exec {never}<>"$e2e_never"
		read -rt "$pause" -u "$never"
		exec {never}>&-
	done
	return 1
}
# says FILE PATTERN: looks again only when the file has changed
says() {
	local text=()
	# a log that was emptied under its writer begins with NULs
	{ mapfile -d '' text <"$1"; } 2>/dev/null
	[ "${e2e_unsaid[$1 $2]-}" = "-${text[*]}" ] && return 1
	grep -q -- "$2" "$1" 2>/dev/null && return 0
	e2e_unsaid[$1 $2]=-${text[*]}
	return 1
}
# a process whose main thread has ended is a zombie too, and lives as long as its other threads
is_gone() {
	local line=
	[ -d "/proc/$1" ] || return 0
	set -- "$1" /proc/"$1"/task/*
	[ $# -le 2 ] && { IFS= read -rd '' line <"/proc/$1/stat"; } 2>/dev/null
	[[ ${line##*)} == ' '[ZX]' '* ]]
}

# start COMMAND...: a workload; its pid in $target, its output in $work/target.out, ready to work
start() {
	local ready=${READY:-^READY}
	e2e_step_cnt=0
	rm -f "$work/target.in" "$work/target.out" "$work/target.err"
	mkfifo "$work/target.in"
	: >"$work/target.out"
	"$@" <"$work/target.in" >"$work/target.out" 2>"$work/target.err" &
	owned target
	exec {target_in}>"$work/target.in"
	await 20 says "$work/target.out" "$ready"
}
# in a process of its own: the target may be gone, and a SIGPIPE must not end the test
tell() { (echo "${1:-go}" >&"$target_in") 2>/dev/null; }
is_done_or_gone() { is_done || is_gone "$target"; }
is_done() { says "$work/target.out" '^DONE'; }
# step LINE: one step of a target that answers each with a line "DONE ..."
step() {
	e2e_step_cnt=$((e2e_step_cnt + 1))
	tell "$1"
	await 60 did_step || not_ok "step $1" "not done" "$work/target.out" "$work/target.err"
}
did_step() {
	local line cnt=0
	while IFS= read -r line; do [[ $line == DONE* ]] && cnt=$((cnt + 1)); done <"$work/target.out"
	[ $cnt = "$e2e_step_cnt" ]
}
# run_target: it does its work
run_target() {
	tell go
	await "${1:-60}" is_done_or_gone
	is_done
}
# of_pid PID FILE: what one process says in the output that a program shares with its children
of_pid() { awk -v pid="$1" '$1 == "PID" { on = $2 == pid } $1 == "END" { on = 0 } on' "$2"; }
# finish_target: it ends; status in $target_status
finish_target() {
	tell end
	exec {target_in}>&-
	await 20 is_gone "$target" || kill -9 "$target" 2>/dev/null
	wait "$target" 2>/dev/null
	target_status=$?
}
kill_target() {
	kill -9 "$target" 2>/dev/null
	wait "$target" 2>/dev/null
	exec {target_in}>&-
}

# run_program COMMAND...: a program that lives until it is killed; its pid in $pid
become() { [ "$(readlink "/proc/$1/exe")" != "$(realpath "$BASH")" ]; }
run_program() {
	"$@" >/dev/null 2>&1 </dev/null &
	pid=$!
	disown "$pid" # no word about its end
	e2e_pids="$e2e_pids $pid"
	await 2 become "$pid"
}

# footprint PID: what a reader of the process could change: faults, resident memory, page tables, swap
footprint() {
	awk '{ sub(/.*\) /, ""); print "minflt", $8, "majflt", $10 }' "/proc/$1/stat"
	grep -E '^(RssAnon|RssFile|RssShmem|VmPTE|VmSwap)' "/proc/$1/status"
	awk '/^(Shared_Dirty|Private_Dirty)/ { sum[$1] += $2 } END { for (name in sum) print name, sum[name] }' "/proc/$1/smaps" | sort
}

# attach ARGS...: a recording of $target that has begun; its pid in $recorder. Without a limit of the
# overhead, unless ARGS say so: workloads allocate as fast as they can, and nothing must be given up.
attach() {
	record_start -p "$target" "$@"
}
record_start() {
	rm -f "$work/p.pb.gz"
	: >"$work/heaptap.err"
	"$heaptap" record --max-overhead off --force -o "$work/p.pb.gz" "$@" >"$work/heaptap.out" 2>"$work/heaptap.err" </dev/null &
	owned recorder
	await 60 record_began
}
# rows_are_read: the first reading of what is resident, which another process does, is over and taken. It was begun before the
# recording said that it has begun
rows_are_read() {
	await 30 has_no_reader || not_ok "the first reading by row" "is not over" "$work/heaptap.err"
}
has_no_reader() {
	local file pids pid name
	for file in /proc/"$recorder"/task/*/children; do
		{ read -r pids <"$file"; } 2>/dev/null
		for pid in $pids; do
			{ read -r name <"/proc/$pid/comm"; } 2>/dev/null && [ "$name" = "${heaptap##*/}" ] && return 1
		done
	done
	return 0
}
record_began() {
	says "$work/heaptap.err" '^heaptap: recording' || ! kill -0 "$recorder" 2>/dev/null
}
# stop_recorder: ends the recording; status in $record_status
stop_recorder() {
	kill -INT "$recorder" 2>/dev/null
	wait_recorder "${1:-30}"
}
wait_recorder() {
	if await "${1:-60}" is_gone "$recorder"; then
		wait "$recorder"
		record_status=$?
	else
		kill -9 "$recorder"
		wait "$recorder" 2>/dev/null
		record_status=timeout
	fi
}
# work_recorded [NAME]: what is attached to does its work, then both end; with a NAME it fails where the work is not done
work_recorded() {
	run_target || [ $# = 0 ] || not_ok "$1" "the target did not finish" "$work/target.err" "$work/target.out"
	stop_recorder
	finish_target
}
# record_work ARGS...: the same from attaching on
record_work() {
	attach "$@"
	work_recorded
}
# launch ARGS... -- COMMAND...: recorded from its first instruction to its end
launch() {
	rm -f "$work/p.pb.gz"
	E2E_NOWAIT=1 timeout -s INT -k 10 "${LIMIT:-90}" "$heaptap" record --max-overhead off --force \
		-o "$work/p.pb.gz" "$@" \
		>"$work/target.out" 2>"$work/heaptap.err" </dev/null
	record_status=$?
}
ledger() { "$compare" ledger "$work/p.pb.gz" "$@"; }

# same NAME [COMPARE ARGS...]: the profile holds exactly what the workload says
same() {
	local name=$1
	shift
	if [ "$record_status" != 0 ]; then
		not_ok "$name" "heaptap's exit status is $record_status" "$work/heaptap.err"
	elif [ "${target_status:-0}" != 0 ]; then
		not_ok "$name" "the target's exit status is $target_status" "$work/target.err" "$work/target.out"
	elif ! "$compare" exact "$work/p.pb.gz" "$work/target.out" "$@" >"$work/differences"; then
		not_ok "$name" "$(grep -c . "$work/differences") differences" "$work/differences" \
			"$work/heaptap.err"
	else
		ok "$name"
	fi
}
# no_losses NAME: nothing in the ledger that must be 0 for an exact profile
no_losses() {
	local name=$1 i n bad= counters=(live_full totals_full stacks_full stack_collisions contexts_full scratch_busy
		pending_full pending_lost events_lost missed_frees read_faults)
	n=$(ledger "${counters[@]}") || bad=" no counter after: ${n//$'\n'/ }"
	n=($n)
	for i in "${!counters[@]}"; do
		[ "${n[i]:-0}" = 0 ] || bad="$bad ${counters[i]}=${n[i]}"
	done
	[ -z "$bad" ] && ok "$name" || not_ok "$name" "the ledger has$bad"
}

# exact NAME [HEAPTAP ARGS...] -- COMMAND...: attached to, driven, recorded with --rate 1 and
# compared to the byte, cumulative columns too (E2E_COMPARE replaces --alloc)
exact() {
	local name=$1 args=()
	shift
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	if ! start "$@"; then
		not_ok "$name" "the target did not start" "$work/target.err" "$work/target.out"
		kill_target
		return 1
	fi
	attach --rate 1 "${args[@]}"
	work_recorded "$name"
	same "$name" ${E2E_COMPARE---alloc}
}
# lossless NAME ...: exact, and nothing was lost
lossless() {
	exact "$@"
	no_losses "$1: no losses"
}
# exact_launched NAME [HEAPTAP ARGS...] -- COMMAND...: the same for a program that heaptap starts
exact_launched() {
	local name=$1
	shift
	launch --rate 1 "$@"
	target_status=0
	same "$name" ${E2E_COMPARE---alloc}
}

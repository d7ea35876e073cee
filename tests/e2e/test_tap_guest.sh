#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap is never a harm: in and out of a program that notices all that is done to it, by record and by serve, when it
# gets no processor, when heaptap and its guardian are killed.
# E2E_TAPS=N: so many times in and out, E2E_TAP_TOGGLES=N: by serve, E2E_TAP_KILLS=N: so many times killed, E2E_TAP_STOPS=N:
# in the moment in which its threads are stopped.
# timeout: 3600
. "$(dirname "$0")/lib.sh"
e2e_init tap_guest
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 || skip_all "python3 is not installed"
build_c busy && build_c guest -lpthread || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/tap_lib.sh"

is_alive() { kill -0 "$target" 2>/dev/null && ! says "$work/target.out" '^BAD'; }
# leaves_alone NAME: the guest has noticed nothing, and ends as it should
leaves_alone() {
	if is_alive; then
		exec {target_in}>&-
		await 10 is_gone "$target" || kill -9 "$target"
		wait "$target"
		target_status=$?
		[ $target_status = 7 ] && ok "$1: the program noticed nothing" || not_ok "$1" "its exit status is $target_status" "$work/target.out" "$work/target.err"
	else
		not_ok "$1" "the program is dead, or complains" "$work/target.out" "$work/target.err"
		kill_target
	fi
}

if have curl; then
	. "$e2e_dir/serve_lib.sh"
	sharing=own
	top=$work
	# many times, of one with 8 threads that check every block
	start $own "$bin/guest" 8
	serve --listen 127.0.0.1:0 -p "$target" --tap '^guest$' --rate 4096 --max-overhead off
	await 20 says "$top/serve.err" "PID $target is tapped" || not_ok "in and out by serve" "it is not tapped" "$top/serve.err"
	toggled=$(python3 "$e2e_dir/tap_toggles.py" "$target" "$server" "${E2E_TAP_TOGGLES:-16}" 2>"$work/toggles") &&
		ok "in and out by serve: $toggled" || not_ok "in and out by serve" "it is not" "$work/toggles" "$top/serve.err"
	end_server "in and out by serve"
	same_text "in and out by serve"
	leaves_alone "in and out by serve"
	# what cannot be put in now, because the process gets no processor, is tried again
	start taskset -c 0 chrt -i 0 $own "$bin/guest" 2
	serve --listen 127.0.0.1:0 -p "$target" --tap '^guest$' --max-overhead off
	await 60 says "$top/serve.err" "PID $target is tapped" || not_ok "tried again" "it is not tapped" "$top/serve.err"
	kill -USR1 "$server"
	await 10 is_same_text || not_ok "tried again" "it is not out" "$top/serve.err"
	taskset -c 0 sh -c 'while :; do :; done' &
	sender=$!
	e2e_pids="$e2e_pids $sender"
	sleep 1
	kill -USR2 "$server"
	refused() { says "$top/serve.err" 'cannot change \(some\|the\) probes: '; }
	await 10 eval 'refused || ! is_same_text' && refused && failed=1 || failed=
	kill "$sender"
	await 20 eval '! is_same_text' && await 10 says "$top/serve.err" "PID $target: the probes are changed now" &&
		ok "tried again: it is in" || { [ -z "$failed" ] && skip "tried again" "it was in at once"; } ||
		not_ok "tried again" "it is not in" "$top/serve.err"
	end_server "tried again"
	same_text "tried again"
	leaves_alone "tried again"
fi

# A program that notices: blocks, EINTR, children, threads, signals. In and out, with every block and with few; meanwhile it
# is sent signals that it ignores, which must end no call of its.
start $own "$bin/guest" 4
while kill -WINCH "$target" && kill -URG "$target"; do :; done 2>/dev/null &
sender=$!
e2e_pids="$e2e_pids $sender"
late=0
for ((i = 0; i < ${E2E_TAPS:-4}; i++)); do
	rate=$((i % 2 ? 4096 : 65536))
	"$heaptap" record --tap=only --rate $rate --max-overhead off -p "$target" -d 0.2s --force -n 0 -o "$work/p.pb.gz" \
		>"$work/heaptap.out" 2>"$work/heaptap.err" || {
		says "$work/heaptap.err" 'it did not stop within' && late=$((late + 1)) || not_ok "in and out" "time $i" "$work/heaptap.err"
	}
	is_alive || break
done
kill "$sender"
[ $late -le $((i / 4)) ] && ok "in and out: it is in" || not_ok "in and out" "threads did not stop $late of $i times"
same_text "in and out $i times"
leaves_alone "in and out $i times"
# One that gets no processor does not stop in time: it is let alone, and its calls are not ended either.
start taskset -c 0 chrt -i 0 $own "$bin/guest" 3
taskset -c 0 sh -c 'while :; do :; done' &
sender=$!
e2e_pids="$e2e_pids $sender"
for ((i = 0; i < $(is_whole && echo 4 || echo 2); i++)); do
	"$heaptap" record --tap -p "$target" -d 0.2s --force -n 0 -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err" ||
		not_ok "without a processor" "time $i" "$work/heaptap.err"
	is_alive || break
done
kill "$sender"
# one that is tapped when it gets none: the guardian tries until it is out
record_start --tap=only -p "$target"
taskset -c 0 sh -c 'while :; do :; done' &
sender=$!
e2e_pids="$e2e_pids $sender"
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
sleep 3
kill "$sender"
same_text "without a processor"
leaves_alone "without a processor"
E2E_REST_US=2000 start $own "$bin/guest" 2 seccomp
"$heaptap" record --tap=only -p "$target" -d 1s --force -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err"
status=$?
[ $status = 1 ] && says "$work/heaptap.err" 'its seccomp filter does not allow the system calls' && ok "a filter that kills: refused" ||
	not_ok "a filter that kills" "status $status" "$work/heaptap.err"
leaves_alone "a filter that kills"

# Killed at any moment: the guardian takes it out; if that is killed as well, the next one does. What it is in the midst of
# when threads are stopped is shown above: here it rests, and is in and out more often.
E2E_REST_US=2000 start $own "$bin/guest" 3
for ((i = 0; i < ${E2E_TAP_KILLS:-3}; i++)); do
	"$heaptap" record --tap -p "$target" --force -n 0 -d 20s -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err" &
	recorder=$!
	e2e_pids="$e2e_pids $recorder"
	sleep "$((RANDOM % 2)).$(printf %03d $((RANDOM % 1000)))"
	if [ $((i % 2)) = 1 ]; then
		kill -9 $(pgrep -P "$recorder" -x heaptap-guard) "$recorder" 2>/dev/null
	else
		kill -9 "$recorder"
	fi
	wait "$recorder" 2>/dev/null
	if [ $((i % 2)) = 0 ]; then
		await 10 is_same_text || not_ok "killed" "the text differs" "$work/differences"
	elif ! "$heaptap" doctor --remove-tap -p "$target" >"$work/remove.out" 2>"$work/remove.err"; then
		not_ok "killed with its guardian" "what it left stays" "$work/remove.err"
	fi
	is_alive || break
done
stopped=$("$e2e_dir/tap_kill.py" "$heaptap" "$target" "$work/p.pb.gz" "${E2E_TAP_STOPS:-2}" 2>"$work/stopped.err") &&
	ok "killed, both, while it is stopped: $stopped" || not_ok "killed while it is stopped" "${stopped:-it fails}" "$work/stopped.err" "$work/target.out"
"$heaptap" doctor --remove-tap -p "$target" >"$work/remove.out" 2>"$work/remove.err" ||
	not_ok "killed while it is stopped" "what it left stays" "$work/remove.err"
# The kernel leaves a probe in when who takes it out is killed meanwhile: here in the tap's own memory, where nothing leads
# any more. The next recording by the tap, which is looked at below, takes it out.
is_same_text /memfd:heaptap && ok "killed while it is stopped: the text of the allocator is what its file holds" ||
	not_ok "killed while it is stopped: the text" "differs" "$work/differences"
record_start --tap=only -p "$target"
kill -9 $(pgrep -P "$recorder" -x heaptap-guard)
stop_recorder
same_text "its guardian killed"
record_start --tap=only -p "$target"
# It forks all the time: its children have nothing that is to be taken out of them by way of a probe.
probed=
for ((i = 0; i < $(is_whole && echo 20 || echo 8); i++)); do
	is_same_text
	grep 'libc.*: cc' "$work/differences" && probed=1
done
[ -z "$probed" ] && ok "its children: no probe is put into what is tapped" || not_ok "its children" "there are probes beside the tap"
"$heaptap" doctor --remove-tap -p "$target" >"$work/remove.out" 2>"$work/remove.err"
status=$?
[ $status = 1 ] && says "$work/remove.err" 'it is tapped by another heaptap' && ok "doctor --remove-tap: not of one that is there" ||
	not_ok "doctor --remove-tap: of one that is there" "status $status" "$work/remove.out" "$work/remove.err"
kill -9 $(pgrep -P "$recorder" -x heaptap-guard) "$recorder"
wait "$recorder" 2>/dev/null
"$heaptap" doctor --remove-tap -p "$target" >"$work/remove.out" 2>"$work/remove.err" && says "$work/remove.out" 'is removed' &&
	ok "doctor --remove-tap" || not_ok "doctor --remove-tap" "it says so" "$work/remove.out" "$work/remove.err"
same_text "doctor --remove-tap"
"$heaptap" record --tap=only -p "$target" --force -n 0 -d 1s -o "$work/p.pb.gz" >"$work/heaptap.out" 2>"$work/heaptap.err" ||
	not_ok "after kills" "it cannot be tapped" "$work/heaptap.err"
same_text "killed many times"
leaves_alone "killed many times"
e2e_end

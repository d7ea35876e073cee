#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap does no harm in the long run: a dozen odd programs of user 65534 under one server, which is begun again and again. It,
# its guardian, both, or the visitors of the guardian are killed at random moments, or it is told to take the tap out and in.
#
# Meanwhile the programs live and find their own results right, /healthz is answered within 2 s, SIGTERM ends the server
# within 3 s: they are forty threads that compute, on all processors. (test_tap_harm.sh and test_tap_hostile.sh hold it to 1 s
# and 2 s, one program after the other.) 15 s after the end
# nothing of heaptap is left, and their text is that of their files.
# E2E_SECONDS=N: how long (20; `make torture`: 3600). timeout: 5400
. "$(dirname "$0")/lib.sh"
e2e_init tap_torture
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 && have curl && have setpriv || skip_all "python3, curl or setpriv is not installed"
build_c busy && build_c tap_calls && build_c tap_signals && build_c tap_family && build_c tap_own &&
	build_c tap_bare -static -nostdlib -fno-stack-protector || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/harm_lib.sh"
answer_ms=2000 end_ms=3000
may_end=1 # its guardian may have been killed
seconds=${E2E_SECONDS:-20}
export E2E_OF=$work E2E_LIFE_SECONDS=$((seconds + 300))
top=$work
: >"$work/shown"

# NAME [ARGS...]: their names are looked for, so the program has that
odd() {
	local name=$1 ready=$2 program=$3
	shift 3
	mkdir -p "$top/bin-$name"
	cp --remove-destination "$bin/$program" "$top/bin-$name/$name"
	chmod 755 "$top" "$top/bin-$name" "$top/bin-$name/$name"
	READY=$ready begin "$name" nice -n 10 "${nobody[@]}" $own "$top/bin-$name/$name" "$@"
	names+=("$name")
}
names=()
odd tort_plain ^READY tap_family plain
odd tort_threads ^READY tap_family threads 6
odd tort_births ^READY tap_family births 10
odd tort_exec ^READY tap_family exec 2
odd tort_shared ^READY tap_family shared-memory
odd tort_vfork ^READY tap_family vfork-again
odd tort_forks ^READY tap_family fork-child
odd tort_blocked ^READY tap_signals blocked
odd tort_stack ^READY tap_signals stack
odd tort_steps ^READY tap_signals steps
E2E_REST_MS=10 odd tort_dispatch ^WATCHED tap_calls dispatch
odd tort_filter ^WATCHED tap_calls kill
odd tort_allow ^WATCHED tap_calls allow
odd tort_errno ^WATCHED tap_calls errno
odd tort_own ^READY tap_own
odd tort_bare ^READY tap_bare
for name in tort_vfork tort_forks; do tell_to $name do; done

is_right() { ! is_gone "${pid_of[$1]}" && ! says "$top/$1/target.out" '^BAD'; }
# Each is reported once.
look_at_all() {
	local name rest=()
	for name in "${names[@]}"; do
		if is_right "$name"; then
			rest+=("$name")
		else
			wait "${pid_of[$name]}" 2>/dev/null
			fault "$name is harmed: status $?" "$top/$name/target.out" "$top/$name/target.err"
		fi
	done
	names=("${rest[@]}")
}
# where each process of heaptap waits
waits() { where $(ours) | sort | uniq -c | tr '\n' ';'; }
# when a fault was, and beside how much
moment() { echo "$SECONDS s, load $(cut -d ' ' -f 1 /proc/loadavg)"; }
torture_serve() {
	: >"$top/serve.err"
	"$heaptap" serve --listen 127.0.0.1:0 --comm '^tort_' --tap '^tort_' --max-overhead off >"$top/serve.out" 2>"$top/serve.err" </dev/null &
	server=$!
	e2e_pids="$e2e_pids $server"
	await 20 serves || { waits | grep -qE "$probe_locks" && await 40 serves; }
	url=$(sed -nE 's,^heaptap: serving .* on (http://[^/]*)/.*,\1,p' "$top/serve.err")
	[ -n "$url" ] || fault "at $(moment): serve does not begin within 20 s: $(waits)" "$top/serve.err"
}
# The kernel takes the probes of a dead process out one by one, and others wait for its lock: with this load that took up to
# 52 s. Whoever stands there is given a minute. Nothing else is: it must be the kernel, and of a killed process it must be its exit.
probe_locks='perf_trace_destroy|perf_trace_init|perf_trace_event_unreg|__synchronize_srcu|uprobe_unregister|perf_event_release'
slowest_exit=
# Does the kernel take out what this process held? Each of its threads is in its exit, PF_EXITING (4), and one stands there.
is_dissolved() {
	local stat flags
	for stat in "/proc/$1/task/"*/stat; do
		flags=$(sed -E 's/.*\) //' "$stat" 2>/dev/null | cut -d ' ' -f 7)
		[ $((${flags:-4} & 4)) != 0 ] || return 1
	done
	grep -qsE "$probe_locks" "/proc/$1/task/"*/stack
}
# dies WHOM PID SECONDS: it has been killed. One that is dying accepts no connection, so it is waited for.
dies() {
	local there begin=$SECONDS limit=$3
	await "$limit" is_gone "$2" && return
	there="$(where "$2"); $(waits)" # one without memory has no environment to be found by
	await 2 is_dissolved "$2" && limit=60
	await $((60 - (SECONDS - begin))) is_gone "$2"
	local took=$((SECONDS - begin))
	[ $limit = 60 ] && [ $took -le 60 ] || fault "at $(moment): killed, $1 is not gone after $3 s, but after $took: $there" "$top/serve.err"
	[ $took -le ${slowest_exit:-0} ] || slowest_exit=$took
}
# A server without its guardian ends by itself. It learns of that when the kernel has taken out what the guardian held.
kill_some() {
	local guardian
	guardian=$(pgrep -P "$server" -x heaptap-guard)
	case $((RANDOM % 6)) in
	0) kill -9 "$server" && dies "the server" "$server" 15 ;;
	1) [ -z "$guardian" ] || { kill -9 $guardian && dies "the guardian" $guardian 15 && dies "the server" "$server" 4; } ;;
	2) kill -9 $guardian "$server" && dies "the server" "$server" 15 ;;
	3) kill -9 $(pgrep -P "${guardian:-0}") ;;
	4) kill -USR1 "$server" && sleep 0.3 && kill -USR2 "$server" ;;
	5) kill -STOP "$server" && sleep 0.3 && kill -CONT "$server" ;;
	esac 2>/dev/null
}
end=$((SECONDS + seconds)) rounds=0
while [ $SECONDS -lt $end ] && [ ${#faults[@]} -lt 10 ]; do
	torture_serve
	for ((i = RANDOM % 4; i >= 0 && SECONDS < end; i--)); do
		sleep "0.$((RANDOM % 10))"
		is_gone "$server" || is_healthy
		kill_some
		is_gone "$server" && break
	done
	if is_gone "$server"; then
		wait "$server" 2>/dev/null
		status=$?
		case $status in 132 | 134 | 135 | 136 | 139) fault "the server crashed: status $status" "$top/serve.err" ;; esac
		server=
	else
		sleep 0.2
		is_gone "$server" || end_serve
	fi
	look_at_all
	rounds=$((rounds + 1))
done
# the last one is ended as it should be, and takes out what others have left
torture_serve
sleep 2
is_healthy
end_serve
look_at_all
[ ${#faults[@]} = 0 ] && ok "$rounds times: ${#names[@]} programs live, the server answers (after at most $slowest_ms ms) and ends${slowest_exit:+; the kernel took up to $slowest_exit s to take probes out}" ||
	{ not_ok "$rounds times" "$(printf '%s; ' "${faults[@]}")"; cat "$work/shown"; }

await 15 has_none && ok "nothing of heaptap is left" ||
	{ not_ok "what is left of heaptap" "$(waits)"; end_ours; }
faults=() left=
for name in "${names[@]}"; do
	target=${pid_of[$name]}
	is_same_text && continue
	left="$left $name"
	timeout 5 "$heaptap" doctor --remove-tap -p "$target" >"$work/remove.out" 2>&1
	await 5 is_same_text || fault "$name: the text differs" "$work/differences" "$work/remove.out"
done
[ ${#faults[@]} = 0 ] && ok "their text is that of their files${left:+, after doctor --remove-tap:$left}" ||
	{ not_ok "their text" "$(printf '%s; ' "${faults[@]}")"; cat "$work/shown"; }

faults=()
# each has inherited the inputs of those before it, so all are closed first
for name in "${!in_of[@]}"; do
	target_in=${in_of[$name]}
	exec {target_in}>&-
done
for name in "${names[@]}"; do
	target=${pid_of[$name]}
	await 5 is_gone "$target" || { fault "$name hangs: $(where "$target")"; kill -9 "$target"; }
	wait "$target" 2>/dev/null
	status=$?
	[ $status = 7 ] || fault "$name: status $status"
done
target=
[ ${#faults[@]} = 0 ] && ok "all end as they should" || not_ok "the end of programs" "$(printf '%s; ' "${faults[@]}")"
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Targets that do what a profiler would rather not meet, and a profiler that is killed, E2E_HOSTILE times (5)
# of each kind.
. "$(dirname "$0")/lib.sh"
e2e_init hostile

build_c hostile && build_c family && OUT=hostile-own build_c hostile -DOWN_ALLOCATOR ||
	{ not_ok build "workloads"; e2e_end; }
times=${E2E_HOSTILE:-5}

# --- what threads, signals and exec do ---
threads_signals_exec() {
	for mode in $e2e_modes; do
		for what in longjmp handler altstack thread-death; do
			E2E_COMPARE= exact "$what, $mode" --attach-mode=$mode -- env E2E_MODE=$what "$bin/hostile-own"
			[ "$(ledger pending_full)" = 0 ] || not_ok "$what, $mode: no losses" "pending_full $(ledger pending_full)"
		done
	done
	READY='^READY' exact "main thread gone" -- env E2E_MODE=main-gone "$bin/hostile"
	for mode in $e2e_modes; do
		exact "seccomp filter, $mode" --attach-mode=$mode -- env E2E_MODE=seccomp "$bin/hostile"
	done

	E2E_COMPARE= exact "exec storm" -- env E2E_MODE=exec-storm "$bin/hostile"
}

# --- files ---
files() {
	cp "$bin/family" "$work/family"
	start "$work/family"
	rm "$work/family"
	cp /bin/true "$work/family"
	record_work --rate 1
	same "deleted and replaced binary" --alloc

	# a container: other root, own libc, own pid numbers
	root=$work/root
	mkdir -p "$root"
	for file in "$bin/family" $(ldd "$bin/family" | grep -o '/[^ ]*'); do
		mkdir -p "$root/$(dirname "$file")"
		cp -L "$file" "$root/$file"
	done
	if have unshare && unshare -m -p -f true 2>/dev/null; then
		start unshare -m -p -f --kill-child chroot "$root" "$bin/family"
		outer=$target
		target=$(pgrep -P "$outer" | head -n 1)
		attach --rate 1
		run_target
		stop_recorder
		target=$outer
		finish_target
		same "container with its own libc" --alloc
	else
		skip "container with its own libc" "no unshare"
	fi

	cp "$bin/family" "$work/family-setuid"
	chown 65534 "$work/family-setuid"
	chmod 4755 "$work/family-setuid"
	start "$work/family-setuid"
	record_work --rate 1
	sed -i 's/ family / family-setuid /' "$work/target.out"
	same "setuid program" --alloc

	if have go && build_go idle; then
		start "$bin/idle"
		attach --rate 1
		await 30 is_done
		stop_recorder
		finish_target
		[ "$target_status$record_status" = 01 ] && grep -q "no known allocator.*looked for.*pprof" "$work/heaptap.err" &&
			ok "Go program: lives, and it is said that no allocator was found, and what to use" ||
			not_ok "Go program" "status $record_status, target $target_status" "$work/heaptap.err"
	else
		skip "Go program" "go is not installed"
	fi
}

# --- targets that end ---
targets_that_end() {
	bad=0
	for i in $(seq "$times"); do
		sh -c 'sleep 0.0$0; exec true' $((i % 10)) &
		pid=$!
		timeout -k 5 30 "$heaptap" record --force -n 0 -d 5 --rate 1 -o "$work/p.pb.gz" -p $pid >/dev/null 2>"$work/heaptap.err"
		status=$?
		wait $pid
		# it was too late and says so, or it has a profile
		{ [ $status = 0 ] && [ -s "$work/p.pb.gz" ]; } || { [ $status = 1 ] && grep -qE "no process|zombie|ended|gone" "$work/heaptap.err"; } ||
			{ bad=$((bad + 1)); cp "$work/heaptap.err" "$work/bad.err"; echo "# status $status"; }
		rm -f "$work/p.pb.gz"
	done
	[ $bad = 0 ] && ok "targets that exit at once" || not_ok "targets that exit at once" "$bad of $times" "$work/bad.err"
	bad=0
	for i in $(seq "$times"); do
		E2E_MODE=pace start "$bin/hostile"
		"$heaptap" record --force -n 0 -d 5 --rate 1 -o "$work/p.pb.gz" -p "$target" >/dev/null 2>"$work/heaptap.err" &
		owned recorder
		sleep "0.$(printf %03d $((RANDOM % 400)))"
		kill_target
		wait_recorder 20
		{ [ "$record_status" = 0 ] && [ -s "$work/p.pb.gz" ]; } ||
			{ [ "$record_status" = 1 ] && grep -qE "no process|zombie|ended|gone" "$work/heaptap.err"; } ||
			{ bad=$((bad + 1)); cp "$work/heaptap.err" "$work/bad.err"; echo "# status $record_status"; }
		rm -f "$work/p.pb.gz"
	done
	[ $bad = 0 ] && ok "targets killed while being attached to" || not_ok "targets killed while being attached to" "$bad of $times" "$work/bad.err"
}

beside threads_signals_exec
beside files
beside targets_that_end
together

# --- heaptap ends, in order or not: nothing stays behind ---
measure() {
	local n
	n=$(grep -c ^COST "$work/target.out")
	tell measure
	await 10 more_costs "$n"
	cost=$(awk '/^COST/ { c = $2 } END { print c }' "$work/target.out")
}
more_costs() { [ "$(grep -c ^COST "$work/target.out")" -gt "$1" ]; }
# measure_again: a probe that was left costs every time, another program on the machine once
measure_again() {
	measure
	is "$cost < 2 * $base + 5" || measure
}
is() { awk "BEGIN { exit !($1) }"; }
for mode in $e2e_modes; do
	E2E_MODE=pace start "$bin/hostile"
	measure
	base=$cost
	attach --rate 1 --attach-mode=$mode
	measure
	probed=$cost
	stop_recorder
	measure_again
	python3 -IS "$e2e_dir/same_text.py" "$target" >"$work/differences" &&
		ok "$mode: after the end the target's text is what its files hold" ||
		not_ok "$mode: the target's text after the end" "differs" "$work/differences"
	is "$cost < 2 * $base + 5" && is "$probed > $cost" &&
		ok "$mode: after the end its speed is back: $base, $probed, $cost ns" ||
		not_ok "$mode: speed after the end" "$base before, $probed recorded, $cost ns after"
	wrong=0 slow=0
	for i in $(seq "$times"); do
		"$heaptap" record --force -n 0 --rate 1 --attach-mode=$mode -o "$work/p.pb.gz" -p "$target" >/dev/null 2>&1 </dev/null &
		owned recorder
		sleep "0.$(printf %03d $((RANDOM % 700)))"
		guard=$(pgrep -P "$recorder" -x heaptap-guard)
		kill -9 "$recorder"
		wait "$recorder" 2>/dev/null
		# What is promised; perf events go one after the other, and each waits for the kernel. When its
		# guardian has ended there is nothing more to come.
		[ "$mode" = perf ] && seconds=3 || seconds=1
		[ -n "$guard" ] && await $seconds is_gone "$guard" || sleep $seconds
		python3 -IS "$e2e_dir/same_text.py" "$target" >"$work/differences" || { wrong=$((wrong + 1)); cp "$work/differences" "$work/wrong"; }
		measure_again
		is "$cost < 2 * $base + 5" || { slow=$((slow + 1)); echo "# $cost ns after kill $i"; }
	done
	[ $wrong = 0 ] && ok "$mode: killed $times times, the text is what its files hold" ||
		not_ok "$mode: text after kill -9" "$wrong times different" "$work/wrong"
	[ $slow = 0 ] && ok "$mode: killed $times times, its speed is back" ||
		not_ok "$mode: speed after kill -9" "$slow times slower than 2 * $base + 5 ns"
	finish_target
	[ "$target_status" = 0 ] && ok "$mode: the target lived" || not_ok "$mode: the target lived" "status $target_status"
done
e2e_end

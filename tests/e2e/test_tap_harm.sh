#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tap does no harm to programs in which something is odd, and what it says of them is right. Cases that were found by trial;
# test_tap_hostile.sh has their siblings. Beside them: test_tap_eintr.sh.
#
# After each: the target lives and its own results are right, its text is that of its files, numbers are within a tenth of
# its own account, serve answers /healthz within 1 s and is ended by SIGTERM within 2 s, and nothing of heaptap is left.
# E2E_TRIES=N: each N times (TESTS_WHOLE=1: 20). E2E_ONLY=PATTERN: these only. timeout: 3600
. "$(dirname "$0")/lib.sh"
e2e_init tap_harm
[ "$(uname -m)" = x86_64 ] || skip_all "it is for x86-64"
have python3 && have curl && have objdump || skip_all "python3, curl or objdump is not installed"
build_c busy && build_c mute_fuse && build_c tap_memory && build_c tap_calls && build_c tap_signals && build_c tap_family &&
	build_c tap_two -ldl && build_c tap_huge && build_c tap_probe && build_cxx tap_new &&
	build_c tap_bare -static -nostdlib -fno-stack-protector && build_c tap_own && OUT=tap_own_static build_c tap_own -static &&
	OUT=tap_give.so build_c tap_give -shared -fPIC && OUT=tap_wrap.so build_c tap_wrap -shared -fPIC ||
	{ not_ok build "workloads"; e2e_end; }
. "$e2e_dir/harm_lib.sh"
family=$bin/tap_family

# A process that shares descriptors puts a file of root's in the place of one that heaptap has opened in the target.
swapped() {
	local before i why_cnt=0 file=$work/victim first=(chrt -f 1)
	head -c 100000 /dev/urandom >"$file"
	chmod 600 "$file"
	before=$(sha256sum <"$file")
	of_nobody tap_family
	"${first[@]}" true 2>/dev/null || first=() # beside a load it is seldom quick enough
	begin_target "${first[@]}" "${nobody[@]}" "$work/tap_family" swap "$file"
	for ((i = 0; i < 120 && (i < 6 || why_cnt == 0); i++)); do
		begin_record -d 0.1s
		have_record 8
		# late for another reason
		grep -q 'cannot be tapped: ' "$work/heaptap.err" && ! grep -q 'does not answer' "$work/heaptap.err" || continue
		grep -qE 'cannot be tapped: (its memory file|a system call|the process may not map)' "$work/heaptap.err" &&
			why_cnt=$((why_cnt + 1)) || fault "the reason is not said" "$work/heaptap.err"
	done
	[ $why_cnt -gt 0 ] && said="exchanged in $why_cnt of $i" || fault "no descriptor was exchanged in $i"
	[ "$before" = "$(sha256sum <"$file")" ] || fault "a file of root's is overwritten"
	ends_well
}
harm "a file of root's in the place of a descriptor" swapped

# It executes itself again and again: who holds its threads waits for that, and is waited for.
executes() {
	local i
	begin_target "$family" exec 3
	for ((i = 0; i < ${E2E_EXECS_TAPPED:-4} && ${#faults[@]} == 0; i++)); do
		begin_record -d 0.05s
		have_record 8 1 # a recording may begin just when it is between two programs
	done
	said="$i recordings"
	is_well && ends_itself || ends_well
	target=
}
harm "it executes itself every 10 ms" executes

# operator new: the handler is called as often as without the tap.
new_handler() { # MODE LIBRARY
	local alone
	begin_target env LD_PRELOAD="$2" "$bin/tap_new" "$1"
	ask do
	is_well || {
		faults=()
		said="it does not survive that alone"
		return
	}
	alone=$(awk '$1 == "CALLS" { print $2, $3 }' "$work/target.out")
	ends_itself
	begin_target env LD_PRELOAD="$2" "$bin/tap_new" "$1"
	begin_record --rate 1024
	ask do
	[ "$alone" = "$(awk '$1 == "CALLS" { print $2, $3 }' "$work/target.out")" ] ||
		fault "calls of the handler and failures are not $alone" "$work/target.out"
	ask go
	end_record
	within_tenth
	ends_well
}
for name in $(some 2 jemalloc tcmalloc_minimal mimalloc); do
	other=$(other_of $name)
	[ -n "$other" ] || { skip "a new handler, $name" "it is not installed"; continue; }
	for mode in throws none jumps frees; do
		harm "a new handler, $name, $mode" new_handler $mode "$other"
	done
done

# Another tool's probes on the first instruction, which puts the byte of the file back when it leaves.
probed() { # SECONDS
	begin_target env E2E_ALIGNED=1 "$family"
	begin_record -d 1.2s
	timeout 30 "$bin/tap_probe" "$target" "$e2e_own/libc.so.6" "$1" 0 $(offsets_of "$e2e_own/libc.so.6" posix_memalign memalign aligned_alloc) \
		2>"$work/probe.err" || fault "the other tool fails" "$work/probe.err"
	have_record 8
	ask at
	ends_well
}
harm "another tool's probes, inside" probed 0.4
harm "another tool's probes, across its end" probed 2

# A page that is not answered. Who reads it with the lock of the memory keeps those waiting who put probes into its libraries, and
# these every fork() of the machine, also those of this shell, until the page is answered.
muted() { # HOW
	local began took
	begin_fuse
	of_nobody tap_memory
	begin_target "${nobody[@]}" "$work/tap_memory" "$1" "$work/mnt/file"
	began=${EPOCHREALTIME/./}
	begin_serve
	await_tap
	if [ "$1" = text ]; then sleep 1; else # probes go in
		ask do
		# it is read and written then
		kill -USR1 "$server"
		sleep 0.3
	fi
	is_healthy
	sleep 0.3
	is_healthy
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	[ $took -le 15000 ] || fault "the machine's forks waited: $took ms for all this" "$work/serve.err"
	end_serve
	end_fuse_file
	if [ "$1" = text ]; then ends_itself; else ends_well /file; fi # its path is shorter once it is unmounted
	target=
}
harm "a page that is not answered over the tap's data" muted data
harm "a page that is not answered over the allocator" muted text
harm "a page that is not answered over the tap's code" muted code

# Another process is on its way from one program to the next for ever: its user's file system does not let go of a file.
between_programs() { # WHO
	local child
	begin_fuse speak
	of_nobody tap_family
	begin_target "${nobody[@]}" "$work/tap_family" exec-child "$work/mnt/file"
	tell_fuse "mute all"
	ask do
	if [ "$1" = record ]; then
		begin_record -d 0.3s
		have_record 8
		[ "$said" = tapped ] || fault "$said" "$work/heaptap.err"
	else
		begin_serve --comm no-such-name
		await_tap
		is_healthy
		end_serve
	fi
	read -r child _ <"/proc/$target/task/$target/children"
	timeout 0.2 cat "/proc/${child:-none}/stat" >/dev/null 2>&1 && fault "it does not execute"
	[ -n "$child" ] || fault "who executes is gone"
	end_fuse_file
	ends_well
}
for who in record serve; do harm "a process that executes a program for ever, $who" between_programs $who; done

# A frozen control group, as by docker pause.
frozen() { # VERSION WHEN
	local watcher
	cgroup_of "$1" || { said="there is no such control group"; return; }
	watch_cgroup
	begin_target "$family"
	echo "$target" >"$cgroup/cgroup.procs"
	[ "$2" = during ] || freeze
	begin_serve
	if [ "$2" = during ]; then
		await_tap
		freeze
	elif [ "$2" = thawed ]; then # it is tried again, and not given up
		sleep 4
		thaw
		await 15 says "$work/serve.err" "PID $target is tapped" || fault "it is not tapped later" "$work/serve.err"
	fi
	sleep 0.5
	is_healthy
	is_healthy
	end_serve
	thaw
	# what could not be taken out of the frozen one is taken out now, or by whoever is told to
	sleep 0.3
	await 3 is_same_text || "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err"
	ends_well
	kill -9 "$watcher"
	end_cgroup
}
for version in 1 2; do
	harm "frozen before, cgroup v$version" frozen $version before
	harm "frozen meanwhile, cgroup v$version" frozen $version during
	harm "frozen for 4 s, cgroup v$version" frozen $version thawed
done

# System calls that are dispatched, or watched.
watched() { READY=^WATCHED left_alone -- "$bin/tap_calls" "$1"; }
harm "syscall user dispatch" watched dispatch

# It begins under probes: a return probe ends in a system call, which its handler would get.
# In a C library that nobody else of this test records: whoever does gives its calls return probes.
dispatched_later() {
	local own="env LD_LIBRARY_PATH=$work/alone"
	cp -r "$e2e_own" "$work/alone"
	begin_target "$bin/tap_calls" dispatch-later
	BASE="--rate 1 --max-overhead off" begin_record
	ask do
	sleep 0.5
	is_well || fault "it is harmed" "$work/target.out"
	end_record
	"$heaptap" report --notes "$work/p.pb.gz" >"$work/report" 2>&1
	says "$work/report" 'handles its system calls itself' || fault "what is lost is not said" "$work/report"
	ends_well
}
harm "syscall user dispatch begins under probes" dispatched_later
harm "a filter that kills, without restart_syscall" watched kill
allowed() {
	watched allow
	[ "$said" = tapped ] || fault "it is not tapped" "$work/heaptap.err"
}
harm "a filter that allows what the tap needs" allowed
harm "a filter that kills, with restart_syscall" watched restart

# The first thread is in vfork() when the tap is to come out.
vfork_serve() {
	begin_target "$family" vfork-stays
	begin_serve
	await_tap
	ask do
	is_healthy
	end_serve
	sleep 0.2
	await 3 is_same_text || "$heaptap" doctor --remove-tap -p "$target" >/dev/null 2>"$work/remove.err"
	ends_well
}
vfork_record() {
	begin_target "$family" vfork-stays
	begin_record
	ask do
	end_record
	ends_well
}
harm "the first thread is in vfork, serve" vfork_serve
harm "the first thread is in vfork, record" vfork_record

# Registers that the compiler knows to be free, or not.
harm "an allocator in its own file" left_alone -- "$bin/tap_own"
harm "an allocator in its own file, static" left_alone -- "$bin/tap_own_static"
harm "no C library, no thread pointer" left_alone -- "$bin/tap_bare"

# Who else shares the memory, or calls a second allocator inside of the first.
slowly="env E2E_MS=700"
harm "numbers: no vfork" numbers go -- $slowly "$family"
harm "numbers: vfork once" numbers do --follow -- $slowly "$family" vfork-once
harm "numbers: vfork again and again" numbers do --follow -- $slowly "$family" vfork-again
harm "numbers: a preloaded wrapper" numbers go -- env LD_PRELOAD="$bin/tap_wrap.so" "$family"
harm "numbers: a second C library" numbers do -- "$bin/tap_two" "$bin/tap_give.so"

# A process in a PID namespace is tapped from outside; a second heaptap inside must see that.
namespaced() {
	local outer inner
	begin_target unshare -p -f --mount-proc --kill-child sh -c 'exec 3<&0; "$0" <&3 3<&- & wait $!' "$family"
	outer=$target
	target=$(pgrep -P "$(pgrep -P "$outer")" -x tap_family) || { fault "it is not found"; target=$outer; return; }
	inner=$(awk '$1 == "NSpid:" { print $NF }' "/proc/$target/status")
	begin_record --rate 1024
	timeout 10 nsenter -t "$target" -p -m "$heaptap" record --tap=only --rate 1024 --max-overhead off -p "$inner" -d 0.3s --force -n 0 \
		-o "$work/inner.pb.gz" >"$work/inner.out" 2>"$work/inner.err" </dev/null
	[ $? -le 1 ] || fault "the inner heaptap fails" "$work/inner.err"
	ask go
	end_record
	within_tenth
	said="$said; the inner one: $(tapped_or_not "$work/inner.err")"
	is_well || fault "the target is harmed"
	await 5 is_same_text || fault "the text differs" "$work/differences"
	target=$outer
	ends_itself
	target=
}
have nsenter && harm "numbers: a second heaptap in the PID namespace" namespaced

# Sums beyond 2^56 bytes.
huge() { # ARGS...
	local allocated text
	begin_target env LD_PRELOAD="$(other_of jemalloc)" "$bin/tap_huge"
	BASE="--max-overhead off $*" begin_record
	ask do
	end_record
	text=$("$heaptap" report -f json "$work/p.pb.gz" 2>/dev/null)
	[[ $text =~ '"total":{'[^}]*'"alloc_bytes":'([0-9]+) ]] && allocated=${BASH_REMATCH[1]} || allocated=0
	awk -v is="$allocated" '$1 == "ALLOCATED" { x = is / $2 } END { exit !(x > 0.5 && x < 2) }' "$work/target.out" ||
		fault "$allocated bytes are allocated, as it says" "$work/target.out"
	ends_well
}
if [ -n "$(other_of jemalloc)" ]; then
	harm "numbers: 2^56 bytes, by the tap" huge --tap
	harm "numbers: 2^56 bytes, by probes" huge
	harm "numbers: 2^56 bytes, each block" huge --rate 1
else
	skip "numbers: 2^56 bytes" "jemalloc is not installed"
fi

# heaptap is suspended: the target gets on.
suspended() { # SIGNAL
	local alone meanwhile text
	begin_target env E2E_BUSY=1 "$family"
	alone=$(pace_of)
	BASE= begin_record
	kill "-$1" "$recorder"
	sleep 1
	meanwhile=$(pace_of)
	kill -CONT "$recorder"
	[ $((meanwhile * 2)) -ge "$alone" ] || fault "its pace is $meanwhile, $alone without heaptap"
	sleep 0.5
	end_record
	text=$("$heaptap" report -f json "$work/p.pb.gz" 2>/dev/null)
	[[ $text =~ '"inuse":"known","inuse_since_ns":null' ]] && fault "what was not watched meanwhile is not said"
	said="$((meanwhile * 100 / alone)) % of its pace"
	ends_well
}
harm "heaptap is suspended by SIGTSTP" suspended TSTP
harm "heaptap is stopped by SIGSTOP" suspended STOP

# What a forked child has inherited is taken out of it while its parent is recorded.
forked() {
	local child
	begin_target "$family" fork-child
	begin_record
	ask do
	child=$(awk '$1 == "CHILD" { print $2 }' "$work/target.out")
	timeout 10 "$heaptap" doctor --remove-tap -p "$child" >"$work/remove.out" 2>"$work/remove.err" ||
		fault "it is refused" "$work/remove.err"
	# where nothing leads any more the parent's probes stay
	(target=$child; await 3 is_same_text /memfd:heaptap) || fault "the text of the child differs" "$work/differences"
	kill -0 "$child" || fault "the child is dead"
	end_record
	ends_well
}
harm "a forked child, while its parent is recorded" forked

# A signal came between the two jumps of a tap; its handler returns when they are gone.
in_the_gap() { # gap, jump
	begin_target "$bin/tap_signals" "$1"
	begin_record
	tell do
	await 5 says "$work/target.out" '^CAUGHT\|^NOTHING' || fault "it does not step" "$work/target.out"
	end_record
	await 6 is_done || fault "it does not return" "$work/target.out"
	said="$said; $(sed -n 's/^RETURNS, it is/the jump is/p; s/^NOTHING/nothing/p' "$work/target.out")"
	ask go
	ends_well
}
harm "a signal between two jumps" in_the_gap gap
harm "a signal at a jump" in_the_gap jump

run_cases
e2e_end

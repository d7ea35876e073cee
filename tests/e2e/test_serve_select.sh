#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: every kind of selection, processes with a world of their own, the configuration file
# and its reload, and what is refused at start.
. "$(dirname "$0")/lib.sh"
e2e_init serve-select
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"

build_c family || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
sharing=own
id64=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')

# chosen NAME YES... -- NO...: these are followed within 5 seconds, those are not
chosen() {
	local title=$1 name bad=
	shift
	while [ "$1" != -- ]; do
		await 5 follows "${pid_of[$1]}" || bad="$bad $1 is not followed;"
		shift
	done
	shift
	for name in "$@"; do follows "${pid_of[$name]}" && bad="$bad $name is followed;"; done
	[ -z "$bad" ] && ok "$title" || not_ok "$title" "$bad" "$top/serve.err"
}

# Parts whose processes have other names; they mostly wait.
# --- several of a kind; heaptap never
selected() {
	begin sel-a
	begin sel-b
	begin sel-c
	serve --listen 127.0.0.1:0 --comm '^sel-a$' --comm '^sel-[bc]$' --comm '^heaptap' \
		--exclude 'x$' --exclude '^sel-c$'
	chosen "--comm and --exclude, given several times" sel-a sel-b -- sel-c
	follows "$server" && not_ok "heaptap does not follow itself" "it does" "$top/serve.err" ||
		ok "heaptap does not follow itself"
	end_server "--comm"

	# --- control groups, in whatever hierarchy there is
	cgroup_root=
	for dir in $(awk '$(NF - 2) ~ /^cgroup2?$/ || / - cgroup2? / { print $5 }' /proc/self/mountinfo); do
		if mkdir "$dir/heaptap-e2e-$$" 2>/dev/null; then
			cgroup_root=$dir/heaptap-e2e-$$
			break
		fi
	done
	remove_cgroups() {
		local dir pid
		[ -n "$cgroup_root" ] || return
		for dir in "$cgroup_root/$id64" "$cgroup_root/in/deep" "$cgroup_root/in" "$cgroup_root"; do
			[ -d "$dir" ] || continue
			for pid in $(cat "$dir/cgroup.procs" 2>/dev/null); do kill -9 "$pid" 2>/dev/null; done
			await 5 rmdir "$dir" 2>/dev/null
		done
	}
	trap 'remove_cgroups; end_children' EXIT
	# enter NAME GROUP: it goes there
	enter() { echo "${pid_of[$1]}" >"$cgroup_root/$2/cgroup.procs"; }
	if [ -n "$cgroup_root" ] && mkdir -p "$cgroup_root/in/deep" "$cgroup_root/$id64" &&
		enter sel-a in && enter sel-b in/deep && enter sel-c "$id64"; then
		serve --listen 127.0.0.1:0 --cgroup "$cgroup_root/in"
		chosen "--cgroup FOLDER: in it and below it" sel-a sel-b -- sel-c
		begin sel-d
		enter sel-d in
		chosen "--cgroup: who enters it" sel-d --
		echo "${pid_of[sel-a]}" >"$cgroup_root/cgroup.procs"
		await 5 follows_not "${pid_of[sel-a]}" && ok "--cgroup: lets go who leaves it" ||
			not_ok "--cgroup: lets go who leaves it" "not within 5 s" "$top/serve.err"
		end_server "--cgroup FOLDER"
		path=$(grep -o "/[^:]*heaptap-e2e-$$/in\$" "/proc/${pid_of[sel-d]}/cgroup" | head -1)
		serve --listen 127.0.0.1:0 --cgroup "$path/deep" --comm '^sel-'
		chosen "--cgroup PATH, as in /proc/PID/cgroup" sel-b -- sel-a sel-c sel-d
		end_server "--cgroup PATH"
		serve --listen 127.0.0.1:0 --container "${id64:0:12}" --container nothing
		chosen "--container ID, by its control group" sel-c -- sel-a sel-b
		end_server "--container"
	else
		skip "--cgroup, --container" "no control group can be made here"
	fi

	# --- a container's mount and pid namespaces, root folder and libc
	root=$top/root
	mkdir -p "$root/proc" "$root/etc" "$top/docker/containers/$id64"
	echo inside >"$top/docker/containers/$id64/hostname"
	touch "$root/etc/hostname"
	cp "$bin/family" "$root/inner"
	for lib in $(ldd "$bin/family" | grep -o '/[^ ]*'); do
		mkdir -p "$root$(dirname "$lib")"
		cp "$(realpath "$lib")" "$root$lib"
	done
	in_container() {
		exec unshare -m -p -f --kill-child sh -c "mount --make-rprivate / && mount --bind '$root' '$root' &&
			mount -t proc proc '$root/proc' &&
			mount --bind '$top/docker/containers/$id64/hostname' '$root/etc/hostname' &&
			exec chroot '$root' /inner"
	}
	inner_pid() { pgrep -P "${pid_of[inner]}" -x inner >"$top/inner.pid" || pgrep -x inner >"$top/inner.pid"; }
	if unshare -m -p -f --kill-child true 2>"$top/unshare.err"; then
		serve --listen 127.0.0.1:0 --rate 1 --container "docker://$id64" --exe '/inner$'
		began=$(date +%s%N)
		export -f in_container
		export root top id64
		begin inner bash -c in_container
		await 5 inner_pid || not_ok "a container" "it does not run" "$top/inner/target.err"
		pid_of[inner]=$(cat "$top/inner.pid")
		chosen "a process in namespaces of its own, by what is mounted into it" inner -- sel-a
		echo "# followed and shown $((($(date +%s%N) - began) / 1000000)) ms after its start"
		work_of inner
		exact_of inner "its stacks are those of its own libc and program"
		end_server "a container"
		kill -9 "${pid_of[inner]}"
	else
		skip "a container" "no namespaces can be made here"
	fi

	# --- all: a large process with an allocator, a larger one without
	cat >"$top/bare.c" <<'END'
static char block[700 << 20];
void _start(void)
{
	for (unsigned long i = 0; i < sizeof(block); i += 4096)
		((volatile char *)block)[i] = 1;
	for (;;)
		__asm__ volatile("syscall" : : "a"(34) : "rcx", "r11", "memory");
}
END
	if [ "$(uname -m)" = x86_64 ] && [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt 4000000 ] &&
		${CC:-gcc} -O1 -static -nostdlib -o "$top/bare" "$top/bare.c" 2>"$top/bare.err"; then
		"$top/bare" &
		owned bare
		serve --listen 127.0.0.1:0 --all --min-rss 600m
		says "$top/serve.err" 'slows down every process with a known allocator' && ok "--all says what it means" ||
			not_ok "--all says what it means" "it does not" "$top/serve.err"
		READY=ready begin large python3 -c 'import sys
block = b"x" * (700 << 20)
print("ready", flush=True)
sys.stdin.read()'
		chosen "--all: one that begins" large -- sel-a
		follows "$bare" && not_ok "--all: not who has no allocator" "it is followed" || ok "--all: not who has no allocator"
		end_server "--all"
		kill -9 "$bare" "${pid_of[large]}"
	else
		skip "--all" "not enough memory, or no x86-64"
	fi
}

# --- a process that has long been known takes another name, and grows: no event tells of either
changing() {
	cat >"$top/changes.py" <<'END'
import sys
block = b''
print('ready', flush=True)
for line in sys.stdin:
    if line == 'grow\n':
        block = b'x' * (300 << 20)
    else:
        open('/proc/self/comm', 'w').write(line.strip())
END
	READY=ready begin changes python3 "$top/changes.py"
	target_in=${in_of[changes]}
	serve --listen 127.0.0.1:0 --comm '^sel-other$' --min-rss 200m
	sleep 4
	tell sel-other
	sleep 4
	chosen "--comm and --min-rss: not who is too small" -- changes
	tell grow
	chosen "--min-rss: who grows" changes --
	tell sel-another
	await 5 follows_not "${pid_of[changes]}" && ok "--comm: lets go who takes another name" ||
		not_ok "--comm: lets go who takes another name" "not within 5 s" "$top/serve.err"
	tell sel-other
	chosen "--comm: who takes that name" changes --
	end_server "a process that changes"
	kill -9 "${pid_of[changes]}"
}

# --- the configuration file
configured() {
	begin conf-a
	begin conf-b
	cat >"$top/serve.toml" <<END
# who, where, how
comm = ['^conf-a\$']
listen = "127.0.0.1:0"
rate = 1
push-interval = "1s"
push = ["parca+http://127.0.0.1:9"]
END
	"$heaptap" serve --config "$top/serve.toml" --check-config --max-live 1000 >"$top/effective.toml" 2>"$top/err" &&
		grep -q "^comm = \[\"^conf-a\\$\"\]" "$top/effective.toml" && grep -q '^max-live = 1000' "$top/effective.toml" &&
		"$heaptap" serve --config "$top/effective.toml" --check-config >"$top/again.toml" 2>>"$top/err" &&
		cmp "$top/effective.toml" "$top/again.toml" && ok "--check-config prints what can be read again" ||
		not_ok "--check-config prints what can be read again" "it does not" "$top/err" "$top/effective.toml"
	serve --config "$top/serve.toml" --quiet
	chosen "--config: the file's selection" conf-a -- conf-b
	end_server "--config"
	serve --config "$top/serve.toml" --comm '^conf-b$'
	chosen "--config: the command line wins" conf-b -- conf-a
	end_server "--config and --comm"

	# reload
	serve --config "$top/serve.toml"
	chosen "before the reload" conf-a -- conf-b
	# reload PATTERN: SIGHUP, and it is said in the log
	reload() {
		: >"$top/serve.err"
		kill -HUP "$server"
		await 20 says "$top/serve.err" "$1" || not_ok "SIGHUP" "not said: $1" "$top/serve.err"
	}
	(umask 077 && echo 0123456789abcdef0123 >"$top/token")
	cat >"$top/serve.toml" <<END
comm = ['^conf-b\$']
listen = "127.0.0.1:1"
rate = 1
END
	reload 'was read again'
	says "$top/serve.err" 'listen has changed: this takes effect after a restart' && ok "SIGHUP: what needs a new start is named" ||
		not_ok "SIGHUP: what needs a new start is named" "it is not" "$top/serve.err"
	chosen "SIGHUP: the new selection" conf-b --
	await 5 follows_not "${pid_of[conf-a]}" && await 5 same_memory conf-a && ok "SIGHUP: the others are let go, without a probe left" ||
		not_ok "SIGHUP: the others are let go" "they are not" "$top/serve.err" "$top/text"
	get "$url/metrics" | grep -q '^heaptap_push_.*127.0.0.1:9"' && not_ok "SIGHUP: a push target goes" "it is there" ||
		ok "SIGHUP: a push target goes"
	work_of conf-b
	exact_of conf-b "SIGHUP: who is followed now is recorded from then on"

	cat >"$top/serve.toml" <<END
comm = ['^conf-a\$', '(']
rat = 1
rate = "64q"
min-rss = true
END
	reload 'has not changed'
	bad=
	for want in ":1: comm: .*regular expression '('" ":2: rat: unknown key: did you mean rate?" ":3: rate: .*a size" \
		":4: min-rss: .*true or false"; do
		says "$top/serve.err" "$top/serve.toml$want" || bad="$bad $want"
	done
	[ -z "$bad" ] && ok "SIGHUP: all errors of the file, with line and key" ||
		not_ok "SIGHUP: all errors of the file" "not said:$bad" "$top/serve.err"
	chosen "SIGHUP: then all is as it was" conf-b -- conf-a
	exact_of conf-b "... with what was recorded"
	timeout 20 "$heaptap" serve --config "$top/serve.toml" --check-config >"$top/out" 2>"$top/err"
	[ $? = 1 ] && [ "$(grep -c "serve.toml:" "$top/err")" = 4 ] && [ ! -s "$top/out" ] &&
		ok "--check-config tells the same" || not_ok "--check-config tells the same" "it does not" "$top/err" "$top/out"

	cat >"$top/serve.toml" <<END
comm = ['^conf-[ab]\$']
rate = 1
token-file = "$top/token"
push = ["pyroscope+http://127.0.0.1:9"]
push-interval = "1s"
label = ["env=test"]
END
	reload 'was read again'
	[ "$(get -o "$top/body" -w '%{http_code}' "$url/metrics")" = 401 ] && ok "SIGHUP: a token is asked for" ||
		not_ok "SIGHUP: a token is asked for" "it is not"
	bearer=0123456789abcdef0123
	get() { curl -s -S -m 60 -H "Authorization: Bearer $bearer" "$@"; }
	chosen "SIGHUP: and again" conf-a conf-b --
	push_is_tried() { [ "$(get "$url/metrics" | awk '/^heaptap_push_failed_total.*127.0.0.1:9"/ { print $NF }')" -gt 0 ] 2>/dev/null; }
	await 20 push_is_tried && ok "SIGHUP: a new push target is pushed to" ||
		not_ok "SIGHUP: a new push target is pushed to" "it is not" "$top/serve.err"
	end_server "SIGHUP"
	bearer=
	get() { curl -s -S -m 60 "$@"; }
	serve --listen 127.0.0.1:0 --comm '^conf-a$'
	kill -HUP "$server"
	await 20 is_gone "$server" && ok "SIGHUP without a file ends it" || not_ok "SIGHUP without a file ends it" "it does not" "$top/serve.err"

	# a larger least size holds for those who are followed as well; and a cgroup may be gone for now
	printf 'listen = "127.0.0.1:0"\ncomm = ["^conf-a$"]\n' >"$top/size.toml"
	serve --config "$top/size.toml"
	chosen "min-rss: none" conf-a --
	echo 'min-rss = "4g"' >>"$top/size.toml"
	reload 'was read again'
	await 5 follows_not "${pid_of[conf-a]}" && ok "SIGHUP: a larger min-rss" || not_ok "SIGHUP: a larger min-rss" "it is followed" "$top/serve.err"
	echo 'cgroup = ["/no/such"]' >>"$top/size.toml"
	reload 'was read again'
	says "$top/serve.err" "there is no cgroup '/no/such'" && ok "SIGHUP: a cgroup that may come" ||
		not_ok "SIGHUP: a cgroup that may come" "not said" "$top/serve.err"
	end_server "min-rss"

	# a reload that is asked for while it begins
	printf 'listen = "127.0.0.1:0"\ncomm = ["^conf-a$"]\n' >"$top/early.toml"
	# it is heaptap, and no longer ended by the signal
	is_heaptap() {
		[ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$heaptap")" ] &&
			grep -q "^Sig\(Blk\|Cgt\):.*[13579bdf]\$" "/proc/$1/status"
	}
	for wait in 0.03 0.06 0.1; do
		: >"$top/serve.err"
		"$heaptap" serve --config "$top/early.toml" >"$top/serve.out" 2>"$top/serve.err" </dev/null &
		owned server
		await 10 is_heaptap "$server"
		sleep $wait
		kill -HUP "$server"
		await 20 says "$top/serve.err" 'was read again'
		says "$top/serve.err" 'was read again' || break
		end_server "SIGHUP at once"
	done
	kill -0 "$server" 2>/dev/null && not_ok "SIGHUP while it begins" "it is not read" "$top/serve.err"
	is_gone "$server" && [ $wait = 0.1 ] && ok "SIGHUP while it begins" || not_ok "SIGHUP while it begins" "it ended it" "$top/serve.err"

	# a pid that was named, and is another process's when the configuration is read again
	begin named
	printf 'listen = "127.0.0.1:0"\npid = [%s]\n' "${pid_of[named]}" >"$top/named.toml"
	serve --config "$top/named.toml"
	chosen "pid in the file" named --
	kill -9 "${pid_of[named]}"
	await 5 follows_not "${pid_of[named]}" || not_ok "pid in the file" "it is followed when it has ended" "$top/serve.err"
	wait "${pid_of[named]}" 2>/dev/null
	stranger=
	for _ in $(seq 50); do
		echo $((pid_of[named] - 1)) >/proc/sys/kernel/ns_last_pid 2>/dev/null || break
		sleep 60 &
		[ $! = "${pid_of[named]}" ] && stranger=$! && break
		kill $!
	done
	if [ -n "$stranger" ]; then
		e2e_pids="$e2e_pids $stranger"
		for title in "SIGHUP: a stranger with the pid" "... and once more"; do
			reload 'was read again'
			says "$top/serve.err" "PID $stranger has ended; the process that has this PID now is not tracked" &&
				follows_not "$stranger" && ok "$title is not followed" ||
				not_ok "$title is not followed" "it is, or nothing is said" "$top/serve.err"
		done
		kill "$stranger"
	else
		skip "a stranger with the pid" "no pid can be had again here"
	fi
	end_server "pid in the file"

	# --- what is wrong beside other options is told with its place, and told by --check-config
	check_says() {
		printf "$2" >"$top/odd.toml"
		timeout 20 "$heaptap" serve --config "$top/odd.toml" --check-config >"$top/out" 2>"$top/err"
		status=$?
		[ $status = "$3" ] && grep -qF -- "odd.toml$4" "$top/err" && ok "--check-config: $1" ||
			not_ok "--check-config: $1" "status $status, not said: odd.toml$4" "$top/err"
	}
	check_says "a push option without a target" 'comm = ["x"]\nlabel = ["a=b"]\n' 1 ":2: label: --label needs --push URL"
	check_says "a target given twice" 'comm = ["x"]\npush = ["parca+http://a", "parca+http://a"]\n' 1 ":2: push: "
	check_says "all, and some" 'comm = ["x"]\nall = true\n' 1 ":2: all: --all excludes --comm"
	check_says "nothing selected" 'min-rss = "1m"\n' 1 ": nothing to track"
	check_says "other machines without a token" 'listen = "0.0.0.0:0"\ncomm = ["x"]\n' 1 ":1: listen: "
	check_says "a folder without a name" 'comm = ["x"]\nkeep-dir = ""\n' 1 ":2: keep-dir: "
	check_says "a cgroup that may come" 'cgroup = ["/no/such"]\n' 0 ": there is no cgroup '/no/such'"

	# --- refused at start, before anything is attached
	refused "a cgroup that does not exist" "no cgroup '/no/such'" --cgroup /no/such
	refused "a cgroup with .. in it" "not the path of a cgroup" --cgroup /a/../b
	refused "all, and some" "--all excludes --comm" --all --comm a
	refused "nothing selected" "nothing to track" --min-rss 1m
	refused "a container with a path" "is not a container id" --container /docker/x
	refused "an unknown option" "unknown option '--pidd': did you mean --pid" --pidd 1
	refused "an address that is none" "ADDR:PORT" --listen nowhere -p $$
	refused "a target that does not parse" "push: 'parca+ftp:" --push parca+ftp://127.0.0.1 -p $$
	refused "a file that is not there" "cannot read '$top/none'" --config "$top/none"
	chmod o+w "$top/serve.toml"
	refused "a file that others can write" "can be written by others" --config "$top/serve.toml"
	chmod o-w "$top/serve.toml"
	chgrp 65534 "$top/serve.toml" && chmod g+w "$top/serve.toml"
	refused "a file that another group can write" "can be written by others .*group 65534" --config "$top/serve.toml"
	chgrp 0 "$top/serve.toml"
	chmod 644 "$top/token"
	refused "a token file that others can read" "serve.toml:3: token-file: .*can be read by others" --config "$top/serve.toml"
}

# --- descriptors run out: nobody is let go, and nobody is followed without probes
few_descriptors() {
	for i in 0 1 2 3 4 5 6 7 8 9; do begin "few-$i"; done
	few_metric() { metric "$1" | cut -d. -f1; }
	all_are_known() { [ $(($(few_metric heaptap_followed_processes) + $(few_metric heaptap_refused_processes))) = 10 ]; }
	printf '#!/bin/sh\nulimit -n 200\nexec "%s" "$@"\n' "$heaptap" >"$top/few.sh"
	chmod +x "$top/few.sh"
	plenty=$heaptap heaptap=$top/few.sh sharing=
	serve --listen 127.0.0.1:0 --rate 1 --comm '^few-'
	heaptap=$plenty
	await 20 all_are_known && sleep 3 && all_are_known && ok "few descriptors: who is not followed is counted" ||
		not_ok "few descriptors: who is not followed is counted" "$(get "$url/metrics" | grep -E '^heaptap_(followed|refused)_' | xargs)" "$top/serve.err"
	[ "$(few_metric heaptap_followed_processes)" -gt 0 ] && ! says "$top/serve.err" 'no longer tracking' &&
		says "$top/serve.err" 'no room (Too many open files)' && ok "few descriptors: who is followed stays so" ||
		not_ok "few descriptors: who is followed stays so" "nobody is, or one was let go, or it is not said" "$top/serve.err"
	for i in 0 1 2 3 4 5 6 7 8 9; do follows "${pid_of[few-$i]}" && break; done
	work_of "few-$i"
	exact_of "few-$i" "few descriptors: who is followed is recorded"
	rest=
	for i in 0 1 2 3 4 5 6 7 8 9; do
		pid=${pid_of[few-$i]}
		says "$top/serve.err" "tracking PID $pid " && kill -9 "$pid" || rest="$rest\\|$pid"
	done
	others_are_followed() { says "$top/serve.err" "tracking PID \\(${rest#??}\\) "; }
	await 60 others_are_followed && ok "few descriptors: when some have ended others are followed" ||
		not_ok "few descriptors: when some have ended others are followed" "not within 60 s" "$top/serve.err"
	end_server "few descriptors"
}

beside apart changing
beside apart selected
beside apart configured
beside apart few_descriptors
E2E_BESIDE=${E2E_BESIDE:-3}
together
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: profiles that are kept - at the peak, near a memory limit, before the end - by HTTP and
# in a folder; the OOM killer; what is kept when there is too much, or no room on the disk.
. "$(dirname "$0")/lib.sh"
e2e_init serve_keep
have curl || skip_all "curl is not installed"

build_c grows && build_c family || { not_ok build "workload"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
sharing=own
is_metric() { [ "$(metric "$1")" = "$2" ]; }

# begin_grows NAME [VIA...]: the workload under this name, through a command that executes it
begin_grows() {
	local name=$1
	shift
	[ -x "$top/$name" ] || cp "$bin/grows" "$top/$name"
	start "$@" "$top/$name" || not_ok "start $name" "the target did not start" "$top/target.err"
	await 10 follows "$target" || not_ok "follow $name" "not within 10 s" "$top/serve.err"
}
held_cnt() { grep -c ^HELD "$top/target.out"; }
has_answered() { [ "$(held_cnt)" -ge "$answers" ]; }
# say LINE: and wait until it is done; what it holds then in $held
say() {
	answers=$(($(held_cnt) + 1))
	tell "$1"
	await 20 has_answered || not_ok "$1" "no answer" "$top/target.out" "$top/serve.err"
	held=$(awk '$1 == "HELD" { n = $2 } END { print n }' "$top/target.out")
}
# shows MOMENT BYTES: the saved profile holds exactly that
shows() {
	get -f -o "$top/kept" "$url/debug/pprof/heap?pid=$target&at=$1" 2>/dev/null || return 1
	[ "$("$compare" total "$top/kept" 2>/dev/null | awk '{ print $2 }')" = "$2" ]
}
# is_kept NAME MOMENT BYTES
is_kept() {
	await 20 shows "$2" "$3" && ok "$1: $3 bytes" ||
		not_ok "$1" "$("$compare" total "$top/kept" 2>&1), not $3 bytes" "$top/serve.err"
}
comments() {
	"$heaptap" report -f json "$1" | sed -n '/^"comments":/,$p' | sed 's/^"comments":\[//;s/^"//;s/".*//'
}
# says_why NAME TEXT: in the profile that was fetched last, on the first line, and how much
says_why() {
	comments "$top/kept" | grep . >"$top/comments"
	head -n 1 "$top/comments" | grep -qE "^kept: $2, 20[0-9TZ.]*, in use [0-9.]+ [KM]?i?B" && ok "$1: says $2" ||
		not_ok "$1: says $2" "it does not" "$top/comments"
	[ "$(grep -c . "$top/comments")" -le 10 ] || not_ok "$1: comments" "there are many" "$top/comments"
}
files() { find "$dir" -name "$1" | wc -l; }
has_file() { [ "$(files "$1")" = "${2:-1}" ]; }
end_target() {
	exec {target_in}>&-
	await 20 is_gone "$target" || kill -9 "$target"
	wait "$target" 2>/dev/null
}

# in memory: the peak, the end
in_memory() {
	serve --listen 127.0.0.1:0 --rate 1 --comm '^keeps-'
	begin_grows keeps-a
	say "up 100 10007"
	is_kept "first peak" peak "$held"
	say "up 300 20011"
	peak=$held
	is_kept "higher peak" peak "$peak"
	says_why "peak" "peak"
	say "up 1 1009"
	is_kept "less than 5 % more: the same" peak "$peak"
	say "down 381"
	held_last=$held
	get -o /dev/null -w '%{http_code}' "$url/debug/pprof/heap?pid=$target&at=last" >"$top/code"
	grep -q 404 "$top/code" && ok "no last one yet" || not_ok "no last one yet" "$(cat "$top/code")"
	tell "exit 3"
	end_target
	is_kept "last" last "$held_last"
	says_why "last" "exited with status 3"
	is_kept "the peak of one that has ended" peak "$peak"
	code=$(get -o "$top/body" -w '%{http_code}' "$url/pid/$target/diff?from=peak&to=last&format=text")
	[ "$code" = 200 ] && grep -q '^peak -> last$' "$top/body" && ok "what changed from the peak to the end of one that has ended" ||
		not_ok "what changed from the peak to the end of one that has ended" "$code" "$top/body"
	for query in 'from=peak' 'from=peak&to=now' 'at=peak'; do
		code=$(get -o "$top/body" -w '%{http_code}' "$url/pid/$target/diff?$query")
		[ "$code" = 404 ] && grep -qE "is not tracked|has ended" "$top/body" && ok "until now, of one that has ended: $query" ||
			not_ok "until now, of one that has ended: $query" "$code" "$top/body"
	done
	get "$url/" >"$top/index"
	grep -q "pid/$target/debug/pprof/heap?at=peak" "$top/index" &&
		grep -q "pid/$target/debug/pprof/heap?at=last" "$top/index" && ok "index: links" ||
		not_ok "index: links" "none" "$top/index"
	begin_grows keeps-a
	say "up 50 30011"
	kill -9 "$target"
	end_target
	is_kept "killed" last "$held"
	says_why "killed" "ended by signal 9"
	for query in 'at=peak' "pid=$target&at=never" "pid=$target&at=peak&seconds=1"; do
		code=$(get -o "$top/body" -w '%{http_code}' "$url/debug/pprof/heap?$query")
		[ "$code" = 400 ] && ok "400 for $query" || not_ok "400 for $query" "$code" "$top/body"
	done
	end_server "in memory"
}

# in a folder
in_folder() {
	dir=$top/kept.d
	mkdir -m 700 "$dir"
	echo mine >"$dir/notes.txt"
	echo mine >"$dir/20260101T000000.000Z-1-keeps_b-exit0.pb.gz.bak"
	serve --listen 127.0.0.1:0 --rate 1 --comm '^keeps-' --keep-dir "$dir" --keep-files 3
	begin_grows keeps-b
	say "up 40 10007"
	is_kept "folder: peak" peak "$held"
	tell "exit 0"
	end_target
	is_kept "folder: last" last "$held"
	await 10 has_file "*Z-$target-keeps_b-exit0.pb.gz" && ok "folder: a file of its end" ||
		not_ok "folder: a file of its end" "$(ls -A "$dir" | xargs)"
	first=$target first_held=$held
	# other names than a file may have
	ln -s "$bin/grows" "$top/keeps-- .%c"
	begin_grows "keeps-- .%c"
	say "up 7 10007"
	tell abort
	end_target
	is_kept "folder: aborted" last "$held"
	has_file "*Z-$target-keeps___._c-signal6.pb.gz" && ok "folder: a name that needs no quotes" ||
		not_ok "folder: a name that needs no quotes" "$(ls -A "$dir" | xargs)"
	ls -A "$dir" >"$top/names"
	grep -vE '^[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-[0-9]+-[A-Za-z0-9._+]+-(peak|(exit|signal)[0-9]+)\.pb\.gz$' \
		"$top/names" | grep -vE '^(notes\.txt|.*-1-keeps_b-.*\.bak)$' >"$top/odd"
	[ -s "$top/odd" ] && not_ok "folder: names are safe" "some are not" "$top/odd" || ok "folder: names are safe"
	[ "$(find "$dir" -name '*.pb.gz' -perm 600 | wc -l)" = "$(files '*.pb.gz')" ] && ok "folder: for its owner" ||
		not_ok "folder: for its owner" "others can read" "$top/names"
	# a third one: files of the first, which ended well, go, and not those of the second, which did not
	begin_grows keeps-c
	say "up 9 10007"
	is_kept "folder: third peak" peak "$held"
	ls -A "$dir" >"$top/names"
	has_file "*-$first-keeps_b-peak.*" 0 && has_file "*-keeps__*-signal6.*" && has_file "*-$target-keeps_c-peak.*" &&
		[ "$(files '*.pb.gz')" = 3 ] && ok "--keep-files 3: who ended well goes first" ||
		not_ok "--keep-files 3" "$(files '*.pb.gz') files" "$top/names"
	end_server "folder"
	exec {target_in}>&-
	chmod 777 "$dir"
	refused "a folder that others can write to" "others can change the files" --listen 127.0.0.1:0 --comm nobody --keep-dir "$dir"
	chmod 700 "$dir"
	mkdir "$top/strange" "$top/strange/inner"
	chown 65534:65534 "$top/strange"
	for folder in strange strange/inner; do
		refused "a folder of somebody else: $folder" "/strange' belongs to user 65534" --listen 127.0.0.1:0 --comm nobody --keep-dir "$top/$folder"
		refused "what waits in a folder of somebody else: $folder" "cannot keep pushes in .*/strange' belongs to user 65534" --listen 127.0.0.1:0 --comm nobody \
			--push parca+http://127.0.0.1:9 --push-spool "$top/$folder"
	done
	refused "a folder in one that is not there" "No such file" --listen 127.0.0.1:0 --comm nobody \
		--keep-dir "$top/none/kept"
	refused "a file for a folder" "Not a directory" --listen 127.0.0.1:0 --comm nobody --keep-dir "$dir/notes.txt"

	# what an earlier process kept is served, and counts
	before=$(files '*.pb.gz')
	aborted=$(find "$dir" -name '*signal6*' -printf '%f\n' | cut -d- -f2)
	serve --listen 127.0.0.1:0 --rate 1 --comm '^keeps-' --keep-dir "$dir" --keep-files 2
	[ "$before" -gt 2 ] && [ "$(files '*.pb.gz')" = 2 ] && ok "after a restart: $before files, 2 stay" ||
		not_ok "after a restart" "$before files, then $(files '*.pb.gz')"
	[ -f "$dir/notes.txt" ] && [ -f "$dir/20260101T000000.000Z-1-keeps_b-exit0.pb.gz.bak" ] &&
		ok "other files are left alone" || not_ok "other files are left alone" "one is gone"
	survivor=$(find "$dir" -name '*.pb.gz' -printf '%f\n' | sort | tail -n 1)
	target=$(cut -d- -f2 <<<"$survivor")
	moment=last
	[ "$(cut -d- -f4 <<<"$survivor")" = peak.pb.gz ] && moment=peak
	is_kept "after a restart: served" "$moment" "$("$compare" total "$dir/$survivor" | awk '{ print $2 }')"
	refused "a folder in use" "in use by another process" --listen 127.0.0.1:0 --comm nobody --keep-dir "$dir"
	end_server "after a restart"

	# fewer and none, told while it runs
	cat >"$top/serve.toml" <<END
listen = "127.0.0.1:0"
comm = ['^keeps-']
keep-dir = "$dir"
keep-files = 2
END
	serve --config "$top/serve.toml"
	for n in 1 0; do
		sed -i "s/^keep-files.*/keep-files = $n/" "$top/serve.toml"
		: >"$top/serve.err"
		kill -HUP "$server"
		await 20 says "$top/serve.err" 'was read again' || not_ok "SIGHUP: keep-files = $n" "is not heard" "$top/serve.err"
		[ "$(files '*.pb.gz')" = 1 ] && ok "SIGHUP: keep-files = $n: one stays" ||
			not_ok "SIGHUP: keep-files = $n" "$(files '*.pb.gz') files" "$top/serve.err"
	done
	says "$top/serve.err" 'keep-files has changed' && ok "SIGHUP: to keep none needs a new start" ||
		not_ok "SIGHUP: to keep none needs a new start" "not said" "$top/serve.err"
	end_server "fewer files"
}

# a cgroup of our own below ours
make_cgroup() {
	local path mount
	path=$(sed -nE 's,^[0-9]+:([^:]*\,)?memory(\,[^:]*)?:(/.*),\3,p' /proc/self/cgroup)
	mount=$(awk '$9 == "cgroup" && $NF ~ /(^|,)memory(,|$)/ { print $5; exit }
		$8 == "cgroup" && $NF ~ /(^|,)memory(,|$)/ { print $5; exit }' /proc/self/mountinfo)
	if [ -n "$path" ] && [ -n "$mount" ]; then
		cgroup=$mount${path%/}/heaptap-e2e-$$
		mkdir "$cgroup" 2>/dev/null || { cgroup=; return 1; }
		echo 0 >"$cgroup/memory.swappiness"
		echo "$1" >"$cgroup/memory.limit_in_bytes" || return 1
		echo "$1" >"$cgroup/memory.memsw.limit_in_bytes" 2>/dev/null
		return 0
	fi
	mount=/sys/fs/cgroup
	grep -qw memory $mount/cgroup.subtree_control 2>/dev/null || return 1
	cgroup=$mount/heaptap-e2e-$$
	mkdir "$cgroup" 2>/dev/null || { cgroup=; return 1; }
	echo 0 >"$cgroup/memory.swap.max" 2>/dev/null
	echo "$1" >"$cgroup/memory.max"
}
# where others than our processes end with the test
cleanup_more() {
	[ -n "$small" ] && umount -l "$small" 2>/dev/null
	end_children
	[ -n "$cgroup" ] && rmdir "$cgroup" 2>/dev/null
	[ -n "$own" ] && rmdir "$own/pod" "$own" 2>/dev/null
}
# a full disk: what cannot be written stays in memory
full_disk() {
	small=$top/small
	mkdir "$small"
	if mount -t tmpfs -o size=64k,mode=700 none "$small" 2>/dev/null; then
		head -c 100000 /dev/zero >"$small/full" 2>/dev/null
		serve --listen 127.0.0.1:0 --rate 1 --comm '^holds-' --keep-dir "$small"
		begin_grows holds-d
		say "up 20 10007"
		is_kept "full disk: peak" peak "$held"
		is_metric heaptap_kept_unwritten_total 1 && ok "full disk: counted" ||
			not_ok "full disk: counted" "$(metric heaptap_kept_unwritten_total)" "$top/serve.err"
		says "$top/serve.err" "No space left" && ok "full disk: said" || not_ok "full disk: said" "no" "$top/serve.err"
		dir=$small
		[ "$(ls -A "$small")" = full ] && ok "full disk: nothing half made is left" ||
			not_ok "full disk: nothing half made is left" "$(ls -A "$small" | xargs)"
		rm "$small/full"
		say "up 20 10007"
		is_kept "room again: peak" peak "$held"
		has_file "*Z-$target-holds_d-peak.pb.gz" && ok "room again: written" ||
			not_ok "room again: written" "$(ls -A "$small" | xargs)" "$top/serve.err"
		kill_target
		end_server "full disk"
	else
		small=
		skip "full disk" "tmpfs cannot be mounted"
	fi
}

# a memory limit, and the OOM killer
memory_limit() {
	dir=$top/oom.d
	if make_cgroup $((64 << 20)); then
		serve --listen 127.0.0.1:0 --rate 1 --comm '^holds-' --keep-dir "$dir"
		[ "$(stat -c %a "$dir")" = 700 ] && ok "a folder that is not there is made" ||
			not_ok "a folder that is not there is made" "$(stat -c %a "$dir" 2>&1)"
		begin_grows holds-e sh -c "echo \$\$ >$cgroup/cgroup.procs && exec \"\$0\""
		say "up 40 1048583"
		is_kept "below the limit: peak" peak "$held"
		has_file "*-limit.*" 0 && ok "40 of 64 MiB: not near the limit" || not_ok "40 of 64 MiB" "near the limit"
		say "up 20 1048583"
		is_kept "60 of 64 MiB" limit "$held"
		says_why "near the limit" "near its memory limit"
		grep -qE '^kept memory: peak .* before; cgroup: usage [0-9]+ bytes, working set [0-9]+ bytes, limit 67108864 bytes' "$top/comments" &&
			ok "near the limit: says usage and limit" || not_ok "near the limit: says usage and limit" "no" "$top/comments"
		grep -q '^resident by row: live ' "$top/comments" && ok "near the limit: what is resident then" ||
			not_ok "near the limit: what is resident then" "not so" "$top/comments"
		has_file "*Z-$target-holds_e-limit.pb.gz" && ok "near the limit: on disk before anything happens" ||
			not_ok "near the limit: on disk" "$(ls -A "$dir" | xargs)"
		tell "up 40 1048583"
		end_target
		await 10 has_file "*Z-$target-holds_e-oom.pb.gz" && ok "OOM kill: a file of it" ||
			not_ok "OOM kill: a file of it" "$(ls -A "$dir" | xargs)" "$top/serve.err"
		# it was killed while it wrote to a block that it had not counted yet
		held=$(awk '$1 == "AT" { n = $2 } END { print n + 1048583 }' "$top/target.out")
		is_kept "OOM kill: to the byte" last "$held"
		says_why "OOM kill" "out of memory"
		grep -qE '^resident by row, read [0-9.]+ s before the end: .*files ' "$top/comments" && ok "OOM kill: what was resident" ||
			not_ok "OOM kill: what was resident" "not said" "$top/comments"
		end_server "limit"
		# heaptap in a container that is shown the host's cgroups: its neighbours are "/../..." to it
		own=${cgroup%/*}/heaptap-own-$$
		mkdir -p "$own/pod"
		printf '#!/bin/sh\necho $$ >"%s" && exec unshare -C "%s" "$@"\n' "$own/pod/cgroup.procs" "$heaptap" >"$top/inner.sh"
		chmod +x "$top/inner.sh"
		dir=$top/inner.d outer=$heaptap
		if unshare -C true 2>/dev/null; then
			heaptap=$top/inner.sh
			serve --listen 127.0.0.1:0 --rate 1 --cgroup "$cgroup" --keep-dir "$dir"
			heaptap=$outer
			begin_grows holds-g sh -c "echo \$\$ >$cgroup/cgroup.procs && exec \"\$0\""
			say "up 60 1048583"
			is_kept "own cgroup namespace: a neighbour near its limit" limit "$held"
			get "$url/metrics" | grep -q "^heaptap_target_cgroup_limit_bytes{pid=\"$target\".* 67108864$" &&
				ok "own cgroup namespace: the neighbour's limit" ||
				not_ok "own cgroup namespace: the neighbour's limit" "it is not shown" "$top/serve.err"
			kill_target
			end_server "own cgroup namespace"
		else
			skip "own cgroup namespace" "unshare -C is refused"
		fi
	else
		skip "memory limits" "no memory controller in which a cgroup can be made"
	fi
}

# probes are out, so nobody knows what is held: the last profiles of all that end one after the other say so
probes_out() {
	dir=$top/out.d
	serve --listen 127.0.0.1:0 --rate 1 --comm '^many-' --keep-dir "$dir"
	many=
	for i in 1 2 3 4 5 6 7 8; do
		begin "many-$i"
		many="$many $target"
		await 10 follows "$target" || not_ok "follow many-$i" "not within 10 s" "$top/serve.err"
		work_of "many-$i"
	done
	kill -USR1 "$server"
	await 10 is_metric heaptap_paused 1 || not_ok "SIGUSR1" "the probes are not out" "$top/serve.err"
	for pid in $many; do
		kill -9 "$pid"
		sleep 0.07
	done
	await 20 has_file "*-many_*-signal9.pb.gz" 8 || not_ok "8 were killed" "$(ls -A "$dir" | xargs)" "$top/serve.err"
	for file in "$dir"/*-many_*-signal9.pb.gz; do
		gzip -dc "$file" | grep -aq 'in-use: UNKNOWN' || echo "$file"
	done >"$top/mute"
	[ ! -s "$top/mute" ] && ok "killed while probes are out: in-use is not known" ||
		not_ok "killed while probes are out: in-use is not known" "$(wc -l <"$top/mute") of 8 do not say so" "$top/mute"
	end_server "probes out"
}

# nothing is kept
nothing_kept() {
	serve --listen 127.0.0.1:0 --rate 1 --comm '^many-' --keep-files 0
	begin_grows many-f
	say "up 20 10007"
	get "$url/" | grep -q "Saved profiles" && not_ok "--keep-files 0" "there is a list" || ok "--keep-files 0: nothing is kept"
	kill_target
	end_server "nothing kept"
}

memory_and_folder() {
	in_memory
	in_folder
}
no_room() {
	cgroup= small= own=
	trap cleanup_more EXIT
	full_disk
	memory_limit
}
many() {
	probes_out
	nothing_kept
}
# Their processes have other names; they mostly wait.
beside apart memory_and_folder
beside apart no_room
beside apart many
E2E_BESIDE=${E2E_BESIDE:-3}
together
e2e_end

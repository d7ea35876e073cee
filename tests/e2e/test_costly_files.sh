#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve beside a process whose files are made to harm whoever reads them: it answers all the time, and
# the other processes are served. What each kind costs its reader is unit/test_elf_cost. timeout: 900
. "$(dirname "$0")/lib.sh"
e2e_init costly-files
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"

build_c family && build_c costly_maps -lz || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
seconds=${E2E_COSTLY_SECONDS:-4} # that each is looked at
mkdir -m 1777 "$top/files"

# beside_it NAME WHAT ARGS...: a server, a process that is followed, and one that maps such files
beside_it() {
	local name=$1 what=$2 started
	shift 2
	serve --listen 127.0.0.1:0 --rate 1 --comm '^heapy' --comm '^costly'
	begin "heapy-$name"
	mkdir -p "$top/costly-$name"
	cp --remove-destination "$bin/costly_maps" "$top/costly-$name/costly-$name"
	begin "costly-$name" "$top/costly-$name/costly-$name" "$top/files" "$@"
	await 10 follows "${pid_of[costly-$name]}" && await 10 follows "${pid_of[heapy-$name]}" ||
		not_ok "$what" "not followed" "$top/serve.err"
	watch_memory &
	tell_to "costly-$name" go
	answers_within 1000 "$seconds" /healthz && ok "$what: /healthz within $longest ms" ||
		not_ok "$what: /healthz" "took $longest ms" "$top/serve.err"
	work_of "heapy-$name"
	exact_of "heapy-$name" "$what: another process is served"
	begin "heapy-late-$name"
	await 10 follows "${pid_of[heapy-late-$name]}" || not_ok "$what" "who comes later is not followed" "$top/serve.err"
	work_of "heapy-late-$name"
	exact_of "heapy-late-$name" "$what: one that comes later is served"
	says "$top/costly-$name/target.err" F_SETLEASE && skip "$what" "this file system has no leases"
	started=$SECONDS
	end_server "$what"
	await 5 says "$top/most" '[0-9]'
	most=$(cat "$top/most")
	[ "$most" -le 300 ] && ok "$what: $most MB at most" || not_ok "$what: memory" "$most MB" "$top/serve.err"
	[ $((SECONDS - started)) -le 3 ] || not_ok "$what: SIGTERM" "took $((SECONDS - started)) s"
	for who in "heapy-$name" "heapy-late-$name" "costly-$name"; do
		kill -9 "${pid_of[$who]}"
		wait "${pid_of[$who]}" 2>/dev/null
	done
	rm -f "$top"/files/*
}

beside_it leases "leases on nine files" leases 9
again beside_it notes "40 MB of sections of notes" 0 40000000 1
beside_it packed "101 sections of one compressed piece" 1 1000000 1
again beside_it segments "72 MB of segments and functions" 2 75000000 1
beside_it sections "72 MB of sections and functions" 3 75000000 1
again beside_it symbols "24 MB of segments and symbols" 5 25000000 1
again beside_it names "24 MB of symbols of long names" 6 25000000 1
again beside_it relocations "24 MB of relocations" 8 25000000 1
again beside_it code "entry points over 24 MB of code" 9 25000000 1
beside_it tiny "12000 tiny files" tiny 12000
e2e_end

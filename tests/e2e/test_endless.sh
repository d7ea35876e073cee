#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# heaptap serve: processes that execute programs or fork without end. It answers, and who is followed beside them is
# exact; who comes later is followed.
#
# E2E_ENDLESS_SECONDS: how long each (3; with TESTS_WHOLE=1 10).
. "$(dirname "$0")/lib.sh"
e2e_init endless
have curl || skip_all "curl is not installed"
have python3 || skip_all "python3 is not installed"
have setpriv || skip_all "setpriv is not installed"

build_c family && build_c endless || { not_ok build "workloads"; e2e_end; }
. "$e2e_dir/serve_lib.sh"
seconds=${E2E_ENDLESS_SECONDS:-$(is_whole && echo 10 || echo 3)}

for what in exec fork; do
	begin modest
	mkdir -p "$top/bin-endless"
	cp "$bin/endless" "$top/bin-endless/endless"
	begin endless setpriv --reuid=65534 --clear-groups "$top/bin-endless/endless" $what
	serve --listen 127.0.0.1:0 --rate 1 --comm '^(modest|later|endless|exe)$'
	watch_memory &
	await 10 follows "${pid_of[modest]}" || not_ok "$what: modest" "is not followed" "$top/serve.err"
	await 10 follows "${pid_of[endless]}" || not_ok "$what: endless" "is not followed" "$top/serve.err"
	tell_to endless go
	sleep 1
	work_of modest
	answers_within 1000 "$seconds" /healthz /metrics && ok "$what: answered within $longest ms" ||
		not_ok "$what: answers" "took $longest ms" "$top/serve.err"
	exact_of modest "$what: another one is exact"
	begin later
	await 10 follows "${pid_of[later]}" || not_ok "$what: who comes later" "is not followed" "$top/serve.err"
	work_of later
	exact_of later "$what: and so is who comes later"
	lost=$(metric 'heaptap_losses_total{reason="images_full"}')
	[ "${lost:-0}" = 0 ] && ok "$what: all have sums of their own" || not_ok "$what: sums" "$lost without"
	started=$SECONDS
	end_server "$what"
	[ $((SECONDS - started)) -le 2 ] || not_ok "$what: SIGTERM" "took $((SECONDS - started)) s"
	await 5 says "$top/most" '[0-9]'
	[ "$(cat "$top/most")" -le 300 ] && ok "$what: all of heaptap has $(cat "$top/most") MB at most" ||
		not_ok "$what: memory" "$(cat "$top/most") MB" "$top/serve.err"
	for name in modest endless later; do end_process $name; done
done
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A kernel that cannot filter system calls: what reads foreign files is not sealed, and that is said, or refused.
. "$(dirname "$0")/lib.sh"
e2e_init no_filters
build_c no_filters && build_c family || { not_ok build "workloads"; e2e_end; }

"$bin/no_filters" "$heaptap" doctor --json >"$work/doctor.json"
grep -q '"system_call_filters":false' "$work/doctor.json" && grep -q 'cannot filter system calls' "$work/doctor.json" &&
	ok "doctor" || not_ok "doctor" "does not say it" "$work/doctor.json"
"$heaptap" doctor --json | grep -q '"system_call_filters":true' && ok "doctor, as it is" || not_ok "doctor, as it is" "no"

start "$bin/family"
plain=$heaptap
cat >"$work/heaptap" <<-END
	#!/bin/sh
	exec "$bin/no_filters" "$plain" "\$@"
END
chmod +x "$work/heaptap"
heaptap=$work/heaptap
record_work --rate 1
same "a recording is right all the same" --alloc
[ "$(grep -c 'cannot filter system calls' "$work/heaptap.err")" = 1 ] && ok "record: said once" ||
	not_ok "record" "it is not said once" "$work/heaptap.err"

timeout 20 "$heaptap" serve --comm ^nobody$ --listen 127.0.0.1:0 --push parca+http://127.0.0.1:1 --push-debuginfo >"$work/serve.out" 2>&1
status=$?
[ $status = 1 ] && says "$work/serve.out" 'push-debuginfo: this kernel cannot filter system calls' &&
	ok "serve --push-debuginfo: refused" || not_ok "serve --push-debuginfo" "status $status" "$work/serve.out"
e2e_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make soak` in half a minute: programs come and go, each of which leaves a thousand entries in the maps, and what is
# left of those that have ended goes as fast. The judge is the same; what may grow is more, because a cycle of reclaiming
# is a good part of the time.
COMPARE=none
. "$(dirname "$0")/lib.sh"
e2e_init soak
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x .build/soak/churn ] || skip_all "make soak-programs"
HEAPTAP=$heaptap SOAK_OUT=$work/out SOAK_ALONE=no SOAK_PUSH=no SOAK_SECONDS=22 SOAK_RATE=20 SOAK_SAMPLE=2k SOAK_MOST=16 \
	SOAK_FILL=6 SOAK_SETTLE="1 4" SOAK_QUIET=3 SOAK_MARGIN=6 SOAK_LEFT=8 timeout 120 tools/soak/run >"$work/soak" 2>&1
status=$?
sed -n '/^\(ok\|not ok\|#\)/p' "$work/soak"
[ $status = 0 ] && ok "nothing grows" || not_ok "nothing grows" "status $status" <(grep -v '^ok' "$work/soak")
e2e_end

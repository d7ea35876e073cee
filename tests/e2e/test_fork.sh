#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Children: one that nobody asked for pollutes nothing and is not slowed down; with --follow each
# is a process of its own in the profile.
. "$(dirname "$0")/lib.sh"
e2e_init fork

build_c forks || { not_ok build "forks.c"; e2e_end; }
is() { awk "BEGIN { exit !($1) }"; }
cost() { awk -v who="$1" '$1 == "COST" && $2 == who { print $3 }' "$work/target.out"; }

# what a pair costs without a profiler, for the comparison
start env E2E_MODE=plain "$bin/forks"
run_target
finish_target
base=$(cost late)
# do_children_pay MODE: a recording beside which children run; true when one of them pays
do_children_pay() {
	lossless "children not asked for, $1" --attach-mode=$1 -- env E2E_MODE=plain "$bin/forks"
	parent=$(cost parent) early=$(cost early) late=$(cost late)
	echo "# ns per pair, $1: without a profiler $base, parent $parent, early child $early, late child $late"
	costs_probe "$early" || costs_probe "$late"
}
# As much as forks.c takes for that of a probe: below it, a child has stopped looking for a better round.
costs_probe() { is "$1 >= 3 * $base + 20 && $1 > 200"; }
for mode in $e2e_modes; do
	# Once more when one does: on a busy machine a child may be measured before it is cleaned.
	if do_children_pay $mode && do_children_pay $mode; then
		not_ok "children's speed, $mode" "$early and $late ns per pair, $base without a profiler"
	else
		ok "children's speed, $mode: $early and $late ns"
	fi
	is "$parent > 3 * $base" || not_ok "the parent is probed, $mode" "$parent ns per pair"
done

storms() {
	lossless "fork storm, $1" --attach-mode=$1 -- env E2E_MODE=storm "$bin/forks"
	exact "vfork and exec storm, $1" --attach-mode=$1 -- env E2E_MODE=vfork "$bin/forks"
}
for mode in $e2e_modes; do beside storms $mode; done

# followed MODE DELAY: children that begin after so many milliseconds
followed() {
	local child=1 who pid
	start env E2E_MODE=follow E2E_CHILD_DELAY_MS=$2 "$bin/forks"
	record_work --rate 1 --follow --attach-mode=$1
	cp "$work/target.out" "$work/all.out"
	for pid in $(awk '$1 == "PID" { print $2 }' "$work/all.out"); do
		of_pid "$pid" "$work/all.out" >"$work/target.out"
		who=parent
		[ "$pid" = "$target" ] || who="child $((child++))"
		E2E_SHOW=3 same "--follow, $1, beginning after $2 ms: $who" --alloc --label pid="$pid"
	done
	"$compare" labels "$work/p.pb.gz" comm | sort >"$work/comms"
	grep -q forks "$work/comms" && ok "--follow, $1: label comm" ||
		not_ok "--follow, $1: label comm" "no 'forks'" "$work/comms"
}
for mode in $e2e_every_mode; do
	beside followed $mode 0
	again beside followed $mode 1000
done

followed_storm() {
	start env E2E_MODE=storm "$bin/forks"
	record_work --rate 1 --follow
	same "--follow through a fork storm" --label pid="$target"
}
beside followed_storm
together
e2e_end

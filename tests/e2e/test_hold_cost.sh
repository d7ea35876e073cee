#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What it takes that a program which heaptap started is held at each exec: a loop of small commands and a build, with
# holds and without. What is missed by a hold or noticed of it: test_exec_hold.sh.
. "$(dirname "$0")/lib.sh"
e2e_init hold_cost
[ "${HEAPTAP_VM:-0}" = 0 ] || skip_all "times of an emulated machine"

# Who is held waits until heaptap and its guardian have had the processor, several times for each program. How long they
# themselves waited for it, because others compute, is no cost of a hold, and is taken off.
cat >"$work/took.sh" <<-'END'
waited() {
	cat /proc/$PPID/task/*/schedstat $(pgrep -P $PPID -x heaptap-guard | sed 's,.*,/proc/&/task/*/schedstat,') 2>/dev/null |
		awk '{ n += $2 } END { printf "%d", n / 1000 }'
}
waited=$(waited) begin=$(date +%s%N)
say_took() { echo TOOK $((($(date +%s%N) - begin) / 1000 - $(waited) + waited)); }
END
cat >"$work/loop.sh" <<-'END'
. ./took.sh
i=0
while [ $i -lt 100 ]; do /bin/true; i=$((i + 1)); done
say_took
END
for i in 1 2 3 4 5 6; do
	printf '#include <stdio.h>\nint f%d(void) { return puts("x"); }\n' $i >"$work/part$i.c"
done
printf 'all: part1.o part2.o part3.o part4.o part5.o part6.o\n' >"$work/Makefile"
cat >"$work/build.sh" <<-'END'
. ./took.sh
make -s -j2 >/dev/null || exit
say_took; rm -f *.o
END
took() { sed -n 's/^TOOK //p' "$work/target.out"; }
least() { printf '%s\n' "$@" | sort -n | head -1; }
# NAME SCRIPT COMMANDS: of each the quickest of three rounds counts, or of up to eight: others that compute do not disturb
# every round. The first time that a large program is seen (cc1) its unwind table is made, while it waits
slower() {
	local helds= bares= held= bare= i
	cd "$work" || return
	for i in 1 2 3 4 5 6 7 8; do
		launch -q --follow --no-hold -n 0 -- sh "$2"
		bares="$bares $(took)"
		launch -q --follow -n 0 -- sh "$2"
		helds="$helds $(took)"
		held=$(least $helds) bare=$(least $bares)
		[ $i -ge 3 ] && is_quick "$held" "$bare" "$3" && break
	done
	cd "$e2e_top" || return
	is_quick "$held" "$bare" "$3" &&
		ok "$1: $held us, without holds $bare us: $(((held - bare) / $3)) us for a program" ||
		not_ok "$1" "$held us, without holds $bare us"
}
is_quick() { [ -n "$1" ] && [ -n "$2" ] && [ $(($1 - $2)) -lt $((5000 * $3 + 300000)) ]; }
slower "100 small commands" loop.sh 100
have gcc && have make && slower "make -j2" build.sh 24 || skip "make -j2" "no gcc"
e2e_end

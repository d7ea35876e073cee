#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_google_pprof.sh - the readers of the text form, gperftools' pprof (google-pprof in Debian)
# and jemalloc's jeprof, of `heaptap report --format heap`: the same numbers and functions as
# `go tool pprof` has of the pprof file, and no program needed for names.
. tests/consumers/lib.sh
consumer_init google_pprof
have google-pprof || have jeprof || skip_all "neither google-pprof nor jeprof"
[ -x /usr/local/go/bin/go ] && PATH=$PATH:/usr/local/go/bin
export PPROF_TMPDIR=$work HOME=${HOME:-$work}
heap=$work/profile.heap
if ! "$B/heaptap" report --format heap "$profile" >"$heap" 2>"$work/log"; then
	not_ok "report --format heap" "it fails" "$work/log"
	consumer_end
fi

# read_with READER OPTION...: the text of the profile in $work/out
read_with() { timeout 120 "$@" --text --show_bytes "$heap" >"$work/out" 2>"$work/err" || cat "$work/err" >>"$work/out"; }

# both READER...: the planted profile (make_profile.c), type by type
both() {
	local name=${1##*/}
	read_with "$@"
	expect "$name: in-use space" "$work/out" '^Total: 7796 B' '^ +4096 .* 4096 .* libother\.so\+0x1234$' \
		'^ +3000 .* 7096 .* app::parse$' '^ +700 .* 700 .* größe_ändern$' '^ +0 .* 3700 .* main$' \
		'^ +0 .* 4096 .* run$'
	read_with "$@" --alloc_space
	expect "$name: allocated space" "$work/out" '^Total: 14796 B' '^ +10000 .* 14096 .* app::parse$'
	read_with "$@" --inuse_objects
	expect "$name: in-use objects" "$work/out" '^Total: 11 objects' '^ +7 .* größe_ändern$'
	read_with "$@" --alloc_objects
	expect "$name: allocated objects" "$work/out" '^Total: 18 objects' '^ +10 .* app::parse$'
	# Was anything scaled? Both say so.
	if grep -qi adjusting "$work/err"; then
		not_ok "$name: nothing is scaled" "it is" "$work/err"
	else
		ok "$name: nothing is scaled"
	fi
}

# compare READER: every function's own bytes, here and by `go tool pprof`. Both shorten C++ names;
# the planted ones come out alike but for arguments.
compare() {
	local name=${1##*/}
	read_with "$@"
	awk '$1 ~ /^[0-9]+$/ && $1 > 0 { print $1, $NF }' "$work/out" | sort >"$work/ours"
	timeout 60 go tool pprof -top -unit=B -nodefraction=0 "$profile" 2>/dev/null |
		sed -nE 's/^ *([1-9][0-9]*)B +[0-9.]+% +[0-9.]+% +[0-9]+B +[0-9.]+% +([^( ]*).*/\1 \2/p' |
		sort >"$work/theirs"
	if [ -s "$work/theirs" ] && cmp -s "$work/ours" "$work/theirs"; then
		ok "$name: as go tool pprof"
	else
		diff "$work/theirs" "$work/ours" >"$work/diff"
		not_ok "$name: as go tool pprof" "not the same bytes and functions" "$work/diff"
	fi
}

for reader in google-pprof jeprof; do
	if ! have $reader; then
		ok "$reader # SKIP not installed"
		continue
	fi
	both $reader
	if have go && timeout 300 go tool pprof -h 2>&1 | grep -q -- -sample_index; then
		compare $reader
	else
		ok "$reader: as go tool pprof # SKIP no go tool pprof"
	fi
done

"$B/heaptap" report --format collapsed "$profile" 2>/dev/null | sort >"$work/before"
"$B/heaptap" report --format collapsed "$heap" 2>"$work/err" | sort >"$work/after"
if [ -s "$work/before" ] && cmp -s "$work/before" "$work/after"; then
	ok "heaptap reads it back"
else
	diff "$work/before" "$work/after" >"$work/diff"
	not_ok "heaptap reads it back" "other stacks" "$work/diff"
fi
consumer_end

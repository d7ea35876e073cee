#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scopes of programs linked in every way and stripped: found and right to the byte. (What the
# header itself promises for each of them is tests/scope/test_matrix.sh.)
# TESTS_WHOLE=1: all compilers with all linkers and kinds, and not each kind once.
. "$(dirname "$0")/lib.sh"
e2e_init scope_matrix

flags="-std=gnu11 -O2 -Wall -Wextra -I$e2e_top/include"
source=$loads/scope_linked.c
check=$work/check.py
cat >"$check" <<'P'
import json, sys

rows = {row["path"]: row for row in json.load(sys.stdin)["rows"]}
has = {path: (row["inuse_bytes"], row["exclusive_inuse_bytes"]) for path, row in rows.items()
       if path != "(none)"}
must = {"Top": (400, 100), "Top/A": (200, 100), "Top/A/B": (100, 100), "Top/B": (100, 100)}
sys.exit(0 if has == must else f"{has}")
P
# recorded NAME COMMAND...
recorded() {
	local name=$1
	shift
	launch --rate 1 -q -n 0 -- "$@"
	[ "$record_status" = 0 ] &&
		"$heaptap" report --by scope --format json -n 0 "$work/p.pb.gz" 2>"$work/report.err" |
		python3 "$check" 2>"$work/differences" && ok "$name" ||
		not_ok "$name" "status $record_status" "$work/differences" "$work/heaptap.err" "$work/report.err"
}
# made CC LINKER KIND: $folder/linked and its parts, stripped
made() {
	local cc=$1 linker=$2 kind=$3 compile= link= library=
	case $kind in
	PIE) compile=-fPIE link=-pie ;;
	no-PIE) compile=-fno-pie link=-no-pie ;;
	static) compile="-fno-pie -DSTATIC" link=-static ;;
	static-pie) compile="-fPIE -DSTATIC" link=-static-pie ;;
	LTO) compile="-fPIE -flto" link="-pie -flto" ;;
	so) library=$folder/liblinked.so compile="-fPIE -DIN_LIBRARY" link="-pie -L$folder -Wl,-rpath,\$ORIGIN -llinked" ;;
	dlopen) library=$folder/liblinked.so compile=-fPIE link=-pie ;;
	esac
	rm -rf "$folder" && mkdir -p "$folder"
	if [ -n "$library" ]; then
		$cc $flags -DLIBRARY -fPIC -shared -fuse-ld="$linker" "$source" -o "$library" || return 1
	fi
	$cc $flags $compile -fuse-ld="$linker" "$source" -o "$folder/linked" $link -ldl || return 1
	# What works without symbols works with them. That of a static program's malloc is in its
	# debug file then.
	objcopy --only-keep-debug "$folder/linked" "$folder/linked.debug"
	strip "$folder/linked" $library
	case $kind in
	static*) objcopy --add-gnu-debuglink="$folder/linked.debug" "$folder/linked" ;;
	esac
	: >"$folder/made" # last: until then it is not whole
}
is_made() {
	[ "$folder/made" -nt "$source" ] && [ "$folder/made" -nt "$e2e_top/include/heaptap/scope.h" ] && [ "$folder/made" -nt "$0" ]
}
cell() {
	local folder=$bin/linked/$1-$2-$3 name="$1, $2, $3" args=
	if ! was_built "linked/$1-$2-$3/linked" && ! is_made && ! made "$@" 2>"$work/log"; then
		not_ok "$name" "cannot be built" "$work/log"
		return
	fi
	[ "$3" != dlopen ] || args=$folder/liblinked.so
	recorded "$name" "$folder/linked" $args
}

for cc in gcc clang; do
	for linker in bfd lld; do
		for kind in PIE no-PIE static static-pie LTO so dlopen; do
			# gcc's link-time optimization is a plugin of GNU ld
			[ "$cc $linker $kind" != "gcc lld LTO" ] || continue
			case $cc-$linker-$kind in
			gcc-bfd-PIE | gcc-bfd-static | gcc-bfd-LTO | gcc-bfd-dlopen | gcc-lld-so) ;;
			clang-lld-no-PIE | clang-lld-static-pie | clang-lld-LTO | clang-bfd-so) ;;
			*) is_whole || continue ;;
			esac
			if was_built linked/$cc-$linker-$kind/linked || { have $cc && { [ $linker = bfd ] || have ld.lld; }; }; then
				beside cell $cc $linker $kind
			else
				skip "$cc, $linker, $kind" "not installed"
			fi
		done
	done
done
together
e2e_end

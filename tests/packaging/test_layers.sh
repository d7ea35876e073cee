#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tools/check-layers complains of what it is for, and of nothing else.
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-layers-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

tests=0
# look NAME COMPLAINT: what is in $work/user; an empty COMPLAINT: there is none
look() {
	local out status
	tests=$((tests + 1))
	out=$(tools/check-layers "$work/user")
	status=$?
	if [ -z "$2" ] && [ $status = 0 ] || { [ -n "$2" ] && [ $status != 0 ] && grep -q "$2" <<<"$out"; }; then
		echo "ok $tests - layers: $1"
	else
		echo "not ok $tests - layers: $1"
		sed 's/^/# /' <<<"status $status: $out"
	fi
}
# has FILE INCLUDE...: a file below user/ that includes those
has() {
	local file=$work/user/$1
	mkdir -p "${file%/*}"
	shift
	printf '#include "%s"\n' "$@" >"$file"
}
fresh() {
	rm -rf "$work/user"
	has base/vec.c base/vec.h
	has base/vec.h heaptap/abi.h
	has elf/file.c base/vec.h
	has track/files.c base/vec.h
}

fresh
look "as it should be" ''
has base/vec.c base/vec.h elf/notes.h
look "a lower folder includes a higher one" 'base includes elf, which is above it'
fresh
has base/log.h base/vec.h
has base/vec.h base/log.h
has base/log.c base/log.h base/vec.h
has elf/notes.c base/log.h
look "a circle" 'circle: base/log base/vec base/log\|circle: base/vec base/log base/vec'
fresh
echo 'snprintf(path, sizeof(path), "/proc/%d/mem", pid);' >>"$work/user/track/files.c"
look "a path in /proc is made elsewhere" 'made in proc/'
mkdir -p "$work/user/proc" && mv "$work/user/track/files.c" "$work/user/proc/"
look "a path in /proc is made in proc/" ''
fresh
has report/rows.c proc/maps.h
look "report/ includes what is not pure" 'report/ is pure'
fresh
has http/page.c base/vec.h
has serve/page.c serve/daemon_priv.h
has serve/daemon.c serve/daemon_priv.h
has serve/daemon_priv.h base/vec.h
look "a private header" ''
has http/page.c base/vec.h serve/daemon_priv.h
look "another folder's private header" 'serve/daemon_priv.h is for the parts of its module'
fresh
has elf/file.h base/vec.h
has elf/file.c elf/file.h
has track/files.c base/vec.h elf/file.h
look "a header with one user" 'elf/file.h: 1 users'
# What is counted, and printed: two exported functions, one of them with one other user.
fresh
printf 'int vec_grow(int cnt);\nvoid vec_shrink(void);\n' >>"$work/user/base/vec.h"
printf 'int vec_grow(int cnt)\n{\n\treturn cnt;\n}\nvoid vec_shrink(void)\n{\n\tvec_grow(0);\n}\n' \
	>>"$work/user/base/vec.c"
printf 'static void f(void)\n{\n\tvec_grow(1);\n\tvec_shrink();\n}\n' >>"$work/user/track/files.c"
printf 'static void f(void)\n{\n\tvec_grow(2);\n}\n' >>"$work/user/elf/file.c"
tests=$((tests + 1))
if tools/check-layers "$work/user" | grep -q '^# 50 % of exported functions with one other user'; then
	echo "ok $tests - layers: functions with one other user"
else
	echo "not ok $tests - layers: functions with one other user"
	tools/check-layers "$work/user" | sed 's/^/# /'
fi
fresh
has other/thing.c base/vec.h
look "a folder without a level" 'folder other has no level'
fresh
has track/files.c base/vec.h heaptap.skel.h
look "the skeleton" 'only kernel/ includes the skeleton'
fresh
has track/files.c base/vec.h ../base/vec.h
look "a path that goes up" 'include by the path from user/'
rm -rf "$work/user"
mkdir "$work/user"
look "no files" 'no files found'
echo "1..$tests"

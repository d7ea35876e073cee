#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_languages.sh - heaptap/scope.h in every standard of C and C++: no warnings, the same
# behaviour; disabled, nothing of it is left; functions that several images share. timeout: 600
#
# TESTS_WHOLE=1: not only the first, the last and what has options of its own.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=tests/scope
out=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-languages-XXXXXX")
trap 'rm -rf "$out"' EXIT
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
flags="-D_GNU_SOURCE -Iinclude -pthread"
failed=0
have() { command -v "$1" >/dev/null 2>&1; }
ok() { echo "ok - $1"; }
not_ok() {
	echo "not ok - $1"
	sed 's/^/# /' "$out/log" | head -10
	failed=1
}
# check NAME COMMAND...: it succeeds
check() {
	local name=$1
	shift
	if timeout 120 "$@" >"$out/log" 2>&1; then ok "$name"; else not_ok "$name"; fi
}

# Everything that the header offers is used by cell_part.c and cxx.cc, and in C by this. Without
# feature macros: what is not in standard C must not be needed.
cat >"$out/all.c" <<'END'
#include <heaptap/scope.h>
int all(const char *name, unsigned long number, const void *record);
int all(const char *name, unsigned long number, const void *record)
{
	heaptap_state s = heaptap_get();
	heaptap_node n = heaptap_task(name);
	HEAPTAP_SCOPE("a", "b");
	HEAPTAP_SCOPE_NAME(name);
	HEAPTAP_LABEL("key", name);
	HEAPTAP_TASK("task", number);
	HEAPTAP_WITH(s);
	HEAPTAP_PAUSED();
	HEAPTAP_PUSH("a", "b");
	heaptap_push(name);
	heaptap_push_n(name, 1);
	heaptap_push_label(name, name);
	heaptap_pop();
	s = heaptap_enter(n, heaptap_instance_new());
	heaptap_leave(s);
	heaptap_task_exit(n, number);
	heaptap_pause();
	heaptap_unpause();
	heaptap_pause_all();
	heaptap_unpause_all();
	heaptap_set_kv(record);
	heaptap_set(s);
	return heaptap_is_watched();
}
END
for cc in gcc clang; do
	if ! have $cc; then
		echo "ok - $cc # SKIP not installed"
		continue
	fi
	for std in c11 ${TESTS_WHOLE:+gnu11} c17; do
		check "$cc -std=$std, no warnings" $cc -std=$std -O2 $warn -Iinclude -c "$out/all.c" -o "$out/all.o"
		check "$cc -std=$std, disabled, no warnings" $cc -std=$std -O2 $warn -Iinclude \
			-DHEAPTAP_DISABLE -c "$out/all.c" -o "$out/off.o"
	done
	check "$cc, registry, no warnings" $cc -std=gnu11 -O2 $warn -Iinclude -fPIC \
		-DHEAPTAP_SCOPE_REGISTRY -c "$out/all.c" -o "$out/all.o"
	check "$cc, as C++, no warnings" $cc -x c++ -std=c++11 -O2 $warn -Iinclude -c "$out/all.c" -o "$out/all.o"
	readelf -SsW "$out/off.o" >"$out/log"
	if grep -qE 'probes|stapsdt|heaptap|init_array' "$out/log"; then
		not_ok "$cc, disabled: nothing is left"
	else
		ok "$cc, disabled: nothing is left"
	fi
done
for cxx in g++ clang++; do
	if ! have $cxx; then
		echo "ok - $cxx # SKIP not installed"
		continue
	fi
	for form in "-std=c++11 -O2" "${TESTS_WHOLE:+-std=c++14 -O0}" "-std=c++17 -O2 -fno-exceptions -fno-rtti" \
		"${TESTS_WHOLE:+-std=c++20 -O3}" "-std=c++20 -O1 -fsanitize=address,undefined" \
		"-std=c++17 -O2 -DHEAPTAP_SCOPE_REGISTRY"; do
		[ -n "$form" ] || continue
		[ -n "${TESTS_WHOLE:-}" ] || [ $cxx = g++ ] || [ "$form" = "-std=c++11 -O2" ] || continue
		if ! timeout 120 $cxx $form $warn $flags $here/cxx.cc -o "$out/cxx" >"$out/log" 2>&1; then
			not_ok "$cxx $form: cannot be built"
		elif timeout 60 "$out/cxx" >"$out/log" 2>&1; then
			ok "$cxx $form"
		else
			not_ok "$cxx $form"
		fi
	done
	# The same unit disabled, beside one that is not: what they share by name must not mix.
	timeout 120 $cxx -std=c++17 -O0 $warn $flags -DHEAPTAP_DISABLE -Dmain=other_main -Din_inline=other \
		-Wno-error $here/cxx.cc -c -o "$out/off.o" >"$out/log" 2>&1 &&
		timeout 120 $cxx -std=c++17 -O0 $flags "$out/off.o" $here/cxx.cc -o "$out/cxx" >"$out/log" 2>&1 &&
		timeout 60 "$out/cxx" >"$out/log" 2>&1 && ok "$cxx, one unit disabled" ||
		not_ok "$cxx, one unit disabled"
	for level in ${TESTS_WHOLE:+-O0} -O2; do
		timeout 120 $cxx -std=c++11 $level $warn $flags -fPIC -shared $here/inline_lib.cc \
			-o "$out/libinline.so" >"$out/log" 2>&1 &&
			timeout 120 $cxx -std=c++11 $level $warn $flags $here/inline_main.cc -L"$out" \
				-Wl,-rpath,"$out" -linline -o "$out/inline" >"$out/log" 2>&1 &&
			timeout 60 "$out/inline" >"$out/log" 2>&1 &&
			ok "$cxx $level, an inline function of two images" ||
			not_ok "$cxx $level, an inline function of two images"
	done
done
exit $failed

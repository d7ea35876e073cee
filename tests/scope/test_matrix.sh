#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_matrix.sh - heaptap/scope.h under every compiler, linker and way of linking: one descriptor
# and one record per image, found by its ELF notes, stripped or not. A cell is a program of three
# units in C and C++ (cell.h) that checks itself. TAP on stdout; two cells at a time. timeout: 600
#
# TESTS_WHOLE=1: all compilers with all linkers and kinds, and not only those that belong together, one of them for a kind.
#
#	tests/scope/test_matrix.sh [cell COMPILER LINKER KIND]		one cell only
set -u
cd "$(dirname "$0")/../.." || exit 1
here=tests/scope
out=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-matrix-XXXXXX")
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
flags="-O2 -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -pthread"
have() { command -v "$1" >/dev/null 2>&1; }

# run NAME COMMAND...: one line
run() {
	local name=$1
	shift
	if timeout 20 "$@" >"$out/log" 2>&1; then
		echo "ok - $name"
	else
		echo "not ok - $name: status $?"
		sed 's/^/# /' "$out/log" | head -5
	fi
}
# make NAME COMMAND...: nothing when it works
make_it() {
	local name=$1
	shift
	"$@" >"$out/log" 2>&1 && return
	echo "not ok - $name: cannot be built"
	sed 's/^/# /' "$out/log" | head -10
	return 1
}

# objects DIR CC CXX FLAG...: of the program
objects() {
	local dir=$1 cc=$2 cxx=$3
	shift 3
	mkdir -p "$dir"
	$cc -std=gnu11 $flags "$@" -c $here/cell.c -o "$dir/cell.o" &&
		$cc -std=gnu11 $flags "$@" -c $here/cell_part.c -o "$dir/part.o" &&
		$cxx -std=c++11 $flags "$@" -c $here/cell_part.cc -o "$dir/part_cxx.o"
}
# library DIR CC FLAG...: libcell.so
library() {
	local dir=$1 cc=$2
	shift 2
	mkdir -p "$dir"
	$cc -std=gnu11 $flags -fPIC -shared -fvisibility=hidden "$@" $here/cell_lib.c \
		$here/cell_lib_part.c -o "$dir/libcell.so"
}

# cell CC CXX LINKER KIND: two lines
cell() {
	local cc=$1 cxx=$2 linker=$3 kind=$4 name="$1, $3, $4"
	local dir compile= link= args= defines= lto_defines= lib_defines=
	dir=$out/$1-$3-$4
	case $kind in
	pie) compile=-fPIE link=-pie ;;
	no-PIE) compile=-fno-pie link=-no-pie ;;
	static) compile=-fno-pie link=-static ;;
	static-pie) compile=-fPIE link=-static-pie ;;
	sections) compile="-fPIE -ffunction-sections -fdata-sections" link="-pie -Wl,--gc-sections" ;;
	LTO) compile="-flto" link="-flto" ;;
	thin-LTO) compile="-flto=thin" link="-flto=thin" ;;
	LTO-last | LTO-first) compile= link="-flto" ;;
	so) defines=-DCELL_LIB link="-L$dir -Wl,-rpath,$dir -lcell" ;;
	dlopen | registry) defines=-DCELL_DLOPEN link=-ldl args=$dir/libcell.so ;;
	esac
	[ "$kind" = registry ] && lib_defines=-DHEAPTAP_SCOPE_REGISTRY
	[ "$linker $kind" = "lld sections" ] && link="$link -Wl,--icf=all"
	# what "Why assembly" there says
	case "$cc $linker $kind" in
	*"lld thin-LTO") defines=-DCELL_NOTES=3 ;;
	*"lld LTO-first") defines=-DCELL_NOTES=2 ;;
	"clang bfd LTO-first") lto_defines=-DHEAPTAP_SCOPE_EXTERN ;;
	esac
	case $cc-$linker-$kind in
	gcc-lld-*LTO* | gcc-*-thin-LTO) return ;; # there is no such thing
	esac
	case $kind in
	so | dlopen | registry)
		make_it "$name" library "$dir" "$cc" -fuse-ld="$linker" $lib_defines || return
		;;
	esac
	make_it "$name" objects "$dir" "$cc" "$cxx" $compile $defines || return
	case $kind in
	LTO-last) make_it "$name" $cc -std=gnu11 $flags -flto -c $here/cell_part.c -o "$dir/part.o" || return ;;
	LTO-first) make_it "$name" $cc -std=gnu11 $flags -flto $defines $lto_defines -c $here/cell.c \
		-o "$dir/cell.o" || return ;;
	esac
	make_it "$name" $cxx $flags -fuse-ld="$linker" "$dir"/*.o -o "$dir/cell" $link || return
	run "$name" "$dir/cell" $args
	strip "$dir/cell"
	[ -e "$dir/libcell.so" ] && strip "$dir/libcell.so"
	run "$name, stripped" "$dir/cell" $args
}


# foreign NAME KIND RUNNER CC...: another C library or machine, in C alone; CC is what follows
foreign() {
	local name=$1 kind=$2 runner=$3 dir link= args= defines=
	shift 3
	dir=$out/foreign
	mkdir -p "$dir"
	case $kind in
	static) link="-no-pie -static" ;;
	static-pie) defines=-fPIE link=-static-pie ;;
	dynamic) defines=-fPIE link=-pie ;;
	so) defines="-fPIE -DCELL_LIB" link="-pie -L$dir -Wl,-rpath,$dir -lcell" ;;
	dlopen) defines="-fPIE -DCELL_DLOPEN" link=-pie args=$dir/libcell.so ;;
	esac
	case $kind in
	so | dlopen) make_it "$name" library "$dir" "$*" || return ;;
	esac
	make_it "$name" $* -std=gnu11 $flags $defines $here/cell.c $here/cell_part.c \
		-x c $here/cell_part.cc -x none -o "$dir/cell" $link || return
	run "$name" $runner "$dir/cell" $args
}

if [ "${1-}" = cell ]; then
	shift
	case $1 in
	gcc) cell gcc g++ "$2" "$3" ;;
	clang) cell clang clang++ "$2" "$3" ;;
	musl) foreign "musl, $2" "$2" "" musl-gcc ;;
	arm64-gcc) foreign "arm64, gcc, $2" "$2" qemu-aarch64-static aarch64-linux-gnu-gcc ;;
	arm64-clang) foreign "arm64, clang, $2" "$2" qemu-aarch64-static \
		clang --target=aarch64-linux-gnu -fuse-ld=lld -Wno-unused-command-line-argument ;;
	esac
	exit 0
fi
cells() {
	local cc linker kind nth
	for cc in gcc clang; do
		for linker in bfd lld; do
			if ! have $cc || { [ $linker = lld ] && ! have ld.lld; }; then
				echo "ok - $cc, $linker # SKIP not installed" >>"$out/tap"
				continue
			fi
			case $cc-$linker in gcc-lld | clang-bfd) [ -n "${TESTS_WHOLE:-}" ] || continue ;; esac
			nth=0
			for kind in pie static no-PIE sections static-pie thin-LTO LTO-last LTO dlopen LTO-first so registry; do
				nth=$((nth + 1))
				[ -n "${TESTS_WHOLE:-}" ] || [ $((nth % 2)) = $([ $cc = gcc ] && echo 1 || echo 0) ] || continue
				echo "$cc $linker $kind"
			done
		done
	done
}
foreign_cells() {
	local kind
	if have musl-gcc; then
		for kind in static static-pie dynamic so dlopen; do echo "musl $kind"; done
	else
		echo "ok - musl # SKIP musl-gcc is not installed" >>"$out/tap"
	fi
	if have aarch64-linux-gnu-gcc && have qemu-aarch64-static; then
		echo "arm64-gcc static"
		echo "arm64-gcc static-pie"
		have clang && have ld.lld && echo "arm64-clang static"
	else
		echo "ok - arm64 # SKIP no cross compiler and emulator" >>"$out/tap"
	fi
}
(cells && foreign_cells) | xargs -P 2 -L 1 timeout 120 "$0" cell >>"$out/tap"
cat "$out/tap"
! grep -q "^not ok" "$out/tap"

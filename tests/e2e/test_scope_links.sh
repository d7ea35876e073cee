#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Scopes of programs that were linked in other ways: what heaptap finds and reads must not depend on
# the linker, the C library or strip. tests/scope says that the programs are right; this, that they
# are read. timeout: 600
. "$(dirname "$0")/lib.sh"
e2e_init scope_links

flags="-I$e2e_top/include"
# newer header, older program: build() knows ledger.h only
find "$bin" -name 'links-*' ! -newer "$e2e_top/include/heaptap/scope.h" -delete
rm -f "$bin"/links-*-stripped

# compare_scopes NAME: what is in no scope may be more than the program knows of, where a C library
# allocates for itself when a program starts or a thread first uses a library's thread-locals
compare_scopes() {
	local name=$1
	"$e2e_dir/scope_compare.py" "$heaptap" "$work/p.pb.gz" "$work/target.out" 2>&1 |
		grep -vE '^#|^scope \(none\)|^total:' >"$work/differences"
	[ "$record_status$target_status" = 00 ] && [ ! -s "$work/differences" ] && ok "$name" ||
		not_ok "$name" "status $record_status, target $target_status" "$work/differences" \
			"$work/heaptap.err" "$work/target.err"
}
attached() {
	start "$2" task 1 || not_ok "$1" "did not start" "$work/target.err"
	record_work --rate 1
	compare_scopes "$1"
}
started() {
	launch --rate 1 -- "$2" task 1
	target_status=0
	compare_scopes "$1, started"
}
# table NAME [FLAG...]: scope_table built with these; started, then attached to, stripped. How it was linked is read the same
# way when it starts: by default of some.
table() {
	local name=$1 out=links-${1//[^a-zA-Z]/-}
	shift
	if OUT=$out build_c scope_table $flags "$@"; then
		case $name in
		PIE | static | registry | "musl, static") started "$name" "$bin/$out" ;;
		*) again started "$name" "$bin/$out" ;;
		esac
		# without symbols nobody finds the malloc of a static program
		case $name in *static*) ;; *)
			cp "$bin/$out" "$bin/$out-stripped"
			strip "$bin/$out-stripped"
			out=$out-stripped
			;;
		esac
		attached "$name" "$bin/$out"
	else
		not_ok "$name" "cannot be built"
	fi
}

# with CC COMMAND...
with() { CC=$1 "${@:2}"; }

beside table PIE -fPIE -pie
beside table "no PIE" -fno-pie -no-pie
beside table static -static
beside table "static PIE" -fPIE -static-pie

# The threads of a registry are numbered as the program knows them, heaptap is outside of its container.
contained() {
	local name=$1 outer
	start unshare --pid --fork --kill-child --mount-proc "$2" task 1 ||
		not_ok "$name" "did not start" "$work/target.err"
	outer=$target
	target=$(cat "/proc/$outer/task/$outer/children")
	target=${target%% *}
	attach --rate 1
	target=$outer
	work_recorded
	compare_scopes "$name"
}
registry() {
	table registry -DHEAPTAP_SCOPE_REGISTRY
	if unshare --pid --fork --mount-proc true 2>/dev/null; then
		contained "registry in a container" "$bin/links-registry"
	else
		skip "registry in a container" "no pid namespace can be made here"
	fi
}
beside registry
if have ld.lld; then
	beside table lld -fuse-ld=lld
	have clang && beside with "clang -Wno-unknown-warning-option" table "clang, lld, LTO" -fuse-ld=lld -flto
else
	skip lld "not installed"
fi
if have musl-gcc; then
	beside with musl-gcc table "musl, static" -idirafter/usr/include -static
	beside with musl-gcc table "musl" -idirafter/usr/include
else
	skip musl "musl-gcc is not installed"
fi

# A library that is opened while the program runs, closed, and opened again.
opened() { # NAME PROGRAM PLUGIN [FLAG...]
	local name=$1 program=$bin/$2 plugin=$bin/links-plugin-$3.so
	shift 3
	build "$(basename "$plugin")" "$loads/scope_plugin.c" ${CC:-gcc} $c_flags $flags -fPIC -shared "$@" \
		"$loads/scope_plugin.c" || { not_ok "$name" "cannot be built"; return; }
	start "$program" "$plugin" 3 500 || not_ok "$name" "did not start" "$work/target.err"
	record_work --rate 1
	compare_scopes "$name"
}
OUT=links-dlopen build_c scope_dlopen $flags -ldl && beside opened "dlopen" links-dlopen gcc
beside opened "dlopen, registry" links-dlopen registry -DHEAPTAP_SCOPE_REGISTRY
if have musl-gcc; then
	CC=musl-gcc OUT=links-dlopen-musl build_c scope_dlopen $flags -idirafter/usr/include &&
		beside with musl-gcc opened "dlopen, musl" links-dlopen-musl musl -idirafter/usr/include
fi
together
e2e_end

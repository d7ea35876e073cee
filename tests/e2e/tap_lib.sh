# SPDX-License-Identifier: MIT
# tap_lib.sh - what the tests of the tap share. After lib.sh, e2e_init and the build of busy.

# Programs whose text is looked at have a C library of their own: into that of all others anybody may put probes.
mkdir -p "$work/own"
libc=$(ldd "$bin/busy" | awk '$1 == "libc.so.6" { print $3 }')
cp "$libc" "$work/own/"
own="env LD_LIBRARY_PATH=$work/own"

comments() { "$heaptap" report --notes "$work/p.pb.gz" 2>&1; }
same_text() {
	if await 10 is_same_text; then
		ok "$1: the text is what its files hold"
	else
		not_ok "$1: the text" "differs" "$work/differences"
	fi
}
# is_same_text [BUT]: see same_text.py
is_same_text() { python3 -IS "$e2e_dir/same_text.py" "$target" "$@" >"$work/differences"; }

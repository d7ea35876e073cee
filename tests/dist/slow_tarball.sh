#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_tarball.sh - the tarball of `make dist`: all of it is there, it is small, the executable needs nothing, and a
# second build, in another folder and from nothing, is the same to the byte.
# timeout: 2400
. tests/dist/lib.sh
dist_init tarball
tarball=$(ls "$dist"/heaptap-*.tar.gz 2>/dev/null)
[ -n "$tarball" ] || { not_ok "the tarball" "is not there"; dist_end; }
tar -tvzf "$tarball" >"$work/list"
top=$(basename "$tarball" .tar.gz)
has "all of it is there" "$work/list" " $top/bin/heaptap\$" " $top/include/heaptap/scope.h\$" \
	" $top/lib/systemd/system/heaptap.service\$" " $top/share/man/man1/heaptap-symbolize.1.gz\$" \
	" $top/share/bash-completion/completions/heaptap\$" " $top/share/zsh/site-functions/_heaptap\$" \
	" $top/share/fish/vendor_completions.d/heaptap.fish\$" " $top/LICENCES\$" " $top/README.md\$" \
	" $top/share/doc/heaptap/examples/serve.toml\$"
awk '$2 != "0/0" || $6 !~ "^'"$top"'/"' "$work/list" >"$work/odd"
[ ! -s "$work/odd" ] && ok "one folder, of root's" || not_ok "one folder, of root's" "not so" "$work/odd"
(cd "$dist" && sha256sum -c "$top.tar.gz.sha256") >"$work/log" 2>&1 && ok "its checksum" || not_ok "its checksum" "" "$work/log"

# 12 MB, of a million bytes
for file in "$one" "$tarball"; do
	bytes=$(stat -c %s "$file")
	[ "$bytes" -lt 12000000 ] && ok "$(basename "$file"): $bytes bytes" || not_ok "$(basename "$file")" "$bytes bytes"
done
tar -xzf "$tarball" -C "$work"
cmp -s "$work/$top/bin/heaptap" "$one" && ok "the executable is in it" || not_ok "the executable is in it" "another one"
readelf -lW "$one" >"$work/heads"
readelf -dW "$one" >>"$work/heads"
grep -qE "INTERP|NEEDED" "$work/heads" && not_ok "it needs no library" "it does" "$work/heads" || ok "it needs no library"
readelf -hW "$one" >>"$work/heads"
has "its addresses are random, its tables read-only" "$work/heads" "Type: +DYN" GNU_RELRO "BIND_NOW|Flags: .*NOW"
strings "$one" >"$work/strings"
grep -nF "$(pwd)" "$work/strings" >"$work/paths" && not_ok "nothing of this folder is in it" "a path is" "$work/paths" ||
	ok "nothing of this folder is in it"
for package in libbpf elfutils curl nghttp2 OpenSSL libmicrohttpd capstone glibc; do
	grep -q "^== $package" "$work/$top/LICENCES" || echo "$package"
done >"$work/missing"
[ ! -s "$work/missing" ] && ok "the licences of what is inside" || not_ok "the licences of what is inside" "missing" "$work/missing"
"$one" version --licences | cmp -s - "$work/$top/LICENCES" && ok "version --licences is the same" ||
	not_ok "version --licences is the same" "it is not"
if have man; then
	man -l --warnings "$work/$top/share/man/man1/heaptap.1.gz" >"$work/man" 2>&1
	has "a manual page can be read" "$work/man" SYNOPSIS
fi

# From what is committed and what is not, as build-deb takes the tree.
copy=$work/a/folder/with/a/longer/name
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
	[ ! -f "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -cf - | tar -xf - -C "$copy"
# as old as the first, which is as old as the commit that it was made of
SOURCE_DATE_EPOCH=$(tar -tvzf "$tarball" --full-time --utc | awk 'NR == 1 { print $4 " " $5 " UTC" }' | date -u -f - +%s)
export SOURCE_DATE_EPOCH
(cd "$copy" && TZ=Asia/Tokyo LC_ALL=C.UTF-8 LIMIT=2000 timeout 2000 make dist) >"$work/again" 2>&1 ||
	{ tail -n 20 "$work/again" >"$work/log"; not_ok "a second build" "fails" "$work/log"; dist_end; }
cmp "$copy/.build-dist/$top.tar.gz" "$tarball" >"$work/log" 2>&1 && ok "a second build is the same" ||
	not_ok "a second build is the same" "it differs" "$work/log"
dist_end

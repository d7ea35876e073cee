#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_image.sh - the container image: built by buildah from the recipe, on a Debian 12 of debootstrap's
# instead of a registry's, and run. Keeps what it makes in a folder that it removes.
# timeout: 1800
. tests/packaging/lib.sh
packaging_init image
[ "$(id -u)" = 0 ] || skip_all "needs root"
have buildah && have debootstrap || skip_all "no buildah and debootstrap"
store=$(realpath -m "$B/packaging/images")
mkdir -p "$store"
b() { buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }
trap 'b rm --all >/dev/null 2>&1; rm -rf "$work" "$store"' EXIT

base=$work/base
debian_root "$base"
container=$(b from scratch) && b copy -q "$container" "$base" / >"$work/log" 2>&1 &&
	b commit -q "$container" localhost/debian:12 >>"$work/log" 2>&1 ||
	{ not_ok "the base image" "cannot be made" "$work/log"; packaging_end; }
rm -rf "$base"
b bud --isolation chroot --build-arg BASE=localhost/debian:12 -f tools/packaging/Containerfile \
	-t heaptap:test . >"$work/build" 2>&1 && ok "built from the recipe" ||
	{ tail -n 25 "$work/build" >"$work/log"; not_ok "built from the recipe" "it fails" "$work/log"; packaging_end; }
b inspect --type image heaptap:test >"$work/inspect"
has "it serves by default" "$work/inspect" '"/usr/bin/heaptap"' '"serve"' '"7676/tcp"'
container=$(b from heaptap:test)
run() { b run --isolation chroot "$container" -- "$@"; }
run /usr/bin/heaptap --version >"$work/version" 2>&1
has "heaptap --version in it" "$work/version" '^heaptap [0-9]'
run /usr/bin/heaptap doctor >"$work/doctor" 2>&1
has "heaptap doctor in it" "$work/doctor" "heaptap can record on this machine" "features"
mounted=$(b mount "$container")
(cd "$mounted" && find . -type f | sort) >"$work/files"
printf '%s\n' ./etc/heaptap/serve.toml ./etc/ssl/certs/ca-certificates.crt ./usr/bin/heaptap >"$work/want"
grep -vxF -f "$work/want" "$work/files" | grep -vE '^\./(etc/(hosts|resolv.conf|hostname)|run/.*)$' >"$work/else"
[ ! -s "$work/else" ] && ok "nothing else in it" || not_ok "nothing else in it" "there is" "$work/else"
bytes=$(du -sb "$mounted" | cut -f 1)
[ "$bytes" -lt 12000000 ] && ok "it has $bytes bytes" || not_ok "its size" "$bytes bytes"
packaging_end

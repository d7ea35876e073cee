#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_rpm.sh - the RPM of `make rpm`: what is in it, that it needs no library, that it is made the same twice, and that
# it installs, runs and goes again, in a root of its own.
# timeout: 300
. tests/dist/lib.sh
dist_init rpm
have rpm && have rpmbuild || skip_all "no rpm"
version=$("$one" --version | sed 's/^heaptap //')
rpm=$dist/heaptap-$version-1.x86_64.rpm
[ -e "$rpm" ] || skip_all "there is no $rpm: make rpm"
rpm -qlvp "$rpm" >"$work/list" 2>&1
has "all of it is there" "$work/list" '^-rwxr-xr-x .* /usr/bin/heaptap$' ' /usr/lib/systemd/system/heaptap.service$' \
	' /usr/share/man/man1/heaptap-serve.1.gz$' ' /etc/heaptap/serve.toml$' ' /usr/include/heaptap/scope.h$' \
	' /usr/share/licenses/heaptap/LICENCES$'
rpm -qp --requires "$rpm" | grep -vE '^(rpmlib\(|/bin/sh$)' >"$work/needs"
[ ! -s "$work/needs" ] && ok "it needs nothing" || not_ok "it needs nothing" "it does" "$work/needs"
rpm -qcp "$rpm" >"$work/config"
has "the configuration is one" "$work/config" '^/etc/heaptap/serve.toml$'
before=$(sha256sum <"$rpm")
passes "made again" tools/dist/pack-rpm "$dist" "heaptap-$version-linux-x86_64" "$version"
[ "$before" = "$(sha256sum <"$rpm")" ] && ok "it is the same to the byte" || not_ok "it is the same to the byte" "it differs"

root=$work/root
mkdir -p "$root"
# Without its scripts: there is neither a shell nor systemd in this root.
in_root=(rpm --root "$root" --dbpath /var/lib/rpm)
passes "installed" "${in_root[@]}" -i --nodeps --noscripts "$(realpath "$rpm")"
passes "it is as it was packed" "${in_root[@]}" -V --nodeps heaptap
passes "it starts" chroot "$root" /usr/bin/heaptap --version
passes "its configuration is valid" chroot "$root" /usr/bin/heaptap serve --config /etc/heaptap/serve.toml --check-config
grep -rn /usr/local "$root/usr/lib/systemd" "$root/usr/share/pkgconfig" >"$work/log" && not_ok "its paths are those of a package" "" "$work/log" ||
	ok "its paths are those of a package"
echo "# mine" >>"$root/etc/heaptap/serve.toml"
passes "removed" "${in_root[@]}" -e --noscripts heaptap
find "$root" -name '*heaptap*' -o -path '*/heaptap/*' >"$work/left"
[ "$(grep -c . "$work/left")" = 2 ] && grep -q 'serve.toml.rpmsave$' "$work/left" && ok "only the changed configuration is left" ||
	not_ok "only the changed configuration is left" "" "$work/left"
dist_end

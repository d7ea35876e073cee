#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_deb.sh - the Debian package: built, looked over by lintian, installed, used, removed, purged.
# timeout: 1200
. tests/packaging/lib.sh
packaging_init deb
have dpkg-buildpackage && have dh || skip_all "no debhelper"
[ "$(id -u)" = 0 ] || skip_all "needs root"
version=$(./heaptap --version | sed 's/^heaptap //')
out=$B/deb
LIMIT=1000 passes "it is built" tools/packaging/build-deb "$version" "$out"
deb=$(ls "$out"/heaptap_*.deb 2>/dev/null)
[ -n "$deb" ] || { not_ok "it is built" "there is no package" "$out/heaptap.log"; packaging_end; }
dpkg-deb -I "$deb" >"$work/info"
dpkg-deb -c "$deb" >"$work/contents"
has "it depends on what it is linked with" "$work/info" '^ Depends:.*libbpf1' '^ Depends:.*libcurl4' \
	'^ Depends:.*libmicrohttpd12'
has "all of it is there" "$work/contents" ' ./usr/bin/heaptap$' ' ./usr/include/heaptap/scope.h$' \
	' ./lib/systemd/system/heaptap.service$' ' ./usr/share/man/man1/heaptap-serve.1.gz$' \
	' ./usr/share/pkgconfig/heaptap.pc$' ' ./usr/lib/heaptap/libheaptap-sampler.so$' ' ./etc/heaptap/serve.toml$' ' ./usr/share/doc/heaptap/copyright$'
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./conffiles >"$work/conffiles"
has "the configuration is a conffile" "$work/conffiles" '^/etc/heaptap/serve.toml$'
if have lintian; then
	LIMIT=300 passes "lintian has no errors and no warnings" lintian --allow-root --fail-on error,warning "$deb"
	grep -E '^[EWI]:' "$work/log" | sed 's/^/# /'
else
	skip lintian "not installed"
fi

if dpkg-query -W heaptap >/dev/null 2>&1; then
	skip "installation" "a heaptap is installed here"
	packaging_end
fi
trap 'dpkg --purge heaptap >/dev/null 2>&1; rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive
dpkg-deb -c "$deb" | awk '!/\/$/ { print $6 }' | sed 's/^\.//' >"$work/files"
passes "dpkg -i" dpkg -i "$deb"
passes "heaptap --version" /usr/bin/heaptap --version
/usr/bin/heaptap doctor >"$work/doctor" 2>&1
has "heaptap doctor looks at the machine" "$work/doctor" "heaptap can record on this machine" "features"
passes "its configuration is valid" /usr/bin/heaptap serve --config /etc/heaptap/serve.toml --check-config
if have systemctl && ls /etc/systemd/system/*/heaptap.service >"$work/log" 2>&1; then
	not_ok "it is not enabled" "it is" "$work/log"
else
	ok "it is not enabled"
fi
echo "# mine" >>/etc/heaptap/serve.toml
mkdir -p /var/lib/heaptap
passes "removed" dpkg -r heaptap
[ ! -e /usr/bin/heaptap ] && [ -e /etc/heaptap/serve.toml ] && [ -d /var/lib/heaptap ] &&
	ok "the configuration and the state stay" || not_ok "the configuration and the state stay" "not so"
passes "purged" dpkg --purge heaptap
while read -r file; do
	[ ! -e "$file" ] || echo "$file"
done <"$work/files" >"$work/left"
ls -d /etc/heaptap /var/lib/heaptap /var/lib/systemd/deb-systemd-helper-enabled/*heaptap* \
	/usr/share/doc/heaptap >>"$work/left" 2>/dev/null
[ ! -s "$work/left" ] && ok "nothing is left" || not_ok "nothing is left" "there is something" "$work/left"
packaging_end

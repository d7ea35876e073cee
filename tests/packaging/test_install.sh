#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_install.sh - make install puts everything where it belongs, what it puts there works, and make
# uninstall leaves nothing but what somebody has changed.
. tests/packaging/lib.sh
packaging_init install
here="make --no-print-directory B=$B"
dest=$work/dest

passes "make install DESTDIR" $here install DESTDIR="$dest" PREFIX=/usr UNITDIR=/lib/systemd/system
for file in usr/bin/heaptap usr/include/heaptap/scope.h usr/share/pkgconfig/heaptap.pc \
	lib/systemd/system/heaptap.service usr/share/doc/heaptap/LICENSE \
	usr/share/man/man1/heaptap-serve.1 usr/share/man/man3/heaptap-scope.3 \
	usr/share/bash-completion/completions/heaptap usr/share/zsh/site-functions/_heaptap \
	usr/share/fish/vendor_completions.d/heaptap.fish usr/share/doc/heaptap/examples/daemonset.yaml; do
	[ -s "$dest/$file" ] && ok "$file" || not_ok "$file" "is not there"
done
if grep -rlE '@[A-Z]+@' "$dest/lib" "$dest/etc" "$dest/usr/share/pkgconfig" >"$work/left"; then
	not_ok "every name is filled in" "left over" "$work/left"
else
	ok "every name is filled in"
fi
if find "$dest" -type f -perm /022 | grep . >"$work/left"; then
	not_ok "nobody but the owner writes" "others can" "$work/left"
else
	ok "nobody but the owner writes"
fi
passes "the installed program starts" "$dest/usr/bin/heaptap" --version
config=$dest/etc/heaptap/serve.toml
passes "the installed configuration is valid" "$dest/usr/bin/heaptap" serve --config "$config" --check-config

echo "# changed" >>"$config"
passes "make install again" $here install DESTDIR="$dest" PREFIX=/usr UNITDIR=/lib/systemd/system
has "a configuration that is there stays" "$config" '^# changed'

if have pkg-config; then
	printf '#include <heaptap/scope.h>\nint main(void) { return 0; }\n' >"$work/p.c"
	flags=$(PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
		PKG_CONFIG_PATH=$dest/usr/share/pkgconfig pkg-config --cflags heaptap)
	passes "a program is built with pkg-config's flags" ${CC:-cc} $flags -o "$work/p" "$work/p.c"
	[ "$(PKG_CONFIG_PATH=$dest/usr/share/pkgconfig pkg-config --modversion heaptap)" = \
		"$(./heaptap --version | sed 's/^heaptap //')" ] && ok "its version is the program's" ||
		not_ok "its version is the program's" "it is not"
else
	skip pkg-config "not installed"
fi

passes "make uninstall" $here uninstall DESTDIR="$dest" PREFIX=/usr UNITDIR=/lib/systemd/system
find "$dest" -type f >"$work/left"
[ "$(cat "$work/left")" = "$dest/etc/heaptap/serve.toml" ] &&
	ok "only the changed configuration is left" ||
	not_ok "only the changed configuration is left" "there is something else" "$work/left"
packaging_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_systemd.sh - the package on a Debian 12 with systemd as its first process and cgroup v2, in qemu on
# Debian's kernels: systemd_inside.sh is what is tried there.
#
#	tests/packaging/slow_systemd.sh [KERNEL...]	6.12 without one; as tests/vm/run
# timeout: 1800
. tests/packaging/lib.sh
packaging_init systemd
[ "$(id -u)" = 0 ] || skip_all "needs root"
have qemu-system-x86_64 && have busybox && have debootstrap || skip_all "no qemu, busybox and debootstrap"
[ "$(uname -m)" = x86_64 ] || skip_all "only x86-64 machines are booted"
have dpkg-buildpackage && have dh || skip_all "no debhelper"
[ $# -gt 0 ] || set -- 6.12
deb=$(ls "$B"/deb/heaptap_*.deb 2>/dev/null | head -n 1)
if [ -z "$deb" ]; then
	version=$(./heaptap --version | sed 's/^heaptap //')
	LIMIT=1000 passes "the package is built" tools/packaging/build-deb "$version" "$B/deb"
	deb=$(ls "$B"/deb/heaptap_*.deb 2>/dev/null | head -n 1)
fi
[ -n "$deb" ] || packaging_end
LIMIT=300 passes "the workload is built" bash -c '. tests/e2e/lib.sh; e2e_init systemd; build_c grows'
for file in grows compare; do
	[ -x "$B/e2e/$file" ] || { not_ok "the workload" "no $file"; packaging_end; }
done

# A root: Debian, systemd, the package, what is tried
root=$work/root
debian_root "$root"
cp /etc/resolv.conf "$root/etc/" 2>/dev/null
cp "$deb" "$root/tmp/heaptap.deb"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
LIMIT=600 passes "apt install" env DEBIAN_FRONTEND=noninteractive chroot "$root" sh -c \
	'apt-get -q update && apt-get -q -y install systemd-sysv curl procps /tmp/heaptap.deb && apt-get clean'
[ "$failed" = 0 ] || packaging_end
rm -rf "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale} "$root/usr/sbin/policy-rc.d"
mkdir -p "$root/test"
cp "$B/e2e/grows" "$B/e2e/compare" tests/packaging/systemd_inside.sh "$root/test/"
cat >"$root/test/run" <<'END'
#!/bin/bash
# The lines that tests/vm/lib.sh reads.
now() { cut -d' ' -f1 /proc/uptime; }
echo "@@ kernel $(uname -r) up $(now)"
echo "@@ begin systemd"
begun=$(now)
mode=multi
[ "$(printf '%s\n' 6.6 "$(uname -r)" | sort -V | head -n 1)" = 6.6 ] || mode=perf
timeout -k 5 600 bash /test/systemd_inside.sh $mode
echo "@@ end $? $begun $(now) systemd"
echo "@@ done $(now)"
END
chmod 755 "$root/test/run"
cat >"$root/etc/systemd/system/heaptap-test.service" <<'END'
[Unit]
After=network.target
[Service]
Type=oneshot
ExecStart=/test/run
ExecStopPost=systemctl --no-block poweroff
StandardOutput=file:/dev/ttyS1
StandardError=journal+console
[Install]
WantedBy=multi-user.target
END
ln -s ../heaptap-test.service "$root/etc/systemd/system/multi-user.target.wants/"

# ... in a file system that processes can have views of, which the first one in memory is not
boot=$work/boot
mkdir -p "$boot"/{bin,new}
cp "$(command -v busybox)" "$boot/bin/"
tar -C "$root" -cf "$boot/root.tar" . && rm -rf "$root"
cat >"$boot/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t tmpfs -o size=90% tmpfs /new
/bin/busybox tar -C /new -xf /root.tar
exec /bin/busybox switch_root /new /sbin/init
END
chmod 755 "$boot/init"
initramfs=$work/initramfs
(cd "$boot" && find . | busybox cpio -o -H newc 2>/dev/null) >"$initramfs"
rm -rf "$boot"

work_here=$work work=$(realpath -m "$B/vm") seconds=900 boot_seconds=300 qemu_pid=
mkdir -p "$work/log" "$work/boot"
trap '[ -z "$qemu_pid" ] || kill "$qemu_pid"; rm -rf "$work_here"' EXIT
. tests/vm/lib.sh
for kernel; do
	image=$(tests/vm/fetch-kernel "$kernel" amd64 cloud) && image=$(vmlinuz_of "$image") ||
		{ not_ok "$kernel" "the kernel package cannot be had"; continue; }
	log=$work/log/systemd-$kernel
	boot "$image" "$log.tap" "$log.console"
	report "$kernel" "$log.tap" "$log.console" | tee "$work_here/told"
	! grep -q '^not ok' "$work_here/told" || failed=1
done
packaging_end

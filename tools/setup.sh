#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# setup.sh - installs what building and testing need, on Debian and Ubuntu (apt) and Fedora (dnf).
#
#   tools/setup.sh [build|demo|check|lint|kernels|bench|siblings|deb|packaging|dist|rpm|check-dist|all]...      build without an argument
#
# check and the others include build. When everything is there it does nothing, without root and
# without the network. When something is missing and it is not run by root, it says what to install.
# A package that only tests want and that the distribution does not have is left out: those tests
# skip. The Fedora names have not been tried on a machine.
set -eu

die() {
	echo "setup: $*" >&2
	exit 1
}

if command -v apt-get >/dev/null 2>&1; then
	family=debian
elif command -v dnf >/dev/null 2>&1; then
	family=fedora
else
	die "neither apt-get nor dnf here: install by hand what this script lists"
fi

need= # must be there
want= # left out where the distribution has none
have() { command -v "$1" >/dev/null 2>&1; }
need() { need="$need $*"; }
want() { want="$want $*"; }

debian_build() {
	need make gcc libc6-dev clang libbpf-dev libelf-dev libdw-dev libcapstone-dev \
		protobuf-c-compiler libprotobuf-c-dev libiberty-dev liblzma-dev libzstd-dev zlib1g-dev \
		libcurl4-openssl-dev libmicrohttpd-dev libncurses-dev
	# Debian has a package bpftool; Ubuntu has it in the tools of its kernel.
	if command -v bpftool >/dev/null 2>&1 || ls /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool \
		>/dev/null 2>&1; then
		:
	elif . /etc/os-release && [ "${ID:-}" = ubuntu ]; then
		need linux-tools-common linux-tools-generic
	else
		need bpftool
	fi
}
fedora_build() {
	need make gcc glibc-devel clang bpftool libbpf-devel elfutils-libelf-devel elfutils-devel \
		capstone-devel protobuf-c-compiler protobuf-c-devel binutils-devel xz-devel \
		libzstd-devel zlib-devel libcurl-devel libmicrohttpd-devel ncurses-devel
}
debian_demo() { want redis-server redis-tools python3; }
fedora_demo() { want redis python3; }
debian_check() {
	need libcmocka-dev g++ binutils procps util-linux
	# heaptap top in a terminal
	want tmux ncurses-bin
	# the pictures, as a person sees them
	want chromium poppler-utils
	# programs as people have them
	want redis-server redis-tools nginx-light postgresql python3-numpy luajit
	want libjemalloc2 libjemalloc-dev libmimalloc2.0 libmimalloc-dev libtcmalloc-minimal4 \
		libgoogle-perftools-dev google-perftools musl musl-tools dwz llvm lld sqlite3 \
		libsqlite3-dev clang-format groff-base mandoc python3 python3-venv gzip curl systemd pkg-config \
		prometheus python3-prometheus-client
	# Go and Rust from elsewhere do as well. Debian 12's own rustc is too old for the tests; the one
	# that its browsers are built with is not.
	have go || [ -x /usr/local/go/bin/go ] || want golang-go
	if have rustc && have cargo; then
		:
	elif is_installed rustc-web || { ! remembered rustc && exists rustc-web; }; then
		want rustc-web cargo-web
	else
		want rustc cargo
	fi
	# scope.h on arm64, compiled here and run by an emulator
	want gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
	# clang's sanitizer and libFuzzer libraries are a package of the same version as clang
	want "libclang-rt-$(clang_version)-dev"
}
fedora_check() {
	need libcmocka-devel gcc-c++ binutils procps-ng util-linux libasan libubsan
	want tmux ncurses redis nginx python3-numpy luajit
	want curl compiler-rt jemalloc jemalloc-devel mimalloc mimalloc-devel gperftools gperftools-devel \
		musl-gcc dwz llvm lld sqlite sqlite-devel groff-base mandoc python3 golang rust cargo
}
debian_lint() { need clang-format clang-tidy cppcheck; }
fedora_lint() { need clang-tools-extra cppcheck; }
debian_kernels() { want qemu-system-x86 busybox-static cpio; }
fedora_kernels() { want qemu-system-x86-core busybox cpio; }
debian_bench() { want bpftrace heaptrack libjemalloc2 redis-server redis-tools python3; }
# The package is Debian's; its test and that of the container image want more (packaging).
debian_deb() {
	need build-essential debhelper fakeroot
}
fedora_deb() { :; }
debian_packaging() { want lintian buildah debootstrap; }
fedora_packaging() { :; }
# The one executable: archives of what it is linked with, and what unpacks and builds source packages. It is
# built on Debian and Ubuntu; it runs elsewhere.
debian_dist() { need dpkg-dev libssl-dev libbz2-dev libncurses-dev binutils gzip tar xz-utils; }
fedora_dist() { :; }
debian_rpm() { need rpm; }
fedora_rpm() { need rpm-build; }
# What it is tried in: older glibcs, a userland of musl, a container image, a server with a certificate, ssh.
debian_check_dist() { want debootstrap musl musl-tools buildah openssl openssh-server openssh-client nodejs \
	python3 curl xz-utils; }
fedora_check_dist() { :; }
# Runtimes with a heap of their own, and programs as people have them.
debian_siblings() {
	want php-cli php-fpm ruby lua5.4 erlang-base mono-mcs mono-runtime mariadb-server memcached haproxy imagemagick ffmpeg \
		libreoffice-writer-nogui ripgrep bat rsyslog heaptrack
}
fedora_siblings() { want php-cli php-fpm ruby lua erlang mono-core mariadb-server memcached haproxy ImageMagick ripgrep bat rsyslog; }
fedora_bench() { want bpftrace heaptrack jemalloc redis python3; }

clang_version() {
	local package
	# of the installed one, else of the one that would be
	package=$(dpkg-query -W -f='${Depends}' clang 2>/dev/null) ||
		package=$(apt-cache show clang 2>/dev/null | grep -m 1 '^Depends:') || true
	echo "$package" | sed -nE 's/.*clang-([0-9]+).*/\1/p' | head -n 1
}

is_installed() {
	if [ $family = debian ]; then
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
	else
		rpm -q --whatprovides "$1" >/dev/null 2>&1
	fi
}
exists() {
	if [ $family = debian ]; then
		apt-cache show "$1" 2>/dev/null | grep -q '^Package:'
	else
		dnf -q list --available "$1" >/dev/null 2>&1
	fi
}
missing() {
	local package
	for package; do
		is_installed "$package" || echo "$package"
	done
}

# A package that brings a service starts it, now and whenever the machine starts; nobody asked for a
# running redis.
services_stay_off() {
	[ -e /usr/sbin/policy-rc.d ] && return
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
	chmod 755 /usr/sbin/policy-rc.d
	trap 'rm -f /usr/sbin/policy-rc.d' EXIT
}

refresh() {
	[ $family = fedora ] || apt-get -q -o DPkg::Lock::Timeout=120 update ||
		die "apt-get update failed: is there a network?"
}
install() {
	local package
	echo "setup: installing $*" >&2
	if [ $family = debian ]; then
		services_stay_off
		DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
			--no-install-recommends install "$@" || return
		for package; do
			case $package in
			redis-server | prometheus | memcached | haproxy | rsyslog) update-rc.d "$package" disable >/dev/null 2>&1 || true ;;
			mariadb-server) update-rc.d mariadb disable >/dev/null 2>&1 || true ;;
			openssh-server) update-rc.d ssh disable >/dev/null 2>&1 || true ;;
			esac
		done
	else
		dnf -q -y --setopt=install_weak_deps=False install "$@"
	fi
}

# What could not be found is remembered, or every `make check` would ask the network again.
absent=.build/setup-absent
remembered() { grep -qxF "$1" $absent 2>/dev/null; }

plan() {
	local package
	need= want=
	"${family}_build"
	for what; do
		case $what in
		build) ;;
		demo | check | lint | kernels | bench | siblings | deb | packaging | dist | rpm) "${family}_$what" ;;
		check-dist) "${family}_check_dist" ;;
		all) for what in demo check lint kernels bench siblings deb packaging dist rpm check_dist; do
			"${family}_$what"
		done ;;
		*) die "unknown part '$what': build, demo, check, lint, kernels, bench, siblings, deb, packaging, dist, rpm, check-dist, all" ;;
		esac
	done
	need=$(missing $need)
	want=$(for package in $(missing $want); do remembered "$package" || echo "$package"; done)
}

cd "$(dirname "$0")/.."
plan "$@"
[ -n "$need$want" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	[ -z "$need" ] || die "missing:" $need "- install them, or run this as root: tools/setup.sh $*"
	echo "setup: not root, so tests that need these skip:" $want >&2
	exit 0
fi
refresh >&2
plan "$@" # with package lists the version of clang is known
[ -z "$need" ] || install $need >&2 || die "these could not be installed:" $need
mkdir -p .build
for package in $want; do
	if ! exists "$package" || ! install "$package" >&2; then
		echo "setup: no package $package; tests that need it skip" >&2
		echo "$package" >>$absent
	fi
done

#!/bin/bash
# SPDX-License-Identifier: MIT
#
# gen-vmlinux.sh - make vmlinux/ARCH/vmlinux.h, the kernel types that the BPF object is compiled
# against, on any host.
#
#   tools/gen-vmlinux.sh                        this machine's architecture, from the running kernel
#   tools/gen-vmlinux.sh ARCH VERSION           from Debian's kernel package of that architecture
#   tools/gen-vmlinux.sh ARCH path/to/file.deb  from a package that is already here
#
# ARCH is x86_64 or arm64. The types of another architecture cannot be read from a running kernel,
# so its .BTF section is looked for inside the (compressed) kernel image of the package; the image
# is never executed. Which kernel is used matters little: BPF CO-RE relocates field offsets at load
# time, the header only has to know the names. Needs bpftool, python3, dpkg-deb.
set -euo pipefail

die() { echo "gen-vmlinux: $*" >&2; exit 1; }

top=$(cd "$(dirname "$0")/.." && pwd)
bpftool=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v bpftool) || die "bpftool not found"
host=$(uname -m | sed 's/aarch64/arm64/')
arch=${1:-$host}
from=${2:-}
case $arch in
x86_64) deb_arch=amd64 ;;
arm64) deb_arch=arm64 ;;
*) die "unknown architecture '$arch' (x86_64, arm64)" ;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [[ -z $from ]]; then
	[[ $arch == "$host" ]] || die "$arch is not this machine's: give a kernel version or a .deb"
	[[ -r /sys/kernel/btf/vmlinux ]] || die "/sys/kernel/btf/vmlinux is missing"
	btf=/sys/kernel/btf/vmlinux
	source="the running kernel, $(uname -sr)"
	command="tools/gen-vmlinux.sh"
else
	deb=$from
	[[ -e $deb ]] || deb=$("$top/tests/vm/fetch-kernel" "$from" "$deb_arch" generic)
	dpkg-deb -x "$deb" "$tmp/deb"
	image=$(find "$tmp/deb/boot" -name 'vmlinu[xz]-*' -print -quit)
	[[ -n $image ]] || die "no kernel image in $deb"
	btf=$tmp/btf
	python3 - "$image" "$btf" <<'PY' || die "no BTF found in $image"
"""Find the .BTF section in a kernel image, through as many layers of compression as there are."""
import lzma
import re
import struct
import subprocess
import sys
import zlib

BTF = re.compile(re.escape(struct.pack("<HBBI", 0xEB9F, 1, 0, 24)))  # magic, version, flags, hdr_len
PACKED = {b"\x1f\x8b\x08": "gzip", b"\xfd7zXZ\x00": "xz", b"\x5d\x00\x00": "lzma", b"\x28\xb5\x2f\xfd": "zstd"}


def find_btf(data):
    """The largest blob that has the shape of a BTF section."""
    best = b""
    for hit in BTF.finditer(data):
        type_off, type_len, str_off, str_len = struct.unpack_from("<4I", data, hit.start() + 8)
        end = hit.start() + 24 + str_off + str_len
        if type_off or str_off != type_len or not str_len or end > len(data):
            continue
        if data[hit.start() + 24 + str_off] or data[end - 1]:
            continue
        if end - hit.start() > len(best):
            best = data[hit.start():end]
    return best


def unpack(kind, data):
    """Decompress what starts at data[0]; trailing bytes are expected, rubbish gives b''."""
    try:
        if kind == "gzip":
            return zlib.decompressobj(31).decompress(data)
        if kind == "xz":
            return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)
        if kind == "lzma":
            return lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(data)
        # Python 3.11 has no zstd, and the tool returns an error for trailing bytes: output counts.
        return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True).stdout
    except (zlib.error, lzma.LZMAError, EOFError):
        return b""


def search(data, depth=0):
    found = find_btf(data)
    if found or depth == 3:
        return found
    for hit in re.finditer(b"|".join(re.escape(m) for m in PACKED), data):
        inner = unpack(PACKED[hit.group()], data[hit.start():])
        if len(inner) > 1 << 20:
            found = search(inner, depth + 1)
            if found:
                return found
    return b""


found = search(open(sys.argv[1], "rb").read())
if len(found) < 1 << 16:
    sys.exit(1)
open(sys.argv[2], "wb").write(found)
PY
	source="Debian's $(basename "$deb")"
	command="tools/gen-vmlinux.sh $arch $from"
fi

"$bpftool" btf dump file "$btf" format c >"$tmp/vmlinux.h"
[[ $(wc -l <"$tmp/vmlinux.h") -gt 10000 ]] || die "bpftool printed too little"
mkdir -p "$top/vmlinux/$arch"
{
	echo "/*"
	echo " * The types of $source ($arch)."
	echo " * Generated, do not edit: $command"
	echo " * which ran: bpftool btf dump file $([[ $btf == /sys/* ]] && echo "$btf" || echo "BTF of that image") format c"
	echo " */"
	cat "$tmp/vmlinux.h"
} >"$tmp/out.h"
mv "$tmp/out.h" "$top/vmlinux/$arch/vmlinux.h"
echo "vmlinux/$arch/vmlinux.h: $(wc -l <"$top/vmlinux/$arch/vmlinux.h") lines from $source" >&2

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# slow_release.sh - the files of a release, of what `make rpm` and slow_deb.sh have built: checksums, the image, the SBOM,
# the notes; and that they are the same when they are made again.
# timeout: 900
. tests/packaging/lib.sh
packaging_init release
[ "$(id -u)" = 0 ] || skip_all "needs root"
have buildah || skip_all "no buildah"
version=$(./heaptap --version | sed 's/^heaptap //')
dist=.build-dist
out=$dist/release
[ -e "$dist/heaptap-$version-1.x86_64.rpm" ] || skip_all "there is no RPM: make rpm"
ls "$B/deb/heaptap_$version-1_"*.deb >/dev/null 2>&1 || skip_all "there is no package: make deb"
LIMIT=600 passes "it is made" tools/packaging/release make "$version" "$dist" "$B/deb"
[ "$failed" = 0 ] || packaging_end
(cd "$out" && sha256sum -c SHA256SUMS) >"$work/sums" 2>&1
has "checksums" "$work/sums" '\.tar\.gz: OK' '\.rpm: OK' '\.deb: OK' 'image\.tar: OK' '\.debug: OK' 'spdx\.json: OK' 'NOTES\.md: OK'
has "notes" "$out/NOTES.md" "^# heaptap $version" '^### Added' 'SHA256SUMS'
first=$(sha256sum <"$out/SHA256SUMS")
LIMIT=600 passes "it is made again" tools/packaging/release make "$version" "$dist" "$B/deb"
cp "$out/SHA256SUMS" "$work/again"
[ "$first" = "$(sha256sum <"$work/again")" ] && ok "it is the same to the byte" ||
	not_ok "it is the same to the byte" "it differs" <(diff "$work/sums" <(cd "$out" && sha256sum -c SHA256SUMS 2>&1)) "$work/again"

store=$work/images
b() { buildah --root "$store/root" --runroot "$store/run" --storage-driver vfs "$@"; }
container=$(b from "oci-archive:$out/heaptap-$version-image.tar" 2>"$work/log") || not_ok "the image" "it cannot be loaded" "$work/log"
b run --isolation chroot "$container" -- /usr/bin/heaptap --version >"$work/version" 2>&1
has "the image: heaptap --version" "$work/version" "^heaptap $version"
b inspect --type image "$container" >"$work/inspect" 2>&1 || b inspect "$container" >"$work/inspect" 2>&1
has "the image serves by default" "$work/inspect" '"/usr/bin/heaptap"' '"serve"' '7676/tcp'
mounted=$(b mount "$container")
[ "$(stat -c %a "$mounted/tmp")" = 1777 ] && [ -d "$mounted/var/lib/heaptap" ] && ok "the image has its folders" ||
	not_ok "the image has its folders" "$(ls -la "$mounted")"
b rm --all >/dev/null 2>&1

sbom=$out/heaptap-$version.spdx.json
python3 - "$sbom" tools/dist/libraries.txt >"$work/missing" <<'END'
import json, re, sys
names = {p["name"].lower() for p in json.load(open(sys.argv[1]))["packages"]}
text = open(sys.argv[2]).read()
for name in re.findall(r"^  ([A-Za-z][\w-]+)", text, re.M) + ["liblzma", "zstd", "bzip2"]:
    name = {"libcurl": "curl", "libgcc": "gcc"}.get(name, name).lower()
    if name not in names:
        print(name)
END
[ $? = 0 ] && [ ! -s "$work/missing" ] && ok "SBOM: all libraries" || not_ok "SBOM: all libraries" "some are not there" "$work/missing"
if python3 -m venv "$work/venv" >"$work/log" 2>&1 && "$work/venv/bin/pip" install -q spdx-tools >"$work/log" 2>&1; then
	passes "SBOM: valid SPDX 2.3" "$work/venv/bin/pyspdxtools" -i "$(realpath "$sbom")"
else
	skip "SBOM: valid SPDX 2.3" "spdx-tools cannot be installed"
fi
packaging_end

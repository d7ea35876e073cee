#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_manifests.sh - the Kubernetes manifests and the container recipe: against the published
# schemas, against the unit, and the configuration in them against heaptap.
. tests/packaging/lib.sh
packaging_init manifests
have python3 || skip_all "python3 is not installed"
venv=$B/packaging/venv
if [ ! -e "$venv/ready" ]; then
	rm -rf "$venv"
	# Without it what needs no schema is checked all the same.
	{ python3 -m venv --without-pip "$venv" && pip="python3 -m pip --python $venv/bin/python" && $pip --version ||
		{ python3 -m venv "$venv" && pip=$venv/bin/pip; }; } >"$work/log" 2>&1 &&
		timeout 120 $pip -q install --no-compile kubernetes-validate==1.37.0 >>"$work/log" 2>&1 &&
		touch "$venv/ready"
fi
python=python3
[ ! -e "$venv/ready" ] || python=$venv/bin/python
"$python" -c 'import yaml' 2>/dev/null || skip_all "python3 has no yaml"
"$python" tests/packaging/check_manifests.py tools/packaging/heaptap.service "$work/serve.toml" \
	tools/packaging/kubernetes/*.yaml || failed=1

umask 077
echo "a-token-of-enough-characters" >"$work/token"
sed -i "s,/run/secrets/heaptap/token,$work/token," "$work/serve.toml"
passes "heaptap takes the ConfigMap's configuration" ./heaptap serve --config "$work/serve.toml" --check-config
version=$(./heaptap --version | sed 's/^heaptap //')
for file in kubernetes/daemonset.yaml Containerfile; do
	grep -q "heaptap:$version" "tools/packaging/$file" && ok "$file is of version $version" ||
		not_ok "$file" "it is not of version $version"
done
# Every file that the recipe copies from the sources is there.
while read -r from; do
	[ -e "$from" ] && ok "Containerfile: $from" || not_ok "Containerfile: $from" "there is no such file"
done < <(sed -nE 's/^COPY ([^-][^ ]*) .*/\1/p' tools/packaging/Containerfile)
packaging_end

#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make release` begins only with a tree that is fit for it: version, changelogs and image agree, and all is committed.
. tests/packaging/lib.sh
packaging_init release
have git || skip_all "no git"
version=$(./heaptap --version | sed 's/^heaptap //')
tree=$work/tree
mkdir -p "$tree/tools" "$tree/.github"
cp -r tools/packaging "$tree/tools/"
cp .github/CHANGELOG.md "$tree/.github/"
g() { git -C "$tree" -c user.name=test -c user.email=test@localhost "$@" >"$work/git" 2>&1; }
g init -q && g add -A && g commit -q -m tree || not_ok "a repository" "it cannot be made" "$work/git"
# refuses NAME REGEX [VERSION]
refuses() {
	if "$tree/tools/packaging/release" check "${3:-$version}" >"$work/out" 2>&1; then
		not_ok "$1" "it is not refused"
	else
		has "$1" "$work/out" "$2"
	fi
}
# The changelog of a version that is not out yet says so instead of the day.
if grep -q "^## $version (unreleased)" .github/CHANGELOG.md; then
	refuses "an unreleased version is refused" "begins with '## $version \(unreleased\)'"
	sed -i "s/^## $version (unreleased)/## $version (2026-01-31)/" "$tree/.github/CHANGELOG.md"
	refuses "a change that is not committed" "not committed"
	g commit -q -a -m released
else
	echo >>"$tree/.github/CHANGELOG.md"
	refuses "a change that is not committed" "not committed"
	g checkout -q .
fi
passes "a tree that is fit" "$tree/tools/packaging/release" check "$version"
refuses "another version than the changelog's" "must be '## 9.9.9 \(YYYY-MM-DD\)'" 9.9.9
refuses "another version than the Debian package's" "debian/changelog is of $version" 9.9.9
refuses "another version than the image's" "has the image of another version" 9.9.9
packaging_end

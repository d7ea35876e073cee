#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_rust.sh - the Rust crate: its own tests, in the ways that programs are built and linked, and
# what its tools say. timeout: 900
#
# By default only as it is released; TESTS_WHOLE=1: also without optimising, disabled, with more linkers and models,
# and clippy, format and documentation.
# Needs cargo and, the first time, the registry, for the crates that the tracing layer is tested
# with. Without them everything is skipped. TAP on stdout.
set -u
cd "$(dirname "$0")/../.." || exit 1
crate=include/rust/heaptap-scope
out=$(mktemp -d "${TMPDIR:-/tmp}/heaptap-rust-XXXXXX")
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
export CARGO_TARGET_DIR=$PWD/.build/rust CARGO_TERM_COLOR=never RUST_BACKTRACE=0
failed=0
offline=--offline
# Crates of others are optimised with TESTS_WHOLE=1 only: that is a fifth of the time. As test_rust_cost.sh has it, and
# test_scope_rust.sh of the end-to-end tests.
others=(--config 'profile.release.package."*".opt-level=0' --config 'profile.release.package."*".debug=0')
[ -z "${TESTS_WHOLE:-}" ] || others=()

skip_all() {
	echo "ok - rust # SKIP $1"
	exit 0
}
not_ok() {
	echo "not ok - rust, $1"
	sed 's/^/# /' "$out/log" | tail -n 40
	failed=1
}
# cargo_here SUBCOMMAND ARGS...
cargo_here() {
	local sub=$1
	shift
	timeout 600 cargo "$sub" "${others[@]}" --manifest-path $crate/Cargo.toml "$@" >"$out/log" 2>&1 </dev/null
}
# tests NAME ARGS...: one line for each test that ran; their number if all went well
tests() {
	local name=$1 status
	shift
	cargo_here test --locked $offline -j 2 "$@"
	status=$?
	sed -nE "s/^test (.*) \.\.\. ok$/ok - rust, $name: \1/p" "$out/log" >"$out/tap"
	cat "$out/tap"
	if [ $status != 0 ]; then
		not_ok "$name: cargo's status is $status"
	elif [ ! -s "$out/tap" ]; then
		not_ok "$name: no tests ran"
	fi
}
# says NAME SUBCOMMAND ARGS...: a tool that has nothing to say
says() {
	local name=$1
	shift
	if cargo_here "$@"; then echo "ok - rust, $name"; else not_ok "$name"; fi
}

command -v cargo >/dev/null || skip_all "cargo is not installed"
if ! cargo_here fetch --locked --offline; then
	cargo_here fetch --locked || skip_all "the crates for its tests cannot be fetched"
	offline=
fi

[ -z "${TESTS_WHOLE:-}" ] || tests debug --features tracing
# What it costs is measured alone: test_rust_cost.sh, which is built here.
tests release --release --features tracing -- --skip nanoseconds
[ -n "${TESTS_WHOLE:-}" ] || exit $failed

tests disabled --test disabled --features disable

# Other linkers and models than the default's: what a reader finds must be the same. Flags of rustc
# that this version or machine does not have are skipped.
target=$(rustc -vV | sed -n 's/^host: //p')
linked() { # NAME FLAGS TEST...
	local name=$1 flags=$2 which=()
	shift 2
	for test; do which+=(--test "$test"); done
	if ! echo 'fn main() {}' | rustc $flags --crate-type bin -o "$out/try" - >"$out/log" 2>&1; then
		echo "ok - rust, $name # SKIP $(grep -m1 error "$out/log")"
		return
	fi
	RUSTFLAGS=$flags CARGO_TARGET_DIR=$PWD/.build/rust-linked tests "$name" --release \
		--target "$target" "${which[@]}"
}
linked "GNU ld" "-Clink-arg=-fuse-ld=bfd -Cstrip=symbols" abi charge
linked "static" "-Ctarget-feature=+crt-static" abi charge
linked "static, no PIE" "-Ctarget-feature=+crt-static -Crelocation-model=static" abi charge
linked "LTO" "-Clto=fat -Cembed-bitcode=yes -Ccodegen-units=1" abi charge
if cargo clippy --version >/dev/null 2>&1; then
	says clippy clippy --locked $offline --all-features --all-targets -- -D warnings
else
	echo "ok - rust, clippy # SKIP not installed"
fi
if cargo fmt --version >/dev/null 2>&1; then
	says format fmt --check
else
	echo "ok - rust, format # SKIP not installed"
fi
RUSTDOCFLAGS="-D warnings" says rustdoc doc --locked $offline --no-deps --features tracing
exit $failed

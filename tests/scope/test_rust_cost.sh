#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test_rust_cost.sh - what tags cost in the Rust crate, with nothing else running. TAP on stdout.
# timeout: 400
set -u
cd "$(dirname "$0")/../.." || exit 1
crate=include/rust/heaptap-scope
log=$(mktemp "${TMPDIR:-/tmp}/heaptap-rust-XXXXXX")
trap 'rm -f "$log"' EXIT
export CARGO_TARGET_DIR=$PWD/.build/rust CARGO_TERM_COLOR=never RUST_BACKTRACE=0
# The crates are there when test_rust.sh could get them.
if ! command -v cargo >/dev/null ||
	! cargo fetch --manifest-path $crate/Cargo.toml --locked --offline >"$log" 2>&1; then
	echo "ok - rust # SKIP no cargo, or no crates for its tests"
	exit 0
fi
# as test_rust.sh built it
others=(--config 'profile.release.package."*".opt-level=0' --config 'profile.release.package."*".debug=0')
[ -z "${TESTS_WHOLE:-}" ] || others=()
if timeout 300 cargo test "${others[@]}" --manifest-path $crate/Cargo.toml --locked --offline -j 2 --release \
	--features tracing --test cost -- --nocapture >"$log" 2>&1 </dev/null; then
	echo "ok - rust: nanoseconds"
	grep '^empty' "$log" | sed 's/^/# /'
	exit 0
fi
echo "not ok - rust: nanoseconds"
sed 's/^/# /' "$log" | tail -n 20
exit 1

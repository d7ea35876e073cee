#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Rust: Box, Vec, String, HashMap, reallocation, threads; with the system's allocator and with
# jemalloc linked in under its own names.
. "$(dirname "$0")/lib.sh"
e2e_init exact_rust

if ! was_built rust-release; then
	have rustc || skip_all "rustc is not installed"
	bash "$loads/rust/build" "$bin" >"$work/build.log" 2>&1 || { not_ok build "rust" "$work/build.log"; e2e_end; }
fi
for mode in $e2e_modes; do
	lossless "system allocator, $mode" --attach-mode=$mode -- "$bin/rust-release"
done
exact_launched "system allocator, started" -- "$bin/rust-release"
if ! is_whole; then
	skip "tikv-jemallocator" "with TESTS_WHOLE=1 only: its crate takes long to build"
elif [ -x "$bin/rust-jemalloc" ]; then
	for mode in $e2e_modes; do
		lossless "tikv-jemallocator, $mode" --attach-mode=$mode -- "$bin/rust-jemalloc"
	done
else
	skip "tikv-jemallocator" "the crate cannot be fetched or built: $(grep -m1 -i error "$work/build.log")"
fi
e2e_end

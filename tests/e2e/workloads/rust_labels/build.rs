// SPDX-License-Identifier: MIT
// Both formats want their symbols in the dynamic symbol table of the executable.
fn main() {
    #[cfg(feature = "custom")]
    custom_labels::build::emit_build_instructions();
    #[cfg(feature = "otel")]
    println!("cargo:rustc-link-arg=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
}

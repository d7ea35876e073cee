// SPDX-License-Identifier: MIT
//! Thread contexts and process context by the crates `libdd-otel-thread-ctx` and
//! `libdd-library-config`: attached, updated in place, swapped, with another span every time.

use libdd_library_config::otel_process_ctx;
use libdd_library_config::tracer_metadata::{ThreadLocalMetadata, TracerMetadata};
use libdd_otel_thread_ctx::linux::OwnedThreadContext;
use rust_labels::{done, ready, site};

site!(site_none, 211);
site!(site_a, 223);
site!(site_b, 227);
site!(site_spans, 229);
site!(site_worker, 239);

const SPANS: usize = 10_000;

fn context(span: u8, attrs: &[(u8, &str)]) -> OwnedThreadContext {
    OwnedThreadContext::new([1; 16], [span; 8], 1, [span; 8], attrs)
}

fn main() {
    // The writer's own first key, a span id, is number 0.
    let keys = ["http_route", "http_method"];
    let metadata = TracerMetadata {
        threadlocal_metadata: Some(ThreadLocalMetadata {
            attribute_keys: keys.iter().map(|k| k.to_string()).collect(),
            ..Default::default()
        }),
        ..Default::default()
    };
    otel_process_ctx::publish(&metadata.to_otel_process_ctx()).unwrap();
    ready();
    site_none();
    context(1, &[(1, "/a"), (2, "GET")]).attach();
    site_a();
    OwnedThreadContext::update([1; 16], [2; 8], 1, [2; 8], &[(1, "/b")]);
    site_b();
    // More spans than there is room for label sets: they must not make any.
    for n in 0..SPANS as u64 {
        let span = n.to_be_bytes();
        OwnedThreadContext::update([1; 16], span, 1, span, &[(1, "/s")]);
        site_spans();
    }
    drop(OwnedThreadContext::detach());
    site_none();
    let worker = std::thread::Builder::new().name("worker".into());
    let worker = worker.spawn(|| {
        context(3, &[(1, "/w")]).attach();
        site_worker();
        drop(OwnedThreadContext::detach());
    });
    worker.unwrap().join().unwrap();
    let main = "otel_crate";
    done(&[
        ("site_none", main, 211, 2),
        ("site_a", main, 223, 1),
        ("site_b", main, 227, 1),
        ("site_spans", main, 229, SPANS),
        ("site_worker", "worker", 239, 1),
    ]);
}

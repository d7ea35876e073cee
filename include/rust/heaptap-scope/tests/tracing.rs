// SPDX-License-Identifier: MIT
//! Spans as scopes.

mod account;
mod reader;

use account::{alloc_cnt, block, charged, is, reader};
use heaptap_scope::{scope, ScopeLayer, State};
use tracing::{info_span, Dispatch};
use tracing_subscriber::prelude::*;

fn with_layer<T>(work: impl FnOnce() -> T) -> T {
    reader();
    let subscriber = tracing_subscriber::registry().with(ScopeLayer::new());
    let result = tracing::subscriber::with_default(subscriber, work);
    assert_eq!(State::current(), State::ROOT);
    result
}

#[test]
fn spans_nest_with_each_other_and_with_scopes() {
    with_layer(|| {
        let _serve = info_span!("serve", port = 80).entered();
        drop(block(0));
        {
            let _scope = scope!("parse");
            let _span = info_span!("header").entered();
            drop(block(1));
        }
        let _other = info_span!("answer").entered();
        drop(block(2));
    });
    assert_eq!(charged(0), is("serve", 0));
    assert_eq!(charged(1), is("serve/parse/header", 0));
    assert_eq!(charged(2), is("serve/answer", 0));
}

#[test]
fn a_field_makes_a_task() {
    with_layer(|| {
        let _serve = info_span!("serve").entered();
        for id in [17u64, 18] {
            let conn = info_span!("conn", peer = "x", heaptap.task = id);
            let _entered = conn.enter();
            drop(block(10 + id as usize - 17));
            let _inner = info_span!("inner").entered();
            drop(block(12 + id as usize - 17));
        }
        let _signed = info_span!("conn", heaptap.task = 19).entered();
        drop(block(14));
        let _not = info_span!("plain", heaptap.task = false).entered();
        drop(block(15));
        for i in [16, 17] {
            let _next = info_span!("next", heaptap.task = true).entered();
            drop(block(i));
        }
    });
    assert_eq!(charged(10), is("serve/conn#", 17));
    assert_eq!(charged(11), is("serve/conn#", 18));
    assert_eq!(charged(12), is("serve/conn#/inner", 17));
    assert_eq!(charged(14), is("serve/conn#", 19));
    assert_eq!(charged(15), is("serve/conn#/plain", 19));
    let (path, one) = charged(16);
    assert_eq!(path, "serve/conn#/plain/next#");
    assert_ne!(one, charged(17).1);
}

#[test]
fn spans_are_left_in_any_order() {
    let reader = reader();
    with_layer(|| {
        let a = info_span!("a").entered();
        let b = info_span!("b").entered();
        let c = info_span!("c").entered();
        assert_eq!(reader.here(), "a/b/c");
        drop(b);
        assert_eq!(reader.here(), "a/b/c", "the innermost goes on");
        drop(c);
        assert_eq!(reader.here(), "a", "as if b had never been");
        drop(a);
    });
}

#[test]
fn one_span_on_several_threads() {
    let reader = reader();
    with_layer(|| {
        let span = info_span!("work", heaptap.task = 5);
        let dispatch = tracing::dispatcher::get_default(Dispatch::clone);
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let (span, dispatch) = (span.clone(), dispatch.clone());
                std::thread::spawn(move || {
                    let _default = tracing::dispatcher::set_default(&dispatch);
                    for _ in 0..100 {
                        span.in_scope(|| drop(block(20 + i)));
                        assert_eq!(reader.record()[0], 0);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    for i in 0..4 {
        assert_eq!(charged(20 + i), is("work#", 5));
    }
}

#[test]
fn parents_are_respected() {
    let reader = reader();
    with_layer(|| {
        let parent = info_span!("parent");
        let _scope = scope!("elsewhere");
        info_span!(parent: &parent, "child").in_scope(|| {
            assert_eq!(reader.here(), "parent/child");
        });
        info_span!(parent: None, "child").in_scope(|| assert_eq!(reader.here(), "child"));
        info_span!("child").in_scope(|| assert_eq!(reader.here(), "elsewhere/child"));
        assert_eq!(reader.here(), "elsewhere");
    });
}

#[test]
fn more_spans_than_have_a_place() {
    let reader = reader();
    with_layer(|| {
        let mut entered: Vec<_> = (0..80).map(|_| info_span!("deep").entered()).collect();
        assert_eq!(reader.here().split('/').count(), 64);
        while entered.pop().is_some() {
            let depth = reader.here().split('/').filter(|part| !part.is_empty()).count();
            assert_eq!(depth, entered.len().min(64));
        }
    });
}

#[test]
fn entering_does_not_allocate() {
    with_layer(|| {
        let span = info_span!("frequent");
        span.in_scope(|| ());
        let before = alloc_cnt();
        for _ in 0..10 {
            span.in_scope(|| ());
        }
        assert_eq!(alloc_cnt(), before);
    });
}

// SPDX-License-Identifier: MIT
//! Scopes in a signal handler that interrupts the making of others. Alone in its program, because
//! the signal comes to any thread.

mod reader;

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heaptap_scope::{enter, scope, State};
use reader::Reader;

extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn setitimer(which: i32, new: *const [i64; 4], old: *mut [i64; 4]) -> i32;
}

static READER: AtomicPtr<Reader> = AtomicPtr::new(std::ptr::null_mut());
static SIGNALS: AtomicU32 = AtomicU32::new(0);
/// Handlers that could not make their scope, and the least time that one of them took.
static REFUSED: AtomicU32 = AtomicU32::new(0);
static LEAST_NS: AtomicU64 = AtomicU64::new(u64::MAX);

extern "C" fn on_alarm(_: i32) {
    let before = State::current();
    let number = SIGNALS.fetch_add(1, Ordering::Relaxed);
    // no format! here: a handler must not allocate
    let mut name = *b"signal 0000";
    for (i, digit) in name[7..].iter_mut().enumerate() {
        *digit += (number / 10u32.pow(i as u32) % 10) as u8;
    }
    let reader = unsafe { &*READER.load(Ordering::Relaxed) };
    let outside = reader.record()[0] as u32;
    let begin = Instant::now();
    let dynamic = enter(std::str::from_utf8(&name).unwrap());
    let ns = begin.elapsed().as_nanos() as u64;
    if reader.record()[0] as u32 == outside {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        LEAST_NS.fetch_min(ns, Ordering::Relaxed);
    }
    drop(dynamic);
    drop(scope!("in a handler"));
    assert!(State::current() == before);
}

#[test]
fn signal_handlers_may_enter_scopes() {
    let reader = Reader::of_self();
    READER.store(Box::leak(Box::new(reader)), Ordering::Relaxed);
    unsafe {
        signal(14, on_alarm);
        setitimer(0, &[0, 200, 0, 200], std::ptr::null_mut());
    }
    let end = Instant::now() + Duration::from_secs(10);
    let mut i = 0;
    while REFUSED.load(Ordering::Relaxed) < 3 && i < 200_000 && Instant::now() < end {
        let name = format!("interrupted {i}");
        let _scope = enter(&name);
        let node = reader.node(reader.record()[0] as u32);
        assert_eq!(node.name, name, "the handler gives up, not who was interrupted");
        i += 1;
    }
    unsafe { setitimer(0, &[0; 4], std::ptr::null_mut()) };
    assert!(SIGNALS.load(Ordering::Relaxed) > 0, "no signal came");
    let refused = REFUSED.load(Ordering::Relaxed);
    println!("{} signals, {refused} met the lock", SIGNALS.load(Ordering::Relaxed));
    if refused > 0 {
        let least = Duration::from_nanos(LEAST_NS.load(Ordering::Relaxed));
        assert!(least < Duration::from_millis(5), "it waited for itself: {least:?}");
        assert!(reader.overflows() >= refused);
    }
    for id in 1..reader.node_cnt() {
        assert!(reader.node(id).parent < id);
    }
}

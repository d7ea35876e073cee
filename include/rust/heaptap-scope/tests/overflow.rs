// SPDX-License-Identifier: MIT
//! What does not fit: long names, deep paths, guards out of order; and the table under threads
//! and forks. Each counter is looked at by one test only, as they run at the same time.

mod reader;

use std::sync::atomic::{AtomicU32, Ordering};

use heaptap_scope::{enter, label, scope, State};
use reader::Reader;

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

#[test]
fn names_are_cut() {
    let reader = Reader::of_self();
    let node = |name: &str, value: &str| {
        let _label = label(name, value);
        reader.node(reader.record()[0] as u32)
    };
    let long = "n".repeat(255);
    assert_eq!(node(&long, "").flags, 0, "255 fit");
    assert_eq!(node(&long, "").name, long);
    let cut = node(&"n".repeat(256), &"v".repeat(100_000));
    assert_eq!((cut.name, cut.value, cut.flags), (long.clone(), "v".repeat(255), 3));
    // 254 and the first half of a character
    let half = "n".repeat(254) + "\u{e9}\u{e9}";
    assert_eq!(node(&half, "").name, "n".repeat(254));
    assert_eq!((node("", "").name, node("", "").value), ("(empty)".into(), "(empty)".into()));
    let _one = enter(&("n".repeat(300) + "1"));
    let one = reader.record()[0];
    drop(_one);
    let _two = enter(&("n".repeat(300) + "2"));
    assert_eq!(one, reader.record()[0], "they cannot be told apart");
}

#[test]
fn deep_paths_end_at_64_and_come_back() {
    const PUSHES: usize = 100_000;
    let reader = Reader::of_self();
    let mut guards = Vec::new();
    let mut words = Vec::new();
    for _ in 0..PUSHES {
        words.push(reader.record()[0]);
        guards.push(scope!("level"));
    }
    let deepest = reader.record()[0];
    assert_eq!(deepest as u32, words[64] as u32, "the node of level 64");
    assert_eq!(reader.path(deepest).split('/').count(), 64);
    assert_eq!(words[64] >> 33 & 1, 0);
    assert_eq!(words[65] >> 33 & 1, 1, "truncated");
    assert_eq!(words[65] >> 48, 65);
    assert_eq!(words[65_535] >> 48, 65_535);
    assert_eq!(deepest >> 48, 65_535, "saturated");
    assert_eq!(reader.truncations() as usize, PUSHES - 64);
    while let Some(guard) = guards.pop() {
        drop(guard);
        assert_eq!(reader.record()[0], words[guards.len()], "at {}", guards.len());
    }
    // a path that crosses the border ends on it
    for _ in 0..63 {
        guards.push(scope!("level"));
    }
    let crossing = scope!("a/b/c");
    let word = reader.record()[0];
    assert!(reader.path(word).ends_with("/level/a"));
    assert_eq!((word >> 48, word >> 33 & 1), (66, 1));
    assert_eq!(reader.truncations() as usize, PUSHES - 64 + 2);
    drop(crossing);
    while guards.pop().is_some() {} // a vector would drop the outermost first
}

#[test]
fn guards_out_of_order_are_underflows() {
    let reader = Reader::of_self();
    let outer = scope!("outer");
    let inner = scope!("inner");
    let innermost = scope!("innermost");
    drop(outer);
    assert_eq!(State::current(), State::ROOT, "all of it ended");
    drop(innermost);
    drop(inner);
    assert_eq!(State::current(), State::ROOT);
    assert_eq!(reader.underflows(), 2);
}

#[test]
fn threads_make_each_node_once() {
    let reader = Reader::of_self();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                (0..2000)
                    .map(|i| {
                        let _scope = enter(&format!("common {i}"));
                        reader.record()[0] as u32
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let ids: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    for (i, &id) in ids[0].iter().enumerate() {
        assert_eq!(reader.node(id).name, format!("common {i}"));
    }
    for other in &ids[1..] {
        assert_eq!(*other, ids[0]);
    }
}

/// Some of the children inherit the lock from a thread that they do not have.
#[test]
fn children_of_fork_go_on() {
    static STOP: AtomicU32 = AtomicU32::new(0);
    let reader = Reader::of_self();
    let busy = std::thread::spawn(|| {
        let mut i = 0;
        while STOP.load(Ordering::Relaxed) == 0 && i < 60_000 {
            let _scope = enter(&format!("busy {i}"));
            i += 1;
        }
    });
    let _scope = scope!("forks");
    for i in 0..150 {
        let pid = unsafe { fork() };
        if pid == 0 {
            let is_in_parents_scope = reader.here() == "forks";
            let _child = enter("child");
            let is_made = reader.here() == "forks/child";
            let is_noticed = reader.get::<u32>(84) == 1;
            let status = [is_in_parents_scope, is_made, is_noticed];
            unsafe { _exit(status.iter().position(|ok| !ok).map_or(0, |at| 1 + at as i32)) };
        }
        let mut status = -1;
        assert_eq!(unsafe { waitpid(pid, &mut status, 0) }, pid);
        assert_eq!(status, 0, "child {i}");
    }
    STOP.store(1, Ordering::Relaxed);
    busy.join().unwrap();
}

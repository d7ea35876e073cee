// SPDX-License-Identifier: MIT
//! What allocations are charged to, on one thread.

mod account;
mod reader;

use account::{alloc_cnt, block, charged, freed_in, is, reader, was_paused};
use heaptap_scope::{enter, label, pause, scope, task, State};

#[test]
fn stores_stay_around_the_allocations() {
    reader();
    // each of the stores would be dead for a compiler that knew no reader
    let scope = scope!("only");
    let kept = block(0);
    drop(scope);
    let outside = block(1);
    assert_eq!(charged(0), is("only", 0));
    assert_eq!(charged(1), is("", 0));
    drop((kept, outside));
    assert_eq!(freed_in(0), is("", 0));
}

#[test]
fn scopes_nest() {
    reader();
    let _top = scope!("Top");
    {
        let _a = scope!("A");
        drop(block(2));
        let _b = scope!("B");
        drop(block(3));
    }
    drop(block(4));
    let _b = scope!("B");
    drop(block(5));
    assert_eq!(charged(2), is("Top/A", 0));
    assert_eq!(charged(3), is("Top/A/B", 0));
    assert_eq!(charged(4), is("Top", 0));
    assert_eq!(charged(5), is("Top/B", 0));
}

#[test]
fn a_site_is_right_below_every_parent() {
    let reader = reader();
    let here = || {
        let _scope = scope!("shared/inner");
        reader.here()
    };
    for _ in 0..3 {
        let one = enter("one");
        assert_eq!(here(), "one/shared/inner");
        assert_eq!(here(), "one/shared/inner");
        drop(one);
        let _two = enter("two");
        assert_eq!(here(), "two/shared/inner");
    }
    assert_eq!(here(), "shared/inner");
    assert_eq!(reader.record()[0], 0);
}

#[test]
fn paths_are_written_in_two_ways() {
    let reader = reader();
    let one = {
        let _scope = scope!("way/of", "writing");
        assert_eq!(reader.record()[0] >> 48, 3);
        reader.record()[0]
    };
    let two = {
        let _scope = scope!("/way//of/writing/");
        reader.record()[0]
    };
    assert_eq!(one, two);
    let _dynamic = enter("way/of/writing");
    assert_eq!(reader.record()[0] >> 48, 1, "a dynamic name is one name");
    assert_eq!(reader.node(reader.record()[0] as u32).name, "way/of/writing");
}

#[test]
fn labels_and_tasks_are_parts_of_the_path() {
    reader();
    let _serve = scope!("serve");
    let conn = task("conn");
    let _tenant = label("tenant", "blue");
    drop(block(6));
    {
        let _conn = conn.enter(17);
        drop(block(7));
        let _parse = scope!("parse");
        drop(block(8));
        let _inner = task("request").enter(3);
        drop(block(9));
    }
    drop(block(10));
    assert_eq!(charged(6), is("serve/tenant=blue", 0));
    assert_eq!(charged(7), is("serve/conn#", 17));
    assert_eq!(charged(8), is("serve/conn#/parse", 17));
    assert_eq!(charged(9), is("serve/conn#/parse/request#", 3));
    assert_eq!(charged(10), is("serve/tenant=blue", 0));
}

#[test]
fn interleaved_tasks_keep_their_own() {
    reader();
    let (one, two) = (task("inter").start(1), task("inter").start(2));
    let a = {
        let _one = one.enter();
        block(11)
    };
    let b = {
        let _two = two.enter();
        block(12)
    };
    let _one = one.enter();
    drop(a);
    assert_eq!(charged(11), is("inter#", 1));
    assert_eq!(charged(12), is("inter#", 2));
    assert_eq!(freed_in(11), is("inter#", 1));
    drop(b);
    assert_eq!(freed_in(12), is("inter#", 1), "whoever frees");
    assert_ne!(task("inter").start_next().instance(), task("inter").start_next().instance());
}

#[test]
fn pauses_nest_and_outlive_scopes() {
    reader();
    let scope = scope!("paused");
    let outer = pause();
    {
        let _inner = pause();
        drop(block(13));
    }
    drop(block(14));
    drop(scope); // out of order: the pause goes on
    drop(block(15));
    {
        let _task = task("paused task").enter(1);
        drop(block(16));
    }
    let in_pause = scope!("in pause");
    drop(outer);
    drop(block(17));
    drop(in_pause);
    for i in [13, 14, 15, 16] {
        assert!(was_paused(i), "{i}");
    }
    assert!(!was_paused(17));
    assert_eq!(charged(17), is("in pause", 0));
    assert_eq!(State::current(), State::ROOT);
}

#[test]
fn pause_all_is_a_flag_of_the_descriptor() {
    let reader = reader();
    heaptap_scope::pause_all(true);
    assert_eq!(reader.get::<u16>(22), 1);
    heaptap_scope::pause_all(false);
    assert_eq!(reader.get::<u16>(22), 0);
}

#[test]
fn states_are_taken_and_given() {
    let reader = reader();
    let state = {
        let _scope = scope!("state");
        let _task = task("t").enter(5);
        State::current().with_context_record(0x1234)
    };
    assert_eq!(State::current(), State::ROOT);
    {
        let _here = state.enter();
        assert_eq!(reader.record(), [reader.record()[0], 5, 0x1234, 0]);
        assert_eq!(reader.here(), "state/t#");
    }
    assert_eq!(state.set(), State::ROOT);
    assert_eq!(State::current(), state);
    assert_eq!(State::ROOT.set(), state);
    assert_eq!(reader.record(), [0; 4]);
}

#[test]
fn threads_inherit() {
    let reader = reader();
    let _scope = scope!("spawner");
    let inner = heaptap_scope::spawn_thread(move || reader.here()).join().unwrap();
    assert_eq!(inner, "spawner");
    let work = heaptap_scope::inherit(move || reader.here());
    let inner = std::thread::spawn(move || (work(), reader.here())).join().unwrap();
    assert_eq!(inner, ("spawner".to_owned(), String::new()));
}

#[test]
fn panics_leave_scopes() {
    reader();
    let outcome = std::panic::catch_unwind(|| {
        let _scope = scope!("panics");
        let _task = task("panics").enter(1);
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(outcome.is_err());
    assert_eq!(State::current(), State::ROOT);
}

#[test]
fn nothing_here_calls_the_allocator() {
    reader();
    let before = alloc_cnt();
    {
        let _scope = scope!("never", "seen before");
        let _name = enter("nor this");
        let _label = label("key", "nor that");
        let task = task("nor a task").start(1);
        let _task = task.enter();
        let _pause = pause();
    }
    assert_eq!(alloc_cnt(), before);
}

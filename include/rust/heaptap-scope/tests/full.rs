// SPDX-License-Identifier: MIT
//! A million distinct names: the table fills up, the rest is "(other)", and everything goes on.
//! One test, because it leaves a full table behind.

mod reader;

use std::fmt::Write;

use heaptap_scope::{enter, label, scope, task, State};
use reader::Reader;

const CAP: u32 = 64 * 4096;
/// Set aside for "(other)".
const OTHERS: u32 = 16_384;

fn known(reader: &Reader) -> String {
    let _scope = scope!("known", "path");
    reader.here()
}

#[test]
fn a_million_names() {
    let reader = Reader::of_self();
    assert_eq!(known(&reader), "known/path");
    a_million(&reader);
    assert_eq!(State::current(), State::ROOT);
    assert_eq!(known(&reader), "known/path");
    below_other(&reader);
    no_room_for_other(&reader);
    assert_eq!(known(&reader), "known/path");
}

fn a_million(reader: &Reader) {
    const NAMES: u32 = 1_000_000;
    let before = reader.node_cnt();
    let mut name = String::new();
    let mut other_cnt = 0;
    for i in 0..NAMES {
        name.clear();
        write!(name, "name {i}").unwrap();
        let _scope = enter(&name);
        let node = reader.record()[0] as u32;
        if i < CAP - OTHERS - before {
            assert_eq!(node, before + i);
        } else {
            assert_eq!(node, CAP - OTHERS, "the first that was set aside");
            other_cnt += 1;
        }
    }
    assert_eq!(reader.node_cnt(), CAP - OTHERS + 1);
    assert_eq!((reader.node(CAP - OTHERS).kind, reader.node(CAP - OTHERS).parent), (4, 0));
    assert_eq!(reader.overflows(), other_cnt);
    // names of all chunks are still what they were
    for i in (0..CAP - OTHERS - before).step_by(997) {
        assert_eq!(reader.node(before + i).name, format!("name {i}"));
        let _scope = enter(&format!("name {i}"));
        assert_eq!(reader.record()[0] as u32, before + i);
    }
}

fn below_other(reader: &Reader) {
    let _outer = scope!("known");
    let new = scope!("new", "names");
    assert_eq!(reader.here(), "known/(other)");
    assert_eq!(reader.record()[0] >> 48, 3);
    {
        let _label = label("key", "value");
        assert_eq!(reader.here(), "known/(other)");
    }
    drop(new);
    assert_eq!(reader.here(), "known");
    {
        let _path = scope!("path");
        assert_eq!(reader.here(), "known/path");
    }
    for _ in 0..3 {
        let _again = scope!("new", "names");
        assert_eq!(reader.here(), "known/(other)");
    }
    // the instance would be that of another task
    let task = task("new").start(9);
    let _task = task.enter();
    assert_eq!((reader.here().as_str(), reader.record()[1]), ("known/(other)", 0));
}

fn no_room_for_other(reader: &Reader) {
    for i in 0..OTHERS {
        let _known = enter(&format!("name {i}"));
        let _new = enter("new");
    }
    assert_eq!(reader.node_cnt(), CAP);
    let _known = enter(&format!("name {OTHERS}"));
    let _new = enter("new");
    assert_eq!(reader.here(), format!("name {OTHERS}"), "the parent itself");
    assert_eq!(reader.record()[0] >> 48, 2);
}

// SPDX-License-Identifier: MIT
//! Compiled to nothing: the program has no note, and scopes have no effect. Run with the feature
//! `disable` only.

mod reader;

use heaptap_scope::{enter, inherit, label, pause, scope, task, FutureExt, State};

#[test]
fn nothing_is_there() {
    let elf = std::fs::read("/proc/self/exe").unwrap();
    assert!(reader::probes(&elf).is_empty());
    assert!(reader::section_vaddr(&elf, ".probes").is_none());
}

#[test]
fn nothing_happens() {
    let _scope = scope!("Top/A");
    let _name = enter("B");
    let _label = label("key", "value");
    let handle = task("task").start(1);
    let _task = handle.enter();
    let _pause = pause();
    heaptap_scope::pause_all(true);
    assert_eq!(State::current(), State::ROOT);
    assert!(!heaptap_scope::is_watched());
    drop(async {}.in_task(handle));
    inherit(|| ())();
}

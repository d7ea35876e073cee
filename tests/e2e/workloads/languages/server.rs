// SPDX-License-Identifier: MIT
// For the manual: vectors, which are malloc's.
use std::{thread, time::Duration};

#[inline(never)]
fn load_document(kept: &mut Vec<Vec<u8>>) {
    kept.push(vec![1u8; 30000]);
}

fn main() {
    let mut kept = Vec::new();
    println!("READY");
    loop {
        load_document(&mut kept);
        thread::sleep(Duration::from_millis(5));
    }
}

// SPDX-License-Identifier: MIT
//! What the programs share: the protocol of ledger.h, and sites whose sums are known beforehand.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::mem::forget;

pub const KEEP: usize = 5;
pub const TRIES: usize = 7;

/// Allocates TRIES blocks of `size` bytes and keeps KEEP of them; to be inlined into a site.
#[inline(always)]
pub fn allocate(size: usize) {
    for i in 0..TRIES {
        let v: Vec<u8> = black_box(Vec::with_capacity(size));
        if i < KEEP {
            forget(v);
        } else {
            drop(v);
        }
    }
}

/// A site of that name, which the comparison finds by it.
#[macro_export]
macro_rules! site {
    ($name:ident, $size:expr) => {
        #[no_mangle]
        #[inline(never)]
        fn $name() {
            rust_labels::allocate($size);
        }
    };
}

fn wait_line() {
    if std::env::var_os("E2E_NOWAIT").is_none() {
        let _ = io::stdin().lock().read_line(&mut String::new());
    }
}

pub fn ready() {
    println!("READY {}", std::process::id());
    wait_line();
}

/// sites: name, thread, size, how often it was called.
pub fn done(sites: &[(&str, &str, usize, usize)]) {
    for (site, thread, size, calls) in sites {
        let (inuse, alloc) = (KEEP * calls, TRIES * calls);
        println!(
            "EXPECT {site} {thread} {} {inuse} {} {alloc}",
            size * inuse,
            size * alloc
        );
    }
    println!("DONE");
    let _ = io::stdout().flush();
    wait_line();
}

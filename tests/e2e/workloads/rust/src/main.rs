// SPDX-License-Identifier: MIT
//! The Rust workload: Box, Vec, String, HashMap, Rc, reallocation and threads. The protocol and the
//! EXPECT lines are those of ledger.h; what must come out is arithmetic here, because a table of
//! blocks would allocate. Sites keep their plain names so that the comparison finds them.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::mem::{forget, size_of};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn expect(lines: &mut Vec<String>, site: &str, thread: &str, size: usize, alloc: usize, inuse: usize) {
    lines.push(format!(
        "EXPECT {site} {thread} {} {inuse} {} {alloc}",
        size * inuse,
        size * alloc
    ));
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_box() {
    for i in 0..11u64 {
        forget(black_box(Box::new([i; 127])));
    }
    for i in 0..7u64 {
        drop(black_box(Box::new([i; 127])));
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_vec_with_capacity() {
    for _ in 0..13 {
        forget(black_box(Vec::<u8>::with_capacity(1093)));
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_vec_growth() -> usize {
    let mut v: Vec<u32> = Vec::new();
    for i in 0..10007u32 {
        v.push(black_box(i));
    }
    let bytes = v.capacity() * 4;
    forget(black_box(v));
    bytes
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_vec_shrink() -> usize {
    let mut v: Vec<u8> = Vec::with_capacity(100_003);
    v.resize(1097, 1);
    v.shrink_to_fit();
    let bytes = v.capacity();
    forget(black_box(v));
    bytes
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_string() -> usize {
    let mut s = String::new();
    for i in 0..1009 {
        s.push_str(if black_box(i) % 2 == 0 { "even" } else { "odd" });
    }
    let bytes = s.capacity();
    forget(black_box(s));
    bytes
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_box_dyn() {
    for _ in 0..5 {
        let b: Box<dyn Fn() -> u64> = Box::new({
            let big = [black_box(3u64); 139];
            move || big[0]
        });
        forget(black_box(b));
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_zeroed() {
    for _ in 0..7 {
        unsafe { black_box(alloc_zeroed(Layout::from_size_align_unchecked(1103, 8))) };
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_aligned() {
    for _ in 0..5 {
        unsafe { black_box(alloc(Layout::from_size_align_unchecked(1109, 256))) };
    }
    unsafe {
        let layout = Layout::from_size_align_unchecked(1109, 256);
        dealloc(black_box(alloc(layout)), layout);
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_realloc() {
    unsafe {
        let p = alloc(Layout::from_size_align_unchecked(103, 8));
        let p = realloc(black_box(p), Layout::from_size_align_unchecked(103, 8), 200_003);
        let p = realloc(black_box(p), Layout::from_size_align_unchecked(200_003, 8), 1117);
        black_box(p);
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_hash_map() -> usize {
    let mut m: HashMap<u64, [u64; 16]> = HashMap::new();
    for i in 0..1009u64 {
        m.insert(i, [i; 16]);
    }
    // a table is one block; 1009 entries need 2048 buckets: entries, then a byte each, then 16
    let bytes = 2048 * size_of::<(u64, [u64; 16])>() + 2048 + 16;
    forget(black_box(m));
    bytes
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_in_thread(n: usize) {
    for _ in 0..n {
        forget(black_box(Vec::<u8>::with_capacity(1123)));
    }
}

#[no_mangle]
#[inline(never)]
extern "C" fn site_sent() -> Vec<Box<[u8; 1129]>> {
    let mut v = Vec::with_capacity(20);
    for _ in 0..19 {
        v.push(black_box(Box::new([1u8; 1129])));
    }
    v
}

fn wait_line() {
    if std::env::var_os("E2E_NOWAIT").is_none() {
        let mut line = String::new();
        let _ = io::stdin().lock().read_line(&mut line);
    }
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

fn main() {
    let name = std::env::args().next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or("").chars().take(15).collect::<String>();
    let mut lines = Vec::new();
    // not recorded sites: whatever std does for itself happens here
    say(&format!("READY {}", std::process::id()));
    wait_line();

    site_box();
    expect(&mut lines, "site_box", &name, 127 * 8, 18, 11);
    site_vec_with_capacity();
    expect(&mut lines, "site_vec_with_capacity", &name, 1093, 13, 13);
    let growth = site_vec_growth();
    lines.push(format!("EXPECT site_vec_growth {name} {growth} 1 - -"));
    let shrunk = site_vec_shrink();
    lines.push(format!("EXPECT site_vec_shrink {name} {shrunk} 1 {} 2", shrunk + 100_003));
    let string = site_string();
    lines.push(format!("EXPECT site_string {name} {string} 1 - -"));
    site_box_dyn();
    expect(&mut lines, "site_box_dyn", &name, 139 * 8, 5, 5);
    site_zeroed();
    expect(&mut lines, "site_zeroed", &name, 1103, 7, 7);
    site_aligned();
    expect(&mut lines, "site_aligned", &name, 1109, 6, 5);
    site_realloc();
    lines.push(format!("EXPECT site_realloc {name} 1117 1 {} 3", 103 + 200_003 + 1117));
    let map = site_hash_map();
    lines.push(format!("EXPECT site_hash_map {name} {map} 1 - -"));

    let threads: Vec<_> = (1..=4)
        .map(|i| {
            std::thread::Builder::new()
                .name(format!("rust{i}"))
                .spawn(move || {
                    site_in_thread(i * 101);
                    drop(site_sent());
                    site_sent()
                })
                .expect("a thread")
        })
        .collect();
    for (i, t) in threads.into_iter().enumerate() {
        let kept = t.join().expect("no panic");
        // freed here, by another thread, but for one
        let mut kept = kept.into_iter();
        forget(kept.next());
        drop(kept);
        let thread = format!("rust{}", i + 1);
        expect(&mut lines, "site_in_thread", &thread, 1123, (i + 1) * 101, (i + 1) * 101);
        // and the vectors that carried them, of 20 pointers
        lines.push(format!("EXPECT site_sent {thread} 1129 1 {} 40", 2 * (19 * 1129 + 20 * 8)));
    }
    for line in &lines {
        say(line);
    }
    say("DONE");
    wait_line();
}

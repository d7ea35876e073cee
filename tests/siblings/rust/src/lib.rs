// SPDX-License-Identifier: MIT
//! A library with a global allocator of its own, that counts what it holds, as modules for Python and Node have.
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;

#[cfg(feature = "jemalloc")]
static INNER: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
#[cfg(feature = "mi")]
static INNER: mimalloc::MiMalloc = mimalloc::MiMalloc;
#[cfg(not(any(feature = "jemalloc", feature = "mi")))]
static INNER: std::alloc::System = std::alloc::System;

static HELD: AtomicUsize = AtomicUsize::new(0);
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

struct Counting;
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        HELD.fetch_add(l.size(), Relaxed);
        unsafe { INNER.alloc(l) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        HELD.fetch_sub(l.size(), Relaxed);
        unsafe { INNER.dealloc(p, l) }
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, size: usize) -> *mut u8 {
        HELD.fetch_add(size, Relaxed);
        HELD.fetch_sub(l.size(), Relaxed);
        unsafe { INNER.realloc(p, l, size) }
    }
}
#[global_allocator]
static GLOBAL: Counting = Counting;

#[inline(never)]
fn keep_request(i: usize) {
    let mut kept = KEPT.lock().unwrap();
    kept.push(vec![1; 10000 + i % 13]);
    // of three one is freed again
    let passing = vec![2u8; 5000];
    std::hint::black_box(&passing);
}

#[no_mangle]
pub extern "C" fn work(cnt: usize) {
    for i in 0..cnt {
        keep_request(i);
    }
}

#[no_mangle]
pub extern "C" fn held_bytes() -> usize {
    HELD.load(Relaxed)
}

// SPDX-License-Identifier: MIT
//! An allocator that reads the record at each allocation, as heaptap does at the ones it samples:
//! what it finds is what would be charged, whatever the compiler moved. Blocks are told apart by
//! their sizes, 100000 and up, each used once.
#![allow(dead_code)] // each test uses a part of it

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::reader::{thread_pointer, Reader};

pub const FIRST: usize = 100_000;
pub const CNT: usize = 64;

#[derive(Clone, Copy)]
struct Seen {
    alloc: [u64; 4],
    free: [u64; 4],
}
struct Book(UnsafeCell<[Seen; CNT]>);
// Each size is used by one thread at a time.
unsafe impl Sync for Book {}
static BOOK: Book = Book(UnsafeCell::new([Seen { alloc: [0; 4], free: [0; 4] }; CNT]));
static OFFSET: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ALLOC_CNT: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread allocated.
pub fn alloc_cnt() -> u64 {
    ALLOC_CNT.with(Cell::get)
}

struct Account;
#[global_allocator]
static ACCOUNT: Account = Account;

fn note(size: usize, put: impl Fn(&mut Seen, [u64; 4])) {
    if (FIRST..FIRST + CNT).contains(&size) {
        let addr = thread_pointer().wrapping_add(OFFSET.load(Ordering::Relaxed));
        unsafe {
            let record = (addr as *const [u64; 4]).read_volatile();
            put(&mut (*BOOK.0.get())[size - FIRST], record);
        }
    }
}

unsafe impl GlobalAlloc for Account {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), |seen, record| seen.alloc = record);
        ALLOC_CNT.with(|cnt| cnt.set(cnt.get() + 1));
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        note(layout.size(), |seen, record| seen.free = record);
        System.dealloc(p, layout)
    }
}

/// To be called first.
pub fn reader() -> Reader {
    let reader = Reader::of_self();
    let offset = reader.record_addr().wrapping_sub(thread_pointer());
    OFFSET.store(offset, Ordering::Relaxed);
    reader
}

pub fn block(i: usize) -> Vec<u8> {
    assert!(i < CNT);
    // a block that is dropped at once could be left out
    std::hint::black_box(Vec::with_capacity(FIRST + i))
}

fn seen(i: usize) -> Seen {
    unsafe { (*BOOK.0.get())[i] }
}

/// Scope and instance that block i was allocated under.
pub fn charged(i: usize) -> (String, u64) {
    let record = seen(i).alloc;
    (reader().path(record[0]), record[1])
}

pub fn was_paused(i: usize) -> bool {
    seen(i).alloc[0] >> 32 & 1 != 0
}

/// Scope and instance that it was freed under.
pub fn freed_in(i: usize) -> (String, u64) {
    let record = seen(i).free;
    (reader().path(record[0]), record[1])
}

pub fn is(path: &str, instance: u64) -> (String, u64) {
    (path.to_owned(), instance)
}

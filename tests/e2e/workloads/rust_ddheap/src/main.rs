// SPDX-License-Identifier: MIT
//! A program that samples its allocations itself, by Datadog's published allocator, and tells of them in `ddheap:alloc`
//! and `ddheap:free`. Says READY, waits for a line, allocates, says DONE, and ends with its input.

use libdd_profiling_heap_allocator::SampledAllocator;
use std::alloc::System;
use std::hint::black_box;
use std::io::{self, BufRead};

#[global_allocator]
static ALLOC: SampledAllocator<System> = SampledAllocator::<System>::DEFAULT;

type Blocks = Vec<Vec<u8>>;

#[no_mangle]
#[inline(never)]
extern "Rust" fn site_kept(blocks: &mut Blocks) {
    for i in 0..100_000u32 {
        blocks.push(black_box(vec![i as u8; 1000]));
    }
}

#[no_mangle]
#[inline(never)]
extern "Rust" fn site_freed() {
    for i in 0..200_000u32 {
        drop(black_box(vec![i as u8; 1000]));
    }
}

#[no_mangle]
#[inline(never)]
extern "Rust" fn site_grown(blocks: &mut Blocks) {
    for i in 0..5_000u32 {
        let mut block = black_box(vec![i as u8; 1000]);

        block.resize(10_000, 1);
        blocks.push(black_box(block));
    }
}

fn main() {
    let mut blocks = Blocks::with_capacity(200_000);
    let mut lines = io::stdin().lock().lines();

    println!("READY");
    lines.next();
    site_kept(&mut blocks);
    site_freed();
    site_grown(&mut blocks);
    println!("DONE {}", blocks.len());
    lines.next();
}

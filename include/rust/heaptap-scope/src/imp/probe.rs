// SPDX-License-Identifier: MIT
//! The statically defined probes: a nop each, and a note that says where it is, what its
//! arguments are, and that its semaphore is the descriptor. The notes are how a reader finds us:
//! they survive strip and every linker, and need no symbol table.
//!
//! The functions are never inlined, so that the arguments are in the registers that the notes
//! name, and none of them is relative to the thread pointer. `.stapsdt.base` is what other
//! programs' probes have as well; tools that moved a file after linking it left its old address in
//! the notes. `R` keeps linkers that collect unused sections from dropping it.

use core::arch::asm;

use super::abi::{Descriptor, Node};
use super::DESCRIPTOR;

#[cfg(target_arch = "x86_64")]
macro_rules! arg {
    (0) => {
        "8@%rdi"
    };
    (1) => {
        " 8@%rsi"
    };
    (2) => {
        " 8@%rdx"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! arg {
    (0) => {
        "8@x0"
    };
    (1) => {
        " 8@x1"
    };
    (2) => {
        " 8@x2"
    };
}

// The operands of each architecture have names of their own, so the statement is made per one.
#[cfg(target_arch = "x86_64")]
macro_rules! with_args {
    ($($line:expr),*; $a:expr) => {
        asm!($($line),*, sema = sym DESCRIPTOR, in("rdi") $a, options(nostack, preserves_flags))
    };
    ($($line:expr),*; $a:expr, $b:expr) => {
        asm!($($line),*, sema = sym DESCRIPTOR, in("rdi") $a, in("rsi") $b,
            options(nostack, preserves_flags))
    };
    ($($line:expr),*; $a:expr, $b:expr, $c:expr) => {
        asm!($($line),*, sema = sym DESCRIPTOR, in("rdi") $a, in("rsi") $b, in("rdx") $c,
            options(nostack, preserves_flags))
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! with_args {
    ($($line:expr),*; $a:expr) => {
        asm!($($line),*, sema = sym DESCRIPTOR, in("x0") $a, options(nostack, preserves_flags))
    };
    ($($line:expr),*; $a:expr, $b:expr) => {
        asm!($($line),*, sema = sym DESCRIPTOR, in("x0") $a, in("x1") $b,
            options(nostack, preserves_flags))
    };
    ($($line:expr),*; $a:expr, $b:expr, $c:expr) => {
        asm!($($line),*, sema = sym DESCRIPTOR, in("x0") $a, in("x1") $b, in("x2") $c,
            options(nostack, preserves_flags))
    };
}

macro_rules! probe {
    ($name:literal, $args:expr; $($value:expr),*) => {
        with_args!(
            "990: nop",
            ".pushsection .note.stapsdt, \"\", \"note\"",
            ".balign 4",
            ".4byte 992f - 991f, 994f - 993f, 3",
            "991: .asciz \"stapsdt\"",
            "992: .balign 4",
            "993: .8byte 990b",
            ".8byte _.stapsdt.base",
            ".8byte {sema}",
            ".asciz \"heaptap\"",
            concat!(".asciz \"", $name, "\""),
            concat!(".asciz \"", $args, "\""),
            "994: .balign 4",
            ".popsection",
            ".ifndef _.stapsdt.base",
            ".pushsection .stapsdt.base, \"aGR\", \"progbits\", .stapsdt.base, comdat",
            ".weak _.stapsdt.base",
            ".hidden _.stapsdt.base",
            "_.stapsdt.base: .space 1",
            ".size _.stapsdt.base, 1",
            ".popsection",
            ".endif";
            $($value),*
        )
    };
}

/// The descriptor can be read from now on.
#[inline(never)]
pub(crate) extern "C" fn tls_v1(descriptor: &'static Descriptor) {
    unsafe { probe!("tls_v1", arg!(0); descriptor) }
}

#[inline(never)]
pub(crate) extern "C" fn node(id: u64, node: *const Node) {
    unsafe { probe!("node", concat!(arg!(0), arg!(1)); id, node) }
}

#[inline(never)]
pub(crate) extern "C" fn task_exit(node: u64, instance: u64, descriptor: &'static Descriptor) {
    unsafe { probe!("task_exit", concat!(arg!(0), arg!(1), arg!(2)); node, instance, descriptor) }
}

/// A linker drops functions that nobody uses, but not their notes, which then point nowhere. Not
/// every program has tasks.
pub(crate) fn use_task_exit() {
    core::hint::black_box(task_exit as *const ());
}

// SPDX-License-Identifier: MIT
//! Where the thread's record is, and how it is written.
//!
//! The reader knows one number, the record's distance from the thread pointer, so the record must
//! be in the static TLS block. Stable Rust cannot ask for that: a `thread_local!` has the model
//! that the linker finds, which in a shared object is a block of its own per thread. So it is
//! defined in assembly and reached by the initial-exec model; a library that is dlopened takes its
//! 32 bytes from the spare room that glibc keeps for such things. musl has no such room: there it
//! is a `thread_local!`, which with a constant and no destructor is a plain variable, and
//! `start.rs` finds out whether it is static.
//!
//! Only `static_offset` names the symbol. It is local, so that two copies of the crate in one
//! program cannot meet, and everything that is inlined elsewhere goes through the number in the
//! descriptor, which costs one load.

use core::arch::asm;
use core::sync::atomic::{compiler_fence, Ordering};

use super::abi::Record;
use super::{start, DESCRIPTOR};
use crate::State;

/// The current thread's record. Not Send, as it is a pointer.
#[derive(Clone, Copy)]
pub(crate) struct Here(*const Record);

#[inline(always)]
pub(crate) fn here() -> Here {
    // 0 before the start, and for ever where the record has no fixed place
    let offset = DESCRIPTOR.tls_offset.load(Ordering::Relaxed);
    if offset != 0 {
        Here((thread_pointer() as *const u8).wrapping_offset(offset as isize).cast())
    } else {
        Here(find())
    }
}

#[cold]
#[inline(never)]
fn find() -> *const Record {
    start::start();
    address()
}

impl Here {
    #[inline(always)]
    pub(crate) fn scope(self) -> u64 {
        unsafe { (*self.0).scope.get().read_volatile() }
    }

    /// What was allocated before belongs to the old scope, what is allocated from now on to the
    /// new one: neither may be moved across the store.
    #[inline(always)]
    pub(crate) fn set_scope(self, scope: u64) {
        compiler_fence(Ordering::SeqCst);
        unsafe { (*self.0).scope.get().write_volatile(scope) };
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    pub(crate) fn state(self) -> State {
        unsafe {
            State {
                scope: (*self.0).scope.get().read_volatile(),
                instance: (*self.0).instance.get().read_volatile(),
                kv: (*self.0).kv.get().read_volatile(),
            }
        }
    }

    /// A signal handler between the stores sees a new instance with the old scope, for which it
    /// means nothing; the reader never does, because nothing allocates there.
    #[inline(always)]
    pub(crate) fn set_state(self, state: State) {
        compiler_fence(Ordering::SeqCst);
        unsafe {
            (*self.0).instance.get().write_volatile(state.instance);
            (*self.0).kv.get().write_volatile(state.kv);
        }
        self.set_scope(state.scope);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn thread_pointer() -> usize {
    let tp: usize;
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) tp,
            options(pure, readonly, nostack, preserves_flags))
    };
    tp
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn thread_pointer() -> usize {
    let tp: usize;
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) tp,
            options(pure, nomem, nostack, preserves_flags))
    };
    tp
}

#[cfg(not(target_env = "musl"))]
mod place {
    use super::{asm, thread_pointer, Record};

    #[cfg(target_arch = "x86_64")]
    macro_rules! load_offset {
        () => {
            "mov {offset}, qword ptr [rip + heaptap_scope_record@GOTTPOFF]"
        };
    }
    #[cfg(target_arch = "aarch64")]
    macro_rules! load_offset {
        () => {
            "adrp {offset}, :gottprel:heaptap_scope_record
             ldr {offset}, [{offset}, :gottprel_lo12:heaptap_scope_record]"
        };
    }

    /// Of the record from the thread pointer. Must exist once, as it holds the definition: not
    /// inlined, not generic, no arguments that it could be specialised for.
    #[inline(never)]
    #[allow(named_asm_labels)] // a TLS relocation needs a symbol
    pub(in crate::imp) fn static_offset() -> isize {
        let offset: isize;
        unsafe {
            asm!(
                ".pushsection .tbss.heaptap_scope_record, \"awT\", \"nobits\"",
                ".balign 16",
                "heaptap_scope_record: .zero 32",
                ".size heaptap_scope_record, 32",
                ".popsection",
                load_offset!(),
                offset = out(reg) offset,
                options(pure, readonly, nostack, preserves_flags)
            )
        };
        offset
    }

    pub(in crate::imp) fn address() -> *const Record {
        (thread_pointer() as *const u8).wrapping_offset(static_offset()).cast()
    }
}

#[cfg(target_env = "musl")]
mod place {
    use super::Record;
    use core::cell::UnsafeCell;

    std::thread_local! {
        static RECORD: Record = const { Record {
            scope: UnsafeCell::new(0),
            instance: UnsafeCell::new(0),
            kv: UnsafeCell::new(0),
            reserved: UnsafeCell::new(0),
        } };
    }

    pub(in crate::imp) fn address() -> *const Record {
        RECORD.with(|record| record as *const Record)
    }
}

pub(super) use place::*;

// SPDX-License-Identifier: MIT
//! The runtime: everything that touches the ABI. `off.rs` has the same functions with nothing in
//! them, for systems without heaptap and for builds that do not want it.

mod abi;
mod probe;
mod record;
mod start;
mod table;

use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

pub(crate) use abi::Kind;
pub(crate) use abi::{DEPTH_CAP, DEPTH_MAX, DEPTH_SHIFT, NODE_MASK, PAUSED};
pub(crate) use record::{here, Here};

use abi::{Descriptor, Node, Record, CHUNKS_CAP, DEPTH_CAP as CAP, PAUSE_ALL, TRUNCATED};

pub(crate) const ACTIVE: bool = true;

#[allow(clippy::declare_interior_mutable_const)] // the initial value of an array's elements
const NO_CHUNK: AtomicPtr<Node> = AtomicPtr::new(core::ptr::null_mut());

/// In the section that debuggers know semaphores in: it stays writable, and no linker drops it.
#[used]
#[link_section = ".probes"]
pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    semaphore: AtomicU16::new(0),
    major: 1,
    minor: 0,
    size: core::mem::size_of::<Descriptor>() as u16,
    magic: *b"HEAPTAP\0",
    record_size: core::mem::size_of::<Record>() as u16,
    node_size: core::mem::size_of::<Node>() as u16,
    tls_mode: AtomicU8::new(abi::MODE_NOT_READY),
    pointer_size: core::mem::size_of::<usize>() as u8,
    flags: AtomicU16::new(0),
    tls_offset: core::sync::atomic::AtomicI64::new(0),
    dtv_module: AtomicU64::new(0),
    dtv_offset: AtomicU64::new(0),
    node_capacity: abi::NODES_CAP,
    node_count: AtomicU32::new(0),
    chunk_shift: abi::CHUNK_SHIFT,
    overflows: AtomicU32::new(0),
    kv_keys: AtomicU64::new(0),
    underflows: AtomicU32::new(0),
    truncations: AtomicU32::new(0),
    pid: AtomicU32::new(0),
    epoch: AtomicU32::new(0),
    registry: AtomicU64::new(0),
    reserved: [0; 4],
    chunks: [NO_CHUNK; CHUNKS_CAP],
};

/// The scope word of a child of `scope`, and whether it has a node of its own.
pub(crate) fn push(scope: u64, kind: Kind, name: &str, value: &str) -> (u64, bool) {
    let depth = scope >> DEPTH_SHIFT;
    if depth >= CAP {
        DESCRIPTOR.truncations.fetch_add(1, Ordering::Relaxed);
        let depth = (depth + 1).min(DEPTH_MAX);
        return ((scope & (NODE_MASK | PAUSED)) | TRUNCATED | depth << DEPTH_SHIFT, false);
    }
    let (node, is_made) = table::child(scope as u32, kind, name, value);
    ((scope & PAUSED) | u64::from(node) | (depth + 1) << DEPTH_SHIFT, is_made)
}

/// A guard was dropped whose scope had ended already.
#[cold]
pub(crate) fn count_underflow() {
    DESCRIPTOR.underflows.fetch_add(1, Ordering::Relaxed);
}

/// Tells readers that an instance will allocate nothing any more. Whether or not the semaphore says
/// that there are any: lld makes two writable segments of the read-only-after-relocation part and
/// the rest, which may share a page of the file, and at the start of a program the kernel then
/// counts in the wrong one. The call of a nop costs 1 ns.
#[inline]
pub(crate) fn task_exit(node: u32, instance: u64) {
    probe::task_exit(u64::from(node), instance, &DESCRIPTOR);
}

pub(crate) fn is_watched() -> bool {
    DESCRIPTOR.semaphore.load(Ordering::Relaxed) != 0
}

pub(crate) fn pause_all(on: bool) {
    start::start();
    if on {
        DESCRIPTOR.flags.fetch_or(PAUSE_ALL, Ordering::Relaxed);
    } else {
        DESCRIPTOR.flags.fetch_and(!PAUSE_ALL, Ordering::Relaxed);
    }
    // The flags have changed: readers look again.
    probe::tls_v1(&DESCRIPTOR);
}

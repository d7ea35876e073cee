// SPDX-License-Identifier: MIT
//! The layouts that a reader in another process relies on: version 1 of the tag ABI.
//!
//! Fixed-width fields only. The reader copies these structs out of the process and believes no
//! value in them; what is asserted here is what it is told to expect.

use core::cell::UnsafeCell;
use core::mem::{align_of, size_of};
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicU8};

/// Bits of [`Record::scope`]: 0-31 node, 32 paused, 33 truncated, 48-63 depth.
pub(crate) const NODE_MASK: u64 = 0xffff_ffff;
pub(crate) const PAUSED: u64 = 1 << 32;
pub(crate) const TRUNCATED: u64 = 1 << 33;
pub(crate) const DEPTH_SHIFT: u32 = 48;
pub(crate) const DEPTH_MAX: u64 = 0xffff;
/// No nodes below this depth; pushes are counted in the depth only.
pub(crate) const DEPTH_CAP: u64 = 64;

/// The thread-local record. Only its own thread writes it, and the reader runs on that thread,
/// inside a call to malloc: volatile stores and compiler fences are enough, and are needed.
#[repr(C, align(16))]
pub(crate) struct Record {
    pub scope: UnsafeCell<u64>,
    pub instance: UnsafeCell<u64>,
    pub kv: UnsafeCell<u64>,
    pub reserved: UnsafeCell<u64>,
}

pub(crate) const ROOT: u32 = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Tag = 1,
    Label = 2,
    Task = 3,
    Other = 4,
}

pub(crate) const NAME_CAP: usize = 255;
pub(crate) const NAME_CUT: u16 = 1;
pub(crate) const VALUE_CUT: u16 = 2;

/// One scope of the tree. Complete before its id is published, and never changed afterwards.
#[repr(C)]
pub(crate) struct Node {
    pub parent: u32,
    pub kind: u16,
    pub flags: u16,
    pub name: u64,
    pub value: u64,
    pub name_len: u16,
    pub value_len: u16,
    pub hash: u32,
}

pub(crate) const CHUNK_SHIFT: u32 = 12;
pub(crate) const CHUNK_NODES: usize = 1 << CHUNK_SHIFT;
pub(crate) const CHUNKS_CAP: usize = 64;
pub(crate) const NODES_CAP: u32 = (CHUNK_NODES * CHUNKS_CAP) as u32;

pub(crate) const MODE_NOT_READY: u8 = 0;
pub(crate) const MODE_STATIC: u8 = 1;
#[cfg_attr(not(target_env = "musl"), allow(dead_code))]
pub(crate) const MODE_DTV: u8 = 2;

/// [`Descriptor::flags`]: nothing is recorded, whichever thread allocates.
pub(crate) const PAUSE_ALL: u16 = 1;

/// What a reader finds through the probe `heaptap:tls_v1`, whose semaphore this starts with.
#[repr(C, align(64))]
pub(crate) struct Descriptor {
    pub semaphore: AtomicU16, // the kernel's: how many tracers are attached
    pub major: u16,
    pub minor: u16,
    pub size: u16,
    pub magic: [u8; 8],
    pub record_size: u16,
    pub node_size: u16,
    pub tls_mode: AtomicU8, // stored last
    pub pointer_size: u8,
    pub flags: AtomicU16,
    pub tls_offset: AtomicI64, // of the record from the thread pointer
    pub dtv_module: AtomicU64,
    pub dtv_offset: AtomicU64,
    pub node_capacity: u32,
    pub node_count: AtomicU32, // stored after the node is complete
    pub chunk_shift: u32,
    pub overflows: AtomicU32,
    pub kv_keys: AtomicU64,
    pub underflows: AtomicU32,
    pub truncations: AtomicU32,
    pub pid: AtomicU32,
    pub epoch: AtomicU32, // how many forks lie between that process and this one, as far as noticed
    pub registry: AtomicU64,
    pub reserved: [u64; 4],
    pub chunks: [AtomicPtr<Node>; CHUNKS_CAP],
}

// offset_of! would need a later compiler; sizes and the tests pin the offsets.
const _: () = assert!(size_of::<Record>() == 32, "the reader reads 32 bytes");
const _: () = assert!(align_of::<Record>() <= 16, "alignment of the record");
const _: () = assert!(size_of::<Node>() == 32, "node i is at 32 * i of its chunk");
const _: () = assert!(size_of::<Descriptor>() == 640, "size of the descriptor");
const _: () = assert!(align_of::<Descriptor>() == 64, "alignment of the descriptor");
const _: () = assert!(DEPTH_CAP < DEPTH_MAX, "depth goes on where nodes end");

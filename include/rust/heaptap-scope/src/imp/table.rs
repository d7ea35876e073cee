// SPDX-License-Identifier: MIT
//! The table of nodes: found without a lock, extended under one that is only ever tried.
//!
//! A node is complete before its id is stored in the index, and before the count covers it, so
//! whoever sees the id may read the node. Nothing is ever removed or moved.
//!
//! The lock knows its owner: process and thread. A signal handler that interrupts the owner sees
//! that and gives up at once; other threads wait for a bounded time. A child of fork may inherit the
//! lock from a thread that it does not have: it takes it over, and nothing is lost, because what
//! that thread had not published is simply written again.
//!
//! A node that cannot be made is counted. When the table is full, its bytes go to a child "(other)"
//! of the parent, for which the last nodes are set aside; else, and when those are used up as well,
//! to the parent itself.
//!
//! Memory comes from mmap and the zero pages of this object: never from malloc, which may be
//! what called us.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::abi::{
    Kind, Node, CHUNK_NODES, CHUNK_SHIFT, NAME_CAP, NAME_CUT, NODES_CAP, ROOT, VALUE_CUT,
};
use super::{probe, record, start, DESCRIPTOR};

/// The last nodes are for "(other)".
const OTHERS: u32 = 16_384;
const OTHER_NAME: &str = "(other)";
const EMPTY_NAME: &str = "(empty)";

const INDEX_SHIFT: u32 = 19; // at most half full
const INDEX_MASK: usize = (1 << INDEX_SHIFT) - 1;
const ARENA_BYTES: usize = 1 << 16;
/// How often the lock is tried: at first at once, then after pauses that give its owner, who may
/// have lost the processor, some 20 ms.
const TRIES: u32 = 300;
const QUICK_TRIES: u32 = 100;

#[allow(clippy::declare_interior_mutable_const)] // the initial value of an array's elements
const EMPTY: AtomicU32 = AtomicU32::new(0);
/// Open addressing by hash; 0 = free, as the root is nobody's child.
static INDEX: [AtomicU32; INDEX_MASK + 1] = [EMPTY; INDEX_MASK + 1];

const NO_NODE: Node =
    Node { parent: 0, kind: 0, flags: 0, name: 0, value: 0, name_len: 0, value_len: 0, hash: 0 };
struct FirstChunk(UnsafeCell<[Node; CHUNK_NODES]>);
// Written under the lock, and read only where something was published.
unsafe impl Sync for FirstChunk {}
static FIRST_CHUNK: FirstChunk = FirstChunk(UnsafeCell::new([NO_NODE; CHUNK_NODES]));

/// Where the next name goes; changed only under the lock.
static ARENA_NEXT: AtomicUsize = AtomicUsize::new(0);
static ARENA_END: AtomicUsize = AtomicUsize::new(0);

/// Process in the high half, 0 = free; in the low half the thread, by the address of its record.
/// Two threads that agree in 32 bits of that would at worst count an overflow.
static OWNER: AtomicU64 = AtomicU64::new(0);

pub(super) struct Locked(());

impl Drop for Locked {
    fn drop(&mut self) {
        OWNER.store(0, Ordering::Release);
    }
}

/// None: the caller interrupted the owner, or the owner does not go on.
pub(super) fn try_lock() -> Option<Locked> {
    let pid = unsafe { start::getpid() } as u32;
    let me = u64::from(pid) << 32 | u64::from((record::address() as usize >> 4) as u32);
    let mut seen = 0;
    for attempt in 0..TRIES {
        match OWNER.compare_exchange_weak(seen, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                notice_fork(pid);
                return Some(Locked(()));
            }
            Err(owner) if owner == me => return None,
            Err(owner) if owner != 0 && owner >> 32 != u64::from(pid) => seen = owner,
            Err(_) => {
                seen = 0;
                if attempt < QUICK_TRIES {
                    core::hint::spin_loop();
                } else {
                    start::nap();
                }
            }
        }
    }
    None
}

/// Under the lock.
fn notice_fork(pid: u32) {
    let known = DESCRIPTOR.pid.load(Ordering::Relaxed);
    if known != pid {
        DESCRIPTOR.pid.store(pid, Ordering::Relaxed);
        if known != 0 {
            DESCRIPTOR.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a node is compared by.
struct Key<'a> {
    parent: u32,
    kind: Kind,
    flags: u16,
    name: &'a [u8],
    value: &'a [u8],
    hash: u32,
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(NAME_CAP);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Eight bytes at a time; the last ones are filled up with zeros, as the length tells them apart.
fn mix(mut hash: u64, text: &[u8]) -> u64 {
    let mut words = text.chunks_exact(8);
    let step = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product ^ product >> 29
    };
    for word in &mut words {
        hash = step(
            hash,
            u64::from_le_bytes([
                word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
            ]),
        );
    }
    let mut last = [0; 8];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    step(hash, u64::from_le_bytes(last))
}

impl<'a> Key<'a> {
    fn new(parent: u32, kind: Kind, name: &'a str, value: &'a str) -> Key<'a> {
        let name = if name.is_empty() { EMPTY_NAME } else { name };
        let value = if value.is_empty() && kind == Kind::Label { EMPTY_NAME } else { value };
        let (short_name, short_value) = (cut(name), cut(value));
        let mut flags = 0;
        if short_name.len() < name.len() {
            flags |= NAME_CUT;
        }
        if short_value.len() < value.len() {
            flags |= VALUE_CUT;
        }
        let (name, value) = (short_name.as_bytes(), short_value.as_bytes());
        let start = u64::from(parent) << 32 | (kind as u64) << 16 | name.len() as u64;
        let hash = mix(mix(start, name), value);
        Key { parent, kind, flags, name, value, hash: (hash ^ hash >> 32) as u32 }
    }

    fn is(&self, node: &Node) -> bool {
        node.hash == self.hash
            && node.parent == self.parent
            && node.kind == self.kind as u16
            && node.flags == self.flags
            && unsafe { is_text(node.name, node.name_len, self.name) }
            && unsafe { is_text(node.value, node.value_len, self.value) }
    }

    /// The node, or the place in the index where it belongs.
    fn find(&self) -> Result<u32, &'static AtomicU32> {
        let mut i = self.hash as usize;
        loop {
            let place = &INDEX[i & INDEX_MASK];
            let id = place.load(Ordering::Acquire);
            if id == 0 {
                return Err(place);
            }
            if self.is(unsafe { &*node_at(id) }) {
                return Ok(id);
            }
            i += 1; // ends: half of the index is free
        }
    }
}

/// Is that the text at addr? Without asking memcmp about nothing: a masked load of 0 bytes from
/// where there is no memory takes 100 ns on some processors.
unsafe fn is_text(addr: u64, len: u16, text: &[u8]) -> bool {
    usize::from(len) == text.len()
        && (len == 0 || core::slice::from_raw_parts(addr as *const u8, text.len()) == text)
}

/// Of an id whose chunk exists.
fn node_at(id: u32) -> *mut Node {
    let chunk = &DESCRIPTOR.chunks[(id >> CHUNK_SHIFT) as usize];
    chunk.load(Ordering::Relaxed).wrapping_add(id as usize & (CHUNK_NODES - 1))
}

/// The root, which is all zeros. Under the lock.
pub(super) fn init(_: &Locked) {
    DESCRIPTOR.chunks[0].store(FIRST_CHUNK.0.get().cast(), Ordering::Relaxed);
    DESCRIPTOR.node_count.store(ROOT + 1, Ordering::Release);
}

enum Refusal {
    Full,
    /// The lock was not to be had, or memory.
    Now,
}

/// The child of that kind and name, made when there is none, and true; what stands for it, and
/// false, when that is impossible.
pub(super) fn child(parent: u32, kind: Kind, name: &str, value: &str) -> (u32, bool) {
    start::start();
    let key = Key::new(parent, kind, name, value);
    if let Ok(id) = key.find() {
        return (id, true);
    }
    let refusal = match intern(&key, NODES_CAP - OTHERS) {
        Ok(id) => return (id, true),
        Err(refusal) => refusal,
    };
    DESCRIPTOR.overflows.fetch_add(1, Ordering::Relaxed);
    (if let Refusal::Full = refusal { other(parent) } else { parent }, false)
}

/// Below "(other)" there is nothing else.
fn other(parent: u32) -> u32 {
    if parent != ROOT && unsafe { (*node_at(parent)).kind } == Kind::Other as u16 {
        return parent;
    }
    let key = Key::new(parent, Kind::Other, OTHER_NAME, "");
    key.find().or_else(|_| intern(&key, NODES_CAP)).unwrap_or(parent)
}

#[cold]
fn intern(key: &Key, cap: u32) -> Result<u32, Refusal> {
    if DESCRIPTOR.node_count.load(Ordering::Relaxed) >= cap {
        return Err(Refusal::Full); // without waiting for others who will fail as well
    }
    let lock = try_lock().ok_or(Refusal::Now)?;
    let place = match key.find() {
        Ok(id) => return Ok(id), // another thread was faster
        Err(place) => place,
    };
    let id = DESCRIPTOR.node_count.load(Ordering::Relaxed);
    if id >= cap {
        return Err(Refusal::Full);
    }
    make_chunk(id).ok_or(Refusal::Now)?;
    let name = keep(&lock, key.name).ok_or(Refusal::Now)?;
    let value = keep(&lock, key.value).ok_or(Refusal::Now)?;
    let node = node_at(id);
    unsafe {
        node.write(Node {
            parent: key.parent,
            kind: key.kind as u16,
            flags: key.flags,
            name,
            value,
            name_len: key.name.len() as u16,
            value_len: key.value.len() as u16,
            hash: key.hash,
        });
    }
    DESCRIPTOR.node_count.store(id + 1, Ordering::Release);
    place.store(id, Ordering::Release);
    drop(lock);
    probe::node(u64::from(id), node);
    Ok(id)
}

fn make_chunk(id: u32) -> Option<()> {
    let chunk = &DESCRIPTOR.chunks[(id >> CHUNK_SHIFT) as usize];
    if chunk.load(Ordering::Relaxed).is_null() {
        let memory = start::map(CHUNK_NODES * core::mem::size_of::<Node>())?;
        chunk.store(memory.cast(), Ordering::Release);
    }
    Some(())
}

/// A copy that stays: the original may be on a stack, or in a library that is unloaded.
fn keep(_: &Locked, text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return Some(0);
    }
    let mut next = ARENA_NEXT.load(Ordering::Relaxed);
    if ARENA_END.load(Ordering::Relaxed) - next < text.len() {
        next = start::map(ARENA_BYTES)? as usize;
        ARENA_END.store(next + ARENA_BYTES, Ordering::Relaxed);
    }
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), next as *mut u8, text.len()) };
    ARENA_NEXT.store(next + text.len(), Ordering::Relaxed);
    Some(next as u64)
}

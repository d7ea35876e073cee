// SPDX-License-Identifier: MIT
//! Makes the descriptor ready: by an early constructor of the program or library, or, where that
//! was not linked or other constructors came first, by the first scope.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use super::abi::{MODE_NOT_READY, MODE_STATIC};
use super::{probe, record, table, DESCRIPTOR};

// std links the C library; these are the same on every Linux.
extern "C" {
    pub(super) fn getpid() -> i32;
    fn clock_nanosleep(clock: i32, flags: i32, time: *const [i64; 2], rest: *mut [i64; 2]) -> i32;
    fn mmap(addr: *mut c_void, len: usize, prot: i32, flags: i32, fd: i32, off: i64)
        -> *mut c_void;
}
const PROT_READ_WRITE: i32 = 3;
const MAP_PRIVATE_ANONYMOUS: i32 = 0x22;

/// 100 us. Unlike nanosleep, this call leaves errno alone.
pub(super) fn nap() {
    const CLOCK_MONOTONIC: i32 = 1;
    unsafe { clock_nanosleep(CLOCK_MONOTONIC, 0, &[0, 100_000], core::ptr::null_mut()) };
}

/// Zeroed pages that are never given back.
pub(super) fn map(bytes: usize) -> Option<*mut u8> {
    let p = unsafe {
        mmap(core::ptr::null_mut(), bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0)
    };
    if p as isize == -1 {
        None
    } else {
        Some(p.cast())
    }
}

/// 101 is the first priority that the C library leaves to programs.
#[used]
#[link_section = ".init_array.00101"]
static CONSTRUCTOR: extern "C" fn() = constructor;

extern "C" fn constructor() {
    start();
}

/// Idempotent. A signal handler that interrupts it finds it unfinished and is charged to "(other)".
#[inline]
pub(super) fn start() {
    if DESCRIPTOR.tls_mode.load(Ordering::Acquire) == MODE_NOT_READY {
        start_now();
    }
}

#[cold]
fn start_now() {
    {
        let Some(lock) = table::try_lock() else { return };
        if DESCRIPTOR.tls_mode.load(Ordering::Relaxed) != MODE_NOT_READY {
            return;
        }
        table::init(&lock);
        let mode = publish_place();
        DESCRIPTOR.tls_mode.store(mode, Ordering::Release);
    }
    probe::use_task_exit();
    probe::tls_v1(&DESCRIPTOR);
}

#[cfg(not(target_env = "musl"))]
fn publish_place() -> u8 {
    DESCRIPTOR.tls_offset.store(record::static_offset() as i64, Ordering::Relaxed);
    MODE_STATIC
}

/// The program itself always has a static TLS block. A library may have been loaded later, which
/// cannot be told apart from one that came with the program: its block is found by its module's
/// number in the thread's dynamic vector, which is right for both.
#[cfg(target_env = "musl")]
fn publish_place() -> u8 {
    let address = record::address() as usize;
    let object = objects::of(&DESCRIPTOR as *const _ as usize);
    if object.is_program || object.tls_module == 0 {
        let offset = address.wrapping_sub(record::thread_pointer()) as i64;
        DESCRIPTOR.tls_offset.store(offset, Ordering::Relaxed);
        return MODE_STATIC;
    }
    let offset = address.wrapping_sub(object.tls_block) as u64;
    DESCRIPTOR.dtv_module.store(object.tls_module as u64, Ordering::Relaxed);
    DESCRIPTOR.dtv_offset.store(offset, Ordering::Relaxed);
    super::abi::MODE_DTV
}

#[cfg(target_env = "musl")]
mod objects {
    use core::ffi::{c_int, c_void};

    #[repr(C)]
    struct PhdrInfo {
        addr: usize,
        name: *const u8,
        phdr: *const Phdr,
        phdr_cnt: u16,
        adds: u64,
        subs: u64,
        tls_module: usize,
        tls_block: *const u8,
    }
    #[repr(C)]
    struct Phdr {
        kind: u32,
        flags: u32,
        offset: u64,
        vaddr: u64,
        paddr: u64,
        file_bytes: u64,
        memory_bytes: u64,
        align: u64,
    }
    const PT_LOAD: u32 = 1;
    extern "C" {
        fn dl_iterate_phdr(
            callback: extern "C" fn(*const PhdrInfo, usize, *mut c_void) -> c_int,
            data: *mut c_void,
        ) -> c_int;
    }

    #[derive(Default)]
    pub(super) struct Object {
        wanted: usize,
        seen_cnt: usize,
        pub is_program: bool,
        pub tls_module: usize,
        pub tls_block: usize,
    }

    /// The object that has this address.
    pub(super) fn of(wanted: usize) -> Object {
        let mut object = Object { wanted, ..Object::default() };
        unsafe { dl_iterate_phdr(look, (&mut object as *mut Object).cast()) };
        object
    }

    extern "C" fn look(info: *const PhdrInfo, _: usize, data: *mut c_void) -> c_int {
        let (info, object) = unsafe { (&*info, &mut *data.cast::<Object>()) };
        let phdrs = unsafe { core::slice::from_raw_parts(info.phdr, usize::from(info.phdr_cnt)) };
        let is_here = phdrs.iter().any(|p| {
            let offset = object.wanted.wrapping_sub(info.addr).wrapping_sub(p.vaddr as usize);
            p.kind == PT_LOAD && offset < p.memory_bytes as usize
        });
        object.seen_cnt += 1;
        if !is_here {
            return 0;
        }
        object.is_program = object.seen_cnt == 1; // the first is the program
        object.tls_module = info.tls_module;
        object.tls_block = info.tls_block as usize;
        1
    }
}

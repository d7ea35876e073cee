// SPDX-License-Identifier: MIT
//! The reader's side, in process: finds the descriptor as heaptap does, by the notes of a mapped
//! file, and reads the table and the thread's record by their published addresses. Knows nothing of
//! the crate's own types.
#![allow(dead_code)] // each test uses a part of it

use std::arch::asm;
use std::path::{Path, PathBuf};

pub struct Probe {
    pub name: String,
    pub args: String,
    pub location: u64,
    pub base: u64,
    pub semaphore: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}
fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}
fn take_string(bytes: &[u8], at: &mut usize) -> String {
    let end = *at + bytes[*at..].iter().position(|&b| b == 0).expect("a terminated string");
    let text = String::from_utf8(bytes[*at..end].to_vec()).unwrap();
    *at = end + 1;
    text
}

/// Offset, size and address of a section.
fn section(elf: &[u8], wanted: &str) -> Option<(usize, usize, u64)> {
    let (heads, size, cnt) = (u64_at(elf, 40) as usize, u16_at(elf, 58), u16_at(elf, 60));
    let head = |i: usize| &elf[heads + i * size..heads + (i + 1) * size];
    let names = u64_at(head(u16_at(elf, 62)), 24) as usize;
    (0..cnt).map(head).find_map(|h| {
        let mut at = names + u32_at(h, 0);
        (take_string(elf, &mut at) == wanted)
            .then(|| (u64_at(h, 24) as usize, u64_at(h, 32) as usize, u64_at(h, 16)))
    })
}

pub fn section_vaddr(elf: &[u8], wanted: &str) -> Option<u64> {
    section(elf, wanted).map(|s| s.2)
}

/// Is that address in a loaded segment with these permissions (1 execute, 2 write, 4 read)?
pub fn is_loaded(elf: &[u8], vaddr: u64, permissions: usize) -> bool {
    let (heads, size, cnt) = (u64_at(elf, 32) as usize, u16_at(elf, 54), u16_at(elf, 56));
    (0..cnt).any(|i| {
        let h = &elf[heads + i * size..];
        u32_at(h, 0) == 1
            && u32_at(h, 4) & permissions == permissions
            && vaddr.wrapping_sub(u64_at(h, 16)) < u64_at(h, 40)
    })
}

/// The probes of provider `heaptap`.
pub fn probes(elf: &[u8]) -> Vec<Probe> {
    let mut found = Vec::new();
    let Some((mut at, size, _)) = section(elf, ".note.stapsdt") else { return found };
    let end = at + size;
    while at + 12 <= end {
        let (name_len, desc_len) = (u32_at(elf, at), u32_at(elf, at + 4));
        assert_eq!(&elf[at + 12..at + 20], b"stapsdt\0");
        let desc = at + 12 + (name_len + 3) / 4 * 4;
        let mut text = desc + 24;
        if take_string(elf, &mut text) == "heaptap" {
            found.push(Probe {
                name: take_string(elf, &mut text),
                args: take_string(elf, &mut text),
                location: u64_at(elf, desc),
                base: u64_at(elf, desc + 8),
                semaphore: u64_at(elf, desc + 16),
            });
            assert!(text <= desc + desc_len, "the strings end inside the note");
        }
        at = desc + (desc_len + 3) / 4 * 4;
    }
    found
}

/// What is added to an address of link time.
pub fn load_bias(path: &Path, elf: &[u8]) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let start = maps
        .lines()
        .find(|line| line.ends_with(path.to_str().unwrap()) && line.contains(" 00000000 "))
        .map(|line| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap())
        .expect("the file is mapped");
    let (heads, size) = (u64_at(elf, 32) as usize, u16_at(elf, 54));
    let first = (0..u16_at(elf, 56))
        .map(|i| &elf[heads + i * size..])
        .filter(|h| u32_at(h, 0) == 1)
        .map(|h| u64_at(h, 16))
        .min()
        .unwrap();
    start - first / 4096 * 4096
}

#[derive(Clone, Copy)]
pub struct Reader {
    descriptor: *const u8,
}
// It reads what other threads only append to.
unsafe impl Send for Reader {}
unsafe impl Sync for Reader {}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub parent: u32,
    pub kind: u16,
    pub flags: u16,
    pub name: String,
    pub value: String,
}

impl Reader {
    pub fn of_self() -> Reader {
        Reader::of(std::fs::read_link("/proc/self/exe").unwrap())
    }

    pub fn of(path: PathBuf) -> Reader {
        let elf = std::fs::read(&path).unwrap();
        let probe = probes(&elf).into_iter().find(|p| p.name == "tls_v1").expect("a note");
        Reader { descriptor: (probe.semaphore + load_bias(&path, &elf)) as *const u8 }
    }

    pub fn address(&self) -> usize {
        self.descriptor as usize
    }

    pub fn get<T: Copy>(&self, offset: usize) -> T {
        unsafe { self.descriptor.add(offset).cast::<T>().read_volatile() }
    }

    pub fn mode(&self) -> u8 {
        self.get(20)
    }
    pub fn node_cnt(&self) -> u32 {
        self.get(52)
    }
    pub fn overflows(&self) -> u32 {
        self.get(60)
    }
    pub fn underflows(&self) -> u32 {
        self.get(72)
    }
    pub fn truncations(&self) -> u32 {
        self.get(76)
    }

    /// Of this thread.
    pub fn record_addr(&self) -> usize {
        match self.mode() {
            1 => thread_pointer().wrapping_add(self.get::<i64>(24) as usize),
            2 => unsafe {
                // musl on x86-64: the vector is the second word of the thread
                let vector = *((thread_pointer() + 8) as *const *const usize);
                *vector.add(self.get::<u64>(32) as usize) + self.get::<u64>(40) as usize
            },
            mode => panic!("tls mode {mode}"),
        }
    }

    pub fn record(&self) -> [u64; 4] {
        unsafe { (self.record_addr() as *const [u64; 4]).read_volatile() }
    }

    pub fn node_addr(&self, id: u32) -> u64 {
        assert!(id < self.node_cnt(), "a node beyond the count");
        self.get::<u64>(128 + 8 * (id as usize >> 12)) + 32 * (u64::from(id) & 4095)
    }

    pub fn node(&self, id: u32) -> Node {
        let text = |addr: u64, len: u16| unsafe {
            let bytes = std::slice::from_raw_parts(
                if len == 0 { std::ptr::NonNull::dangling().as_ptr() } else { addr as *const u8 },
                len.into(),
            );
            std::str::from_utf8(bytes).unwrap().to_owned()
        };
        unsafe {
            let p = self.node_addr(id) as *const u8;
            Node {
                parent: p.cast::<u32>().read(),
                kind: p.add(4).cast::<u16>().read(),
                flags: p.add(6).cast::<u16>().read(),
                name: text(p.add(8).cast::<u64>().read(), p.add(24).cast::<u16>().read()),
                value: text(p.add(16).cast::<u64>().read(), p.add(26).cast::<u16>().read()),
            }
        }
    }

    /// Of a scope word: "Top/A#17" is a task, "key=value" a label.
    pub fn path(&self, scope: u64) -> String {
        let mut parts = Vec::new();
        let mut id = scope as u32;
        while id != 0 {
            let node = self.node(id);
            assert!(node.parent < id, "parents come first");
            parts.push(match node.kind {
                1 => node.name,
                2 => format!("{}={}", node.name, node.value),
                3 => format!("{}#", node.name),
                4 => node.name,
                kind => panic!("kind {kind}"),
            });
            id = node.parent;
        }
        parts.reverse();
        parts.join("/")
    }

    pub fn here(&self) -> String {
        self.path(self.record()[0])
    }
}

#[cfg(target_arch = "x86_64")]
pub fn thread_pointer() -> usize {
    let tp;
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) tp) };
    tp
}
#[cfg(target_arch = "aarch64")]
pub fn thread_pointer() -> usize {
    let tp;
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) tp) };
    tp
}

// SPDX-License-Identifier: MIT
//! What a reader finds in this very program: the notes, the descriptor, the record in every thread.

mod reader;

use heaptap_scope::{enter, label, scope, task, State};
use reader::{is_loaded, load_bias, probes, section_vaddr, Reader};

fn own_elf() -> (std::path::PathBuf, Vec<u8>) {
    let path = std::fs::read_link("/proc/self/exe").unwrap();
    let elf = std::fs::read(&path).unwrap();
    (path, elf)
}

#[test]
fn notes_name_probes_arguments_and_the_descriptor() {
    let (_, elf) = own_elf();
    let probes = probes(&elf);
    let registers: [&str; 3] = if cfg!(target_arch = "x86_64") {
        ["8@%rdi", "8@%rsi", "8@%rdx"]
    } else {
        ["8@x0", "8@x1", "8@x2"]
    };
    let base = section_vaddr(&elf, ".stapsdt.base").expect("kept by the linker");
    for (name, arg_cnt) in [("tls_v1", 1), ("node", 2), ("task_exit", 3)] {
        let found: Vec<_> = probes.iter().filter(|p| p.name == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].args, registers[..arg_cnt].join(" "), "{name}");
        assert!(is_loaded(&elf, found[0].location, 1), "{name} is code");
        assert_eq!(found[0].base, base, "{name}");
        assert_eq!(found[0].semaphore, section_vaddr(&elf, ".probes").unwrap(), "{name}");
        assert!(is_loaded(&elf, found[0].semaphore, 2), "{name}: the kernel writes it");
    }
}

#[test]
fn probes_are_nops() {
    let (path, elf) = own_elf();
    let bias = load_bias(&path, &elf);
    for probe in probes(&elf) {
        let code = (probe.location + bias) as *const u8;
        if cfg!(target_arch = "x86_64") {
            assert_eq!(unsafe { code.read() }, 0x90, "{}", probe.name);
        } else {
            assert_eq!(unsafe { code.cast::<u32>().read_unaligned() }, 0xd503_201f);
        }
    }
}

#[test]
fn descriptor_has_its_layout() {
    let reader = Reader::of_self();
    let _scope = enter("descriptor_has_its_layout");
    assert_eq!(reader.address() % 64, 0);
    assert_eq!(reader.get::<u16>(0), 0, "nobody is attached");
    assert_eq!(reader.get::<[u16; 3]>(2), [1, 0, 640], "version, size");
    assert_eq!(&reader.get::<[u8; 8]>(8), b"HEAPTAP\0");
    assert_eq!(reader.get::<[u16; 2]>(16), [32, 32], "record, node");
    assert_eq!(reader.get::<[u8; 2]>(20), [1, 8], "static, pointers of 8 bytes");
    assert_eq!(reader.get::<u32>(48), 64 * 4096);
    assert!(reader.node_cnt() >= 2);
    assert_eq!(reader.get::<u32>(56), 12);
    assert_eq!(reader.get::<u32>(80), std::process::id());
    assert_eq!(reader.get::<u32>(84), 0, "no fork");
    assert_ne!(reader.get::<u64>(128), 0, "the first chunk");
}

#[test]
fn constructor_runs_before_main() {
    // Threads of the test harness have not entered a scope, and this one neither.
    let reader = Reader::of_self();
    assert_eq!(reader.mode(), 1);
    assert!(reader.node_cnt() >= 1, "the root");
    assert_eq!(reader.record(), [0; 4]);
}

#[test]
fn record_is_at_the_same_offset_in_every_thread() {
    let reader = Reader::of_self();
    let threads: Vec<_> = (0..8u64)
        .map(|i| {
            std::thread::spawn(move || {
                assert_eq!(reader.record(), [0; 4], "a new thread has no scope");
                let _task = task("offset").enter(1000 + i);
                let _name = enter(&format!("thread {i}"));
                let record = reader.record();
                assert_eq!(reader.path(record[0]), format!("offset#/thread {i}"));
                assert_eq!(record[0] >> 48, 2, "depth");
                assert_eq!(record[1], 1000 + i);
                assert_eq!(record[2..], [0, 0]);
                reader.record_addr()
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap() % 16, 0);
    }
}

#[test]
fn nodes_have_their_layout() {
    let reader = Reader::of_self();
    let _a = scope!("layout");
    let parent = reader.record()[0] as u32;
    let _b = label("key", "value");
    let id = reader.record()[0] as u32;
    let node = reader.node(id);
    assert_eq!((node.parent, node.kind, node.flags), (parent, 2, 0));
    assert_eq!((&*node.name, &*node.value), ("key", "value"));
    assert_eq!(reader.node(0), reader::Node::default(), "the root");
    assert_eq!(std::mem::size_of::<State>(), 24);
}

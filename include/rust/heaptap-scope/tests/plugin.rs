// SPDX-License-Identifier: MIT
//! A shared object that is loaded while threads exist: it has a descriptor and a record of its own,
//! at one offset in all threads, those that were there before included. On musl, where a library has
//! no static TLS block, it is found by the dynamic vector.

mod reader;

use std::ffi::{c_char, c_void, CStr, CString};
use std::path::PathBuf;
use std::sync::mpsc;

use heaptap_scope::scope;
use reader::{thread_pointer, Reader};

extern "C" {
    fn dlopen(path: *const c_char, flags: i32) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}
type Work = unsafe extern "C" fn(*const c_char, extern "C" fn(*mut c_void), *mut c_void);

fn plugin_path() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop(); // deps/
    path.pop();
    path.join("examples/libplugin.so")
}

fn load() -> Work {
    let path = CString::new(plugin_path().to_str().unwrap()).unwrap();
    unsafe {
        let library = dlopen(path.as_ptr(), 2); // RTLD_NOW
        assert!(!library.is_null(), "{:?}", CStr::from_ptr(dlerror()));
        let work = dlsym(library, b"plugin_work\0".as_ptr().cast());
        assert!(!work.is_null());
        std::mem::transmute::<*mut c_void, Work>(work)
    }
}

struct Seen<'a> {
    plugin: &'a Reader,
    path: String,
    record: [u64; 4],
}

extern "C" fn look(data: *mut c_void) {
    let seen = unsafe { &mut *data.cast::<Seen>() };
    seen.record = seen.plugin.record();
    seen.path = seen.plugin.path(seen.record[0]);
}

fn check(plugin: &Reader, work: Work, name: &str) -> usize {
    let mut seen = Seen { plugin, path: String::new(), record: [0; 4] };
    assert_eq!(plugin.record(), [0; 4]);
    let c_name = CString::new(name).unwrap();
    unsafe { work(c_name.as_ptr(), look, (&mut seen as *mut Seen).cast()) };
    assert_eq!(seen.path, format!("plugin/{name}/job#"));
    assert_eq!(seen.record[1], 7);
    assert_eq!(plugin.record(), [0; 4]);
    plugin.record_addr().wrapping_sub(thread_pointer())
}

#[test]
fn a_library_that_is_loaded_later() {
    let (to_old, at_old) = mpsc::channel::<(Reader, Work)>();
    let old = std::thread::spawn(move || {
        let (plugin, work) = at_old.recv().unwrap();
        check(&plugin, work, "old thread")
    });
    let program = Reader::of_self();
    let _scope = scope!("program");
    let work = load();
    let plugin = Reader::of(plugin_path());
    assert_ne!(plugin.address(), program.address());
    let is_static = !cfg!(target_env = "musl");
    assert_eq!(plugin.mode(), if is_static { 1 } else { 2 });
    assert_eq!(plugin.get::<u32>(80), std::process::id(), "the constructor ran");

    let here = check(&plugin, work, "loader");
    to_old.send((plugin, work)).unwrap();
    let in_old = old.join().unwrap();
    let new = std::thread::spawn(move || check(&plugin, work, "new thread"));
    let in_new = new.join().unwrap();
    assert_eq!([in_old, in_new] == [here; 2], is_static, "one offset for all threads");
    assert_eq!(program.here(), "program", "neither disturbs the other");
}

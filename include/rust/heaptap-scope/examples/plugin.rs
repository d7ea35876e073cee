// SPDX-License-Identifier: MIT
//! A shared object with scopes of its own, for the test that loads it. Functions of C, as another
//! program would call them.

use heaptap_scope::{enter, scope, task};

/// Calls back inside plugin/<name>, task 7.
///
/// # Safety
/// `name` is a string that ends with a zero, `inside` may be called with `data`.
#[no_mangle]
pub unsafe extern "C" fn plugin_work(
    name: *const std::ffi::c_char,
    inside: extern "C" fn(*mut std::ffi::c_void),
    data: *mut std::ffi::c_void,
) {
    let _plugin = scope!("plugin");
    let _name = enter(std::ffi::CStr::from_ptr(name).to_str().unwrap_or("?"));
    let _task = task("job").enter(7);
    inside(data);
}

// SPDX-License-Identifier: MIT
//! Closures that run elsewhere.

use std::thread::JoinHandle;

use crate::State;

/// The closure, to be run in the caller's state of now: for thread pools and thread builders.
///
/// ```
/// use heaptap_scope::{inherit, scope};
///
/// let _scope = scope!("import");
/// let worker = std::thread::Builder::new()
///     .name("import".into())
///     .spawn(inherit(|| drop(vec![0u8; 100])))?;
/// # worker.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn inherit<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let state = State::current();
    move || {
        let _here = state.enter();
        work()
    }
}

/// `std::thread::spawn` for a thread that begins in the caller's state.
pub fn spawn_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let state = State::current();
    std::thread::spawn(move || {
        let _here = state.enter();
        work()
    })
}

// SPDX-License-Identifier: MIT
//! Says what memory is for.
//!
//! A program that uses this crate keeps, in 32 thread-local bytes, the *scope* that the current
//! thread works for: a subsystem, a query, a tenant, a task. heaptap, attached from outside, reads
//! them when it samples an allocation, and shows the live heap by scope. Every block belongs to the
//! scope that was current when it was allocated, whoever frees it.
//!
//! Nothing is installed, no allocator is replaced, nothing is sent anywhere. Entering and leaving a
//! scope takes 1 to 3 ns, whether or not a profiler is attached.
//!
//! ```
//! use heaptap_scope::{enter, label, scope, task};
//!
//! fn handle(tenant: &str, connection: u64) {
//!     let _serve = scope!("serve"); // fixed names: the fast way
//!     let _tenant = label("tenant", tenant); // few different values
//!     let _conn = task("conn").enter(connection); // as many as there are
//!     let _phase = enter("parse"); // a name that is made at run time
//!     drop(vec![0u8; 1000]);
//! } // all of them end here
//! # handle("blue", 17);
//! ```
//!
//! # Work that moves between threads
//!
//! Guards are bound to their thread. What travels is a [`State`], 24 bytes; the helpers carry it:
//!
//! | work | inherits the caller's state | is a task of its own |
//! | --- | --- | --- |
//! | future | [`FutureExt::in_current_scope`], [`spawn_with`] | [`FutureExt::in_task`] |
//! | closure | [`inherit`] | [`TaskHandle::enter`] inside |
//! | thread | [`spawn_thread`] | [`TaskHandle::enter`] inside |
//!
//! A wrapped future has its state in every poll and while it is dropped. An executor allocates the
//! cell of a task when it is spawned: that is charged to whoever spawns, who may be inside
//! [`TaskHandle::enter`].
//!
//! With the feature `tracing`, spans are scopes: see `ScopeLayer`.
//!
//! # What can go wrong, and what happens then
//!
//! Nothing here panics, blocks for long, or calls the allocator; scopes can be entered inside an
//! allocator and in signal handlers. What does not fit is counted, and the sums stay right:
//!
//! * The table has room for 245 760 different paths, which are never removed. Allocations under a
//!   further one belong to a child "(other)" of the scope that is current. They belong to that scope
//!   itself when the table cannot be extended right now: in a signal handler that interrupted just
//!   that, or without memory.
//! * Below 64 levels, scopes belong to the one at level 64. Leaving them comes back correctly.
//! * Names and values are cut at 255 bytes, at the boundary of a character; an empty one is
//!   "(empty)".
//! * A guard that is dropped after an outer one changes nothing.
//! * After a fork the child goes on with the state of the thread that forked.
//!
//! # Where it works
//!
//! Linux on x86-64 and arm64, executables and shared objects, glibc and musl; elsewhere, with the
//! feature `disable` and with `--cfg heaptap_disable`, everything compiles to nothing. Rust 1.66.

#![warn(missing_docs)]

#[cfg(all(
    not(feature = "disable"),
    not(heaptap_disable),
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod imp;
#[cfg(not(all(
    not(feature = "disable"),
    not(heaptap_disable),
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "off.rs"]
mod imp;

mod future;
#[cfg(feature = "tracing")]
mod layer;
mod scope;
mod state;
mod task;
mod thread;

pub use future::{spawn_with, FutureExt, InTask, Scoped};
#[cfg(feature = "tracing")]
pub use layer::ScopeLayer;
#[doc(hidden)] // for scope!
pub use scope::Site;
pub use scope::{enter, is_watched, label, pause, pause_all, PauseGuard, ScopeGuard};
pub use state::{State, StateGuard};
pub use task::{task, Task, TaskHandle};
pub use thread::{inherit, spawn_thread};

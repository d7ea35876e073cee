// SPDX-License-Identifier: MIT
//! What a thread allocates for, as a value.

use crate::imp::{self, Here};

/// Everything that says what a thread allocates for: scope, instance, labels, pause. 24 bytes, to
/// be copied into whatever carries work from one thread to another.
///
/// ```
/// use heaptap_scope::{scope, State};
///
/// let state = {
///     let _scope = scope!("query");
///     State::current()
/// };
/// let worker = std::thread::spawn(move || {
///     let _here = state.enter();
///     vec![0u8; 1000] // charged to "query"
/// });
/// # worker.join().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct State {
    pub(crate) scope: u64,
    pub(crate) instance: u64,
    pub(crate) kv: u64,
}

impl State {
    /// No scope, no instance: a thread's state when it begins.
    pub const ROOT: State = State { scope: 0, instance: 0, kv: 0 };

    /// The state of this thread.
    #[inline]
    pub fn current() -> State {
        imp::here().state()
    }

    /// Makes it the state of this thread until somebody sets another one. What it was is returned.
    /// Where the work has an end in sight, [`State::enter`] is the safer choice.
    #[inline]
    pub fn set(self) -> State {
        let here = imp::here();
        let before = here.state();
        here.set_state(self);
        before
    }

    /// Makes it the state of this thread until the guard is dropped.
    #[inline]
    pub fn enter(self) -> StateGuard {
        let here = imp::here();
        let saved = here.state();
        here.set_state(self);
        StateGuard { here, saved }
    }

    /// The instance of the innermost task, 0 when there is none.
    #[inline]
    pub fn instance(self) -> u64 {
        self.instance
    }

    /// With the child scope of that name, and whether that has a node of its own; instance and
    /// labels are the same.
    #[cfg(feature = "tracing")]
    pub(crate) fn below(self, kind: imp::Kind, name: &str) -> (State, bool) {
        let (scope, is_made) = imp::push(self.scope, kind, name, "");
        (State { scope, ..self }, is_made)
    }

    /// The same with labels in OpenTelemetry's thread-context format: `record` is the address of
    /// one, 0 of none. The reader copies it when an allocation is sampled while the state is
    /// current; it checks what it reads, so an address that is no longer valid does no harm but
    /// wrong labels.
    #[inline]
    pub fn with_context_record(self, record: usize) -> State {
        State { kv: record as u64, ..self }
    }
}

impl Default for State {
    fn default() -> State {
        State::ROOT
    }
}

/// Puts the previous state of the thread back when dropped. Bound to its thread.
#[must_use = "the state lasts only as long as the guard"]
pub struct StateGuard {
    here: Here,
    saved: State,
}

impl Drop for StateGuard {
    #[inline]
    fn drop(&mut self) {
        self.here.set_state(self.saved);
    }
}

// SPDX-License-Identifier: MIT
//! Tasks: scopes of which there are many at a time, told apart by a number.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::imp::{self, Kind};
use crate::{State, StateGuard};

/// A kind of task below the current scope: `task("conn")`. Its name is looked up each time and
/// stays in the table for ever; the tasks themselves are instances, of which there may be any
/// number.
///
/// ```
/// use heaptap_scope::task;
///
/// let conn = task("conn");
/// for id in 1..=3 {
///     let _here = conn.enter(id);
///     drop(vec![0u8; 100]); // charged to this instance of "conn"
/// }
/// ```
#[inline]
pub fn task(name: &str) -> Task {
    let parent = imp::here().scope() & !imp::PAUSED;
    let (scope, is_made) = imp::push(parent, Kind::Task, name, "");
    Task { scope, is_made }
}

/// A kind of task, at one place in the tree of scopes. Made by [`task`].
#[derive(Clone, Copy, Debug)]
pub struct Task {
    scope: u64,
    /// False: the table is full or the path too deep, and an instance would be somebody else's.
    is_made: bool,
}

impl Task {
    /// Works for that instance on this thread, until the guard is dropped. 0 is no instance.
    /// Says nothing about the instance's end: for that there is [`Task::start`].
    #[inline]
    pub fn enter(self, instance: u64) -> StateGuard {
        let mut state = self.state(instance);
        state.scope |= imp::here().scope() & imp::PAUSED;
        state.enter()
    }

    /// An instance that ends when the handle is dropped. The numbers are the caller's; one that
    /// comes back later is taken for the same instance.
    #[inline]
    pub fn start(self, instance: u64) -> TaskHandle {
        TaskHandle { state: self.state(instance), is_made: self.is_made }
    }

    /// An instance with a number that no other one got from here.
    #[inline]
    pub fn start_next(self) -> TaskHandle {
        self.start(next_instance())
    }

    fn state(self, instance: u64) -> State {
        let now = State::current();
        State {
            scope: self.scope,
            instance: if self.is_made { instance } else { now.instance },
            kv: now.kv,
        }
    }
}

pub(crate) fn next_instance() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A task that runs: whatever thread works for it enters it. Dropping the handle says that it has
/// exited; its blocks that nobody freed are then reported as in use after exit.
#[must_use = "the task exits when the handle is dropped"]
#[derive(Debug)]
pub struct TaskHandle {
    state: State,
    is_made: bool,
}

impl TaskHandle {
    /// An instance of the task of that name below another state than the thread's.
    #[cfg(feature = "tracing")]
    pub(crate) fn below(parent: State, name: &str, instance: u64) -> TaskHandle {
        let (mut state, is_made) = parent.below(Kind::Task, name);
        if is_made {
            state.instance = instance;
        }
        TaskHandle { state, is_made }
    }

    /// Works for the task on this thread, until the guard is dropped.
    #[inline]
    pub fn enter(&self) -> StateGuard {
        self.state.enter()
    }

    /// The state of a thread that works for the task.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Its number.
    #[inline]
    pub fn instance(&self) -> u64 {
        self.state.instance
    }
}

impl Drop for TaskHandle {
    #[inline]
    fn drop(&mut self) {
        if self.is_made {
            imp::task_exit((self.state.scope & imp::NODE_MASK) as u32, self.state.instance);
        }
    }
}

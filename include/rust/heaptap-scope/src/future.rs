// SPDX-License-Identifier: MIT
//! Futures that carry their state from poll to poll.
//!
//! An executor polls many futures on one thread and one future on many threads. So a wrapped one
//! exchanges the thread's state for its own when it is polled, and takes it back afterwards: a
//! scope that it entered and still holds is there again at its next poll, and nobody else's work is
//! charged to it. The same when it is dropped, because dropping a future runs its destructors.

use core::future::Future;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::imp::{self, Here};
use crate::{State, TaskHandle};

/// What futures can be given.
pub trait FutureExt: Future + Sized {
    /// Runs in the state that the caller is in now: what a spawned task should do unless it is told
    /// otherwise.
    ///
    /// ```
    /// # use heaptap_scope::{scope, FutureExt};
    /// # fn spawn(_: impl std::future::Future<Output = ()> + Send + 'static) {}
    /// let _scope = scope!("refresh");
    /// spawn(async { drop(vec![0u8; 100]) }.in_current_scope());
    /// ```
    fn in_current_scope(self) -> Scoped<Self> {
        self.in_state(State::current())
    }

    /// Runs in that state.
    fn in_state(self, state: State) -> Scoped<Self> {
        Scoped { state, inner: ManuallyDrop::new(self) }
    }

    /// Runs as that task, which exits when the future is dropped: after everything that the future
    /// itself owns.
    ///
    /// ```
    /// # use heaptap_scope::{task, FutureExt};
    /// # fn spawn(_: impl std::future::Future<Output = ()> + Send + 'static) {}
    /// let conn = task("conn").start_next();
    /// spawn(async { drop(vec![0u8; 100]) }.in_task(conn));
    /// ```
    fn in_task(self, task: TaskHandle) -> InTask<Self> {
        InTask { future: self.in_state(task.state()), _task: task }
    }
}

impl<F: Future> FutureExt for F {}

/// Hands the future to a function that spawns, so that it inherits the caller's state:
/// `spawn_with(tokio::spawn, async { ... })`.
pub fn spawn_with<F: Future, R>(spawn: impl FnOnce(Scoped<F>) -> R, future: F) -> R {
    spawn(future.in_current_scope())
}

/// The thread has the task's state, and the task that of the thread, until this is dropped: when a
/// poll panics, too.
struct Exchange<'a> {
    here: Here,
    outer: State,
    own: &'a mut State,
}

impl<'a> Exchange<'a> {
    #[inline(always)]
    fn new(own: &'a mut State) -> Exchange<'a> {
        let here = imp::here();
        let outer = here.state();
        here.set_state(*own);
        Exchange { here, outer, own }
    }
}

impl Drop for Exchange<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.own = self.here.state();
        self.here.set_state(self.outer);
    }
}

/// A future with a state of its own. Made by [`FutureExt`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Scoped<F> {
    state: State,
    inner: ManuallyDrop<F>, // pinned with this; dropped below
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Sound: the inner future is never moved out of a pinned self.
        let this = unsafe { self.get_unchecked_mut() };
        let _own = Exchange::new(&mut this.state);
        unsafe { Pin::new_unchecked(&mut *this.inner) }.poll(context)
    }
}

impl<F> Drop for Scoped<F> {
    #[inline]
    fn drop(&mut self) {
        let _own = Exchange::new(&mut self.state);
        // Sound: nobody uses it afterwards.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
    }
}

/// A future that is a task. Made by [`FutureExt::in_task`].
#[must_use = "futures do nothing unless they are polled"]
pub struct InTask<F> {
    future: Scoped<F>, // dropped first
    _task: TaskHandle,
}

impl<F: Future> Future for InTask<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Sound: a field that is pinned whenever this is.
        unsafe { self.map_unchecked_mut(|this| &mut this.future) }.poll(context)
    }
}

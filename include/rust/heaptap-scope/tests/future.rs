// SPDX-License-Identifier: MIT
//! Futures that are polled by several threads, and dropped by another.

mod account;
mod reader;

use std::future::Future;
use std::pin::Pin;
use std::sync::{mpsc, Arc};
use std::task::{Context, Poll, Wake, Waker};

use account::{block, charged, freed_in, is, reader};
use heaptap_scope::{enter, scope, spawn_with, task, FutureExt, State};

struct NoWaker;
impl Wake for NoWaker {
    fn wake(self: Arc<Self>) {}
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

fn poll(future: &mut Boxed) -> bool {
    let waker = Waker::from(Arc::new(NoWaker));
    future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
}

/// Pending once.
#[derive(Default)]
struct Yield(bool);
impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// Allocates a block when it is dropped.
struct Bomb(usize);
impl Drop for Bomb {
    fn drop(&mut self) {
        drop(block(self.0));
    }
}

#[test]
fn every_poll_on_every_thread() {
    reader();
    let mut future: Boxed = {
        let _scope = scope!("spawned");
        Box::pin(
            async {
                for i in 0..6 {
                    drop(block(i));
                    Yield::default().await;
                }
            }
            .in_current_scope(),
        )
    };
    // two executors hand it to and fro; both are in scopes of their own
    let (to_b, at_b) = mpsc::channel::<Boxed>();
    let (to_a, at_a) = mpsc::channel::<Boxed>();
    let b = std::thread::spawn(move || {
        let _scope = enter("executor b");
        for mut future in at_b {
            poll(&mut future);
            assert_eq!(reader().here(), "executor b");
            to_a.send(future).unwrap();
        }
    });
    let _scope = enter("executor a");
    while !poll(&mut future) {
        assert_eq!(reader().here(), "executor a");
        to_b.send(future).unwrap();
        future = at_a.recv().unwrap();
    }
    drop(to_b);
    b.join().unwrap();
    for i in 0..6 {
        assert_eq!(charged(i), is("spawned", 0), "poll {i}");
    }
    assert_eq!(reader().here(), "executor a");
}

#[test]
fn dropped_in_scope_as_a_task() {
    reader();
    let mut future: Boxed = {
        let _server = scope!("server");
        let conn = task("conn").start(41);
        Box::pin(
            async {
                let _bomb = Bomb(10);
                let kept = block(11);
                Yield::default().await;
                drop(kept);
            }
            .in_task(conn),
        )
    };
    assert!(!poll(&mut future));
    // cancelled by a thread that never polled it
    std::thread::spawn(move || {
        drop(future);
        assert_eq!(State::current(), State::ROOT);
    })
    .join()
    .unwrap();
    assert_eq!(charged(10), is("server/conn#", 41), "allocated in drop");
    assert_eq!(freed_in(11), is("server/conn#", 41));
}

#[test]
fn a_future_that_was_never_polled_is_dropped_in_scope() {
    reader();
    let bomb = Bomb(12);
    let future = async move { drop(bomb) };
    drop(future.in_task(task("unpolled").start(1)));
    assert_eq!(charged(12), is("unpolled#", 1));
}

#[test]
fn guards_that_are_held_across_an_await_come_back() {
    let reader = reader();
    let future = async {
        let _phase = scope!("phase");
        drop(block(20));
        Yield::default().await;
        drop(block(21));
    };
    let mut future = Box::pin(future.in_state(State::ROOT));
    let waker = Waker::from(Arc::new(NoWaker));
    let mut context = Context::from_waker(&waker);
    let _outer = scope!("executor");
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!(reader.here(), "executor", "the executor is not in the task's scope");
    assert!(future.as_mut().poll(&mut context).is_ready());
    assert_eq!(charged(20), is("phase", 0));
    assert_eq!(charged(21), is("phase", 0));
    assert_eq!(reader.here(), "executor");
}

#[test]
fn interleaved_tasks_on_one_thread() {
    reader();
    let start = |i: usize| -> Boxed {
        let own = async move {
            drop(block(30 + 2 * i));
            Yield::default().await;
            drop(block(31 + 2 * i));
        };
        Box::pin(own.in_task(task("inter").start(i as u64 + 1)))
    };
    let mut tasks: Vec<Boxed> = (0..4).map(start).collect();
    for _ in 0..2 {
        for task in &mut tasks {
            poll(task);
            assert_eq!(State::current(), State::ROOT);
        }
    }
    for i in 0..4 {
        assert_eq!(charged(30 + 2 * i), is("inter#", i as u64 + 1));
        assert_eq!(charged(31 + 2 * i), is("inter#", i as u64 + 1));
    }
}

#[test]
fn spawners_hand_it_on() {
    reader();
    let mut queue: Vec<Boxed> = Vec::new();
    {
        let _task = task("parent").enter(7);
        spawn_with(|future| queue.push(Box::pin(future)), async { drop(block(40)) });
    }
    assert!(poll(&mut queue[0]));
    assert_eq!(charged(40), is("parent#", 7), "a child belongs to its parent's task");
}

#[test]
fn a_panic_in_a_poll_leaves_the_scope() {
    reader();
    let mut future: Boxed = Box::pin(
        async {
            std::panic::resume_unwind(Box::new(()));
        }
        .in_task(task("panics").start(1)),
    );
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut future)));
    assert!(outcome.is_err());
    assert_eq!(State::current(), State::ROOT);
}

#[test]
fn what_is_send() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&async { Yield::default().await }.in_task(task("send").start(1)));
    is_send(&State::current());
    is_send(&task("send"));
}

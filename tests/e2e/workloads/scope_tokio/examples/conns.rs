// SPDX-License-Identifier: MIT
//! A tokio server with a task per connection, some of which leak: a workload for scopes.
//!
//! Twelve connections on two worker threads. Connection i is instance i of the task serve/conn. In
//! scopes of their own, so that tokio's allocations do not mix with ours, each one
//!
//! | scope below serve/conn | does | left |
//! | --- | --- | --- |
//! | request | 5 blocks of 1009 bytes, freed | nothing |
//! | buffer | a block of 4099 + i bytes | as long as the connection is open |
//! | leak | i % 3 blocks of 2003 + i bytes, never freed | all |
//! | child | a task spawned by the connection's, which inherits: 1 block of 1013 bytes | even i |
//! | handover | a block of 1019 bytes that main takes | i % 4 = 1; main frees the rest |
//! | last | 1 block of 1021 bytes, by a destructor in the future | all whose task has ended |
//!
//! Then the client closes odd connections, 4 and 8 are cancelled; the others stay open.
//!
//! The protocol is that of ledger.h: "READY pid", a line from stdin, the work, what must be in use,
//! "DONE", a line from stdin; with E2E_NOWAIT nothing is waited for, and
//! E2E_DELAY_MS is a pause before the work. The lines are those of
//! scope_ledger.h, "-" = not to be checked:
//!
//! ```text
//! EXPECT_SCOPE <inclusive bytes> <exclusive bytes> <exclusive objects> <path>
//! EXPECT_INSTANCE <number> live|exited <bytes> <objects> - - <path>
//! ```
//!
//! What tokio itself allocates is in serve, client and "(none)", of which nothing is said, and not
//! in the connections: their sockets are made, and their tasks spawned, by serve; nobody drops
//! them, for tokio has a list of dropped sockets, which it allocates anew after each round of its
//! driver, in the scope of whoever drops the next one.

use std::alloc::System;
use std::future::poll_fn;
use std::io::{BufRead, Write};
use std::sync::Mutex;
use std::task::Poll;

use heaptap_scope::{scope, spawn_with, task, FutureExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

#[global_allocator]
static SYSTEM: System = System;

const CONNS: u64 = 12;
const CANCELLED: [u64; 2] = [4, 8];

/// What is kept for ever. Its own memory is there before the recording begins.
static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn block(bytes: u64) -> Vec<u8> {
    std::hint::black_box(Vec::with_capacity(bytes as usize))
}

fn keep(block: Vec<u8>) {
    let mut kept = KEPT.lock().unwrap();
    assert!(kept.len() < kept.capacity(), "growing would be charged to somebody");
    kept.push(block);
}

/// The sockets of connections that have ended; its own memory is there before they begin.
static SOCKETS: Mutex<Vec<TcpStream>> = Mutex::new(Vec::new());

/// A connection's socket, which outlives it.
struct Socket(Option<TcpStream>);

impl Socket {
    fn stream(&mut self) -> &mut TcpStream {
        self.0.as_mut().unwrap()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut sockets = SOCKETS.lock().unwrap();
        assert!(sockets.len() < sockets.capacity(), "growing would be charged to somebody");
        sockets.extend(self.0.take());
    }
}

/// Part of the future's state: dropped with it, wherever that happens.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        let _scope = scope!("last");
        keep(block(1021));
    }
}

async fn serve_one(id: u64, mut socket: Socket, handover: mpsc::Sender<(u64, Vec<u8>)>) {
    let _last = Last;
    for _ in 0..5 {
        let request = {
            let _scope = scope!("request");
            block(1009)
        };
        let mut byte = [0];
        socket.stream().read_exact(&mut byte).await.unwrap(); // maybe on another thread afterwards
        socket.stream().write_all(&byte).await.unwrap();
        drop(request);
    }
    {
        let _scope = scope!("leak");
        for _ in 0..id % 3 {
            keep(block(2003 + id));
        }
    }
    spawn_with(tokio::spawn, async move {
        let own = {
            let _scope = scope!("child");
            block(1013)
        };
        let mut has_yielded = false;
        poll_fn(|context| {
            // unlike tokio's yield_now, which allocates a queue for its thread
            context.waker().wake_by_ref();
            if std::mem::replace(&mut has_yielded, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        if id % 2 == 0 {
            keep(own);
        }
    })
    .await
    .unwrap();
    let given = {
        let _scope = scope!("handover");
        block(1019)
    };
    handover.send((id, given)).await.unwrap();
    let buffer = {
        let _scope = scope!("buffer");
        block(4099 + id)
    };
    socket.stream().write_all(b"!").await.unwrap(); // all of it is there
    let mut byte = [0];
    let _ = socket.stream().read(&mut byte).await; // until the client closes
    drop(buffer);
}

/// Accepts all connections; a client says its number first.
async fn serve(
    listener: TcpListener,
    handover: mpsc::Sender<(u64, Vec<u8>)>,
) -> Vec<(u64, JoinHandle<()>)> {
    let conn = task("conn"); // below serve
    let mut tasks = Vec::with_capacity(CONNS as usize);
    for _ in 0..CONNS {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut id = [0];
        stream.read_exact(&mut id).await.unwrap();
        let id = u64::from(id[0]);
        let connection = serve_one(id, Socket(Some(stream)), handover.clone());
        tasks.push((id, tokio::spawn(connection.in_task(conn.start(id)))));
    }
    tasks
}

/// Returns when the connection has everything that it will have.
async fn connect(addr: std::net::SocketAddr, id: u64) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(&[id as u8]).await.unwrap();
    let mut byte = [0];
    for i in 0..5 {
        stream.write_all(&[i]).await.unwrap();
        stream.read_exact(&mut byte).await.unwrap();
    }
    stream.read_exact(&mut byte).await.unwrap();
    stream
}

fn is_closed(id: u64) -> bool {
    id % 2 == 1
}

fn has_ended(id: u64) -> bool {
    is_closed(id) || CANCELLED.contains(&id)
}

async fn work() -> Vec<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (give, mut take) = mpsc::channel(CONNS as usize);
    let server = {
        let _scope = scope!("serve");
        spawn_with(tokio::spawn, serve(listener, give))
    };
    let clients: Vec<_> = {
        let _scope = scope!("client");
        (1..=CONNS).map(|id| spawn_with(tokio::spawn, connect(addr, id))).collect()
    };
    let mut streams = Vec::new();
    for client in clients {
        streams.push(client.await.unwrap());
    }
    let tasks = server.await.unwrap();

    for _ in 0..CONNS {
        let (id, block) = take.recv().await.unwrap();
        let _scope = scope!("taker"); // who frees does not matter
        if id % 4 == 1 {
            keep(block);
        }
    }
    let mut id = 0;
    streams.retain(|_| {
        id += 1;
        !is_closed(id)
    });
    for (id, task) in tasks {
        if is_closed(id) {
            task.await.unwrap();
        } else if CANCELLED.contains(&id) {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }
    streams
}

/// Bytes and objects that instance `id` has in the scope of that name below serve/conn.
fn expected(name: &str, id: u64) -> (u64, u64) {
    let (size, cnt) = match name {
        "buffer" => (4099 + id, u64::from(!has_ended(id))),
        "child" => (1013, u64::from(id % 2 == 0)),
        "handover" => (1019, u64::from(id % 4 == 1)),
        "last" => (1021, u64::from(has_ended(id))),
        "leak" => (2003 + id, id % 3),
        "request" => (1009, 0),
        _ => unreachable!(),
    };
    (size * cnt, cnt)
}

const NAMES: [&str; 6] = ["buffer", "child", "handover", "last", "leak", "request"];

fn sum(each: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn print_expected() {
    let mut all = 0;
    for name in NAMES {
        let (bytes, objects) = sum((1..=CONNS).map(|id| expected(name, id)));
        say(&format!("EXPECT_SCOPE {bytes} {bytes} {objects} serve/conn/{name}"));
        all += bytes;
    }
    say(&format!("EXPECT_SCOPE {all} 0 0 serve/conn"));
    for id in 1..=CONNS {
        let (bytes, objects) = sum(NAMES.iter().map(|name| expected(name, id)));
        let state = if has_ended(id) { "exited" } else { "live" };
        if objects != 0 {
            say(&format!("EXPECT_INSTANCE {id} {state} {bytes} {objects} - - serve/conn"));
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

fn wait_line() {
    if std::env::var_os("E2E_NOWAIT").is_none() {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
    }
}

extern "C" {
    fn alarm(seconds: u32) -> u32;
}

fn main() {
    unsafe { alarm(900) };
    KEPT.lock().unwrap().reserve(10 * CONNS as usize);
    SOCKETS.lock().unwrap().reserve(CONNS as usize);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build().unwrap();
    say(&format!("READY {}", std::process::id()));
    wait_line();
    if let Some(ms) = std::env::var("E2E_DELAY_MS").ok().and_then(|ms| ms.parse().ok()) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }
    let open = runtime.block_on(work());
    print_expected();
    say("DONE");
    wait_line();
    std::mem::forget((runtime, open)); // what is live stays so until the end
}

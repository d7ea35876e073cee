// SPDX-License-Identifier: MIT
//! Labels by the crate `custom-labels`, as its users write them: nested, replaced, on two threads.

use custom_labels::{with_label, with_labels, Labelset};
use rust_labels::{done, ready, site};

site!(site_none, 211);
site!(site_outer, 223);
site!(site_inner, 227);
site!(site_again, 229);
site!(site_set, 233);
site!(site_worker, 239);

fn main() {
    ready();
    site_none();
    with_label("user", "me", || {
        site_outer(); // user=me
        with_labels([("route", "/a"), ("user", "you")], site_inner); // user=you route=/a
        site_again(); // user=me
    });
    let mut set = Labelset::new();
    set.set("tenant", "t1");
    set.enter(site_set); // tenant=t1
    site_none();
    let worker = std::thread::Builder::new().name("worker".into());
    let worker = worker.spawn(|| with_label("route", "/w", site_worker)); // route=/w
    worker.unwrap().join().unwrap();
    let main = "custom_labels_c"; // 15 bytes of the program's name
    done(&[
        ("site_none", main, 211, 2),
        ("site_outer", main, 223, 1),
        ("site_inner", main, 227, 1),
        ("site_again", main, 229, 1),
        ("site_set", main, 233, 1),
        ("site_worker", "worker", 239, 1),
    ]);
}

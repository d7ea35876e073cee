// SPDX-License-Identifier: MIT
//! Scopes that last as long as a guard.
//!
//! Entering one where it was entered before is a load, a compare and two stores: the call site
//! remembers one parent and its child. A path that has no node of its own, because it is too deep or
//! the table is full, is not remembered and takes the slow way each time.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::imp::{self, Here, Kind};

/// One place in the program that enters always the same path: what [`scope!`](crate::scope) makes.
pub struct Site {
    names: &'static [&'static str],
    /// What the path adds to the scope word.
    step: u64,
    /// Scope words from here on are too deep for it.
    limit: u64,
    /// The parent's node in the high half, the path's in the low half.
    cache: AtomicU64,
}

const NO_NODE: u64 = u64::MAX;

impl Site {
    /// A site for the path of these names; a `/` in one of them separates, too.
    pub const fn new(names: &'static [&'static str]) -> Site {
        let mut levels = 0;
        let mut i = 0;
        while i < names.len() {
            levels += count_parts(names[i]);
            i += 1;
        }
        assert!(levels >= 1, "a scope needs a name");
        assert!(levels <= imp::DEPTH_CAP, "a path has at most 64 names");
        Site {
            names,
            step: levels << imp::DEPTH_SHIFT,
            limit: (imp::DEPTH_CAP - levels + 1) << imp::DEPTH_SHIFT,
            cache: AtomicU64::new(NO_NODE),
        }
    }

    /// Enters the path below the current scope.
    #[inline(always)]
    pub fn enter(&'static self) -> ScopeGuard {
        let here = imp::here();
        if !imp::ACTIVE {
            return ScopeGuard { here, saved: 0 };
        }
        let saved = here.scope();
        let cache = self.cache.load(Ordering::Relaxed);
        let scope = if cache >> 32 == saved & imp::NODE_MASK && saved < self.limit {
            (saved & !imp::NODE_MASK) + self.step + (cache & imp::NODE_MASK)
        } else {
            self.find(saved)
        };
        here.set_scope(scope);
        ScopeGuard { here, saved }
    }

    #[cold]
    #[inline(never)]
    fn find(&'static self, parent: u64) -> u64 {
        let mut scope = parent;
        let mut is_made = true;
        for part in self.names.iter().flat_map(|name| name.split('/')) {
            if !part.is_empty() {
                let (below, is_own) = imp::push(scope, Kind::Tag, part, "");
                scope = below;
                is_made &= is_own;
            }
        }
        if is_made {
            let cache = parent << 32 | scope & imp::NODE_MASK;
            self.cache.store(cache, Ordering::Relaxed);
        }
        scope
    }
}

const fn count_parts(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut parts = 0;
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] != b'/' && (i == 0 || bytes[i - 1] == b'/') {
            parts += 1;
        }
        i += 1;
    }
    parts
}

/// Enters a path of fixed names below the current scope, until the guard is dropped.
///
/// `scope!("Top/A")` and `scope!("Top", "A")` are the same; the names must be constants. A name
/// that has a `/` in it can be given to [`enter`](crate::enter).
///
/// ```
/// use heaptap_scope::scope;
///
/// fn load() -> Vec<u8> {
///     let _scope = scope!("storage/cache");
///     vec![0; 4096]
/// }
/// # load();
/// ```
#[macro_export]
macro_rules! scope {
    ($($name:expr),+ $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new(&[$($name),+]);
        SITE.enter()
    }};
}

/// Enters the scope of that name below the current one. The name is looked up each time, and stays
/// in the table for ever: for names of which there are few. A `/` is part of the name.
#[inline]
pub fn enter(name: &str) -> ScopeGuard {
    enter_kind(Kind::Tag, name, "")
}

/// Adds a label to what is allocated until the guard is dropped. Like [`enter`] for values of which
/// there are few; what has many is an instance, see [`task`](crate::task).
#[inline]
pub fn label(key: &str, value: &str) -> ScopeGuard {
    enter_kind(Kind::Label, key, value)
}

fn enter_kind(kind: Kind, name: &str, value: &str) -> ScopeGuard {
    let here = imp::here();
    let saved = here.scope();
    here.set_scope(imp::push(saved, kind, name, value).0);
    ScopeGuard { here, saved }
}

/// Leaves the scope when dropped. Bound to its thread.
///
/// Guards are meant to be dropped in the reverse order. When an outer one goes first, the inner
/// scopes end with it; dropping their guards then changes nothing and is counted as an underflow.
#[must_use = "the scope lasts only as long as the guard"]
pub struct ScopeGuard {
    here: Here,
    saved: u64,
}

impl Drop for ScopeGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if !imp::ACTIVE {
            return;
        }
        let scope = self.here.scope();
        let depth = scope >> imp::DEPTH_SHIFT;
        if depth <= self.saved >> imp::DEPTH_SHIFT && depth != imp::DEPTH_MAX {
            imp::count_underflow();
            return;
        }
        self.here.set_scope((self.saved & !imp::PAUSED) | (scope & imp::PAUSED));
    }
}

/// What this thread allocates while the guard lives is not recorded.
#[inline]
pub fn pause() -> PauseGuard {
    let here = imp::here();
    let scope = here.scope();
    here.set_scope(scope | imp::PAUSED);
    PauseGuard { here, was_paused: scope & imp::PAUSED }
}

/// Ends the pause when dropped, unless it is inside another one. Bound to its thread.
#[must_use = "the pause lasts only as long as the guard"]
pub struct PauseGuard {
    here: Here,
    was_paused: u64,
}

impl Drop for PauseGuard {
    #[inline]
    fn drop(&mut self) {
        let scope = self.here.scope();
        self.here.set_scope((scope & !imp::PAUSED) | self.was_paused);
    }
}

/// Pauses all threads of the process, or ends that. Does not nest.
#[inline]
pub fn pause_all(on: bool) {
    imp::pause_all(on);
}

/// Is a profiler attached that reads scopes? For names that are dear to make. With some linkers the
/// answer may be no although the profiler started this program itself.
#[inline]
pub fn is_watched() -> bool {
    imp::is_watched()
}

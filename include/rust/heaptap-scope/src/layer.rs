// SPDX-License-Identifier: MIT
//! Spans of the `tracing` crate as scopes (feature `tracing`).

use std::cell::Cell;

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_core::Subscriber;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::imp::Kind;
use crate::task::next_instance;
use crate::{State, TaskHandle};

/// Makes every span that reaches it a scope, named like the span.
///
/// A span with the field `heaptap.task` is a task: a number is its instance, `true` asks for a
/// number that is not used yet. It exits when the span closes.
///
/// ```
/// use tracing::info_span;
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(heaptap_scope::ScopeLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let _serve = info_span!("serve").entered();
///     let _conn = info_span!("conn", heaptap.task = 17).entered();
///     drop(vec![0u8; 100]); // charged to serve/conn, task 17
/// });
/// ```
///
/// The scope is fixed when the span is made: below the current scope of that moment, or below that
/// of the parent that the span was given. To make only some spans scopes, give the layer a filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopeLayer(());

impl ScopeLayer {
    /// A layer for any subscriber that keeps spans in a registry.
    pub fn new() -> ScopeLayer {
        ScopeLayer(())
    }
}

struct SpanScope {
    state: State,
    _task: Option<TaskHandle>,
}

/// The field that makes a span a task.
const TASK_FIELD: &str = "heaptap.task";

enum Instance {
    None,
    Given(u64),
    Next,
}

impl Visit for Instance {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == TASK_FIELD {
            *self = Instance::Given(value);
        }
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_u64(field, value as u64);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == TASK_FIELD && value {
            *self = Instance::Next;
        }
    }
    fn record_debug(&mut self, _: &Field, _: &dyn core::fmt::Debug) {}
}

/// A span that the thread is in, and its state from before.
#[derive(Clone, Copy)]
struct Entered {
    id: u64,
    before: State,
}

/// Spans can be left in any order, so each one is found by its id. Of fixed size, because entering
/// must not allocate; deeper spans are charged to the innermost one that has a place.
const ENTERED_CAP: usize = 64;

struct Stack {
    cnt: Cell<usize>,
    entered: [Cell<Entered>; ENTERED_CAP],
}

#[allow(clippy::declare_interior_mutable_const)] // the initial value of an array's elements
const NOT_ENTERED: Cell<Entered> = Cell::new(Entered { id: 0, before: State::ROOT });
thread_local! {
    static STACK: Stack = const { Stack { cnt: Cell::new(0), entered: [NOT_ENTERED; ENTERED_CAP] } };
}

impl Stack {
    fn enter(&self, id: u64, state: State) {
        let cnt = self.cnt.get();
        if cnt < ENTERED_CAP {
            self.entered[cnt].set(Entered { id, before: state.set() });
            self.cnt.set(cnt + 1);
        }
    }

    /// What was entered later stays, and leads to where this one would have led.
    fn exit(&self, id: u64) {
        let cnt = self.cnt.get();
        let Some(i) = self.entered[..cnt].iter().rposition(|e| e.get().id == id) else { return };
        let before = self.entered[i].get().before;
        for later in i + 1..cnt {
            let mut moved = self.entered[later].get();
            if later == i + 1 {
                moved.before = before;
            }
            self.entered[later - 1].set(moved);
        }
        if i + 1 == cnt {
            before.set();
        }
        self.cnt.set(cnt - 1);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ScopeLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = match attributes.parent().and_then(|parent| context.span(parent)) {
            Some(parent) => parent.extensions().get::<SpanScope>().map(|own| own.state),
            None if attributes.is_root() => Some(State::ROOT),
            None => None,
        }
        .unwrap_or_else(State::current);
        let mut instance = Instance::None;
        attributes.record(&mut instance);
        let name = attributes.metadata().name();
        let own = match instance {
            Instance::None => SpanScope { state: parent.below(Kind::Tag, name).0, _task: None },
            Instance::Given(instance) => SpanScope::of_task(parent, name, instance),
            Instance::Next => SpanScope::of_task(parent, name, next_instance()),
        };
        span.extensions_mut().insert(own);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let state =
            context.span(id).and_then(|s| s.extensions().get::<SpanScope>().map(|own| own.state));
        if let Some(state) = state {
            // Fails where the thread is about to end: then nothing has to be put back either.
            let _ = STACK.try_with(|stack| stack.enter(id.into_u64(), state));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let _ = STACK.try_with(|stack| stack.exit(id.into_u64()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id) {
            let own = span.extensions_mut().remove::<SpanScope>();
            drop(own); // the task exits
        }
    }
}

impl SpanScope {
    fn of_task(parent: State, name: &str, instance: u64) -> SpanScope {
        let task = TaskHandle::below(parent, name, instance);
        SpanScope { state: task.state(), _task: Some(task) }
    }
}

//! What becomes of a panic that nobody waits for.

use crate::sync::{Unwatched, thread};
use alloc::boxed::Box;
use core::any::Any;

type Handler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;

/// Gets what panics carry; or nobody does. The panic hook has printed the message.
#[derive(Clone, Default)]
pub(crate) struct PanicHandler(Option<Unwatched<Handler>>);

impl PanicHandler {
    pub(crate) fn new(handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        PanicHandler(Some(Unwatched::new(handler)))
    }

    /// What a function of the user's returns; nothing if it panics, and the handler gets what it panicked with.
    #[inline]
    pub(crate) fn take<R>(&self, call: impl FnOnce() -> R) -> Option<R> {
        thread::catch(call).map_err(|payload| self.handle(payload)).ok()
    }

    /// The handler, and what a payload does when it is dropped, are the user's, and may panic too.
    pub(crate) fn handle(&self, payload: thread::Payload) {
        match &self.0 {
            None => thread::forget_if_it_panics(payload),
            Some(handler) => _ = thread::completes(|| handler(payload)),
        }
    }
}

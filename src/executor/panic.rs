//! Handling the panic of a task without a handle.

use crate::sync::{Unwatched, thread};
use alloc::boxed::Box;
use core::any::Any;

type Handler = dyn Fn(Box<dyn Any + Send>) + Send + Sync;

/// Passes the payloads of panics to the user's function, or drops them if there is none. The panic
/// hook has already printed the message.
#[derive(Clone, Default)]
pub(crate) struct PanicHandler(Option<Unwatched<Handler>>);

impl PanicHandler {
    pub(crate) fn new(handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static) -> Self {
        PanicHandler(Some(Unwatched::new(handler)))
    }

    /// Calls the user's function and returns its result. If the function panics, passes the payload
    /// to the handler and returns `None`.
    #[inline]
    pub(crate) fn take<R>(&self, call: impl FnOnce() -> R) -> Option<R> {
        thread::catch(call).map_err(|payload| self.handle(payload)).ok()
    }

    /// Passes a payload to the handler, or drops it if there is none. Swallows a panic of the
    /// handler or of the payload's destructor.
    pub(crate) fn handle(&self, payload: thread::Payload) {
        match &self.0 {
            None => thread::forget_if_it_panics(payload),
            Some(handler) => _ = thread::completes(|| handler(payload)),
        }
    }
}

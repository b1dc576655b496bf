//! Threads, what each has for itself, and panics.
//!
//! *On the machine* threads have names, and a panic in a job can be caught.
//!
//! *In a model* threads have no names, and a panic is not caught: it is how loom reports a deadlock
//! or a race, and it must end the model. So models say nothing about jobs that panic; tests do.

#[cfg(not(loom))]
pub(crate) use machine::*;
#[cfg(loom)]
pub(crate) use model::*;

#[cfg(not(loom))]
mod machine {
    pub(crate) use std::thread::{current, JoinHandle};
    pub(crate) use std::thread_local as per_thread;

    use std::any::Any;
    use std::boxed::Box;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::string::String;
    use std::{io, mem, thread};

    /// Starts a thread, if the system has one to give.
    pub(crate) fn spawn<F>(name: String, body: F) -> io::Result<JoinHandle<()>>
    where
        F: FnOnce() + Send + 'static,
    {
        thread::Builder::new().name(name).spawn(body)
    }

    /// Runs `body` to its end or to its panic, and tells whether it came to its end. The panic hook
    /// has printed the message by then.
    pub(crate) fn completes(body: impl FnOnce()) -> bool {
        // `body` is gone afterwards, with all that it could have left broken of its own; what it
        // shares with others is theirs to guard, as after a panic of a thread.
        let Err(payload) = catch_unwind(AssertUnwindSafe(body)) else { return true };
        forget_if_it_panics(payload);
        false
    }

    /// The payload of a panic is the user's, and its destructor may panic again.
    fn forget_if_it_panics(payload: Box<dyn Any + Send>) {
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(second);
        }
    }
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::thread::{current, JoinHandle};
    pub(crate) use loom::thread_local as per_thread;

    use std::io;
    use std::string::String;

    /// Starts a thread of the model.
    pub(crate) fn spawn<F>(_name: String, body: F) -> io::Result<JoinHandle<()>>
    where
        F: FnOnce() + Send + 'static,
    {
        Ok(loom::thread::spawn(body))
    }

    /// Runs `body` to its end.
    pub(crate) fn completes(body: impl FnOnce()) -> bool {
        body();
        true
    }
}

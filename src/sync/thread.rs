//! Threads, what each has for itself, and panics.
//!
//! *On the machine* threads have names, and a panic in a job can be caught.
//!
//! *In a model* threads have no names, and a panic is not caught: it is how loom reports a deadlock
//! or a race, and it must end the model. So models say nothing about jobs that panic; tests do.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use machine::*;
#[cfg(any(loom, shuttle))]
pub(crate) use model::*;

#[cfg(not(any(loom, shuttle)))]
mod machine {
    pub(crate) use std::thread::{JoinHandle, current};

    /// What each thread has for itself. Its first value is a constant expression.
    macro_rules! per_thread {
        ($(#[$meta:meta])* static $name:ident: $type:ty = $first:expr;) => {
            std::thread_local! { $(#[$meta])* static $name: $type = const { $first }; }
        };
    }
    pub(crate) use per_thread;

    use std::any::Any;
    use std::boxed::Box;
    use std::num::NonZeroUsize;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::string::String;
    use std::{io, mem, thread};

    /// How many threads the machine can run at once, as far as it is known.
    pub(crate) fn available() -> NonZeroUsize {
        thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// What a panic carries.
    pub(crate) type Payload = Box<dyn Any + Send>;

    /// Starts a thread, if the system has one to give; with a stack of so many bytes, if that is said.
    pub(crate) fn spawn<F>(
        name: String,
        stack_size: Option<usize>,
        body: F,
    ) -> io::Result<JoinHandle<()>>
    where
        F: FnOnce() + Send + 'static,
    {
        let builder = thread::Builder::new().name(name);
        match stack_size {
            Some(bytes) => builder.stack_size(bytes).spawn(body),
            None => builder.spawn(body),
        }
    }

    /// Runs `body` to its end or to its panic. The panic hook has printed the message by then.
    #[inline]
    pub(crate) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, Payload> {
        // `body` is gone afterwards, with all that it could have left broken of its own; what it
        // shares with others is theirs to guard, as after a panic of a thread.
        catch_unwind(AssertUnwindSafe(body))
    }

    /// Goes on with a panic that was caught.
    pub(crate) fn resume(payload: Payload) -> ! {
        resume_unwind(payload)
    }

    /// Runs `body`, and tells whether it came to its end without a panic.
    pub(crate) fn completes(body: impl FnOnce()) -> bool {
        catch(body).map_err(forget_if_it_panics).is_ok()
    }

    /// The payload of a panic is the user's, and its destructor may panic again.
    pub(crate) fn forget_if_it_panics(payload: Payload) {
        if let Err(second) = catch(|| drop(payload)) {
            mem::forget(second);
        }
    }
}

#[cfg(any(loom, shuttle))]
mod model {
    use crate::sync::checker;
    pub(crate) use crate::sync::checker::thread::{JoinHandle, current};

    /// As on the machine; the checkers have no form for constants.
    macro_rules! per_thread {
        ($(#[$meta:meta])* static $name:ident: $type:ty = $first:expr;) => {
            $crate::sync::checker::thread_local! {
                $(#[$meta])*
                #[allow(clippy::missing_const_for_thread_local)]
                static $name: $type = $first;
            }
        };
    }
    pub(crate) use per_thread;

    use std::any::Any;
    use std::boxed::Box;
    use std::io;
    use std::num::NonZeroUsize;
    use std::string::String;

    /// Starts a thread of the model. Stacks are as loom has them.
    pub(crate) fn spawn<F>(
        _name: String,
        _stack_size: Option<usize>,
        body: F,
    ) -> io::Result<JoinHandle<()>>
    where
        F: FnOnce() + Send + 'static,
    {
        Ok(checker::thread::spawn(body))
    }

    /// Models are small.
    pub(crate) fn available() -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    /// What a panic would carry.
    pub(crate) type Payload = Box<dyn Any + Send>;

    /// Runs `body` to its end.
    pub(crate) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, Payload> {
        Ok(body())
    }

    /// Never called: nothing is caught.
    pub(crate) fn resume(_payload: Payload) -> ! {
        unreachable!("nothing is caught in a model")
    }

    /// Runs `body` to its end.
    pub(crate) fn completes(body: impl FnOnce()) -> bool {
        body();
        true
    }

    /// Never called: nothing is caught.
    pub(crate) fn forget_if_it_panics(payload: Payload) {
        drop(payload);
    }
}

//! Threads, their thread-local storage, and panics.
//!
//! *On the machine* threads have names, and a panic in a job can be caught.
//!
//! *In a model* threads have no names, and panics are not caught. loom reports a deadlock or a race
//! by a panic, which must end the model. So only tests cover jobs that panic.
//!
//! # Invariants
//!
//! - **I1** The assembly only reads one register. It touches no memory, no stack and no flags.
//! - **I2** The attributes of a thread are read only after `pthread_getattr_np` has initialized
//!   them. They are destroyed once, after the last read.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use machine::*;
#[cfg(any(loom, shuttle))]
pub(crate) use model::*;

use alloc::boxed::Box;
use core::any::Any;
use core::mem;

/// Returns an address on this thread's stack, near the newest frame.
///
/// Reads the stack pointer on x86-64 and AArch64. On other targets, and under Miri, returns the
/// address of a local variable, which AddressSanitizer might have put elsewhere than on the stack.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let pointer: usize;
        // SAFETY: I1 — the instruction only copies a register into `pointer`, as the options say.
        unsafe {
            core::arch::asm!("mov {}, rsp", out(reg) pointer,
                options(nomem, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let pointer: usize;
        // SAFETY: I1 — the instruction only copies a register into `pointer`, as the options say.
        unsafe {
            core::arch::asm!("mov {}, sp", out(reg) pointer,
                options(nomem, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let local = 0_u8;
        (&raw const local).addr()
    }
}

/// Returns the bounds of this thread's own stack, if the system tells them: the lowest address, and
/// the address above the highest.
///
/// If the thread now runs on another stack, such as a coroutine's, the bounds are still those of
/// the thread's own stack.
pub(crate) fn stack_bounds() -> Option<(usize, usize)> {
    #[cfg(all(target_os = "linux", not(any(loom, shuttle, miri))))]
    {
        use core::{mem::MaybeUninit, ptr};

        let (mut low, mut size) = (ptr::null_mut(), 0);
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the function has no conditions, and returns the caller's own handle.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: I2 — this call initializes `attributes`, which is valid for writes. The thread is
        // this one, so it lives.
        if unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: I2 — the call above has initialized `attributes`, since it returned 0. The other
        // pointers are valid for writes.
        let error = unsafe {
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size)
        };
        // SAFETY: I2 — `attributes` was initialized, and this is its last use.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (error == 0).then(|| (low.addr(), low.addr() + size))
    }
    #[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri)))))]
    None
}

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `body`. Returns whether it ended without a panic.
pub(crate) fn completes(body: impl FnOnce()) -> bool {
    catch(body).map_err(forget_if_it_panics).is_ok()
}

/// Drops the payload of a panic. If the payload's destructor, which is the user's code, panics too,
/// forgets the payload of that second panic.
pub(crate) fn forget_if_it_panics(payload: Payload) {
    if let Err(second) = catch(|| drop(payload)) {
        mem::forget(second);
    }
}

/// Drops `rest`, then resumes a panic that was caught. If the destructor of `rest` panics too,
/// ignores that second panic.
pub(crate) fn resume_after<T>(payload: Payload, rest: T) -> ! {
    completes(|| drop(rest));
    resume(payload)
}

pub(crate) use super::Finally;

#[cfg(not(any(loom, shuttle)))]
mod machine {
    pub(crate) use std::thread::{JoinHandle, current};

    /// Declares a thread-local value, whose first value is a constant expression.
    macro_rules! per_thread {
        ($(#[$meta:meta])* static $name:ident: $type:ty = $first:expr;) => {
            std::thread_local! { $(#[$meta])* static $name: $type = const { $first }; }
        };
    }
    pub(crate) use per_thread;

    use super::Payload;
    use std::num::NonZeroUsize;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::string::String;
    use std::{io, thread};

    /// Returns the number of threads that the machine can run at once; one if the number is
    /// unknown.
    pub(crate) fn available() -> NonZeroUsize {
        thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// Starts a thread. Its stack has `stack_size` bytes, if that is given.
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

    /// Runs `body`. Returns its result, or the payload of its panic, whose message is printed
    /// already.
    #[inline]
    pub(crate) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, Payload> {
        // Unwind-safe: state that `body` owns is dropped with it. Threads that share other state
        // with `body` must cope with its panic, as with the panic of any thread.
        catch_unwind(AssertUnwindSafe(body))
    }

    pub(crate) fn resume(payload: Payload) -> ! {
        resume_unwind(payload)
    }
}

#[cfg(any(loom, shuttle))]
mod model {
    use crate::sync::checker;
    pub(crate) use crate::sync::checker::thread::{JoinHandle, current};

    /// Declares a thread-local value. The macros of loom and shuttle take no constant expressions.
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

    use super::Payload;
    use std::io;
    use std::num::NonZeroUsize;
    use std::string::String;

    /// Starts a thread of the model, with the checker's stack size.
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

    /// Returns one: models are small.
    pub(crate) fn available() -> NonZeroUsize {
        NonZeroUsize::MIN
    }

    pub(crate) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, Payload> {
        Ok(body())
    }

    pub(crate) fn resume(_payload: Payload) -> ! {
        unreachable!("nothing is caught in a model")
    }
}

//! A parker: one thread blocks in it until another thread wakes it.
//!
//! *On the machine* a `Parker` is crossbeam-utils' parker.
//!
//! *In a model* a `Parker` is a lock and a condition variable. A model has no time, so a park with
//! a timeout returns at once, woken or not. A real park may do so too, by a spurious wake-up.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use machine::Parker;
#[cfg(any(loom, shuttle))]
pub(crate) use model::Parker;

#[cfg(not(any(loom, shuttle)))]
mod machine {
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::task::Waker;
    use core::time::Duration;
    use crossbeam_utils::sync as from;

    pub(crate) struct Parker(from::Parker);

    struct Bell(from::Unparker);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.0.unpark();
        }
    }

    impl Parker {
        pub(crate) fn new() -> Self {
            Parker(from::Parker::new())
        }

        pub(crate) fn park(&self, timeout: Option<Duration>) {
            match timeout {
                Some(timeout) => self.0.park_timeout(timeout),
                None => self.0.park(),
            }
        }

        pub(crate) fn waker(&self) -> Waker {
            Arc::new(Bell(self.0.unparker().clone())).into()
        }
    }
}

#[cfg(any(loom, shuttle))]
mod model {
    use crate::sync::lock::{Condvar, Mutex};
    use core::task::Waker;
    use core::time::Duration;
    // Not loom's `Arc`, which would only make models larger.
    use std::sync::Arc;
    use std::task::Wake;

    pub(crate) struct Parker(Arc<Bell>);

    struct Bell {
        has_token: Mutex<bool>,
        rung: Condvar,
    }

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            *self.has_token.lock() = true;
            self.rung.notify_one();
        }
    }

    impl Parker {
        pub(crate) fn new() -> Self {
            Parker(Arc::new(Bell { has_token: Mutex::new(false), rung: Condvar::new() }))
        }

        pub(crate) fn park(&self, timeout: Option<Duration>) {
            let mut has_token = self.0.has_token.lock();
            // A timeout of `Duration::MAX` counts as no timeout. Every other timeout passes at
            // once.
            let timeout = timeout.filter(|it| *it < Duration::MAX);
            if timeout.is_none() {
                has_token = self.0.rung.wait_while(has_token, |has_token| !*has_token);
            }
            *has_token = false;
            // Random schedules are not fair: without a yield, one thread could wake and sleep again
            // for ever.
            #[cfg(shuttle)]
            if timeout.is_some() {
                drop(has_token);
                crate::sync::spin::give_way();
            }
        }

        pub(crate) fn waker(&self) -> Waker {
            self.0.clone().into()
        }
    }
}

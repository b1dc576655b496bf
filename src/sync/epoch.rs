//! Reclamation: freeing what another thread may still be reading.
//!
//! *On the machine* this is crossbeam-epoch: a thread that is pinned keeps whatever it can still
//! reach alive.
//!
//! *In a model* it is the most eager reclaimer that epoch's contract permits. A retired object is
//! poisoned at the first instant at which no guard keeps it: not the guards that were pinned when
//! it was retired, and not those pinned later that may still load the old pointer, which are the
//! ones not ordered after a completed reclamation. It adds two kinds of happens-before edge, both
//! part of the contract: from the drop of a guard to the poisoning it allowed, and from a poisoning
//! to every pin that starts after it. It adds none between pins, and no `SeqCst` fence, behind
//! which a missing fence of ours could hide (the real `pin` has one).
//!
//! Poisoned memory is kept until its domain goes, so that a use after free is an assertion or a
//! data race that loom reports, never a crash. This checks our use of the contract; it says
//! nothing about crossbeam-epoch itself.

#[cfg(all(not(loom), feature = "std"))]
pub(crate) use machine::{Domain, Guard, Protected};
#[cfg(loom)]
pub use model::{Domain, Guard, Protected};
#[cfg(all(not(loom), not(feature = "std")))]
pub(crate) use never::{Domain, Guard, Protected};

#[cfg(not(loom))]
mod transparent {
    use core::ops::Deref;

    /// An object that may be retired.
    pub(crate) struct Protected<T>(T);

    impl<T> Protected<T> {
        #[inline(always)]
        pub(crate) fn new(value: T) -> Self {
            Protected(value)
        }
    }

    impl<T> Deref for Protected<T> {
        type Target = T;

        #[inline(always)]
        fn deref(&self) -> &T {
            &self.0
        }
    }
}

#[cfg(all(not(loom), feature = "std"))]
mod machine {
    pub(crate) use super::transparent::Protected;
    use alloc::boxed::Box;

    /// Where guards and retired objects meet; on the machine, the whole process.
    #[derive(Clone)]
    pub(crate) struct Domain;

    /// Keeps what its thread can reach alive.
    pub(crate) struct Guard(crossbeam_epoch::Guard);

    impl Domain {
        pub(crate) fn new() -> Self {
            Domain
        }

        /// Pins the current thread. Nested pins cost next to nothing.
        #[inline]
        pub(crate) fn pin(&self) -> Guard {
            Guard(crossbeam_epoch::pin())
        }
    }

    impl Guard {
        /// Frees `object` once no thread that is pinned now can still reach it, and asks for that
        /// to be soon: what we retire is large.
        ///
        /// # Safety
        ///
        /// 1. `object` came from `Box::into_raw` and is retired once.
        /// 2. No thread that pins after this call can load a pointer to it.
        /// 3. It may be freed by any thread, at any later time.
        pub(crate) unsafe fn retire<T>(&self, object: *mut Protected<T>) {
            if cfg!(shuttle) {
                // It would be freed when the thread ends, outside of any schedule, where the atomics in it cannot be
                // touched. Schedules say nothing about memory.
                return;
            }
            // SAFETY: 1.
            let free = move || drop(unsafe { Box::from_raw(object) });
            // SAFETY: 2 and 3.
            unsafe { self.0.defer_unchecked(free) };
            self.0.flush();
        }
    }
}

#[cfg(all(not(loom), not(feature = "std")))]
mod never {
    pub(crate) use super::transparent::Protected;

    /// Where guards and retired objects would meet: without `std` nothing is built that has one.
    #[derive(Clone)]
    pub(crate) struct Domain;

    /// Keeps what its thread can reach alive.
    pub(crate) struct Guard;

    impl Domain {
        pub(crate) fn new() -> Self {
            Domain
        }

        pub(crate) fn pin(&self) -> Guard {
            unreachable!("a deque that shrinks under its stealers cannot be built without `std`")
        }
    }

    impl Guard {
        /// # Safety
        ///
        /// Never called: there is no guard.
        pub(crate) unsafe fn retire<T>(&self, _object: *mut Protected<T>) {
            unreachable!("there is no guard without `std`")
        }
    }
}

#[cfg(loom)]
mod model {
    use crate::sync::Relaxed;
    use core::cell::RefCell;
    use core::ops::Deref;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicUsize;
    use std::boxed::Box;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::vec::Vec;
    use std::{fmt, mem};

    /// An object that may be retired, and that knows whether it has been reclaimed.
    #[derive(Debug)]
    pub struct Protected<T> {
        value: T,
        alive: UnsafeCell<bool>,
    }

    // SAFETY: loom checks every access to `alive`; `value` is shared as `T` permits.
    unsafe impl<T: Sync> Sync for Protected<T> {}

    impl<T> Protected<T> {
        /// An object that is alive.
        pub fn new(value: T) -> Self {
            Protected { value, alive: UnsafeCell::new(true) }
        }

        /// Reclaims at once what should have been retired: for canaries.
        pub fn poison(&self) {
            // SAFETY: loom reports whoever reads `alive` without being ordered before this.
            self.alive.with_mut(|alive| unsafe { *alive = false });
        }
    }

    impl<T> Deref for Protected<T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: loom checks that no poisoning races with this read.
            let alive = self.alive.with(|alive| unsafe { *alive });
            assert!(alive, "an object was used after it was reclaimed");
            &self.value
        }
    }

    /// What the reclaimer needs of a retired object, whatever its type.
    trait Retired {
        fn poison(&self);
    }

    impl<T> Retired for Protected<T> {
        fn poison(&self) {
            Protected::poison(self);
        }
    }

    /// Where guards and retired objects meet: in a model, one structure.
    ///
    /// It takes one breach for none: a retirement before the unlinking, under a guard that lasts until after it.
    #[derive(Clone)]
    pub struct Domain(Arc<Shared>);

    struct Shared {
        /// Written by every guard that goes, so that loom orders it before what it allowed.
        unpinned: AtomicUsize,
        /// Written by every reclamation, so that loom orders it before the pins that follow.
        reclaimed: AtomicUsize,
        books: RefCell<Books>,
    }

    /// Not loom's, and looked at only between two operations of loom's: the truth about who is
    /// pinned, without an edge.
    #[derive(Default)]
    struct Books {
        now: usize,
        /// When each guard was pinned, while it lives.
        guards: Vec<usize>,
        /// How many guards have gone.
        gone: usize,
        /// When each object was retired, until it is reclaimed.
        waiting: Vec<(usize, Box<dyn Retired>)>,
        reclaimed: Vec<Box<dyn Retired>>,
        last_reclamation: Option<usize>,
    }

    // SAFETY: loom runs one thread at a time and switches at its own operations only; no borrow of
    // `books` contains one. What waits there is freed by whoever drops the domain last, as it would
    // be on the machine by any thread.
    unsafe impl Sync for Shared {}
    // SAFETY: as above.
    unsafe impl Send for Shared {}

    impl fmt::Debug for Domain {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.pad("Domain { .. }")
        }
    }

    impl Domain {
        /// A domain in which nothing has been retired.
        #[allow(clippy::new_without_default)] // as on the machine
        pub fn new() -> Self {
            Domain(Arc::new(Shared {
                unpinned: AtomicUsize::new(0),
                reclaimed: AtomicUsize::new(0),
                books: RefCell::default(),
            }))
        }

        /// Pins the current thread.
        pub fn pin(&self) -> Guard {
            // Either way loom sees that pinning and reclaiming depend on each other's order. The
            // edge is there only if something has been reclaimed: a read-modify-write reads the
            // newest value, so it is ordered after every reclamation so far.
            self.0.reclaimed.load(Relaxed);
            if self.0.books.borrow().last_reclamation.is_some() {
                self.0.reclaimed.fetch_add(0, Acquire);
            }
            let mut books = self.0.books.borrow_mut();
            let pinned = books.tick();
            books.guards.push(pinned);
            Guard { domain: self.clone(), pinned }
        }
    }

    impl Books {
        fn tick(&mut self) -> usize {
            self.now += 1;
            self.now
        }

        /// Whether some guard keeps what was retired at this time.
        fn kept(&self, retired: usize) -> bool {
            self.guards.iter().any(|&pinned| {
                let after_a_reclamation =
                    self.last_reclamation.is_some_and(|last| retired < last && last < pinned);
                pinned < retired || !after_a_reclamation
            })
        }

        /// Which of the waiting objects nobody keeps, by the time of their retirement.
        fn free(&self) -> Vec<usize> {
            self.waiting.iter().map(|&(retired, _)| retired).filter(|&it| !self.kept(it)).collect()
        }

        /// Poisons those. There is no operation of loom's in here at which another thread could
        /// pin.
        fn poison_free(&mut self) {
            for retired in self.free() {
                let place = self.waiting.iter().position(|&(it, _)| it == retired).unwrap();
                let (_, object) = self.waiting.swap_remove(place);
                object.poison();
                self.last_reclamation = Some(self.tick());
                self.reclaimed.push(object);
            }
        }
    }

    impl Shared {
        /// Poisons what no guard keeps.
        fn reclaim(&self) {
            if self.books.borrow().waiting.is_empty() {
                return;
            }
            loop {
                // Ordered after every guard that has gone.
                self.unpinned.fetch_add(0, Acquire);
                let gone = self.books.borrow().gone;
                if self.books.borrow().free().is_empty() {
                    return;
                }
                // Ordered before every pin that follows. Other threads may run before this
                // operation; if a guard has gone meanwhile, we are not ordered after it yet.
                self.reclaimed.fetch_add(1, Release);
                if self.books.borrow().gone == gone {
                    return self.books.borrow_mut().poison_free();
                }
            }
        }
    }

    /// Keeps what its thread can reach alive.
    #[derive(Debug)]
    pub struct Guard {
        domain: Domain,
        pinned: usize,
    }

    impl Guard {
        /// Poisons `object` once nothing keeps it.
        ///
        /// # Safety
        ///
        /// `object` came from `Box::into_raw`, is retired once, and may be freed at any later time.
        /// The rest of the contract is what the model checks.
        pub unsafe fn retire<T>(&self, object: *mut Protected<T>) {
            // SAFETY: the caller's promise.
            let object: Box<dyn Retired + '_> = unsafe { Box::from_raw(object) };
            // SAFETY: only the lifetime changes, and the caller promises that the object may be
            // freed at any later time.
            let object: Box<dyn Retired> = unsafe { mem::transmute(object) };
            let mut books = self.domain.0.books.borrow_mut();
            let retired = books.tick();
            books.waiting.push((retired, object));
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            self.domain.0.unpinned.fetch_add(1, Release);
            let mut books = self.domain.0.books.borrow_mut();
            books.guards.retain(|&pinned| pinned != self.pinned);
            books.gone += 1;
            mem::drop(books);
            self.domain.0.reclaim();
        }
    }
}

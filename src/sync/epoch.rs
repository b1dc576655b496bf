//! Reclamation: freeing objects that another thread may still be reading.
//!
//! *On the machine* crossbeam-epoch reclaims: an object stays alive while a pinned thread can still
//! reach it. A pin or a retirement can run any function that was deferred in its collector. In the
//! default collector, that could be the user's function, in the middle of a deque's operation or
//! under a pool's lock. So this crate has a collector of its own.
//!
//! *In a model* the most eager reclaimer that crossbeam-epoch's contract permits takes its place.
//! It poisons a retired object as soon as no guard keeps the object. Two kinds of guards keep it:
//!
//! - A guard that was pinned before the retirement.
//! - A guard that was pinned later, because its thread might still load the old pointer. Exception:
//!   a guard that was pinned after the latest reclamation, if that came after the retirement.
//!
//! The contract promises two kinds of happens-before edges. One goes from the drop of a guard to
//! the poisoning that this drop allowed, the other from a poisoning to every later pin. The model
//! adds these, but no edge between pins, and no `SeqCst` fence. The real `pin` has such a fence. In
//! a model it could hide that a fence of ours is missing.
//!
//! Poisoned memory is kept until its domain is dropped. So a use after free fails an assertion, or
//! is a data race that loom reports, but never crashes. The model checks how this crate uses epoch,
//! not crossbeam-epoch itself.
//!
//! # Invariants of the model
//!
//! - **I1** Each access of `alive` goes through loom's cell. loom reports two accesses that race.
//! - **I2** While a thread borrows `books`, it does no operation at which loom switches threads.
//!   loom runs one thread at a time, so no two threads borrow `books` at once.

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
    use crossbeam_epoch::{Collector, LocalHandle};
    use std::sync::LazyLock;

    static COLLECTOR: LazyLock<Collector> = LazyLock::new(Collector::new);

    std::thread_local! {
        static HANDLE: LocalHandle = COLLECTOR.register();
    }

    /// A set of guards and of the objects that they protect. On the machine the crate has one set.
    #[derive(Clone)]
    pub(crate) struct Domain;

    /// A pin: while it exists, the objects that its thread can reach stay alive.
    pub(crate) struct Guard(crossbeam_epoch::Guard);

    impl Domain {
        pub(crate) fn new() -> Self {
            Domain
        }

        /// Pins the current thread. Nested pins cost next to nothing.
        #[inline]
        pub(crate) fn pin(&self) -> Guard {
            let guard = HANDLE.try_with(LocalHandle::pin);
            // A thread whose thread-local storage is being destroyed registers anew, for this guard
            // alone.
            Guard(guard.unwrap_or_else(|_| COLLECTOR.register().pin()))
        }
    }

    impl Guard {
        /// Frees `object` once no thread that is pinned now can reach it any more. Also hands this
        /// thread's retired objects to the collector, so that large objects are freed soon.
        ///
        /// # Safety
        ///
        /// 1. `object` came from `Box::into_raw` and is retired once.
        /// 2. No thread that pins after this call can load a pointer to it.
        /// 3. Any thread may free it, in any later pin or retirement. Freeing it runs no user code.
        pub(crate) unsafe fn retire<T>(&self, object: *mut Protected<T>) {
            if cfg!(shuttle) {
                // Leaks the object. Otherwise it would be freed when the thread ends, outside any
                // schedule, where shuttle's atomics cannot be used.
                return;
            }
            // SAFETY: by 1 `object` came from a box, and only this call frees it.
            let free = move || drop(unsafe { Box::from_raw(object) });
            // SAFETY: by 2 no later pin reaches the object, by 3 any thread may run this.
            unsafe { self.0.defer_unchecked(free) };
            self.0.flush();
        }
    }
}

#[cfg(all(not(loom), not(feature = "std")))]
mod never {
    pub(crate) use super::transparent::Protected;

    /// Without `std`, no structure retires objects.
    #[derive(Clone)]
    pub(crate) struct Domain;

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
        /// Is never called.
        ///
        /// # Safety
        ///
        /// None.
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
    use std::mem;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::vec::Vec;

    /// An object that can be retired. It notes whether it was reclaimed, so that a later use fails.
    #[derive(Debug)]
    pub struct Protected<T> {
        value: T,
        alive: UnsafeCell<bool>,
    }

    // SAFETY: I1 — loom reports accesses of `alive` that race; `value` is shared as `T: Sync`
    // permits.
    unsafe impl<T: Sync> Sync for Protected<T> {}

    impl<T> Protected<T> {
        /// Makes an object that is alive.
        pub fn new(value: T) -> Self {
            Protected { value, alive: UnsafeCell::new(true) }
        }

        /// Reclaims the object at once, without retiring it. Canaries use this.
        pub fn poison(&self) {
            // SAFETY: I1 — loom reports a read of `alive` that is not ordered before this write.
            self.alive.with_mut(|alive| unsafe { *alive = false });
        }
    }

    impl<T> Deref for Protected<T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: I1 — loom reports a poisoning that races with this read.
            let alive = self.alive.with(|alive| unsafe { *alive });
            assert!(alive, "an object was used after it was reclaimed");
            &self.value
        }
    }

    /// A retired object of any type.
    trait Retired {
        fn poison(&self);
    }

    impl<T> Retired for Protected<T> {
        fn poison(&self) {
            Protected::poison(self);
        }
    }

    /// A set of guards and of the objects that they protect. In a model each structure has its own.
    ///
    /// The model misses one breach of the contract: a retirement before the unlinking, under a
    /// guard that lasts until after the unlinking.
    #[derive(Clone)]
    pub struct Domain(Arc<DomainState>);

    struct DomainState {
        /// Written by each drop of a guard, so that the drop happens before the poisoning that it
        /// allows.
        unpinned: AtomicUsize,
        /// Written by each reclamation, so that the reclamation happens before all later pins.
        reclaimed: AtomicUsize,
        books: RefCell<Books>,
    }

    /// Records which guards pin and which objects are retired. loom does not see these records, so
    /// they add no happens-before edge. They are accessed only between two operations at which loom
    /// switches threads, so no two threads access them at once.
    #[derive(Default)]
    struct Books {
        now: usize,
        /// The time at which each living guard was pinned, as counted by `now`.
        guards: Vec<usize>,
        /// The number of guards that have been dropped.
        gone: usize,
        /// The objects that are not reclaimed yet, with the time of each retirement.
        waiting: Vec<(usize, Box<dyn Retired>)>,
        reclaimed: Vec<Box<dyn Retired>>,
        last_reclamation: Option<usize>,
    }

    // SAFETY: I2 — no two threads borrow `books` at once, since loom switches threads only between
    // the borrows. The other fields are atomic.
    unsafe impl Sync for DomainState {}
    // SAFETY: the last handle's drop frees the objects, which any thread may do by promise 2 of
    // `retire`.
    unsafe impl Send for DomainState {}

    opaque!(Domain);

    impl Domain {
        /// Makes a domain in which nothing has been retired.
        #[allow(clippy::new_without_default)] // as on the machine
        pub fn new() -> Self {
            Domain(Arc::new(DomainState {
                unpinned: AtomicUsize::new(0),
                reclaimed: AtomicUsize::new(0),
                books: RefCell::default(),
            }))
        }

        /// Pins the current thread.
        pub fn pin(&self) -> Guard {
            // The load makes loom explore pins and reclamations in both orders. The addition reads
            // the newest value, so every reclamation so far happens before this pin.
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

        /// Returns whether some guard keeps the object that was retired at the time `retired`.
        fn kept(&self, retired: usize) -> bool {
            self.guards.iter().any(|&pinned| {
                let after_a_reclamation =
                    self.last_reclamation.is_some_and(|last| retired < last && last < pinned);
                pinned < retired || !after_a_reclamation
            })
        }

        /// Returns the retirement times of the objects in `waiting` that no guard keeps.
        fn free(&self) -> Vec<usize> {
            self.waiting.iter().map(|&(retired, _)| retired).filter(|&it| !self.kept(it)).collect()
        }

        /// Poisons the objects that no guard keeps. loom switches threads nowhere in this function,
        /// so no other thread pins meanwhile.
        fn poison_free(&mut self) {
            for retired in self.free() {
                let index = self.waiting.iter().position(|&(it, _)| it == retired).unwrap();
                let (_, object) = self.waiting.swap_remove(index);
                object.poison();
                self.last_reclamation = Some(self.tick());
                self.reclaimed.push(object);
            }
        }
    }

    impl DomainState {
        /// Poisons the objects that no guard keeps.
        fn reclaim(&self) {
            if self.books.borrow().waiting.is_empty() {
                return;
            }
            loop {
                // Every drop of a guard so far happens before this addition.
                self.unpinned.fetch_add(0, Acquire);
                let gone = self.books.borrow().gone;
                if self.books.borrow().free().is_empty() {
                    return;
                }
                // This addition happens before every later pin. If `gone` shows that a guard was
                // dropped after the `Acquire`, we loop: that drop must happen before the poisoning.
                self.reclaimed.fetch_add(1, Release);
                if self.books.borrow().gone == gone {
                    return self.books.borrow_mut().poison_free();
                }
            }
        }
    }

    /// A pin: while it exists, the objects that its thread can reach stay alive.
    #[derive(Debug)]
    pub struct Guard {
        domain: Domain,
        pinned: usize,
    }

    impl Guard {
        /// Poisons `object` once no guard keeps it.
        ///
        /// # Safety
        ///
        /// 1. `object` came from `Box::into_raw` and is retired once.
        /// 2. Any thread may free it, at any later time.
        ///
        /// The model checks the rest of the contract.
        pub unsafe fn retire<T>(&self, object: *mut Protected<T>) {
            // SAFETY: by 1 `object` came from a box, and only this call frees it.
            let object: Box<dyn Retired + '_> = unsafe { Box::from_raw(object) };
            // SAFETY: only the lifetime changes, and by 2 the object may be freed at any later
            // time.
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

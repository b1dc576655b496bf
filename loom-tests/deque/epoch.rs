//! Models of the reclaimer that stands in for crossbeam-epoch: does it notice each breach of
//! crossbeam-epoch's contract?
//!
//! The structure is a register with one pointer. Its writer replaces the object and retires the old
//! object. Readers pin and read. The planted bugs are the ways to break epoch's contract. If a bug
//! went unnoticed, a passing model of a deque that shrinks would show nothing about reclamation.

use crate::common::{Bound::*, canary::must_fail, model, spawn};
use filch::for_models::{Domain, Guard, Protected};
use loom::sync::atomic::{AtomicPtr, Ordering::*};
use std::sync::Arc;

/// The two messages for a use of a reclaimed object. loom reports a use that is concurrent with the
/// reclamation. The object itself reports a use that comes after it.
const AS_FREED: &[&str] = &["Causality violation", "after it was reclaimed"];

struct Register {
    current: AtomicPtr<Protected<u32>>,
    domain: Domain,
}

impl Register {
    fn new() -> Arc<Self> {
        Arc::new(Register { current: AtomicPtr::new(boxed(0)), domain: Domain::new() })
    }

    fn look(&self) -> &Protected<u32> {
        // SAFETY: the model keeps reclaimed objects until the domain is dropped, after this borrow.
        unsafe { &*self.current.load(Acquire) }
    }

    fn replace(&self, value: u32) {
        let guard = self.domain.pin();
        let old = self.current.swap(boxed(value), AcqRel);
        retire(&guard, old);
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        // SAFETY: only this thread has the register, and its last object was not retired.
        drop(unsafe { Box::from_raw(self.current.load(Relaxed)) });
    }
}

fn boxed(value: u32) -> *mut Protected<u32> {
    Box::into_raw(Box::new(Protected::new(value)))
}

fn retire(guard: &Guard, old: *mut Protected<u32>) {
    // SAFETY: the object is from `boxed`, and only the thread that unlinked it retires it.
    unsafe { guard.retire(old) };
}

#[test]
fn a_pinned_reader_is_left_alone() {
    model("a_pinned_reader_is_left_alone", Exhaustive, || {
        let register = Register::new();
        let shared = register.clone();
        let reader = spawn(move || {
            let _guard = shared.domain.pin();
            let object = shared.look();
            **object + **object
        });
        register.replace(1);
        assert!(matches!(reader.join().unwrap(), 0 | 2));
    });
}

#[test]
fn two_readers_are_left_alone_through_two_replacements() {
    model("two_readers_are_left_alone_through_two_replacements", Preemptions(3), || {
        let register = Register::new();
        let read = |shared: Arc<Register>| {
            move || {
                let _guard = shared.domain.pin();
                **shared.look()
            }
        };
        let first = spawn(read(register.clone()));
        let second = spawn(read(register.clone()));
        register.replace(1);
        register.replace(2);
        assert!(first.join().unwrap() <= 2 && second.join().unwrap() <= 2);
    });
}

#[test]
fn canary_a_missing_pin() {
    must_fail("canary_a_missing_pin", AS_FREED, || {
        model("canary_a_missing_pin", Exhaustive, || {
            let register = Register::new();
            let shared = register.clone();
            let reader = spawn(move || **shared.look());
            register.replace(1);
            reader.join().unwrap();
        });
    });
}

#[test]
fn canary_a_use_after_unpin() {
    must_fail("canary_a_use_after_unpin", AS_FREED, || {
        model("canary_a_use_after_unpin", Exhaustive, || {
            let register = Register::new();
            let shared = register.clone();
            let reader = spawn(move || {
                let guard = shared.domain.pin();
                let object = shared.look();
                drop(guard);
                **object
            });
            register.replace(1);
            reader.join().unwrap();
        });
    });
}

#[test]
fn canary_a_retirement_before_the_unlinking() {
    must_fail("canary_a_retirement_before_the_unlinking", AS_FREED, || {
        model("canary_a_retirement_before_the_unlinking", Exhaustive, || {
            let register = Register::new();
            let shared = register.clone();
            let reader = spawn(move || {
                let _guard = shared.domain.pin();
                **shared.look()
            });
            retire(&register.domain.pin(), register.current.load(Relaxed));
            register.current.store(boxed(1), Release);
            reader.join().unwrap();
        });
    });
}

#[test]
fn canary_a_free_at_once() {
    must_fail("canary_a_free_at_once", AS_FREED, || {
        model("canary_a_free_at_once", Exhaustive, || {
            let register = Register::new();
            let shared = register.clone();
            let reader = spawn(move || {
                let _guard = shared.domain.pin();
                **shared.look()
            });
            let old = register.current.swap(boxed(1), AcqRel);
            // SAFETY: the object is only poisoned, which the model treats as freed.
            unsafe { &*old }.poison();
            reader.join().unwrap();
        });
    });
}

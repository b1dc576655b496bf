//! Wakers that are references to their task, so that they need no allocation.

use super::any::{AnyTask, Reference, Unfinished};
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use core::task::{RawWaker, RawWakerVTable};

pub(super) trait Wakes: Unfinished + Sized + 'static {
    fn wake(&self);
}

/// Returns a waker of the task, which takes over a reference that is already counted.
pub(super) fn raw<W: Wakes>(task: &W) -> RawWaker {
    RawWaker::new(ptr::from_ref(task).cast(), &WakerTable::<W>::TABLE)
}

struct WakerTable<W>(PhantomData<W>);

impl<W: Wakes> WakerTable<W> {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// # Safety
    ///
    /// 1. `data` is that of a waker that is not dropped while the returned reference is used.
    unsafe fn of<'a>(data: *const ()) -> &'a W {
        // SAFETY: I4 — by 1 a waker's reference keeps the task, and every `data` came from `raw`,
        // for this `W`.
        let task = unsafe { &*data.cast::<W>() };
        task.common().watch.used();
        task
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: I4 — the waker that is cloned keeps the task.
        let task = unsafe { Self::of(data) };
        task.common().state.refer();
        raw(task)
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: I4 — the waker's reference keeps the task until the next statement drops the
        // waker.
        unsafe { Self::of(data) }.wake();
        // SAFETY: I4 — the reference of the waker is still counted, and the waker is not used
        // afterwards.
        unsafe { Self::drop(data) };
    }

    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: I4 — the waker's reference keeps the task.
        unsafe { Self::of(data) }.wake();
    }

    unsafe fn drop(data: *const ()) {
        // SAFETY: I4 — the waker's reference keeps the task until the next statement drops that
        // reference.
        let task = unsafe { Self::of(data) };
        drop(AnyTask(Reference(NonNull::from(task as &dyn Unfinished))));
    }
}

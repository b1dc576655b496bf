//! The *roll*: a list, under a lock, of the futures that end with their executor. The executor's
//! end cancels these futures, and closes the roll. A future adds itself before it first sleeps, and
//! removes itself when it ends. Until it first sleeps, it has a job. Some executors drop all their
//! jobs when they end (`Polling::drops_jobs`), and so end that future. With other executors, a
//! future adds itself when it is spawned.

use super::any::{AnyTask, Reference, Unfinished};
use super::error::Cause;
use super::slots::Slots;
use super::state::Cancel;
use crate::sync::lock::Mutex;
use crate::sync::thread;
use alloc::vec::Vec;
use core::mem;
use core::ptr::NonNull;

/// The roll of an executor. It keeps no future alive: a future is freed with its last waker, job or
/// handle.
#[derive(Default)]
pub(crate) struct Living(Mutex<Roll>);

enum Roll {
    Open(Slots<WeakTask>),
    /// The executor has ended, for this cause, and takes no more futures.
    Closed(Cause),
}

/// A pointer to a future that does not keep the future alive. It is in a list under a lock: the
/// roll, or the listeners of a token. Under that lock, the future removes the pointer before the
/// future is freed (I4).
pub(super) struct WeakTask(pub(super) NonNull<dyn Unfinished>);

// SAFETY: I4 — the pointer is used only under the lock of its list, and leaves the list before the
// task is freed. The task is `Sync`.
unsafe impl Send for WeakTask {}

impl Default for Roll {
    fn default() -> Self {
        Roll::Open(Slots::default())
    }
}

impl Living {
    /// Adds a future, and returns its index. If the executor has ended, returns the cause.
    pub(super) fn add(&self, task: NonNull<dyn Unfinished>) -> Result<usize, Cause> {
        match &mut *self.0.lock() {
            Roll::Open(slots) => Ok(slots.add(WeakTask(task))),
            Roll::Closed(cause) => Err(cause.clone()),
        }
    }

    pub(super) fn remove(&self, index: usize) {
        if let Roll::Open(slots) = &mut *self.0.lock() {
            slots.remove(index);
        }
    }

    /// Ends all futures of the executor, and refuses later ones. A future that is being polled
    /// now is ended after the poll, by the polling thread. Returns how many futures this call has
    /// ended. Calls `panicked` with the payload of each panic of a destructor or a waker.
    pub(crate) fn end(
        &self,
        cause: impl Into<Cause>,
        mut panicked: impl FnMut(thread::Payload),
    ) -> usize {
        let (cause, mut ended) = (cause.into(), 0);
        let mut roll = self.0.lock();
        let Roll::Open(slots) = &mut *roll else { return 0 };
        let slots = mem::take(slots);
        *roll = Roll::Closed(cause.clone());
        let tasks: Vec<_> = slots.into_items().into_iter().filter_map(WeakTask::upgrade).collect();
        drop(roll);
        for task in tasks {
            let cancelled = thread::catch(|| task.cancel(cause.clone()));
            // `cancel` panics only if it ends the future, so a panic counts as an ended future.
            ended += usize::from(!matches!(cancelled, Ok(Cancel::Requested | Cancel::Finished)));
            if let Err(payload) = cancelled {
                panicked(payload);
            }
        }
        ended
    }

    /// Replaces the roll by an empty open roll, for a new queue in the slot of an ended queue.
    pub(crate) fn reset(&self) {
        *self.0.lock() = Roll::default();
    }
}

impl WeakTask {
    /// Returns the task, unless it is about to be freed. The caller holds the lock of the list.
    pub(super) fn upgrade(self) -> Option<AnyTask> {
        // SAFETY: I4 — the future removes this pointer from its list, under the lock, before the
        // future is freed. The caller has held the lock since it took the pointer from the list.
        let task = unsafe { self.0.as_ref() }.common();
        task.watch.used();
        task.state.try_refer().then(|| AnyTask(Reference(self.0)))
    }
}

//! `spawn` and `spawn_fifo`: detached jobs.

use crate::registry::{Here, Registry, take_oldest};
use std::sync::Arc;

/// Spawns a closure that nobody waits for: in the queue whose task this thread runs, or on the pool
/// whose worker it is, or on the global one. A worker runs its newest job first.
///
/// If it panics, the panic handler is called; the process ends if there is none. In a queue it is
/// the scheduler's handler.
///
/// # Panics
///
/// Panics in a task of a queue that refuses it, because it is closed or full.
///
/// # Examples
///
/// ```
/// let (sender, inbox) = std::sync::mpsc::channel();
/// rayon_core::spawn(move || sender.send(7).unwrap());
/// assert_eq!(inbox.recv(), Ok(7));
/// ```
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_here(func, Registry::spawn_newest_first);
}

/// Spawns as [`spawn`] does; a worker runs the oldest of these first.
/// Panics as `spawn` does.
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    spawn_here(func, Registry::spawn_fifo);
}

fn spawn_here<F>(func: F, spawn: impl FnOnce(&Arc<Registry>, F))
where
    F: FnOnce() + Send + 'static,
{
    Here::with(|here| match here {
        Here::Queue(queue) => match queue.spawn_detached(func) {
            Ok(()) => {}
            Err(rejected) => panic!("the queue has not accepted the job: {rejected}"),
        },
        Here::Worker(registry) => spawn(registry, func),
        Here::Outside => spawn(Registry::global(), func),
    });
}

impl Registry {
    pub(crate) fn spawn_newest_first(self: &Arc<Self>, f: impl FnOnce() + Send + 'static) {
        if self.is_breadth_first { self.spawn_fifo(f) } else { self.spawn(f) }
    }

    /// A job that stands for the oldest of those that this worker has spawned so.
    pub(crate) fn spawn_fifo(self: &Arc<Self>, f: impl FnOnce() + Send + 'static) {
        let Some(index) = self.current_index() else { return self.spawn(f) };
        self.fifos[index].push(Box::new(f));
        let same = Arc::clone(self);
        self.spawn(move || take_oldest(&same.fifos[index])());
    }
}

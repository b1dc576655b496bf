//! The trait by which the benchmarks call each queue for many producers and consumers, and an
//! `impl` for each contender.

use std::collections::VecDeque;
use std::sync::Mutex;

/// A queue that threads share by reference.
pub trait Queue<T>: Send + Sync + 'static {
    /// The deque to which batches go, or `()` if the queue has no batches.
    type Local: Send;
    /// Returns an empty and unbounded queue.
    fn new() -> Self;
    /// Pushes an item.
    fn push(&self, item: T);
    /// Pops the oldest item, or returns `None` if the queue is empty.
    fn pop(&self) -> Option<T>;
    /// Returns an empty deque for batches.
    fn local() -> Self::Local;
    /// Moves half of the items, and at most 32, to `local`. Returns whether it moved any.
    fn batch(&self, local: &Self::Local) -> bool;
    /// Empties `local`, and returns how many items it had.
    fn empty(local: &Self::Local) -> usize;
}

/// Implements [`Queue`] for the injector of a crate, which has batches.
macro_rules! injector {
    ($the_crate:ident) => {
        impl<T: Send + 'static> Queue<T> for $the_crate::Injector<T> {
            type Local = $the_crate::Worker<T>;
            fn new() -> Self {
                $the_crate::Injector::new()
            }
            #[inline]
            fn push(&self, item: T) {
                $the_crate::Injector::push(self, item);
            }
            #[inline(always)]
            fn pop(&self) -> Option<T> {
                loop {
                    match self.steal() {
                        $the_crate::Steal::Success(item) => return Some(item),
                        $the_crate::Steal::Empty => return None,
                        $the_crate::Steal::Retry => {}
                    }
                }
            }
            fn local() -> Self::Local {
                $the_crate::Worker::new_fifo()
            }
            #[inline]
            fn batch(&self, local: &Self::Local) -> bool {
                loop {
                    match self.steal_batch(local) {
                        $the_crate::Steal::Success(()) => return true,
                        $the_crate::Steal::Empty => return false,
                        $the_crate::Steal::Retry => {}
                    }
                }
            }
            fn empty(local: &Self::Local) -> usize {
                std::iter::from_fn(|| local.pop()).count()
            }
        }
    };
}

injector!(filch);
injector!(crossbeam_deque);

/// Implements [`Queue`] for a queue without batches.
macro_rules! queue {
    ($type:ty, $new:expr, |$this:ident, $item:ident| $push:expr, $pop:expr) => {
        impl<T: Send + 'static> Queue<T> for $type {
            type Local = ();
            fn new() -> Self {
                $new
            }
            #[inline]
            fn push(&self, $item: T) {
                let $this = self;
                $push;
            }
            #[inline(always)]
            fn pop(&self) -> Option<T> {
                let $this = self;
                $pop
            }
            fn local() {}
            fn batch(&self, (): &()) -> bool {
                unreachable!("this queue has no batches")
            }
            fn empty((): &()) -> usize {
                0
            }
        }
    };
}

/// kanal's unbounded channel: its sender and its receiver.
#[allow(missing_debug_implementations)] // it has none
pub struct Kanal<T>(kanal::Sender<T>, kanal::Receiver<T>);

queue!(crossbeam_queue::SegQueue<T>, Self::new(), |q, item| q.push(item), q.pop());
queue!(
    concurrent_queue::ConcurrentQueue<T>,
    Self::unbounded(),
    |q, item| assert!(q.push(item).is_ok(), "nobody closes it"),
    q.pop().ok()
);
queue!(
    Kanal<T>,
    {
        let (sender, receiver) = kanal::unbounded();
        Kanal(sender, receiver)
    },
    |q, item| assert!(q.0.send(item).is_ok(), "the receiver lives"),
    q.1.try_recv().expect("the sender lives")
);
queue!(
    Mutex<VecDeque<T>>,
    Self::default(),
    |q, item| q.lock().expect("nobody panics").push_back(item),
    q.lock().expect("nobody panics").pop_front()
);

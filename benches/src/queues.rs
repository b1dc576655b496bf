//! The operations that each queue for many producers and consumers must have, and an `impl` for
//! each contender.

use std::collections::VecDeque;
use std::sync::Mutex;

/// A queue that threads share by reference.
pub trait Queue<T>: Send + Sync + 'static {
    /// What takes a batch; `()` where there are none.
    type Local: Send;
    /// An empty queue, unbounded.
    fn new() -> Self;
    /// Pushes.
    fn push(&self, item: T);
    /// Pops; `None` if it is empty.
    fn pop(&self) -> Option<T>;
    /// A deque that takes batches.
    fn local() -> Self::Local;
    /// Moves up to 32 items, half of what is there, to a deque. Returns whether it did.
    fn batch(&self, local: &Self::Local) -> bool;
    /// Empties that deque, and returns how many items it had.
    fn empty(local: &Self::Local) -> usize;
}

/// The queues that have batches.
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

/// The queues that have none.
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

/// kanal's unbounded channel: both ends.
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

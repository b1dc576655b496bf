//! A blocking channel for many senders and receivers, made of an injector and an event count.
//!
//! ```console
//! cargo run --release --example blocking_queue            # a million items back and forth
//! cargo run --release --example blocking_queue -- 5000
//! ```

use filch::Injector;
use filch::idle::EventCount;
use std::time::Instant;
use std::{env, process, thread};

/// A queue whose receivers sleep while it is empty.
pub(crate) struct BlockingQueue<T> {
    items: Injector<T>,
    changes: EventCount,
}

impl<T> BlockingQueue<T> {
    pub(crate) fn new() -> Self {
        BlockingQueue { items: Injector::new(), changes: EventCount::new() }
    }

    /// Sends an item; returns it if the queue is closed.
    pub(crate) fn send(&self, item: T) -> Result<(), T> {
        self.items.try_push(item).map_err(|closed| closed.0)?;
        self.changes.notify_one();
        Ok(())
    }

    /// Receives the oldest item. Sleeps while the queue is empty. Returns `None` once the queue is
    /// closed and empty.
    pub(crate) fn receive(&self) -> Option<T> {
        loop {
            if let Some(item) = self.items.pop() {
                return Some(item);
            }
            let prepared = self.changes.prepare();
            // `is_closed` comes first, because a closed queue accepts no further item.
            let is_closed = self.items.is_closed();
            if let Some(item) = self.items.pop() {
                return Some(item); // dropping `prepared` cancels
            }
            match (is_closed, self.items.is_empty()) {
                (true, true) => return None,
                // A sender was stopped in the middle of its push, and `pop` goes around its item.
                (true, false) => thread::yield_now(),
                (false, _) => prepared.commit(),
            }
        }
    }

    /// Closes the queue to further items. Receivers still get the items in it.
    pub(crate) fn close(&self) {
        self.items.close();
        self.changes.notify_all();
    }
}

impl<T> Default for BlockingQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn main() {
    let rounds = match env::args().nth(1).map(|count| count.parse()) {
        None => 1_000_000,
        Some(Ok(count)) => count,
        Some(Err(_)) => {
            eprintln!("usage: blocking_queue [NUMBER OF ITEMS]");
            process::exit(2);
        }
    };
    let (there, back) = (BlockingQueue::new(), BlockingQueue::new());
    let start = Instant::now();
    let sum = thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(item) = there.receive() {
                back.send(item).expect("`back` is not closed");
            }
        });
        let sum = (0..rounds).map(|round: u64| {
            there.send(round).expect("not closed yet");
            back.receive().expect("it comes back")
        });
        let sum = sum.sum::<u64>();
        there.close();
        sum
    });
    assert_eq!(sum, rounds * rounds.saturating_sub(1) / 2, "every item came back");
    let each = start.elapsed().as_secs_f64() * 1e6 / rounds.max(1) as f64;
    println!("{rounds} items went to another thread and back, one at a time: {each:.2} µs each");
}

//! What is cheap and what is not.
//!
//! What costs time here is, in this order: waking a thread, moving a cache line from core to core, allocating,
//! looking at the clock, and a locked instruction. This page says which operation does which, and what to do about
//! it. Numbers are in `benches/README.md`, with the machine (a virtual one with two cores of an Intel Xeon): ratios
//! between rows of one run repeat there, nanoseconds do not carry over to another machine. Nothing has been measured
//! on more than two cores.
//!
//! # What an operation does
//!
//! | operation | on x86-64 |
//! |---|---|
//! | [`Worker::push`](crate::Worker::push) | plain stores; now and then a buffer of twice the size |
//! | [`Worker::pop`](crate::Worker::pop), LIFO | one full fence; for the last item a compare-exchange in its place |
//! | [`Worker::pop`](crate::Worker::pop), FIFO | one compare-exchange |
//! | [`Stealer::steal`](crate::Stealer::steal) | one compare-exchange; from an empty deque two loads |
//! | [`steal_batch`](crate::Stealer::steal_batch) and its kin | FIFO: one compare-exchange in all; LIFO: two for 32 items |
//! | [`Injector::push`](crate::Injector::push) | one fetch-add; `push_batch` one for those that share a segment, up to 32 |
//! | [`Injector::steal`](crate::Injector::steal) | one compare-exchange; a batch, one for all of it; from an empty one, loads |
//! | [`EventCount::notify_one`](crate::idle::EventCount::notify_one), nobody there | a fence and a load; [`asymmetric`](crate::idle::EventCount::asymmetric), a load |
//! | [`EventCount::prepare`](crate::idle::EventCount::prepare) | a compare-exchange and a fence; asymmetric, a system call |
//! | a steal of a deque that [shrinks](crate::deque::Builder::shrinking) | pins the thread besides: a fence |
//!
//! # Queues
//!
//! *Keep work where it is made.* An item that its owner pops never leaves the core. One that is stolen, or goes
//! through the injector, is fetched from another core, which costs more than all instructions together.
//!
//! *Move several at once* when there is a backlog. A thief that takes a batch pays once; in a stream that is nearly
//! empty a batch has one item, and `steal` is quicker.
//!
//! ```
//! use filch::{Injector, Worker};
//!
//! let (injector, local) = (Injector::new(), Worker::new_lifo());
//! injector.push_batch(0..100); // four claims instead of a hundred
//! assert_eq!(injector.steal_batch_and_pop(&local).success(), Some(0)); // and one
//! assert_eq!((local.len(), injector.len()), (31, 68));
//! ```
//!
//! *Keep items small.* A steal copies the item before it knows whether it has it. `push_batch` pushes items of more
//! than 64 bytes to an injector one by one. A box is one word, and its allocation costs more than the queue:
//! `benches/README.md` has both rows.
//!
//! *Do not steal flat out.* A look at an empty deque is two loads, so a thief that does nothing else looks often, and
//! each look takes a cache line from the owner. Search for a while and then sleep:
//! [`Searchers`](crate::idle::Searchers) has that built in.
//!
//! *The injector allocates a segment at a time*, 256 small items, and uses its segments again. Steady traffic
//! allocates nothing.
//!
//! # Tasks
//!
//! | spawned by | allocations |
//! |---|---|
//! | `spawn_detached`, three words of capture or less | none; from outside of the pool a segment at times |
//! | `spawn_detached`, more than three words | one: the closure is boxed |
//! | `spawn`, whatever it captures | one: the task, with the closure and the result in it |
//! | `join` on a worker | none |
//! | `scope`, a `token`, a `group` | one or more besides; with a [`ContextFlow`](crate::task::ContextFlow) a box for the context |
//!
//! So what a detached closure captures is worth a look. An `Arc` of what many tasks need is one word:
//!
//! ```
//! use std::mem::{size_of, size_of_val};
//! use std::sync::Arc;
//!
//! let (settings, name, number) = (Arc::new([0; 100]), String::from("a"), 7);
//! let by_value = { let name = name.clone(); move || drop((name, number)) };
//! assert!(size_of_val(&by_value) > 3 * size_of::<usize>(), "would be boxed");
//!
//! let shared = Arc::new((settings, name));
//! let by_pointer = move || drop((shared, number));
//! assert!(size_of_val(&by_pointer) <= 3 * size_of::<usize>());
//! filch::ThreadPool::new(1)?.spawn_detached(by_pointer).unwrap();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *Spawn in batches* from outside: `spawn_batch` claims slots together, and decides once whom to wake.
//!
//! ```
//! let pool = filch::ThreadPool::new(2)?;
//! pool.spawn_batch((0..1000).map(|number| move || assert!(number < 1000))).unwrap();
//! pool.wait_idle().unwrap();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *Make tasks long enough.* A task costs some tens of nanoseconds where it stays with its worker, and several times
//! that if it is stolen. Recursion that ends at some thousand instructions and goes on serially, instead of at one,
//! is what helps most.
//!
//! *Waking is what is slow*: some microseconds, most of them the kernel's. A worker looks for 22 µs before it sleeps,
//! so bursts that follow each other closely wake nobody; the price is the processor time of those looks. A pool that
//! is idle uses none: there is no timer.
//!
//! *Pools have asymmetric fences.* Notifying, which each spawn does, has no fence on Linux; falling asleep has a
//! system call instead, that interrupts the other threads of the process. In a virtual machine that is slow (up to 13
//! µs in the one that was measured). For threads of your own that sleep as often as they are told, take
//! [`Searchers::new`](crate::idle::Searchers::new).
//!
//! # Fair queues
//!
//! A task of a queue costs more than one of the bare pool: its queue's count, an injector, a look at the clock, and a
//! part of a *lease*. A lease is what a thread does for one queue before the policy is asked again: until a task ends
//! after the [`quantum`](crate::fair::Builder::quantum), 100 µs, or 1024 tasks have run. A longer quantum has fewer
//! picks, a shorter one smaller differences between queues:
//!
//! ```
//! use filch::sim::{work, Stepper};
//! use std::time::Duration;
//!
//! let leases = |quantum| {
//!     let stepper = Stepper::new(1, 1);
//!     let fair = stepper.scheduler().quantum(quantum).build();
//!     let queues = [fair.queue("a").build().unwrap(), fair.queue("b").build().unwrap()];
//!     for _ in 0..1000 {
//!         queues.iter().for_each(|it| it.spawn_detached(|| work(Duration::from_micros(1))).unwrap());
//!     }
//!     stepper.run_until_idle();
//!     queues.iter().map(|it| it.metrics().leases).sum::<u64>()
//! };
//! assert_eq!(leases(Duration::ZERO), 2000); // one for each task
//! assert_eq!(leases(Duration::from_micros(100)), 20); // one for a hundred
//! ```
//!
//! - The clock is read once for each task; once more if [`measure_waits`](crate::fair::Builder::measure_waits) is
//!   set. Where that is slow, a [`Clock`](crate::fair::Clock) of your own may be quicker and coarser; shares are then
//!   as coarse.
//! - A pick costs more the more queues are *ready*: the table *a lease of one task* in `benches/README.md` has 2 to
//!   16,384. Queues that are not ready cost nothing.
//! - A queue keeps some memory: [`limits`](super::limits). Make queues for tenants rather than for tasks.
//! - [`capacity`](crate::fair::QueueBuilder::capacity) bounds memory when more comes than is served.
//!
//! # How to measure
//!
//! ```sh
//! cargo xtask versus deque                # ratios to crossbeam-deque and st3, in one interleaved run
//! cargo xtask versus injector             # to crossbeam-deque's, kanal and others
//! cargo xtask versus idle                 # to a fence, and to event-listener
//! cargo xtask versus pool                 # to rayon, executors, tokio, chili and others
//! cargo xtask versus fair                 # to the bare pool, and to Toub's under a lock
//! cargo run --release --example harness   # the executors here as in Duffy's articles, with a chart
//! cargo run --release --example tenants   # what a small batch waits beside a large one
//! ```
//!
//! A ratio of two contenders in one run says more than either number. Rows with a second thread depend on where the
//! system has put the two; the first line of each table says how long a cache line takes to the other core and back.
//! And measure your own program: what [`ThreadPool::metrics`](crate::ThreadPool::metrics) shows of steals, and of
//! times that a worker woke for nothing, is counted in any case, and
//! [`FairScheduler::report`](crate::FairScheduler::report) says who has got what. [`Timeline`](crate::trace::Timeline) shows
//! which thread ran a task of which queue, and when: gaps, waits and tasks that are too short are seen at once
//! (`cargo run --release --example trace`).

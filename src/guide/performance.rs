//! The cost of each operation, and how to lower it.
//!
//! Five things cost time. The most expensive comes first: waking a thread, moving a cache line from
//! core to core, allocating, reading the clock, and a locked instruction. This page says which of
//! these costs each operation has, and how to avoid them. `benches/README.md` has the ratios to
//! other crates on four machines of two cores each; none with more cores has been measured. Ratios
//! of one run repeat on the same machine; nanoseconds do not carry over to another machine.
//!
//! # Instructions of each operation
//!
//! | operation | on x86-64 |
//! |---|---|
//! | [`Worker::push`](crate::Worker::push) | plain stores; when the buffer is full, also a copy into one of twice the size |
//! | [`Worker::pop`](crate::Worker::pop), LIFO | one full fence; for the last item, a compare-exchange instead |
//! | [`Worker::pop`](crate::Worker::pop), FIFO | one compare-exchange |
//! | [`Stealer::steal`](crate::Stealer::steal) | one compare-exchange; on an empty deque, two loads |
//! | [`steal_batch`](crate::Stealer::steal_batch) and its variants | FIFO: one compare-exchange for the whole batch; LIFO: two for 32 items |
//! | [`Injector::push`](crate::Injector::push) | one fetch-add; `push_batch`, one for up to 32 items of one segment |
//! | [`Injector::steal`](crate::Injector::steal) | one compare-exchange for an item or a whole batch; on an empty injector, loads only |
//! | [`EventCount::notify_one`](crate::idle::EventCount::notify_one), no sleeper | a fence and a load; with [`asymmetric`](crate::idle::EventCount::asymmetric), a load only |
//! | [`EventCount::prepare`](crate::idle::EventCount::prepare) | a compare-exchange and a fence; with `asymmetric`, a system call instead of the fence |
//! | a steal of a deque that [shrinks](crate::deque::Builder::shrinking) | as `steal` or `steal_batch`, and pins the thread, which needs a fence |
//!
//! # Queues
//!
//! *Keep work where it arises.* An item that its owner pops never leaves the core. A thief or a
//! consumer of the injector fetches its item from another core, which takes longer than all
//! instructions of the steal together.
//!
//! *Move items in batches* when there is a backlog. A thief that takes a batch pays once for all
//! its items. If the queue is nearly empty, a batch has one item, and `steal` is faster.
//!
//! ```
//! use filch::{Injector, Worker};
//!
//! let (injector, local) = (Injector::new(), Worker::new_lifo());
//! injector.push_batch(0..100); // four fetch-adds instead of a hundred
//! assert_eq!(injector.steal_batch_and_pop(&local).success(), Some(0)); // one compare-exchange
//! assert_eq!((local.len(), injector.len()), (31, 68));
//! ```
//!
//! *Keep items small.* A thief copies the item before it knows whether its claim succeeds.
//! `push_batch` pushes items of more than 64 bytes to an injector one by one. A box is one word,
//! but its allocation costs more than a push and a pop (`benches/README.md`, *Boxed items*).
//!
//! *Do not steal without pause.* A failed steal is two loads, so a thief that does nothing else
//! repeats it often. Each attempt takes a cache line from the owner. Search for some microseconds
//! and then sleep: [`Searchers`](crate::idle::Searchers) supports that.
//!
//! *The injector allocates one segment at a time*, for up to 256 items, and reuses its segments.
//! Steady traffic allocates nothing.
//!
//! # Tasks
//!
//! | spawned by | allocations |
//! |---|---|
//! | `spawn_detached`, captures of at most three words | none; from outside the pool, an injector segment at times |
//! | `spawn_detached`, captures of more than three words | one: the closure is boxed |
//! | `spawn`, whatever it captures | one: the task, with the closure and the result in it |
//! | `join` on a worker | none |
//! | a job of a `scope`, captures of at most two words | none |
//! | the first four jobs with captures of three to six words that a worker spawns in a scope it opened | none |
//! | any other job of a `scope` without a handle | one |
//! | a job of a `scope` with a handle | one |
//! | `task().token(…)` | at least one in addition |
//! | `task().group(…)` | one for the task, even if detached; sometimes one for the group's list |
//! | in a pool with a [`ContextFlow`](crate::task::ContextFlow) | at least one box in addition, for the context |
//!
//! So keep the captures of detached closures small. An `Arc` of data that many tasks share is one
//! word:
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
//! *Spawn in batches* from outside: `spawn_batch` claims slots together, and notifies once.
//!
//! ```
//! let pool = filch::ThreadPool::new(2)?;
//! pool.spawn_batch((0..1000).map(|number| move || assert!(number < 1000))).unwrap();
//! pool.wait_idle().unwrap();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *Make tasks long enough.* A task costs some tens of nanoseconds if it stays with its worker, and
//! several times that if another worker steals it. In a recursion, it helps most to stop splitting
//! early: run work of some thousand instructions serially in one task.
//!
//! *Waking a thread is slow*: some microseconds, most of them in the kernel. Before a worker
//! sleeps, it searches for up to 3 µs, or for 22 µs if its last sleep was shorter than 50 µs. So
//! bursts that follow each other closely need wake no thread. The price is the processor time of
//! the search. An idle pool uses none.
//!
//! *Pools use asymmetric fences.* Each spawn notifies the workers, on Linux without a fence. In
//! return, a worker that goes to sleep makes a system call, which interrupts the other threads of
//! the process. In a virtual machine, that took up to 13 µs. If your threads sleep as often as they
//! are notified, use [`Searchers::new`](crate::idle::Searchers::new), with ordinary fences.
//!
//! # Fair queues
//!
//! A task of a queue costs more than a task of the bare pool. It is counted, passes through the
//! queue's injector, needs one reading of the clock, and bears a part of the cost of a *lease*. A
//! lease is a thread's right to run tasks of one queue, until the thread asks the policy for its
//! next *pick*. By default the lease ends with the first task that ends after the
//! [`quantum`](crate::fair::Builder::quantum) of 100 µs, or after 1024 tasks. A longer quantum
//! means fewer picks; a shorter one, smaller differences in service:
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
//! assert_eq!(leases(Duration::ZERO), 2000); // one lease for each task
//! assert_eq!(leases(Duration::from_micros(100)), 20); // one lease for a hundred tasks
//! ```
//!
//! - The clock is read once for each task, and twice with
//!   [`measure_waits`](crate::fair::Builder::measure_waits). If the system's clock is slow, a
//!   faster [`Clock`](crate::fair::Clock) of your own helps. A coarse clock makes coarse shares.
//! - A pick costs more if more queues are *ready*: the table *a lease of one task* in
//!   `benches/README.md` covers 2 to 16,384 ready queues. Queues that are not ready cost nothing.
//! - A queue keeps some memory, as [`limits`](super::limits) says. Make queues for tenants rather
//!   than for tasks.
//! - [`capacity`](crate::fair::QueueBuilder::capacity) bounds memory when tasks arrive faster than
//!   they are served.
//!
//! # How to measure
//!
//! ```sh
//! cargo xtask versus deque                # ratios to crossbeam-deque and st3, in one run
//! cargo xtask versus injector             # to crossbeam-deque, kanal and others
//! cargo xtask versus idle                 # to a fence, and to event-listener
//! cargo xtask versus waits                # joins, scopes and handles, to rayon
//! cargo xtask versus pool                 # to rayon, executors, tokio, chili and others
//! cargo xtask versus futures              # to async-executor, smol and tokio
//! cargo xtask versus fair                 # to the bare pool, to Stephen Toub's round-robin pool
//! cargo run --release --example harness   # filch's executors, timed as in Joe Duffy's articles
//! cargo run --release --example tenants   # the wait of a small batch beside a large one
//! ```
//!
//! [`from_dotnet`](super::from_dotnet) names the articles of Toub and Duffy. A ratio of two
//! contenders in one run says more than either number. Rows with two threads depend on where the
//! system has put them. The first line of each table says how long a cache line takes to the other
//! core and back.
//!
//! Measure your own program, too. [`ThreadPool::metrics`](crate::ThreadPool::metrics) always counts
//! steals, and the times that a worker woke and found nothing.
//! [`FairScheduler::report`](crate::FairScheduler::report) says how much service each queue got.
//! [`Timeline`](crate::trace::Timeline) shows which thread ran a task of which queue, and when
//! (`cargo run --release --example trace`). Gaps, waits and too short tasks are easy to see there.

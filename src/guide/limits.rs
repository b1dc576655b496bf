//! What filch cannot do.
//!
//! Each limit with its number, where it comes from in the source, and what happens there. What is not promised about
//! shares is in [`choosing_a_policy`](super::choosing_a_policy), and what is not shown about the code in the report
//! of `cargo xtask prove`.
//!
//! # Queues
//!
//! | limit | number | source | at the limit |
//! |---|---|---|---|
//! | indices of a deque | 62 bits; 30 where there are no 64-bit atomics | `deque/index.rs` | wraps. With 30 bits a thief that stands still inside one steal for exactly a multiple of 2³⁰ items takes a wrong one |
//! | memory of a deque | `isize::MAX` bytes | `deque/room.rs` | `push` panics with "capacity overflow" |
//! | memory that is kept | less than the current buffer again | `deque/mod.rs`, I6 | freed with the last handle; sooner with [`shrinking`](crate::deque::Builder::shrinking) |
//! | a batch, if it is not said | 32 items | `deque/mod.rs`, `MAX_BATCH` | ask for more by a limit; from LIFO they are claimed 32 at a time |
//! | a segment of an injector | 6 KiB, 256 slots at most | `injector/segment.rs` | the next one; one slot, if an item is larger |
//! | memory that an injector keeps | 64 KiB, or one segment | `injector/mod.rs`, `KEPT` | the rest is freed |
//! | segments of an injector | numbered by 40 bits | `injector/word.rs` | wraps; three days at a nanosecond an item, for a thread that stands still so long |
//! | producers of an injector | 262,000 threads | `injector/word.rs` | not checked |
//! | slots that were given up | 8,191 at once | `injector/around.rs` | a consumer waits for its producer, for as long as that takes |
//! | threads between `prepare` and `commit` | 4,095 for each event count | `idle/word.rs` | [`prepare`](crate::idle::EventCount::prepare) panics |
//! | sleepers | 16,383 for each event count | `idle/word.rs` | further threads do not sleep: they go on looking |
//! | wake-ups, for a thread that stands still between two instructions | 67,108,864 | `idle/word.rs` | at exactly a multiple of that it takes an old list for the present one |
//!
//! A consumer that meets a slot whose producer was stopped waits for it, for 15 µs. It is the one wait for another
//! thread in the queues, and the reason why taking from an injector is not called lock-free without a qualification.
//!
//! ```
//! use filch::idle::EventCount;
//! use std::panic::{catch_unwind, AssertUnwindSafe};
//!
//! let changes = EventCount::new();
//! let prepared: Vec<_> = (0..4095).map(|_| changes.prepare()).collect();
//! assert!(catch_unwind(AssertUnwindSafe(|| changes.prepare())).is_err());
//! drop(prepared); // each cancels
//! changes.prepare().cancel();
//! ```
//!
//! # Tasks and pools
//!
//! - *Nothing is interrupted.* Cancelling takes out what has not begun, and asks what runs; a task that never looks
//!   runs on.
//! - *A blocked thread is one thread less*, unless the section is marked by [`blocking`](crate::pool::blocking); then
//!   another takes its place, up to [`max_threads`](crate::pool::Builder::max_threads), 512 if it is not said
//!   (`pool/builder.rs`). A pool that is shut down starts a further thread only if all of its threads are blocked and a
//!   job is queued. It takes no further ticket of a scheduler: a task of a queue that blocks until another of the queues
//!   has run may hold up the drain for ever.
//! - *A thread that waits runs what it waits for and what that has brought about, and nothing else.* If there is only other
//!   work, another thread takes its place, so there may be one more for each thread that waits, up to `max_threads`. Where there
//!   can be no further thread, as in a [`LockedPool`](crate::LockedPool), it sleeps.
//!   [`join_timeout`](crate::JoinHandle::join_timeout) runs nothing at all: if there can be no further thread, it waits in vain on
//!   the only thread of a pool.
//! - *A task that a waiting thread runs, runs on its stack.* If that task waits for another that has not begun, and so
//!   on, each level takes about 0.6 KiB in an optimized build and 3 KiB in one that is not. When such tasks have taken half
//!   of the thread's stack, a further [`join`](crate::JoinHandle::join) or [`TaskGroup::wait`](crate::task::TaskGroup::wait)
//!   that would run one returns an error that [`is_deadlock`](crate::task::JoinError::is_deadlock): after some 1,700 levels,
//!   or 340 (`task/depth.rs`). [`stack_size`](crate::pool::Builder::stack_size) makes room for more; for threads of others
//!   half is taken to be 1 MiB. Recursion by `scope` and by the pool's `join` is the program's own, and is not bounded.
//!   Tokens may be chained to any length.
//! - *A future is not run by who waits for it*, and polling a [`JoinHandle`](crate::JoinHandle) runs nothing either.
//!   `join` of its handle on the only worker of its pool needs another thread, and never returns if there can be none; a
//!   `block_on` of a handle of either kind never returns there.
//!   [`JoinHandle::join`](crate::JoinHandle::join) does. Inside [`blocking`](crate::pool::blocking) all of them do, on another
//!   thread.
//! - *Tasks have to be `Send`*, and `'static` outside of a [`scope`](crate::ThreadPool::scope) and a
//!   [`join`](crate::ThreadPool::join). There are no tasks that stay on a thread.
//! - *A job holds three words of capture*; larger closures are boxed (`task/job.rs`).
//! - *A panic is caught* where panics unwind. With `panic = "abort"` it ends the process, as everywhere. A panic that
//!   escapes from the wait of a scope ends the process too, since jobs still borrow (`pool/scope.rs`).
//! - *A task of a queue that is joined or cancelled leaves its entry*, some 150 bytes, until the queue comes to it; a
//!   [`capacity`](crate::fair::QueueBuilder::capacity) bounds them. On a pool's worker the entry goes with the task.
//! - *Over [`Inline`](crate::executor::Inline) the thread that spawns works off what others spawn meanwhile*, as long as they go
//!   on: it is the only one there is.
//! - *An allocation that fails ends the process*, as in the standard library.
//! - *There is nothing about `fork(2)`.* The child has none of the pool's threads, and waits for ever for what they
//!   were to do.
//!
//! Some waits that cannot end are refused. A thread that waits for its own pool, a task that waits for its own
//! [group](crate::task::TaskGroup::wait), and a task that waits for itself:
//!
//! ```
//! use filch::{pool::WouldDeadlock, JoinHandle, ThreadPool};
//! use std::sync::mpsc;
//!
//! let pool = ThreadPool::new(1)?;
//! let same_pool = pool.clone();
//! assert_eq!(pool.spawn(move || same_pool.wait_idle()).join().unwrap(), Err(WouldDeadlock));
//!
//! let (own, inbox) = mpsc::channel::<JoinHandle<()>>();
//! let (answer, outbox) = mpsc::channel();
//! let task = pool.spawn(move || {
//!     let error = inbox.recv().unwrap().join().unwrap_err();
//!     answer.send(error.is_deadlock()).unwrap();
//! });
//! own.send(task).unwrap();
//! assert!(outbox.recv().unwrap());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Others are not noticed: two tasks that run on two threads and wait for each other; a task that waits for a lock, a
//! channel or a condition that only a task behind it would bring about.
//!
//! # Fair schedulers
//!
//! | limit | number | source | at the limit |
//! |---|---|---|---|
//! | queues at once | 65,536 with the default queue, so 65,535 of yours | `sync/mod.rs`, `GROUP` and `GROUPS` | [`QueueError::TooMany`](crate::fair::QueueError::TooMany) |
//! | weight | 1 to 2³² | `fair/queue_builder.rs`, `MAX_WEIGHT` | [`QueueError::Weight`](crate::fair::QueueError::Weight) |
//! | tasks in a queue | 2⁴⁰ − 2, or its [`capacity`](crate::fair::QueueBuilder::capacity) | `fair/life.rs`, `MAX_TASKS` | refused as [`Full`](crate::executor::Reason::Full) |
//! | tasks of a queue that run at once | 65,535, or its [`max_parallel`](crate::fair::QueueBuilder::max_parallel) | `fair/life.rs`, `MAX_LEASES` | they wait |
//! | priorities | 5; a lower one gets every 64th pick | `fair/tiers.rs` | – |
//! | cancelled tasks in a queue with a capacity | 4,096 | `fair/pass.rs`, `MOST_LITTER` | a further one keeps its place |
//! | resolution of virtual time | 2⁻²⁰ ns at weight 1, 4 µs at weight 2³² | `fair/policy/weighted_fair.rs` | ε in [the promise](crate::fair#the-promise) |
//! | time that is charged at once | 73 minutes at weight 1 | `fair/policy/weighted_fair.rs`, `MOST` | what is longer is charged as that |
//! | how far a queue with work can fall behind in virtual time | 36 minutes at weight 1 | `fair/policy/weighted_fair.rs`, `AGE` | what is more is forgotten |
//! | how late a lowered limit is noticed | a task; with short ones 64 tasks or 10 µs | `fair/lease.rs`, `TOLD_AFTER` | a pause and a cancellation are noticed after the current task |
//! | memory of a queue that has been used | 6 KiB, and 15 KiB if waits are measured | `injector/segment.rs`, `fair/waits.rs` | kept for the next queue in the slot, until the scheduler goes |
//!
//! ```
//! use filch::fair::{FairScheduler, QueueError};
//! use filch::executor::Inline;
//!
//! let fair = FairScheduler::over(Inline);
//! assert!(fair.queue("heaviest").weight(1 << 32).build().is_ok());
//! assert_eq!(fair.queue("too heavy").weight((1 << 32) + 1).build().unwrap_err(), QueueError::Weight);
//! assert_eq!(fair.queue("nothing").max_parallel(0).build().unwrap_err(), QueueError::Parallel);
//! ```
//!
//! *Places that wait for each other.* A task keeps its place in a limited queue while it waits. If it waits for a
//! task of its own queue, that runs in the same place. If a task of queue A waits for one of queue B, on another
//! thread a task of B waits for one of A, and both queues run one at a time, then neither ever goes on, and nobody
//! notices. Futures under `max_in_flight` do that within one queue: a future that waits for another of the same queue
//! holds its place. Wait in one direction only.
//!
//! ```
//! use filch::{FairScheduler, ThreadPool};
//!
//! let fair = FairScheduler::over(ThreadPool::new(2)?);
//! let queue = fair.queue("one at a time").max_parallel(1).build()?;
//! let same_queue = queue.clone();
//! let answer = queue.spawn(move || same_queue.spawn(|| 6).join().unwrap() * 7);
//! assert_eq!(answer.join()?, 42); // in the same place
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same in two more places is noticed: a job of a [`scope`](crate::ThreadPool::scope) that joins a task of the queue in
//! whose places the scope's owners wait gets an error; a scheduler whose executor gives tickets to one of its own queues
//! refuses tasks with [`Reason::WouldDeadlock`](crate::executor::Reason::WouldDeadlock).
//!
//! *A policy, a clock or an executor that panics* costs no more than one lease or ticket. The
//! [panic handler](crate::fair::Builder::panic_handler) gets the payload.
//!
//! *A weight that changes* converts what the queue owes, but for the leases under way: each may be charged once more.
//!
//! *Service is time on a thread*, whether the task computes or blocks. Two tasks that wait for a disk cost what two
//! tasks cost that compute for as long.
//!
//! *A paused queue with a scheduler over it* is not resumed when its handles are dropped: the scheduler has one.
//!
//! *On virtual time* a task must not block on anything but the clock ([`Stepper`](crate::sim::Stepper)): no other
//! goes on meanwhile.
//!
//! # Where it runs
//!
//! | | |
//! |---|---|
//! | Rust | 1.85 |
//! | without `std` | deques, and with 64-bit atomics `Injector`, `EventCount` and `Searchers`; `alloc` is needed. No tasks, pools or queues, no `shrinking`, and no sleeping but in a [`Park`](crate::idle::Park) of yours |
//! | without 64-bit atomics | deques alone |
//! | processors | those for which atomic-maybe-uninit has code: items are copied by inline assembly |
//! | asymmetric fences | Linux with `membarrier(2)`; elsewhere ordinary fences, which are slower |
//! | run and measured | x86-64, two cores. Other targets are type-checked (`xtask/src/targets.rs`); nothing has been measured on them |
//!
//! # What is not there
//!
//! Parallel iterators, timers, sockets and files, priorities of single tasks, graphs of tasks with dependencies,
//! tasks that are bound to a thread or to a processor, threads that are added when the pool is slow, and channels
//! beyond the forty lines of `examples/blocking_queue.rs`. The README says what to use instead.

//! What filch cannot do.
//!
//! This page lists each limit with its number, its place in the source, and the behaviour there.
//! For limits of shares see [`choosing_a_policy`](super::choosing_a_policy). The report of
//! `cargo xtask prove` ends with a list of properties that no check shows.
//!
//! # Queues
//!
//! | limit | number | source | at the limit |
//! |---|---|---|---|
//! | indices of a deque | 62 bits; 30 without 64-bit atomics | `deque/index.rs` | wraps. With 30 bits, a thief takes a wrong item if it is stopped inside one steal while exactly a multiple of 2³⁰ items go by |
//! | memory of a deque | `isize::MAX` bytes | `deque/room.rs` | `push` panics with "capacity overflow" |
//! | outgrown buffers that a deque keeps | together smaller than the current buffer | `deque/mod.rs`, I6 | freed with the last handle; sooner with [`shrinking`](crate::deque::Builder::shrinking) |
//! | a batch without a given limit | 32 items | `deque/mod.rs`, `MAX_BATCH` | a given limit may be larger; a LIFO deque's items are claimed 32 at a time |
//! | a segment of an injector | 6 KiB and at most 256 slots | `injector/segment.rs` | the next segment is used; if an item is larger, each segment has one slot |
//! | memory that an injector keeps | 64 KiB, or one segment | `injector/mod.rs`, `KEPT` | the rest is freed |
//! | segments of an injector | numbered by 40 bits | `injector/word.rs` | wraps: deceives only a thread that is stopped while 2⁴⁰ segments go by; at a nanosecond an item, that takes three days |
//! | producers of an injector | 262,000 threads | `injector/word.rs` | not checked |
//! | orphans: claimed slots whose consumers have stopped waiting | 8,191 at once | `injector/around.rs` | a further consumer waits for its producer, however long that takes |
//! | threads between `prepare` and `commit` | 4,095 for each event count | `idle/word.rs` | [`prepare`](crate::idle::EventCount::prepare) panics |
//! | sleepers | 16,383 for each event count | `idle/word.rs` | further threads do not sleep: they keep looking |
//! | wake-ups while a thread is stopped between two instructions | 67,108,864 | `idle/word.rs` | after exactly a multiple of this number, the thread mistakes an old list of sleepers for the present one |
//!
//! A consumer that reaches a slot whose producer was stopped waits for at most 15 µs. Then it gives
//! the slot up as an *orphan*, unless there are 8,191 orphans. In no other case does a thread
//! wait for another inside a queue.
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
//! - *Nothing is interrupted.* Cancellation drops tasks that have not begun, and asks running tasks
//!   to stop. A task that never checks runs on.
//! - *A destructor that a cancelled token runs must not wait for another task of that token.* The
//!   canceller ends one task after the other, so it may come to the awaited task only after the
//!   wait. If no other thread ends that task, the wait never ends. The destructor may wait for a
//!   queue that the token cancels, unless a running task of that queue waits for another such
//!   queue.
//! - *A destructor that [`Queue::cancel`](crate::fair::Queue::cancel) runs must not wait for tasks
//!   or queues of the queue's token*, because `cancel` cancels the token only afterwards.
//! - *A destructor that a cancelled queue runs can wait for ever*, if it waits for a thread that
//!   waits for another task of the queue. The canceller, still in the destructor, cannot drop that
//!   task. The waiting thread itself drops it only in [`join`](crate::JoinHandle::join), and in
//!   [`TaskGroup::wait`](crate::task::TaskGroup::wait) if the task is a closure. But a thread that
//!   slept before the cancellation drops only closures, and only if it is a worker of the queue's
//!   executor.
//! - *A blocked thread is lost to the pool*, unless [`blocking`](crate::pool::blocking) marks the
//!   section. Then another thread takes its place, up to
//!   [`max_threads`](crate::pool::Builder::max_threads), by default 512 (`pool/handle/builder.rs`).
//! - *A pool that is shut down starts another thread* only if all of its threads are blocked and a
//!   job is queued. That thread begins no *ticket*, which is a job by which a scheduler serves its
//!   queues. So if a queue's task blocks until another such task has run, the drain may never end.
//! - *A waiting thread runs the awaited task and the jobs that this task waits for, and no other*.
//!   But if the task is in a queue with `max_parallel(1)`, the thread first runs the tasks in front
//!   of it. If there is only other work, another thread takes the waiting thread's place. So there
//!   can be one more thread for each waiting thread, up to `max_threads`. If no thread can take the
//!   place, as in a [`LockedPool`](crate::pool::LockedPool), the waiting thread sleeps.
//! - *The only thread of an executor can sleep for ever*, if no other thread can take its place.
//!   Suppose that this thread alone serves queue A, and that a second scheduler is over A. If the
//!   thread waits for a task of the second scheduler, and is not inside a task of A, no thread
//!   serves A. Then the wait never ends. [`join_timeout`](crate::JoinHandle::join_timeout) runs
//!   nothing, so on such a thread it times out unless the task is done already.
//! - *A waiting worker finds only part of the work that it may run.* It looks at the oldest job of
//!   another worker's deque, and at no job behind that one (`pool/data/helping.rs`, `View::take`).
//!   If another worker runs forked jobs one within the other, the waiting worker sees only the
//!   outermost 61 (`sync/mod.rs`, `KNOWN_SERVICES`). In a wait for a
//!   [`JoinHandle`](crate::JoinHandle) or [group](crate::task::TaskGroup), it helps no task that
//!   runs elsewhere.
//! - *A task that a waiting thread runs uses that thread's stack.* In a chain of tasks that wait
//!   for each other, such tasks may take half of the stack that was left at the first wait. On a
//!   stack of unknown size, they may take 128 KiB. Beyond that, [`join`](crate::JoinHandle::join)
//!   and [`TaskGroup::wait`](crate::task::TaskGroup::wait) return a
//!   [deadlock](crate::task::JoinError::is_deadlock) error (`task/depth.rs`). Each level takes
//!   about 0.6 KiB in an optimized build and 3 KiB in others, so the error comes after some 1,700
//!   levels, or 340. [`stack_size`](crate::pool::Builder::stack_size) makes room for more.
//!   Recursion by `scope` and by the pool's `join` is the program's own, and is not bounded.
//! - *Waiting for a future does not run it*, and polling a [`JoinHandle`](crate::JoinHandle) runs
//!   nothing either. On the only worker of a pool:
//!   - `join` of a closure's handle always returns, because the worker itself runs the closure;
//!   - `join` of a future's handle, or a `block_on` inside [`blocking`](crate::pool::blocking),
//!     returns if `max_threads` permits another thread;
//!   - any other `block_on` of a handle returns only if another thread runs the task.
//! - *In a pool's `join` or `scope`, a half or job that another thread runs is no part of the task
//!   around it.* It is not in the task's queue, and the task's cancellation does not reach it.
//!   Suppose that such a half waits for the task's group, or for room within the limit of that
//!   queue. Then the half and the task wait for ever, without an error. In tasks of a queue use
//!   [`Queue::join`](crate::fair::Queue::join) and [`Queue::scope`](crate::fair::Queue::scope).
//! - *Tasks must be `Send`*, and `'static` outside of a [`scope`](crate::ThreadPool::scope) and a
//!   [`join`](crate::ThreadPool::join). There are no thread-local tasks.
//! - *A job holds three words of capture*; larger closures are boxed (`task/job.rs`).
//! - *A panic is caught* where panics unwind. With `panic = "abort"` it ends the process. So does a
//!   panic that escapes from a scope's wait, because jobs borrow from the scope
//!   (`pool/forks/scope.rs`).
//! - *A queue's task that a waiting thread runs, or that is cancelled, leaves a tombstone*. That is
//!   a job with nothing to run, which keeps some 150 bytes until the queue reaches it. A
//!   [`capacity`](crate::fair::QueueBuilder::capacity) bounds the tombstones. A pool's worker
//!   removes such jobs from its own deque, at once or by a later sweep.
//! - *In a scheduler over [`Inline`](crate::executor::Inline), a thread that spawns a task also
//!   runs the tasks that other threads spawn meanwhile.* The executor has no threads of its own.
//!   The call returns when no task is left.
//! - *A failed allocation ends the process*, as in the standard library.
//! - *`fork(2)` is not supported.* The child process has none of the pool's threads, so the child's
//!   jobs never run.
//!
//! Some waits that could never end return an error. For example, a worker waits for its own pool,
//! or a task for its own [group](crate::task::TaskGroup::wait) or for itself.
//!
//! ```
//! use filch::{executor::WouldDeadlock, JoinHandle, ThreadPool};
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
//! Other endless waits are not detected. For example, two tasks on two threads wait for each other.
//! Or a task waits for a message that only a task behind it in the queue would send.
//!
//! # Fair schedulers
//!
//! | limit | number | source | at the limit |
//! |---|---|---|---|
//! | queues at once | 65,536 with the default queue, so 65,535 of yours | `sync/mod.rs`, `GROUP` and `GROUPS` | [`QueueError::TooMany`](crate::fair::QueueError::TooMany) |
//! | weight | 1 to 2³² | `fair/line/mod.rs`, `MAX_WEIGHT` | [`QueueError::Weight`](crate::fair::QueueError::Weight) |
//! | tasks in a queue | 2⁴⁰ − 2, or its [`capacity`](crate::fair::QueueBuilder::capacity) | `fair/line/life.rs`, `MAX_TASKS` | refused as [`Full`](crate::executor::Reason::Full) |
//! | tasks of a queue that run at once | 65,535, or its [`max_parallel`](crate::fair::QueueBuilder::max_parallel) | `fair/line/life.rs`, `MAX_LEASES` | further tasks wait |
//! | priorities | 5; a lower one gets every 64th pick | `fair/policy/tiers.rs` | – |
//! | tombstones in a queue with a capacity: tasks that were cancelled, or run by a waiting thread | 4,096 | `fair/serving/pass.rs`, `MOST_LITTER` | a further one takes up room until the queue reaches it |
//! | resolution of virtual time | 2⁻²⁰ ns at weight 1, 4 µs at weight 2³² | `fair/policy/weighted_fair.rs` | half of ε in [the promise](crate::fair#the-promise) |
//! | time that is charged at once; how far a queue can get ahead in virtual time by the charges of all its leases | 73 minutes at weight 1 | `fair/policy/weighted_fair.rs`, `MOST` | the excess is forgotten |
//! | how far a queue with work can fall behind in virtual time | 36 minutes at weight 1 | `fair/policy/weighted_fair.rs`, `AGE` | the excess is forgotten |
//! | how late a lowered limit is noticed | after the current task; if tasks are short, after 64 of them or 10 µs, whichever comes first | `fair/serving/lease.rs`, `TOLD_AFTER` | a pause and a cancellation are always noticed after the current task |
//! | memory of a queue that has been used | 6 KiB; 15 KiB more if waits are measured; 2 KiB more if its tasks have forked | `injector/segment.rs`, `fair/line/waits.rs`, `fair/line/fork.rs` | kept for the next queue in the slot, until the scheduler is dropped |
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
//! *Tasks that wait for each other's places.* A *place* is room for one running task within a
//! queue's limit. A task keeps its place while it waits. If it waits for a task of its own queue,
//! that task runs in the same place. But suppose that queues A and B each run one task at a time. A
//! task of A waits for a task of B, and on another thread a task of B waits for a task of A. Then
//! both wait for ever, without an error. So let tasks wait in one direction only.
//!
//! Two other limits can block tasks that wait for each other. Under `max_in_flight`, a future that
//! waits for another future of its queue still counts as in flight. A
//! [reservation](crate::fair::Builder::reserve) leaves queues of a lower priority only some
//! threads. A task of these queues that waits still counts as using one of them.
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
//! Three other waits for places are detected:
//!
//! - A job of a [`scope`](crate::ThreadPool::scope) joins a task of a queue, and all places of the
//!   queue belong to threads that await the job. The `join` returns an error.
//! - A task that has the only place of its queue joins a future of that queue. The `join` returns
//!   an error.
//! - A scheduler's executor passes the scheduler's jobs to one of the scheduler's own queues. The
//!   scheduler refuses tasks with
//!   [`Reason::WouldDeadlock`](crate::executor::Reason::WouldDeadlock).
//!
//! *A policy, a clock or an executor that panics* costs at most one ticket or one *lease*. A lease
//! is a thread's right to run tasks of one queue. The [panic
//! handler](crate::fair::Builder::panic_handler) gets the payload.
//!
//! *When a queue's weight changes*, the default policy scales the queue's lead over the other
//! queues to the new weight. For leases under way, the scaled lead can be wrong by the longest task
//! on each thread.
//!
//! *Service is time on a thread*, whether the task computes or blocks. A task that waits for a disk
//! costs as much as one that computes for the same time. A wait in
//! [`join`](crate::fair::Queue::join) or [`scope`](crate::fair::Queue::scope) is not charged.
//!
//! *A fork takes a lock.* A fork is a half of a queue's `join`, or a job of its `scope`. The first
//! 15 threads that fork in the same queue at once have a lock each, shared only with the threads
//! that take their forks. Further threads share one lock.
//!
//! *A paused queue with a scheduler over it* stays paused when the program drops its handles of
//! that queue. The drop of the last handle would resume it, but the scheduler keeps one.
//!
//! *A full executor gets its thread back late.* After each quantum, a scheduler submits its next
//! job behind the executor's other jobs. If the executor refuses that job as
//! [`Full`](crate::executor::Reason::Full), the thread goes on serving queues. The other jobs wait
//! until the executor has room, or until no queue has work. So let a bounded executor accept the
//! jobs of [`execute_last`](crate::Executor::execute_last) beyond its bound, as a queue with a
//! capacity does. Or let it run one of its other jobs in [`yield_now`](crate::Executor::yield_now).
//!
//! *A wait for a queue to become idle* does not wait for tombstones if the queue is paused or has a
//! capacity. Otherwise it waits until a thread reaches the tombstones of cancelled tasks. When the
//! wait ends, the destructor of a cancelled closure might still be running.
//!
//! *A pool that drains does not end* while one of its jobs waits for a task of a paused queue over
//! that pool. Resume or cancel the queue before the pool is shut down.
//!
//! *A cancelled pool does not end* if a queued job's destructor joins a job that awaits a task of a
//! paused queue over that pool. The task is dropped when the pool reports its end, but the pool
//! reports it only after the destructor. So the destructor waits for ever.
//!
//! *The end of an executor* drops the tasks of a scheduler queue by queue. A destructor must not
//! wait for a thread that waits until a later queue is idle.
//!
//! *A wait for a paused queue* does not notice the cancellation of a task from
//! [`Job::with_handle`](crate::Job::with_handle): such a task does not know its queue. The wait
//! goes on until the queue's next event, such as a resume, or until a later wait begins.
//!
//! *On virtual time* ([`Stepper`](crate::sim::Stepper)) threads run in turn. A task that waits for
//! another task or for the clock ends its turn. If a task blocks otherwise, no other thread runs.
//!
//! # Where it runs
//!
//! | | |
//! |---|---|
//! | Rust | 1.85 |
//! | without `std` | deques, and with 64-bit atomics `Injector`, `EventCount` and `Searchers`; `alloc` is needed. No tasks, pools or queues, no `shrinking`, and sleeping only in a [`Park`](crate::idle::Park) of yours |
//! | without 64-bit atomics | deques only |
//! | processors | those for which atomic-maybe-uninit has code, since a deque copies items by inline assembly. On WebAssembly and under Miri it copies them under a lock instead |
//! | WebAssembly | compiles with and without `std`. Without threads no `ThreadPool` starts; deques, `Injector`, and a `FairScheduler` over [`Inline`](crate::executor::Inline) work |
//! | asymmetric fences | Linux with `membarrier(2)`; elsewhere ordinary fences, which are slower |
//! | tested | measured and tested on x86-64, two cores; tested on i686, and on emulated aarch64 and s390x. Others are only type-checked (`xtask/src/targets.rs`) |
//!
//! # What is missing
//!
//! - filch has no parallel iterators, timers, sockets or files.
//! - It has no priorities of single tasks, and no task graphs with dependencies.
//! - No task is bound to a thread or a processor.
//! - A slow pool gets no additional threads.
//! - The only channel is the forty lines of `examples/blocking_queue.rs`.
//!
//! The README names alternatives.

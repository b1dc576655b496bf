//! Coming from crossbeam-deque.
//!
//! filch has every public method and trait implementation of crossbeam-deque 0.8, with the same
//! meaning. A program that switches changes one line of its `Cargo.toml`, and none of its source:
//!
//! ```toml
//! [dependencies]
//! crossbeam-deque = { package = "filch", version = "0.1" }
//! ```
//!
//! The program still imports the crate as `crossbeam_deque`:
//!
//! ```
//! # extern crate filch as crossbeam_deque;
//! use crossbeam_deque::{Injector, Steal, Stealer, Worker};
//!
//! fn find_task<T>(local: &Worker<T>, global: &Injector<T>, stealers: &[Stealer<T>]) -> Option<T> {
//!     local.pop().or_else(|| {
//!         std::iter::repeat_with(|| {
//!             global
//!                 .steal_batch_and_pop(local)
//!                 .or_else(|| stealers.iter().map(|it| it.steal()).collect())
//!         })
//!         .find(|it| !it.is_retry())
//!         .and_then(Steal::success)
//!     })
//! }
//!
//! let (local, global) = (Worker::new_fifo(), Injector::new());
//! global.push(1);
//! assert_eq!(find_task(&local, &global, &[]), Some(1));
//! assert_eq!(find_task(&local, &global, &[]), None);
//! ```
//!
//! `benches/drop-in` depends on filch in this way, and on crossbeam-deque beside it. Its tests run
//! the same programs on both and compare their answers step by step. If a program of yours behaves
//! differently, one of the next two sections says why, or it is a bug.
//!
//! # What is the same
//!
//! | | |
//! |---|---|
//! | names | `Worker`, `Stealer`, `Injector`, `Steal::{Empty, Success, Retry}`, and all their methods |
//! | order | LIFO and FIFO owners, thieves at the oldest end, batches in the order of each flavour |
//! | sizes | 64 slots at first; a batch has about half of the items, and at most 32 unless a limit is given |
//! | ownership | `Worker` is `Send` and not `Sync`; `Stealer` and `Injector` are both |
//! | promises | linearizable; the pusher's actions before a push happen before the taker's actions after it has taken the item |
//!
//! # What is different
//!
//! *`Injector` never returns `Retry`.* A consumer that loses a race backs off for a few
//! microseconds and tries again inside [`steal`](crate::Injector::steal). Loops that handle `Retry`
//! still compile and work. A [`Stealer`](crate::Stealer) still returns `Retry`.
//!
//! *A consumer hardly waits for a producer that was stopped.* It waits for at most 15 µs and then
//! goes around that producer. It waits longer only while 8,191 slots are given up already. In
//! crossbeam-deque a consumer spins on a slot that its producer has claimed and not filled.
//!
//! *No slot has a data race.* Items are copied by atomic operations. crossbeam-deque uses a
//! volatile read instead, which its own comment calls undefined behaviour. The price is a
//! dependency, atomic-maybe-uninit, which supports only some processors.
//!
//! *Steals do not pin the thread*, because the deque keeps outgrown buffers until it is dropped.
//! All outgrown buffers together are smaller than the current buffer. If that is too much memory,
//! see *Giving memory back* below.
//!
//! *`push` can panic if you opt in*: it panics at a maximum capacity that you have set, or after
//! `close`. crossbeam-deque has neither.
//!
//! *There are more methods.* A trait of yours may add `drain`, `close` or another name below to
//! these types. Then the type's own method hides the trait's, as usual in Rust.
//!
//! *`Debug` shows lengths*, where crossbeam-deque shows only the name:
//!
//! ```
//! let worker = filch::Worker::new_lifo();
//! worker.push("a task");
//! assert_eq!(format!("{worker:?}"), "Worker { flavor: Lifo, len: 1, .. }");
//! ```
//!
//! *The injector needs 64-bit atomics*, and the crate needs Rust 1.85; [`limits`](super::limits)
//! has more about both.
//!
//! # What is new
//!
//! ## Capacity
//!
//! [`Builder`](crate::deque::Builder) sets the initial and the maximum capacity. `try_push` returns
//! the item that it refuses:
//!
//! ```
//! use filch::deque::{Builder, Flavor, Full};
//!
//! let worker = Builder::new(Flavor::Lifo).capacity(2).max_capacity(3).build();
//! assert_eq!((worker.capacity(), worker.max_capacity()), (2, Some(3)));
//! for item in 1..=3 {
//!     worker.try_push(item).unwrap(); // grows at the third
//! }
//! assert_eq!(worker.try_push(4), Err(Full(4)));
//! ```
//!
//! A batch steal into a full deque moves nothing and returns `Success`, which means that the
//! destination has items.
//!
//! ## Batches
//!
//! The owner can push many items at once, and can take all of them. `Worker` and `Injector`
//! implement `Extend`.
//!
//! ```
//! use filch::{Injector, Worker};
//!
//! let mut worker = Worker::new_lifo();
//! worker.push_batch(0..3);
//! worker.extend([3, 4]);
//! assert_eq!(worker.drain().collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
//!
//! let injector = Injector::from_iter(["a", "b"]);
//! injector.push_batch(["c", "d"]); // one fetch-add for all items of one segment
//! assert_eq!(injector.drain().collect::<String>(), "abcd");
//! ```
//!
//! ## Closing
//!
//! If a push takes effect before a [`close`](crate::Injector::close), its item can be taken; any
//! other push is refused. So a consumer that finds the injector
//! [closed](crate::Injector::is_closed), and then [empty](crate::Injector::is_empty), is done. A
//! `None` from [`pop`](crate::Injector::pop), which is `steal` with an `Option`, is not enough,
//! because `pop` goes around stopped producers:
//!
//! ```
//! use filch::Injector;
//!
//! let injector = Injector::new();
//! assert!(injector.try_push("accepted").is_ok());
//! assert!(injector.close(), "it was open until now");
//! assert_eq!(injector.try_push("refused").unwrap_err().0, "refused");
//! assert_eq!((injector.is_closed(), injector.pop()), (true, Some("accepted")));
//! assert!(injector.is_closed() && injector.is_empty());
//! ```
//!
//! ## Giving memory back
//!
//! A deque that is built with [`shrinking`](crate::deque::Builder::shrinking) halves its buffer
//! when at most a quarter of it is in use. Its steals pin the thread, as crossbeam-deque's do, but
//! in filch's collector. They run no function that the program deferred in crossbeam-epoch:
//!
//! ```
//! use filch::deque::{Builder, Flavor};
//!
//! let worker = Builder::new(Flavor::Lifo).shrinking(true).build();
//! worker.push_batch(0..1000);
//! assert_eq!(worker.capacity(), 1024);
//! while worker.pop().is_some() {}
//! assert_eq!(worker.capacity(), 64);
//! ```
//!
//! ## When to wake a sleeper
//!
//! `push_was_empty` returns whether the queue was empty before the push. If the consumers have the
//! fence that the method documents, a producer of an injector need not wake a sleeper after
//! `false`. An [`EventCount`](crate::idle::EventCount) needs no such fence
//! ([`building_a_scheduler`](super::building_a_scheduler)).
//!
//! ```
//! let injector = filch::Injector::new();
//! assert!(injector.push_was_empty("first"));
//! assert!(!injector.push_was_empty("second"));
//! ```
//!
//! ## A static injector
//!
//! `Injector::new` is `const`; the first push allocates:
//!
//! ```
//! static TASKS: filch::Injector<u32> = filch::Injector::new();
//! TASKS.push(7);
//! assert_eq!(TASKS.steal().success(), Some(7));
//! ```
//!
//! ## Models of your own code
//!
//! `RUSTFLAGS="--cfg loom"` builds filch's queues with loom's types, so a model of your scheduler
//! has the real deque inside. crossbeam-deque has no such build.
//!
//! # Checks after switching
//!
//! 1. Run `cargo test`; it should compile without a change.
//! 2. Does a loop count `Retry` from an `Injector` as a measure of contention? It will count zero.
//! 3. Does a program rely on a deque freeing memory while stealers live? Build that deque with
//!    `shrinking`.
//! 4. Measure: `cargo xtask versus deque` and `cargo xtask versus injector` print ratios to
//!    crossbeam-deque 0.8.8 on your machine. On some processors crossbeam-deque wins two rows: an
//!    owner beside a thief that never pauses, and two producers with two consumers on two cores.

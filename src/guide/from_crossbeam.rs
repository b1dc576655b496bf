//! Coming from crossbeam-deque.
//!
//! filch has every public method and trait implementation of crossbeam-deque 0.8, with the same meaning. A program
//! changes one line of its `Cargo.toml`, and none of its source:
//!
//! ```toml
//! [dependencies]
//! crossbeam-deque = { package = "filch", version = "0.1" }
//! ```
//!
//! The crate is then known as `crossbeam_deque`, as before:
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
//! `benches/drop-in` depends on filch in this way, and on crossbeam-deque beside it; its tests run the same programs
//! on both and compare what they say, step by step. If a program of yours behaves differently, one of the next two
//! sections says why, or it is a bug.
//!
//! # What is the same
//!
//! | | |
//! |---|---|
//! | names | `Worker`, `Stealer`, `Injector`, `Steal::{Empty, Success, Retry}`, and all their methods |
//! | order | LIFO and FIFO owners, thieves at the oldest end, batches in the order that both flavours give |
//! | sizes | 64 slots at first, about half of the items in a batch, 32 at most unless a limit is given |
//! | ownership | `Worker` is `Send` and not `Sync`; `Stealer` and `Injector` are both |
//! | promises | linearizable; what was done before a push happens before what the taker does |
//!
//! # What is different
//!
//! *`Injector` never asks to retry.* Whoever loses a race inside backs off for some nanoseconds and tries again, so
//! [`steal`](crate::Injector::steal) says `Success` or `Empty`. Loops that handle `Retry` compile and go on to work,
//! and a [`Stealer`](crate::Stealer) asks as before.
//!
//! *A consumer does not wait for a producer that was stopped.* It waits for 15 µs at most and then goes around it. In
//! crossbeam-deque a consumer spins on a slot whose producer has claimed it and has not filled it.
//!
//! *No slot is read while it is written.* Items are copied by atomic operations on words that may be uninitialised,
//! where crossbeam-deque has a volatile read that its comment calls undefined behaviour. The price is a dependency,
//! atomic-maybe-uninit, and its list of processors.
//!
//! *Steals do not pin.* Outgrown buffers are kept until the deque goes, and all of them together are smaller than the
//! current one. If that is too much, see *Giving memory back* below.
//!
//! *`push` may panic, if you ask for it*: at a maximum capacity, or after `close`, neither of which crossbeam-deque
//! has. What is not set is not there.
//!
//! *There are more methods.* A trait of yours that adds `drain`, `close`, `capacity` or another of the names below to
//! these types is hidden by the method of the type, as is usual in Rust. `Debug` shows lengths, where
//! crossbeam-deque's shows the name alone:
//!
//! ```
//! let worker = filch::Worker::new_lifo();
//! worker.push("a task");
//! assert_eq!(format!("{worker:?}"), "Worker { flavor: Lifo, len: 1, .. }");
//! ```
//!
//! *The injector needs 64-bit atomics*, and the crate needs Rust 1.85; both are in [`limits`](super::limits).
//!
//! # What is new
//!
//! ## Capacity
//!
//! [`Builder`](crate::deque::Builder) sets how many items there is room for at first, and how many there may be at
//! most. What is refused is handed back:
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
//! A batch that is stolen into a full deque moves nothing and is `Success`, for it means that the destination has
//! items.
//!
//! ## Batches
//!
//! The owner pushes many at once and takes all of them, `Worker` and `Injector` implement `Extend`, and a thief may
//! leave an owner its last few items:
//!
//! ```
//! use filch::{Injector, Steal, Worker};
//!
//! let mut worker = Worker::new_lifo();
//! worker.push_batch(0..3);
//! worker.extend([3, 4]);
//! let stealer = worker.stealer();
//! assert_eq!(stealer.steal_if(6), Steal::Empty); // it holds five
//! assert_eq!(stealer.steal_if(5), Steal::Success(0));
//! assert_eq!(worker.drain().collect::<Vec<_>>(), [4, 3, 2, 1]);
//!
//! let injector = Injector::from_iter(["a", "b"]);
//! injector.push_batch(["c", "d"]); // one fetch-add for those that share a segment
//! assert_eq!(injector.drain().collect::<String>(), "abcd");
//! ```
//!
//! ## Closing
//!
//! Of a push and a [`close`](crate::Injector::close) one comes first: the item is refused, or it is there to be
//! taken. So a consumer that finds the injector [closed](crate::Injector::is_closed), and then
//! [empty](crate::Injector::is_empty), is done; a steal that says `Empty` is not enough, for it goes around producers:
//!
//! ```
//! use filch::{Injector, Steal};
//!
//! let injector = Injector::new();
//! assert!(injector.try_push("accepted").is_ok());
//! assert!(injector.close(), "it was open until now");
//! assert_eq!(injector.try_push("refused").unwrap_err().into_inner(), "refused");
//! assert_eq!((injector.is_closed(), injector.steal()), (true, Steal::Success("accepted")));
//! assert!(injector.is_closed() && injector.is_empty());
//! ```
//!
//! ## Giving memory back
//!
//! A deque that is built with [`shrinking`](crate::deque::Builder::shrinking) halves its buffer when less than a
//! quarter of it is in use. Its steals then pin the thread through crossbeam-epoch, as those of crossbeam-deque do:
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
//! ## Whom to wake
//!
//! `push_was_empty` says whether there was nothing before. For the injector that is enough to wake a sleeper only
//! then, if the sleeper does its part, which the method's documentation names. An
//! [`EventCount`](crate::idle::EventCount) needs no such care: [`building_a_scheduler`](super::building_a_scheduler)
//! shows how.
//!
//! ```
//! let injector = filch::Injector::new();
//! assert!(injector.push_was_empty("first"));
//! assert!(!injector.push_was_empty("second"));
//! ```
//!
//! ## A static injector
//!
//! `Injector::new` is `const`, and allocates with the first push:
//!
//! ```
//! static TASKS: filch::Injector<u32> = filch::Injector::new();
//! TASKS.push(7);
//! assert_eq!(TASKS.steal().success(), Some(7));
//! ```
//!
//! ## Models of your own code
//!
//! Built with `RUSTFLAGS="--cfg loom"`, filch's queues are made of loom's types, so a model of your scheduler has the
//! real deque inside. crossbeam-deque has no such build.
//!
//! # What to check after the change
//!
//! 1. `cargo test`, of course; nothing should have to be changed for it to compile.
//! 2. Whether a loop counts `Retry` from an `Injector`, as a measure of contention. It counts zero now.
//! 3. Whether something relies on the memory of a deque being freed while stealers live. Build it with `shrinking`.
//! 4. What it costs where it matters: `cargo xtask versus deque` and `cargo xtask versus injector` print ratios to
//!    crossbeam-deque 0.8.8 on your machine, and `benches/README.md` says which rows are not in our favour: an owner
//!    under a thief that steals as fast as it can, and two producers with two consumers on two cores.

//! Schedulers on a virtual clock, one step at a time.
//!
//! A [`Stepper`] is an executor whose threads run in turn, and whose clock moves only when all of them wait for it.
//! Tasks say with [`work`] how long they take. So what a scheduler does is the same on each machine and in each
//! run, and exact: a test of fairness needs no tolerance for noise, and ten seconds of it pass in milliseconds.
//!
//! The code that is tested is the code that ships: the threads are real, and only take turns. What they do between
//! two calls of [`work`] takes no time. What depends on threads that run *at the same time* is for models and for
//! stress; this is for what depends on order and on time.
//!
//! ```
//! use filch::sim::{self, Stepper};
//! use std::time::Duration;
//!
//! let ms = Duration::from_millis;
//! let stepper = Stepper::new(7, 4);
//! let fair = stepper.scheduler().build();
//! let (large, small) = (fair.queue("large").build()?, fair.queue("small").build()?);
//! for _ in 0..8000 {
//!     large.spawn_detached(move || sim::work(ms(1)))?;
//! }
//! stepper.advance(ms(500));
//! for _ in 0..400 {
//!     small.spawn_detached(move || sim::work(ms(1)))?;
//! }
//! stepper.advance(ms(200)); // 400 ms of work, on half of four threads
//! assert!(small.metrics().pending <= 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod stepper;
mod turns;

pub use stepper::{Handle, Stepper};
pub use turns::work;

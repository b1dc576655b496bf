//! Simulation: schedulers on a virtual clock, one step at a time.
//!
//! A [`Stepper`] is an executor whose threads run in turn. Its clock moves only when no thread has
//! anything to do at the present time. Tasks call [`work`] to say how long they take. So a
//! scheduler's decisions are exact, and the same on each machine and in each run. A test of
//! fairness needs no tolerance for noise, and ten virtual seconds pass in milliseconds.
//!
//! The tested code is the code that ships: the threads are real, and take turns. Between two calls
//! of [`work`], a task takes no virtual time. A stepper tests order and time. Models and stress
//! tests cover threads that run *at the same time*.
//!
//! This module has no unsafe code and no atomics of its own.
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

mod futures;
mod sleep;
mod stepper;
mod timers;
mod turns;

pub use sleep::{Sleep, sleep, sleep_until};
pub use stepper::{Stepper, StepperHandle};
pub use turns::work;

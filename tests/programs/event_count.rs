//! Random programs for an event count on one thread, and the outcome that each must have.
//!
//! Sleepers are nested. While one sleeps, its park runs a program in which others prepare, sleep
//! and notify; at the end of that program the park returns spuriously. So the programs reach every
//! order of steps in which the last sleeper to fall asleep is the first to wake up.
//!
//! `tests/idle/random_programs.rs` writes them with proptest, the fuzz target `event_count` with
//! libFuzzer.

use filch::idle::{EventCount, Park};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::time::Duration;

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Adds this many items, and then notifies once for each.
    Push(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 3, _>))] usize),
    NotifyAll,
    Wait(Wait),
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The steps between preparing and the second look.
    between: Vec<Step>,
    /// The steps while this wait sleeps.
    meanwhile: Vec<Step>,
    gives_up: bool,
}

/// Generates programs of fewer than `end` steps, each with a few nested steps.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Vec<Step>> {
    let leaf = prop_oneof![
        4 => (1_usize..4).prop_map(Step::Push),
        1 => Just(Step::NotifyAll),
        2 => any::<bool>().prop_map(|gives_up| {
            Step::Wait(Wait { between: Vec::new(), meanwhile: Vec::new(), gives_up })
        }),
    ];
    let step = leaf.prop_recursive(8, 60, 4, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..4);
        let gives_up = prop::bool::weighted(0.2);
        (some(), some(), gives_up).prop_map(|(between, meanwhile, gives_up)| {
            Step::Wait(Wait { between, meanwhile, gives_up })
        })
    });
    prop::collection::vec(step, 0..end)
}

/// The state that the checks know. Waits are nested on one stack, so the wait that began last ends
/// first.
#[derive(Default)]
struct Known {
    items: usize,
    /// For each wait that has prepared and has not ended: whether it must be told by now.
    present: Vec<bool>,
    /// The most threads that may be woken. More may be told: a thread that has prepared while a
    /// sleeper leaves is told too.
    credit: usize,
    woken: usize,
}

struct Run {
    events: EventCount,
    known: RefCell<Known>,
}

/// How a wait that had prepared has ended.
enum Back {
    /// It gave up without a second look.
    GivenUp,
    /// It has found an item or was told, and takes an item, if there is one.
    Takes,
    /// Its park returned without a notification.
    Untold,
}

/// A park that runs a program instead of sleeping.
struct Sleeper<'a> {
    run: &'a Run,
    meanwhile: &'a [Step],
    woken: Arc<Flag>,
    has_parked: bool,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, SeqCst), "woken twice");
    }
}

impl Park for Sleeper<'_> {
    fn park(&mut self, timeout: Option<Duration>) {
        assert!(timeout.is_none() && !self.has_parked);
        self.has_parked = true;
        self.run.steps(self.meanwhile);
    }

    fn unparker(&self) -> Waker {
        Arc::clone(&self.woken).into()
    }
}

impl Run {
    fn steps(&self, steps: &[Step]) {
        steps.iter().for_each(|it| self.step(it));
    }

    fn step(&self, step: &Step) {
        match step {
            Step::Push(count) => {
                {
                    let mut known = self.known.borrow_mut();
                    known.items += count;
                    known.credit += count;
                }
                self.events.notify_many(*count);
            }
            Step::NotifyAll => {
                {
                    let mut known = self.known.borrow_mut();
                    known.credit += known.present.len();
                    known.present.iter_mut().for_each(|it| *it = true);
                }
                self.events.notify_all();
            }
            Step::Wait(wait) => self.wait(wait),
        }
    }

    fn wait(&self, wait: &Wait) {
        let prepared = self.events.prepare();
        self.known.borrow_mut().present.push(false);
        self.steps(&wait.between);
        let has_found = self.known.borrow().items > 0;
        if wait.gives_up || has_found {
            prepared.cancel();
            self.comes_back(if wait.gives_up { Back::GivenUp } else { Back::Takes });
            return;
        }
        let must_be_told = *self.known.borrow().present.last().unwrap();
        let woken = Arc::new(Flag::default());
        let mut park = Sleeper {
            run: self,
            meanwhile: &wait.meanwhile,
            woken: Arc::clone(&woken),
            has_parked: false,
        };
        let is_told = prepared.commit_in(&mut park, None);
        assert!(!(must_be_told && park.has_parked), "told before it slept, and slept");
        let is_woken = woken.0.load(SeqCst);
        assert!(!is_woken || is_told, "woken, but not told");
        self.known.borrow_mut().woken += usize::from(is_woken);
        self.comes_back(if is_told { Back::Takes } else { Back::Untold });
    }

    /// Ends the wait that prepared last.
    fn comes_back(&self, how: Back) {
        let mut known = self.known.borrow_mut();
        let must_be_told = known.present.pop().unwrap();
        match how {
            Back::GivenUp => {}
            Back::Takes => known.items = known.items.saturating_sub(1),
            Back::Untold => {
                assert!(!must_be_told, "everybody was notified, and this one was not");
                // Each item that is left came with a notification, which a wait that has not ended
                // has received.
                assert!(known.items <= known.present.len(), "a notification was lost");
            }
        }
    }
}

/// Runs a program, and checks its outcome.
pub(crate) fn check(program: Vec<Step>) {
    let run = Run { events: EventCount::new(), known: RefCell::default() };
    run.steps(&program);
    let known = run.known.borrow();
    assert!(known.woken <= known.credit, "more were woken than were notified");
    let seen = format!("{:?}", run.events);
    assert!(seen.contains("preparing: 0") && known.present.is_empty(), "{seen}");
}

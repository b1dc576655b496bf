//! Threads that take turns.

use crate::sync::Arc;
use crate::sync::clock;
use crate::sync::lock::{Condvar, Mutex, MutexGuard};
use crate::sync::thread::{self, per_thread};
use crate::task::{ExecutorId, Job, current};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;

/// The state that a stepper and its threads share.
pub(super) struct Turns {
    pub(super) id: ExecutorId,
    state: Mutex<State>,
    /// Held by the thread that calls the stepper, so that one call at a time passes turns.
    driver: Mutex<()>,
    /// Notified when it is the stepper's turn.
    stepper: Condvar,
    /// Each is notified when it is its thread's turn.
    threads: Vec<Condvar>,
}

struct State {
    /// In nanoseconds.
    now: u64,
    turn: Turn,
    /// The time until which threads pass the turn on among themselves. `None` if each gives it back
    /// to the stepper.
    end: Option<u64>,
    queue: VecDeque<Job>,
    threads: Vec<Thread>,
    random: u64,
    panicked: usize,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Stepper,
    Thread(usize),
}

/// The state of a thread.
enum Thread {
    /// It waits for a job.
    Idle,
    /// It has this job, and waits for its turn.
    Given(Job),
    /// It waits for this time.
    Until(u64),
    /// It has the turn.
    Running,
}

per_thread! {
    #[allow(clippy::missing_const_for_thread_local)] // loom's macro has no such form
    static HERE: RefCell<Option<(Arc<Turns>, usize)>> = RefCell::new(None);
}

/// Takes `time` of virtual time: returns when the clock has moved on by that much.
///
/// # Panics
///
/// Panics outside of a task that runs on a [`Stepper`](super::Stepper).
///
/// # Examples
///
/// ```
/// use filch::sim::{self, Stepper};
/// use filch::{Executor, Job};
/// use std::time::Duration;
///
/// let stepper = Stepper::new(1, 1);
/// stepper.execute(Job::new(|| sim::work(Duration::from_millis(3)))).unwrap();
/// stepper.run_until_idle();
/// assert_eq!(stepper.now(), Duration::from_millis(3));
/// ```
pub fn work(time: Duration) {
    let here = HERE.with(|it| it.borrow().clone());
    let (turns, index) = here.expect("`sim::work` is for tasks that run on a `Stepper`");
    turns.wait(index, clock::nanos(time));
}

impl Turns {
    pub(super) fn new(seed: u64, threads: usize) -> Self {
        let state = State {
            now: 0,
            turn: Turn::Stepper,
            end: None,
            queue: VecDeque::new(),
            threads: (0..threads).map(|_| Thread::Idle).collect(),
            random: seed,
            panicked: 0,
            is_over: false,
        };
        let bells = (0..threads).map(|_| Condvar::new()).collect();
        let (id, state) = (ExecutorId::new(), Mutex::new(state));
        Turns { id, state, driver: Mutex::new(()), stepper: Condvar::new(), threads: bells }
    }

    pub(super) fn size(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn now(&self) -> u64 {
        self.state.lock().now
    }

    pub(super) fn panicked(&self) -> usize {
        self.state.lock().panicked
    }

    /// Accepts a job, or gives it back if the stepper is gone.
    pub(super) fn push(&self, job: Job) -> Result<(), Job> {
        let mut state = self.state.lock();
        if state.is_over {
            return Err(job);
        }
        state.queue.push_back(job);
        Ok(())
    }

    /// Runs one of the threads to its end.
    pub(super) fn live(this: &Arc<Self>, index: usize) {
        HERE.with(|it| *it.borrow_mut() = Some((Arc::clone(this), index)));
        current::as_worker(Some(this.id), None, || {
            while let Some(job) = this.next_job(index) {
                let completed = thread::completes(|| job.run());
                let mut state = this.state.lock();
                state.panicked += usize::from(!completed);
                state.threads[index] = Thread::Idle;
                this.end_turn(&mut state);
            }
        });
        HERE.with(|it| *it.borrow_mut() = None);
    }

    /// Waits for this thread's next turn, and returns its job. `None` if there will be none.
    fn next_job(&self, index: usize) -> Option<Job> {
        let state = self.state.lock();
        let mine = Turn::Thread(index);
        let mut state = self.threads[index].wait_while(state, |it| it.turn != mine && !it.is_over);
        match core::mem::replace(&mut state.threads[index], Thread::Running) {
            Thread::Given(job) => Some(job),
            _ => None,
        }
    }

    /// Waits until the clock has moved on by `nanos`. Returns at once when the stepper is gone.
    fn wait(&self, index: usize, nanos: u64) {
        let mut state = self.state.lock();
        if state.is_over {
            return;
        }
        state.threads[index] = Thread::Until(state.now.saturating_add(nanos));
        self.end_turn(&mut state);
        let mine = Turn::Thread(index);
        let mut state = self.threads[index].wait_while(state, |it| it.turn != mine && !it.is_over);
        state.threads[index] = Thread::Running;
    }

    /// Passes the turn to the next thread, or back to the stepper.
    fn end_turn(&self, state: &mut State) {
        let is_passed = state.end.is_some_and(|end| self.pass(state, end));
        if !is_passed {
            state.turn = Turn::Stepper;
            self.stepper.notify_all();
        }
    }

    /// Gives the turn to the next thread that is due at `end` at the latest. Returns whether there
    /// is one.
    fn pass(&self, state: &mut State, end: u64) -> bool {
        let Some((index, time)) = state.next().filter(|it| it.1 <= end) else { return false };
        state.now = state.now.max(time);
        if matches!(state.threads[index], Thread::Idle) {
            let job = state.queue.pop_front().expect("it was there when the thread was chosen");
            state.threads[index] = Thread::Given(job);
        }
        state.turn = Turn::Thread(index);
        self.threads[index].notify_all();
        true
    }

    /// Lets one thread run. Returns whether there was one.
    pub(super) fn step(&self) -> bool {
        let _driver = self.drive();
        self.go_on(u64::MAX, None)
    }

    /// Lets all threads run until there is nothing to do.
    pub(super) fn run(&self) {
        let _driver = self.drive();
        self.go_on(u64::MAX, Some(u64::MAX));
    }

    /// Lets all threads run that are due within `nanos`, and moves the clock to the end of that
    /// time.
    pub(super) fn advance(&self, nanos: u64) {
        let _driver = self.drive();
        let end = self.now().saturating_add(nanos);
        self.go_on(end, Some(end));
        let mut state = self.state.lock();
        state.now = state.now.max(end);
    }

    fn drive(&self) -> MutexGuard<'_, ()> {
        assert!(!current::is_thread_of(self.id), "a task of a `Stepper` cannot have it go on");
        self.driver.lock()
    }

    fn go_on(&self, end: u64, among_themselves: Option<u64>) -> bool {
        let mut state = self.state.lock();
        state.end = among_themselves;
        let is_passed = self.pass(&mut state, end);
        if is_passed {
            drop(self.stepper.wait_while(state, |it| it.turn != Turn::Stepper));
        }
        is_passed
    }

    /// Ends all waiting, and drops the jobs that have not begun.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        let queue = core::mem::take(&mut state.queue);
        drop(state);
        for bell in &self.threads {
            bell.notify_all();
        }
        for job in queue {
            let _ = thread::completes(|| drop(job));
        }
    }
}

impl State {
    /// Returns which thread is due next, and when. Draws one of several that are due at the same
    /// time.
    fn next(&mut self) -> Option<(usize, u64)> {
        let has_work = !self.queue.is_empty();
        let time_of = |thread: &Thread, now: u64| match thread {
            Thread::Idle if has_work => Some(now),
            Thread::Until(time) => Some(*time),
            _ => None,
        };
        let now = self.now;
        let time = self.threads.iter().filter_map(|it| time_of(it, now)).min()?;
        let is_next = |it: &(usize, &Thread)| time_of(it.1, now) == Some(time);
        let count = self.threads.iter().enumerate().filter(is_next).count();
        let which = self.random(count);
        let index = self.threads.iter().enumerate().filter(is_next).nth(which)?.0;
        Some((index, time))
    }

    /// Returns a random number below `end` (Vigna's splitmix64, 2015).
    fn random(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) as usize % end
    }
}

//! Threads that take turns: one lock guards the turn, and each thread waits at a condition variable
//! of its own. A thread is *due* at the virtual time at which it goes on.

use super::timers::Timers;
use crate::idle::{Park, ThreadPark};
use crate::sync::lock::{Condvar, Mutex, MutexGuard};
use crate::sync::thread::{self, per_thread};
use crate::sync::{Unwatched, clock};
use crate::task::{AnyTask, End, ExecutorId, Job, Living, Own, current, depth, gate};
use alloc::collections::VecDeque;
use alloc::task::Wake;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::task::Waker;
use core::time::Duration;

pub(super) struct Turns {
    pub(super) id: ExecutorId,
    pub(super) living: Living,
    /// Tells the schedulers over the stepper that the stepper has been dropped.
    pub(super) end: End,
    pub(super) state: Mutex<TurnState>,
    /// Locked by the thread that steps, runs or advances the stepper, so that only one call at a
    /// time passes turns.
    driver: Mutex<()>,
    /// Notified when the turn returns to the thread that called the stepper.
    stepper: Condvar,
    /// One condition variable for each thread, notified when the turn of the thread comes.
    pub(super) threads: Vec<Condvar>,
}

pub(super) struct TurnState {
    /// The virtual time, in nanoseconds.
    pub(super) now: u64,
    turn: Turn,
    /// The virtual time until which each thread passes the turn to the next. `None` if each thread
    /// gives the turn back to the caller of the stepper.
    end: Option<u64>,
    pub(super) queue: VecDeque<Job>,
    pub(super) timers: Timers,
    threads: Vec<Thread>,
    /// For each thread, whether it was woken since it last slept.
    woken: Vec<bool>,
    random: u64,
    pub(super) panicked: usize,
    /// Whether the stepper has been dropped. Then no job begins, and no thread waits for the clock.
    pub(super) is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Stepper,
    Thread(usize),
}

enum Thread {
    Idle,
    /// The thread has this job, and waits for its turn.
    Given(Job),
    Until(u64),
    /// The thread waits for another task, and sleeps until its waker is called.
    Asleep,
    Running,
}

/// How other threads wake a thread that waits for a task.
struct Alarm {
    turns: Unwatched<Turns>,
    index: usize,
    /// The waker of the thread's `ThreadPark`.
    bell: Waker,
}

impl Wake for Alarm {
    fn wake(self: Unwatched<Self>) {
        self.turns.wake(self.index);
        self.bell.wake_by_ref();
    }
}

struct TurnThread {
    alarm: Unwatched<Alarm>,
    /// The park in which the thread blocks in real time: for a timeout, and once the stepper is
    /// gone.
    park: RefCell<ThreadPark>,
}

impl TurnThread {
    fn new(turns: &Unwatched<Turns>, index: usize) -> Self {
        let park = ThreadPark::new();
        let alarm = Alarm { turns: Unwatched::clone(turns), index, bell: park.unparker() };
        TurnThread { alarm: Unwatched::new(alarm), park: RefCell::new(park) }
    }
}

impl Own for TurnThread {
    fn home(&self) -> Option<ExecutorId> {
        Some(self.alarm.turns.id)
    }

    fn take_out(&self, _: &AnyTask) -> Option<Job> {
        None
    }

    fn park(&self, timeout: Option<Duration>) {
        let Alarm { turns, index, .. } = &*self.alarm;
        current::aside(|| {
            if timeout.is_some() || !turns.sleep(*index) {
                self.park.borrow_mut().park(timeout);
            }
        });
    }

    fn unparker(&self) -> Waker {
        Waker::from(Unwatched::clone(&self.alarm))
    }
}

per_thread! {
    static HERE: RefCell<Option<(Unwatched<Turns>, usize)>> = RefCell::new(None);
}

/// Makes the calling task take `time` of virtual time: returns when the clock has moved on by
/// `time`.
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
    let (turns, index) = here().expect("`sim::work` is for tasks that run on a `Stepper`");
    turns.wait(index, clock::nanos(time));
}

/// Returns this thread's stepper, and the thread's index.
pub(super) fn here() -> Option<(Unwatched<Turns>, usize)> {
    HERE.with(|it| it.borrow().clone())
}

impl Turns {
    pub(super) fn new(seed: u64, threads: usize) -> Self {
        let state = TurnState {
            now: 0,
            turn: Turn::Stepper,
            end: None,
            queue: VecDeque::new(),
            timers: Timers::default(),
            threads: (0..threads).map(|_| Thread::Idle).collect(),
            woken: vec![false; threads],
            random: seed,
            panicked: 0,
            is_over: false,
        };
        let bells = (0..threads).map(|_| Condvar::new()).collect();
        Turns {
            id: ExecutorId::new(),
            living: Living::default(),
            end: End::default(),
            state: Mutex::new(state),
            driver: Mutex::new(()),
            stepper: Condvar::new(),
            threads: bells,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.state.lock().now
    }

    pub(super) fn push(&self, job: Job) -> Result<(), Job> {
        let mut state = self.state.lock();
        if state.is_over {
            return Err(job);
        }
        state.queue.push_back(job);
        Ok(())
    }

    /// Runs jobs on this thread until the stepper is gone.
    pub(super) fn live(this: &Unwatched<Self>, index: usize) {
        HERE.with(|it| *it.borrow_mut() = Some((Unwatched::clone(this), index)));
        let local = TurnThread::new(this, index);
        current::as_worker(Some(this.id), None, || {
            depth::has_stack(None);
            gate::with_own(&local, || {
                while let Some(job) = this.next_job(index) {
                    let completed = thread::completes(|| job.run());
                    let mut state = this.state.lock();
                    state.panicked += usize::from(!completed);
                    state.threads[index] = Thread::Idle;
                    this.end_turn(&mut state);
                }
            });
        });
        HERE.with(|it| *it.borrow_mut() = None);
    }

    /// Waits for this thread's next turn. Returns its job, or `None` if no turn will come.
    fn next_job(&self, index: usize) -> Option<Job> {
        let state = self.state.lock();
        let mine = Turn::Thread(index);
        let mut state = self.threads[index].wait_while(state, |it| it.turn != mine && !it.is_over);
        match core::mem::replace(&mut state.threads[index], Thread::Running) {
            Thread::Given(job) => Some(job),
            _ => None,
        }
    }

    /// Waits until the clock has moved on by `nanos`. Once the stepper is gone, moves the clock and
    /// returns at once. So a queue's tasks still take time, and the queue's quantum ends.
    fn wait(&self, index: usize, nanos: u64) {
        let mut state = self.state.lock();
        if state.is_over {
            state.now = state.now.saturating_add(nanos);
            return;
        }
        let until = Thread::Until(state.now.saturating_add(nanos));
        self.pass_turn(state, index, until);
    }

    /// Sleeps until a wake-up, or returns at once if one has come since the last sleep. Returns
    /// `false` if the stepper is gone.
    fn sleep(&self, index: usize) -> bool {
        let mut state = self.state.lock();
        if core::mem::take(&mut state.woken[index]) {
            return true;
        }
        self.pass_turn(state, index, Thread::Asleep)
    }

    /// Wakes a thread that sleeps, so that it is due at the present virtual time. If the thread is
    /// awake, its next sleep ends at once.
    fn wake(&self, index: usize) {
        let mut state = self.state.lock();
        if matches!(state.threads[index], Thread::Asleep) {
            state.threads[index] = Thread::Until(state.now);
        } else {
            state.woken[index] = true;
        }
    }

    /// Ends this thread's turn and waits for its next. Returns `false` if the stepper is gone.
    fn pass_turn(
        &self,
        mut state: MutexGuard<'_, TurnState>,
        index: usize,
        meanwhile: Thread,
    ) -> bool {
        if state.is_over {
            return false;
        }
        state.threads[index] = meanwhile;
        self.end_turn(&mut state);
        let mine = Turn::Thread(index);
        let mut state = self.threads[index].wait_while(state, |it| it.turn != mine && !it.is_over);
        state.threads[index] = Thread::Running;
        !state.is_over
    }

    fn end_turn(&self, state: &mut TurnState) {
        let is_passed = state.end.is_some_and(|end| self.pass(state, end));
        if !is_passed {
            state.turn = Turn::Stepper;
            self.stepper.notify_all();
        }
    }

    /// Gives the turn to the next thread due at `end` or earlier. Returns `false` if there is none,
    /// or if a timer comes first.
    fn pass(&self, state: &mut TurnState, end: u64) -> bool {
        let time = state.next_time().filter(|time| *time <= end);
        // A due timer comes first: the thread that called the stepper fires it, outside of tasks.
        let Some(time) = time.filter(|time| state.timers.next().is_none_or(|it| it > *time)) else {
            return false;
        };
        let index = state.draw(time);
        state.now = state.now.max(time);
        if matches!(state.threads[index], Thread::Idle) {
            let job = state.queue.pop_front().expect("it was there when the thread was chosen");
            state.threads[index] = Thread::Given(job);
        }
        state.turn = Turn::Thread(index);
        self.threads[index].notify_all();
        true
    }

    pub(super) fn step(&self) -> bool {
        let _driver = self.drive();
        self.go_on(u64::MAX, None)
    }

    pub(super) fn run(&self) {
        let _driver = self.drive();
        self.go_on(u64::MAX, Some(u64::MAX));
    }

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

    /// Fires timers and passes turns up to the time `end`. If `among_themselves` is `None`, passes
    /// one turn. Otherwise the threads pass turns to each other, up to the time in
    /// `among_themselves`. Returns whether a timer fired or a thread ran.
    fn go_on(&self, end: u64, among_themselves: Option<u64>) -> bool {
        let (mut state, mut has_gone) = (self.state.lock(), false);
        state.end = among_themselves;
        loop {
            if let Some(waker) = state.next_timer(end) {
                drop(state);
                let completed = thread::completes(|| waker.wake());
                state = self.state.lock();
                state.panicked += usize::from(!completed);
            } else if self.pass(&mut state, end) {
                state = self.stepper.wait_while(state, |it| it.turn != Turn::Stepper);
                if among_themselves.is_none() {
                    return true;
                }
            } else {
                return has_gone;
            }
            has_gone = true;
        }
    }
}

impl TurnState {
    fn due(&self, thread: &Thread) -> Option<u64> {
        match thread {
            Thread::Idle if !self.queue.is_empty() => Some(self.now),
            Thread::Until(time) => Some(*time),
            _ => None,
        }
    }

    fn next_time(&self) -> Option<u64> {
        self.threads.iter().filter_map(|it| self.due(it)).min()
    }

    fn draw(&mut self, time: u64) -> usize {
        let is_due = |it: &usize| self.due(&self.threads[*it]) == Some(time);
        let due: Vec<_> = (0..self.threads.len()).filter(is_due).collect();
        due[self.random(due.len())]
    }

    /// Takes the next timer and moves the clock to it, if the timer is due by `end` and no thread
    /// is due before.
    fn next_timer(&mut self, end: u64) -> Option<Waker> {
        let time = self.timers.next().filter(|time| *time <= end)?;
        if self.next_time().is_some_and(|it| it < time) {
            return None;
        }
        self.now = self.now.max(time);
        self.timers.take_next()
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

//! Records what each queue and task has done. The record is exact, because one thread runs at a
//! time.

use filch::fair::Clock as _;
use filch::sim::StepperHandle;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

thread_local! {
    /// How many tasks are on this thread's stack: one, and those that run in its waits.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The records of one queue.
#[derive(Default)]
pub(super) struct Account {
    /// The queue that its scheduler is over.
    below: Option<usize>,
    /// How many of its tasks may run at once.
    pub(super) limit: usize,
    /// The highest limit that it has had. Tasks that run go on when the limit falls.
    pub(super) highest: usize,
    in_flight_limit: Option<usize>,
    pub(super) is_paused: bool,
    pub(super) is_closed: bool,
    /// Whether it may be cancelled with the program's token.
    pub(super) has_token: bool,
    /// Whether tasks of a queue above may wait, so that this queue stays open. If it were closed, a
    /// thread of the scheduler's own, and not the stepper's, would run the awaited tasks.
    pub(super) is_needed: bool,
    /// Whether its closures begin in the order in which they were spawned.
    pub(super) is_ordered: bool,
    accepted: usize,
    /// How many tasks have begun, or were dropped unrun.
    gone: usize,
    /// How many closures have not begun, plus the futures that were spawned or woken.
    waiting: usize,
    /// How many futures in `waiting` have not begun.
    fresh: usize,
    running: usize,
    /// How many futures have begun and have not ended.
    in_flight: usize,
    /// The number of the closure that began last.
    last: Option<usize>,
    /// How many forks no thread has begun.
    offered: usize,
}

impl Account {
    pub(super) fn new(
        below: Option<usize>,
        limit: usize,
        in_flight_limit: Option<usize>,
        is_paused: bool,
    ) -> Self {
        let (highest, is_ordered) = (limit, limit == 1);
        Account {
            below,
            limit,
            highest,
            in_flight_limit,
            is_paused,
            is_ordered,
            ..Account::default()
        }
    }

    pub(super) fn is_root(&self) -> bool {
        self.below.is_none()
    }
}

/// The time in nanoseconds at which each task began or was polled, and the task's number.
pub(super) type Log = Vec<(u128, usize)>;

#[derive(Default)]
pub(super) struct Entries {
    pub(super) accounts: Vec<Account>,
    made: usize,
    /// Whether the tasks that are made get the program's token.
    pub(super) with_token: bool,
    /// How many tasks with that token wait or sleep.
    pub(super) under_token: usize,
    /// How many threads run tasks.
    busy: usize,
    log: Log,
    /// The broken promises.
    faults: Vec<String>,
}

impl Entries {
    /// Returns the queue and those below it: the queue that its scheduler is over, and so on.
    fn chain(&self, queue: usize) -> Vec<usize> {
        let below = |it: &usize| self.accounts[*it].below;
        std::iter::successors(Some(queue), below).collect()
    }

    /// Whether tasks of the queue may wait, because the queues below it stay open. If so, marks
    /// them as needed.
    pub(super) fn may_wait(&mut self, queue: usize) -> bool {
        let below = &self.chain(queue)[1..];
        let may_end = |it: &usize| self.accounts[*it].is_closed || self.accounts[*it].has_token;
        let stay = !below.iter().any(may_end);
        below.iter().for_each(|it| self.accounts[*it].is_needed |= stay);
        stay
    }

    /// Whether a task of the queue could begin or go on now.
    fn could_run(&self, queue: usize) -> bool {
        let account = &self.accounts[queue];
        let has_permit = account.in_flight_limit.is_none_or(|it| account.in_flight < it);
        let is_ready = account.waiting > account.fresh
            || (account.fresh > 0 && has_permit)
            || account.offered > 0;
        let chain = self.chain(queue);
        let is_open = |it: &usize| !self.accounts[*it].is_closed;
        is_ready
            && chain[1..].iter().all(is_open)
            && chain
                .iter()
                .map(|it| &self.accounts[*it])
                .all(|it| !it.is_paused && it.running < it.limit)
    }

    fn fault(&mut self, what: &str, life: &Life) {
        self.faults.push(format!("{what}: task {} of queue {}", life.id, life.queue));
    }

    /// Records that a task begins to run, or that a future is polled.
    fn enters(&mut self, life: &Life) {
        if self.takes_place(life.queue) {
            self.fault("more run at once than may", life);
        }
        self.accounts[life.queue].waiting -= 1;
        self.under_token -= usize::from(life.has_token);
    }

    /// Records that a thread takes a place of the queue. Returns whether too many tasks run then.
    fn takes_place(&mut self, queue: usize) -> bool {
        let mut are_too_many = false;
        for it in self.chain(queue) {
            let account = &mut self.accounts[it];
            account.running += 1;
            are_too_many |= account.running > account.highest;
        }
        self.busy += usize::from(DEPTH.replace(DEPTH.get() + 1) == 0);
        are_too_many
    }

    fn leaves_place(&mut self, queue: usize) {
        for it in self.chain(queue) {
            self.accounts[it].running -= 1;
        }
        DEPTH.set(DEPTH.get() - 1);
        self.busy -= usize::from(DEPTH.get() == 0);
    }
}

/// The records of a program, which its tasks share.
pub(super) struct Books {
    clock: StepperHandle,
    entries: Mutex<Entries>,
}

impl Books {
    pub(super) fn new(clock: StepperHandle) -> Self {
        Books { clock, entries: Mutex::default() }
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        // A check that fails poisons the lock, and tasks are still dropped afterwards.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that no thread is idle while a task could run.
    pub(super) fn check(&self, threads: usize) {
        let entries = self.entries();
        let mut queues = 0..entries.accounts.len();
        let ready = queues.find(|it| entries.busy < threads && entries.could_run(*it));
        drop(entries);
        assert_eq!(ready, None, "a thread is idle, and a task of this queue could run");
    }

    /// Checks that all tasks have ended without a fault, and returns when each ran.
    pub(super) fn finish(&self) -> Log {
        let mut entries = self.entries();
        assert!(entries.faults.is_empty(), "{:#?}", entries.faults);
        assert_eq!(entries.busy, 0);
        for account in &entries.accounts {
            let Account { waiting, fresh, running, in_flight, offered, .. } = *account;
            assert_eq!((waiting, fresh, running, in_flight, offered), (0, 0, 0, 0, 0));
            assert_eq!(account.accepted, account.gone, "a task was lost, or ran twice");
        }
        std::mem::take(&mut entries.log)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Running,
    /// A future that was woken while it was polled.
    Woken,
    /// A future that was not woken since it was polled.
    Asleep,
    Dropped,
}

/// A task, from being spawned to being dropped.
pub(super) struct Life {
    books: Arc<Books>,
    queue: usize,
    id: usize,
    is_future: bool,
    has_token: bool,
    state: Arc<Mutex<State>>,
    has_begun: Cell<bool>,
}

/// The waker and state of a future, for the threads that wake it.
#[derive(Clone)]
pub(super) struct Sleeper {
    books: Arc<Books>,
    queue: usize,
    state: Arc<Mutex<State>>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Sleeper {
    /// Leaves the waker with which the future is polled.
    pub(super) fn leave(&self, waker: &Waker) {
        *self.waker.lock().unwrap() = Some(waker.clone());
    }

    /// Wakes the future, whether it sleeps or not.
    pub(super) fn wake(&self) {
        let mut state = self.state.lock().unwrap();
        match *state {
            State::Asleep => {
                *state = State::Waiting;
                self.books.entries().accounts[self.queue].waiting += 1;
            }
            State::Running => *state = State::Woken,
            _ => {}
        }
        drop(state);
        let waker = self.waker.lock().unwrap().clone();
        // A future that has not begun has left no waker.
        waker.iter().for_each(Waker::wake_by_ref);
    }
}

impl Life {
    pub(super) fn new(books: &Arc<Books>, queue: usize, is_future: bool) -> Self {
        let mut entries = books.entries();
        let id = entries.made;
        entries.made += 1;
        let has_token = entries.with_token;
        entries.under_token += usize::from(has_token);
        let account = &mut entries.accounts[queue];
        account.accepted += 1;
        account.waiting += 1;
        account.fresh += usize::from(is_future);
        drop(entries);
        let (books, state) = (Arc::clone(books), Arc::new(Mutex::new(State::Waiting)));
        Life { books, queue, id, is_future, has_token, state, has_begun: Cell::new(false) }
    }

    pub(super) fn sleeper(&self) -> Sleeper {
        let (books, state) = (Arc::clone(&self.books), Arc::clone(&self.state));
        Sleeper { books, queue: self.queue, state, waker: Arc::default() }
    }

    fn turn(&self, to: State) -> State {
        std::mem::replace(&mut *self.state.lock().unwrap(), to)
    }

    /// Records that the task begins to run, or is polled.
    pub(super) fn enter(&self) {
        let (now, before) = (self.books.clock.now().as_nanos(), self.turn(State::Running));
        let mut entries = self.books.entries();
        if before != State::Waiting {
            entries.fault("polled without having been woken", self);
            return;
        }
        entries.log.push((now, self.id));
        entries.enters(self);
        let account = &mut entries.accounts[self.queue];
        let is_after = account.last < Some(self.id);
        let is_first = !self.has_begun.replace(true);
        account.gone += usize::from(is_first);
        if !self.is_future {
            account.last = Some(self.id);
            if account.is_ordered && !is_after {
                entries.fault("before one that was spawned earlier", self);
            }
        } else if is_first {
            account.fresh -= 1;
            account.in_flight += 1;
            if account.in_flight_limit.is_some_and(|it| account.in_flight > it) {
                entries.fault("more in flight than may be", self);
            }
        }
    }

    /// Records that the future has been polled and is not ready.
    pub(super) fn pause(&self) {
        let mut state = self.state.lock().unwrap();
        let is_woken = *state == State::Woken;
        *state = if is_woken { State::Waiting } else { State::Asleep };
        drop(state);
        let mut entries = self.books.entries();
        entries.leaves_place(self.queue);
        entries.under_token += usize::from(self.has_token);
        entries.accounts[self.queue].waiting += usize::from(is_woken);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let state = self.turn(State::Dropped);
        let mut entries = self.books.entries();
        if matches!(state, State::Running | State::Woken) {
            entries.leaves_place(self.queue);
        } else {
            entries.under_token -= usize::from(self.has_token);
        }
        let account = &mut entries.accounts[self.queue];
        account.waiting -= usize::from(state == State::Waiting);
        let has_begun = self.has_begun.get();
        account.gone += usize::from(!has_begun);
        if self.is_future {
            *if has_begun { &mut account.in_flight } else { &mut account.fresh } -= 1;
        }
    }
}

/// The record of a fork, from its offer to its end.
pub(super) struct Part {
    books: Arc<Books>,
    queue: usize,
    /// `None` before the fork has begun, and then whether it has taken a place.
    begun: Option<bool>,
}

impl Part {
    pub(super) fn offered(books: &Arc<Books>, queue: usize) -> Self {
        books.entries().accounts[queue].offered += 1;
        Part { books: Arc::clone(books), queue, begun: None }
    }

    /// Records that the fork begins: in the place of the task on this thread, or in a place of its
    /// own.
    pub(super) fn begin(&mut self) {
        let (now, mut entries) = (self.books.clock.now().as_nanos(), self.books.entries());
        entries.accounts[self.queue].offered -= 1;
        entries.log.push((now, usize::MAX - self.queue));
        let has_place = DEPTH.get() > 0;
        self.begun = Some(!has_place);
        if !has_place && entries.takes_place(self.queue) {
            let fault = format!("more run at once than may: a fork of queue {}", self.queue);
            entries.faults.push(fault);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut entries = self.books.entries();
        match self.begun {
            None => entries.accounts[self.queue].offered -= 1,
            Some(true) => entries.leaves_place(self.queue),
            Some(false) => {}
        }
    }
}

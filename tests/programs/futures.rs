//! Random programs of futures: what they wait for, who wakes, cancels and forgets them, and how their executor ends.
//!
//! `tests/task/random_futures.rs` writes them with proptest, the fuzz target `futures` with libFuzzer. On a stepper the same
//! program does the same each time, except for wakes by other threads.

use crate::common::waiting::MINUTE;
use filch::executor::{Executor, Reason, TaskBuilder};
use filch::fair::Queue;
use filch::pool::Shutdown;
use filch::sim::Stepper;
use filch::task::{Cancel, CancelToken, CancelledBy, JoinError, TaskGroup};
use filch::{FairScheduler, JoinHandle, LockedPool, ThreadPool};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// The panics that programs cause.
pub(crate) const EXPECTED: &[&str] = &["expected"];

const GATES: usize = 3;

/// What polls the futures.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ground {
    Pool,
    Locked,
    Stepper,
    /// A queue over a pool.
    Queue,
    /// A queue over a stepper.
    Simulated,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
struct Limits {
    max_in_flight: Option<AFew>,
    max_parallel: Option<AFew>,
    capacity: Option<AFew>,
    starts_paused: bool,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct AFew(#[cfg_attr(fuzzing, arbitrary(with = from::<1, 4, _>))] usize);

/// The place of a token; the second is the child of the first.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Token(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 1, _>))] usize);

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Gate(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 2, _>))] usize);

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Which(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 9, _>))] usize);

/// One program, and what it runs on.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program {
    ground: Ground,
    #[cfg_attr(fuzzing, arbitrary(with = from::<1, 2, _>))]
    threads: usize,
    limits: Limits,
    steps: Vec<Step>,
    end: End,
}

/// How the executor ends.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    CancelQueue,
    Cancel,
    Drain,
    Drop,
}

/// What a future does, one after the other.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Act {
    Yield,
    /// Until the gate is open. A gate that is forgotten wakes nobody.
    Await(Gate),
    /// For the oldest future that has its handle with the program.
    AwaitOther,
    WakeFromThread,
    /// Keeps no waker.
    Forget,
    CancelToken(Token),
    Panic,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
struct Spawn {
    acts: Vec<Act>,
    token: Option<Token>,
    in_group: bool,
    /// Past, or far away.
    deadline: Option<bool>,
    panics_in_drop: bool,
    cancels_on_drop: bool,
}

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    Spawn(Spawn),
    /// What has been spawned gets so far, on a stepper; elsewhere it has a moment.
    Run,
    Open(Gate),
    Forget(Gate),
    Cancel(Which),
    DropHandle(Which),
    Join(Which),
    CancelToken(Token),
    CancelQueue,
    Pause(bool),
    SetWeight,
    Shutdown(bool),
}

fn act() -> impl Strategy<Value = Act> {
    let token = (0..2_usize).prop_map(|it| Act::CancelToken(Token(it)));
    prop_oneof![
        6 => Just(Act::Yield),
        4 => (0..GATES).prop_map(|it| Act::Await(Gate(it))),
        3 => Just(Act::AwaitOther),
        3 => Just(Act::WakeFromThread),
        1 => Just(Act::Forget),
        1 => token,
        1 => Just(Act::Panic),
    ]
}

fn spawn() -> impl Strategy<Value = Spawn> {
    let one_in = |n: f64| prop::bool::weighted(1.0 / n);
    let acts = prop::collection::vec(act(), 0..5);
    let token = prop::option::weighted(0.3, (0..2_usize).prop_map(Token));
    let deadline = prop::option::weighted(0.2, any::<bool>());
    (acts, token, one_in(4.0), deadline, one_in(8.0), one_in(4.0)).prop_map(
        |(acts, token, in_group, deadline, panics_in_drop, cancels_on_drop)| Spawn {
            acts,
            token,
            in_group,
            deadline,
            panics_in_drop,
            cancels_on_drop,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let which = || (0..10_usize).prop_map(Which);
    let gate = || (0..GATES).prop_map(Gate);
    prop_oneof![
        16 => spawn().prop_map(Step::Spawn),
        6 => Just(Step::Run),
        2 => gate().prop_map(Step::Open),
        1 => gate().prop_map(Step::Forget),
        4 => which().prop_map(Step::Cancel),
        2 => which().prop_map(Step::DropHandle),
        3 => which().prop_map(Step::Join),
        1 => (0..2_usize).prop_map(|it| Step::CancelToken(Token(it))),
        1 => prop::bool::weighted(0.3).prop_map(|it| if it { Step::CancelQueue } else { Step::Run }),
        2 => any::<bool>().prop_map(Step::Pause),
        1 => Just(Step::SetWeight),
        1 => prop::bool::weighted(0.3)
            .prop_flat_map(|ends| any::<bool>().prop_map(move |how| if ends { Step::Shutdown(how) } else { Step::Run })),
    ]
}

/// Programs of fewer steps than this.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Program> {
    let grounds = [Ground::Pool, Ground::Locked, Ground::Stepper, Ground::Queue, Ground::Simulated];
    let few = || prop::option::weighted(0.4, (1..5_usize).prop_map(AFew));
    let limits = (few(), few(), few(), prop::bool::weighted(0.2)).prop_map(
        |(max_in_flight, max_parallel, capacity, starts_paused)| Limits {
            max_in_flight,
            max_parallel,
            capacity,
            starts_paused,
        },
    );
    let ends = [End::CancelQueue, End::Cancel, End::Drain, End::Drop];
    let steps = prop::collection::vec(step(), 0..end);
    let (ground, end) =
        (prop::sample::select(grounds.to_vec()), prop::sample::select(ends.to_vec()));
    (ground, 1..3_usize, limits, steps, end).prop_map(|(ground, threads, limits, steps, end)| {
        Program { ground, threads, limits, steps, end }
    })
}

/// What is known of a future.
#[derive(Default)]
struct Record {
    id: usize,
    acts: Vec<Act>,
    /// The futures that it awaits.
    others: Vec<Arc<Record>>,
    token: Option<usize>,
    is_late: bool,
    begun: AtomicBool,
    is_polled: AtomicBool,
    returned: AtomicBool,
    panicked: AtomicBool,
    dropped: AtomicBool,
    /// Its handle cancels it, or has cancelled it for certain.
    by_handle: AtomicBool,
    dequeued: AtomicBool,
}

impl Record {
    /// Whether it may wait for a wake that never comes.
    fn may_stick(&self, forgotten: &[bool; GATES]) -> bool {
        let sticks = |it: &Act| match it {
            Act::Forget => true,
            Act::Await(Gate(which)) => forgotten[*which],
            _ => false,
        };
        self.acts.iter().any(sticks) || self.others.iter().any(|it| it.may_stick(forgotten))
    }
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(SeqCst)
}

#[derive(Default)]
struct Waiting {
    is_open: bool,
    is_forgotten: bool,
    wakers: Vec<Waker>,
}

/// What futures and steps share.
struct World {
    tokens: [CancelToken; 2],
    gates: [Mutex<Waiting>; GATES],
    most_in_flight: usize,
    in_flight: AtomicUsize,
    is_bounded: bool,
    is_closed: AtomicBool,
    queue_ends: AtomicBool,
    executor_ends: AtomicBool,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    /// What futures have noticed: their panics go to the panic handlers.
    faults: Mutex<Vec<&'static str>>,
}

impl World {
    fn must(&self, holds: bool, fault: &'static str) {
        if !holds {
            self.faults.lock().unwrap().push(fault);
        }
    }

    fn compare(&self, record: &Record, result: Result<usize, JoinError>) {
        let (returned, panicked) = (is_set(&record.returned), is_set(&record.panicked));
        self.must(is_set(&record.dropped), "the handle speaks before the future is dropped");
        self.must(!is_set(&record.is_polled), "the handle speaks during a poll");
        let error = match result {
            Ok(id) => return self.must(returned && id == record.id, "the result of another"),
            Err(error) if error.is_panic() => return self.must(panicked, "panicked by itself"),
            Err(error) => error,
        };
        self.must(!returned && !panicked, "it had ended, and was cancelled");
        if let Some(reason) = error.refused() {
            let may_be = match reason {
                Reason::Full => self.is_bounded,
                Reason::Closed => is_set(&self.is_closed),
                _ => false,
            };
            return self.must(may_be && !is_set(&record.begun), "refused without a reason");
        }
        if error.is_expired() {
            return self.must(record.is_late && !is_set(&record.begun), "expired too early");
        }
        let may_be = match error.cancelled_by() {
            Some(CancelledBy::Handle) => is_set(&record.by_handle),
            Some(CancelledBy::Token) => {
                record.token.is_some_and(|it| self.tokens[it].is_cancelled())
            }
            Some(CancelledBy::Queue) => is_set(&self.queue_ends),
            Some(CancelledBy::Executor) => is_set(&self.executor_ends),
            _ => false,
        };
        self.must(may_be, "cancelled by nobody");
        let by_another = error.cancelled_by() != Some(CancelledBy::Handle);
        self.must(!(is_set(&record.dequeued) && by_another), "cancelled by the handle first");
    }

    /// Waits for the threads that wake. Returns whether there were any.
    fn join_threads(&self) -> bool {
        let threads = mem::take(&mut *self.threads.lock().unwrap());
        let were_any = !threads.is_empty();
        threads.into_iter().for_each(|it| it.join().unwrap());
        were_any
    }
}

/// A future of a program.
struct Body {
    acts: VecDeque<Act>,
    others: VecDeque<Handle>,
    record: Arc<Record>,
    world: Arc<World>,
    panics_in_drop: bool,
}

impl Body {
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let world = &self.world;
        loop {
            let Some(act) = self.acts.front() else {
                self.record.returned.store(true, SeqCst);
                return Poll::Ready(self.record.id);
            };
            match act {
                Act::Yield => context.waker().wake_by_ref(),
                Act::WakeFromThread => {
                    let waker = context.waker().clone();
                    world.threads.lock().unwrap().push(thread::spawn(move || waker.wake()));
                }
                Act::Await(Gate(which)) => {
                    let mut gate = world.gates[*which].lock().unwrap();
                    if !gate.is_open {
                        if !gate.is_forgotten {
                            gate.wakers.push(context.waker().clone());
                        }
                        return Poll::Pending;
                    }
                }
                Act::AwaitOther => {
                    if let Some(other) = self.others.front_mut() {
                        let Poll::Ready(result) = Pin::new(&mut other.handle).poll(context) else {
                            return Poll::Pending;
                        };
                        world.compare(&other.record, result);
                        self.others.pop_front();
                    }
                }
                Act::Forget => return Poll::Pending,
                Act::CancelToken(Token(which)) => {
                    quietly(|| world.tokens[*which].cancel());
                }
                Act::Panic => {
                    self.record.panicked.store(true, SeqCst);
                    panic!("expected");
                }
            }
            let act = self.acts.pop_front();
            if matches!(act, Some(Act::Yield | Act::WakeFromThread)) {
                return Poll::Pending;
            }
        }
    }
}

impl Future for Body {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        struct Polled(Arc<Record>);

        impl Drop for Polled {
            fn drop(&mut self) {
                self.0.is_polled.store(false, SeqCst);
            }
        }

        let (record, world) = (&self.record, &self.world);
        world.must(!record.is_polled.swap(true, SeqCst), "two polls at the same time");
        let _polled = Polled(Arc::clone(record));
        if !record.begun.swap(true, SeqCst) {
            world.must(!record.is_late, "begun after its deadline");
            let before = world.in_flight.fetch_add(1, SeqCst);
            world.must(before < world.most_in_flight, "too many in flight");
        }
        self.go_on(context)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let (record, world) = (&self.record, &self.world);
        world.must(!is_set(&record.is_polled), "dropped during a poll");
        if is_set(&record.begun) {
            world.in_flight.fetch_sub(1, SeqCst);
        }
        for other in self.others.drain(..) {
            quietly(|| drop(other));
        }
        world.must(!record.dropped.swap(true, SeqCst), "dropped twice");
        if self.panics_in_drop && !thread::panicking() {
            panic!("expected");
        }
    }
}

struct Handle {
    handle: JoinHandle<usize>,
    record: Arc<Record>,
}

/// Calls what may panic because a destructor does.
fn quietly<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) if payload.downcast_ref() == Some(&"expected") => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// What polls.
#[derive(Default)]
struct Executors {
    pool: Option<ThreadPool>,
    locked: Option<LockedPool>,
    stepper: Option<Stepper>,
    queue: Option<(FairScheduler, Queue)>,
}

impl Executors {
    fn new(ground: Ground, threads: usize, limits: &Limits) -> Self {
        let mut all = Executors::default();
        match ground {
            Ground::Pool | Ground::Queue => all.pool = Some(ThreadPool::new(threads).unwrap()),
            Ground::Locked => all.locked = Some(LockedPool::new(threads).unwrap()),
            Ground::Stepper | Ground::Simulated => all.stepper = Some(Stepper::new(7, threads)),
        }
        let fair = match ground {
            Ground::Queue => FairScheduler::over(all.pool.clone().unwrap()),
            Ground::Simulated => all.stepper.as_ref().unwrap().scheduler().build(),
            _ => return all,
        };
        let mut builder = fair.queue("q").max_parallel(limits.max_parallel.map(|it| it.0));
        if let Some(AFew(futures)) = limits.max_in_flight {
            builder = builder.max_in_flight(futures);
        }
        if let Some(AFew(tasks)) = limits.capacity {
            builder = builder.capacity(tasks);
        }
        builder = if limits.starts_paused { builder.paused() } else { builder };
        let queue = builder.build().unwrap();
        all.queue = Some((fair, queue));
        all
    }

    fn task(&self) -> TaskBuilder<'_> {
        match (&self.queue, &self.pool, &self.locked, &self.stepper) {
            (Some((_, queue)), ..) => queue.task(),
            (_, Some(pool), ..) => pool.task(),
            (_, _, Some(locked), _) => locked.task(),
            (.., stepper) => TaskBuilder::on(stepper.as_ref().unwrap() as &dyn Executor),
        }
    }

    fn shutdown(&self, how: Shutdown) {
        if let Some(pool) = &self.pool {
            pool.shutdown(how).unwrap();
        }
        if let Some(locked) = &self.locked {
            locked.shutdown(how).unwrap();
        }
    }
}

struct Run {
    on: Executors,
    world: Arc<World>,
    group: TaskGroup,
    records: Vec<Arc<Record>>,
    handles: Vec<Handle>,
}

impl Run {
    fn spawn(&mut self, spawn: Spawn) {
        let Spawn { acts, token, in_group, deadline, panics_in_drop, cancels_on_drop } = spawn;
        let awaits = acts.iter().filter(|it| matches!(it, Act::AwaitOther)).count();
        let others = self.handles.drain(..awaits.min(self.handles.len())).collect::<VecDeque<_>>();
        let record = Arc::new(Record {
            id: self.records.len(),
            acts: acts.clone(),
            others: others.iter().map(|it| Arc::clone(&it.record)).collect(),
            token: token.map(|it| it.0),
            is_late: deadline == Some(true),
            by_handle: cancels_on_drop.into(),
            ..Record::default()
        });
        self.records.push(Arc::clone(&record));
        let world = Arc::clone(&self.world);
        let body =
            Body { acts: acts.into(), others, record: Arc::clone(&record), world, panics_in_drop };
        let mut task = self.on.task();
        task = token.map_or(task, |it| task.token(&self.world.tokens[it.0]));
        task = if in_group { task.group(&self.group) } else { task };
        let hours = |is_past| Duration::from_secs(if is_past { 0 } else { 3600 });
        task = deadline.map_or(task, |it| task.deadline(Instant::now() + hours(it)));
        let was_cancelled = token.is_some_and(|it| self.world.tokens[it.0].is_cancelled());
        // The destructor of one that is refused or cancelled may panic here.
        let Some(handle) = quietly(|| task.spawn_future(body)) else {
            return assert!(is_set(&record.dropped));
        };
        assert!(!was_cancelled || handle.is_finished(), "its token was cancelled");
        let handle = if cancels_on_drop { handle.cancel_on_drop() } else { handle };
        self.handles.push(Handle { handle, record });
    }

    /// Whether only this thread has anything polled.
    fn is_simulated(&self) -> bool {
        self.on.stepper.is_some()
    }

    fn pass_time(&self) {
        match &self.on.stepper {
            Some(stepper) => stepper.run_until_idle(),
            None => thread::yield_now(),
        }
    }

    fn cancel(&self, which: usize) {
        let Handle { handle, record } = &self.handles[which];
        let was_done = handle.is_finished();
        record.by_handle.store(true, SeqCst);
        let cancelled = quietly(|| handle.cancel());
        if cancelled == Some(Cancel::Dequeued) {
            assert!(handle.is_finished() && !was_done);
            record.dequeued.store(true, SeqCst);
        }
        if self.is_simulated() {
            assert_ne!(cancelled, Some(Cancel::Requested), "nobody polls it");
            assert_eq!(was_done, cancelled == Some(Cancel::Finished));
        }
    }

    fn open(&self, which: usize) {
        let mut gate = self.world.gates[which].lock().unwrap();
        gate.is_open = true;
        let wakers = mem::take(&mut gate.wakers);
        drop(gate);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn step(&mut self, step: Step) {
        let count = self.handles.len();
        match step {
            Step::Spawn(spawn) => self.spawn(spawn),
            Step::Run => self.pass_time(),
            Step::Open(Gate(which)) => self.open(which),
            Step::Forget(Gate(which)) => {
                let mut gate = self.world.gates[which].lock().unwrap();
                gate.is_forgotten = true;
                let wakers = mem::take(&mut gate.wakers);
                drop(gate);
                drop(wakers);
            }
            Step::Cancel(Which(which)) if which < count => self.cancel(which),
            Step::DropHandle(Which(which)) if which < count => {
                let Handle { handle, record } = self.handles.swap_remove(which);
                let is_over = self.is_simulated() && is_set(&record.by_handle);
                quietly(|| drop(handle));
                assert!(!is_over || is_set(&record.dropped), "cancelled, and not dropped");
            }
            Step::Join(Which(which)) if which < count => {
                let Handle { handle, record } = self.handles.swap_remove(which);
                let millis = u64::from(!self.is_simulated());
                match handle.join_timeout(Duration::from_millis(millis)) {
                    Ok(result) => self.world.compare(&record, result),
                    Err(handle) => self.handles.push(Handle { handle, record }),
                }
            }
            Step::CancelToken(Token(which)) => {
                quietly(|| self.world.tokens[which].cancel());
                let is_ours = |it: &&Handle| it.record.token.is_some_and(|it| it >= which);
                if self.is_simulated() {
                    assert!(self.handles.iter().filter(is_ours).all(|it| it.handle.is_finished()));
                }
            }
            Step::CancelQueue => self.cancel_queue(),
            Step::Pause(pauses) => {
                if let Some((_, queue)) = &self.on.queue {
                    if pauses {
                        queue.pause()
                    } else {
                        queue.resume()
                    };
                }
            }
            Step::SetWeight => {
                if let Some((_, queue)) = &self.on.queue {
                    // Closed queues have none.
                    let _ = queue.set_weight(3);
                }
            }
            Step::Shutdown(cancels) => self.shutdown(cancels),
            Step::Cancel(_) | Step::DropHandle(_) | Step::Join(_) => {}
        }
        for Handle { handle, record } in &self.handles {
            assert!(!handle.is_finished() || is_set(&record.dropped), "held by an ended future");
        }
    }

    fn cancel_queue(&self) {
        let Some((_, queue)) = &self.on.queue else { return };
        self.world.is_closed.store(true, SeqCst);
        self.world.queue_ends.store(true, SeqCst);
        let alive = || self.records.iter().filter(|it| !is_set(&it.dropped)).count();
        let before = alive();
        let dropped = queue.cancel();
        assert!(dropped <= before, "more than there are");
        if self.is_simulated() {
            assert_eq!(alive(), 0, "a cancelled queue holds a future");
        }
    }

    fn shutdown(&self, cancels: bool) {
        let how = if cancels { Shutdown::Cancel } else { Shutdown::Drain };
        if self.is_simulated() {
            return;
        }
        self.world.is_closed.store(true, SeqCst);
        if let Some((_, queue)) = &self.on.queue {
            self.world.queue_ends.fetch_or(cancels, SeqCst);
            // A future that nobody wakes keeps it.
            let _ = queue.shutdown_timeout(how, Duration::from_millis(1));
            return;
        }
        self.world.executor_ends.store(true, SeqCst);
        self.on.shutdown(how);
        self.world.join_threads();
        assert!(self.handles.iter().all(|it| it.handle.is_finished()), "a pool that ended");
    }

    /// Opens all gates; what is woken ends.
    fn let_all_go(&mut self) {
        (0..GATES).for_each(|it| self.open(it));
        if let Some((_, queue)) = &self.on.queue {
            queue.resume();
        }
        if self.is_simulated() {
            self.pass_time();
            while self.world.join_threads() {
                self.pass_time();
            }
        }
        let forgotten = [0, 1, 2].map(|it| self.world.gates[it].lock().unwrap().is_forgotten);
        // A future that waits keeps its permit.
        let keeps = |it: &Arc<Record>| it.may_stick(&forgotten) || !it.others.is_empty();
        let may_starve = self.world.most_in_flight < usize::MAX && self.records.iter().any(keeps);
        for Handle { handle, record } in mem::take(&mut self.handles) {
            if may_starve || record.may_stick(&forgotten) {
                self.handles.push(Handle { handle, record });
            } else {
                assert!(!self.is_simulated() || handle.is_finished(), "it hangs");
                self.end_of(Handle { handle, record });
            }
        }
    }

    fn end_of(&self, Handle { handle, record }: Handle) {
        let result = handle.join_timeout(MINUTE).unwrap_or_else(|_| panic!("it hangs"));
        self.world.compare(&record, result);
    }

    fn end(&mut self, how: End) {
        if self.on.queue.is_some() && how == End::CancelQueue {
            self.cancel_queue();
        } else {
            self.world.is_closed.store(true, SeqCst);
            self.world.executor_ends.store(true, SeqCst);
            match how {
                End::Drain => self.on.shutdown(Shutdown::Drain),
                // Futures of a queue keep its pool.
                End::Drop if self.on.queue.is_none() => drop(mem::take(&mut self.on)),
                _ => self.on.shutdown(Shutdown::Cancel),
            }
            self.on.stepper = None;
        }
        for handle in mem::take(&mut self.handles) {
            self.end_of(handle);
        }
        if let Some((_, queue)) = &self.on.queue {
            self.compare_metrics(queue);
        }
    }

    fn compare_metrics(&self, queue: &Queue) {
        let count =
            |is: fn(&Record) -> bool| self.records.iter().filter(|it| is(it)).count() as u64;
        crate::common::waiting::wait_for(|| queue.metrics().pending == 0);
        let metrics = queue.metrics();
        let ended = metrics.completed + metrics.panicked + metrics.cancelled + metrics.tombstones;
        assert_eq!(metrics.submitted, ended, "{metrics:?}");
        let returned = count(|it| is_set(&it.returned));
        assert!(metrics.completed >= returned, "{returned} have returned: {metrics:?}");
        assert!(metrics.submitted + metrics.refused <= count(|_| true), "{metrics:?}");
    }
}

/// Runs a program, and what it leaves behind.
pub(crate) fn check(program: Program) {
    let Program { ground, threads, limits, steps, end } = program;
    let on = Executors::new(ground, threads, &limits);
    let token = CancelToken::new();
    let most_in_flight = on.queue.as_ref().and(limits.max_in_flight);
    let world = Arc::new(World {
        tokens: [token.clone(), token.child()],
        gates: Default::default(),
        most_in_flight: most_in_flight.map_or(usize::MAX, |it| it.0),
        in_flight: AtomicUsize::new(0),
        is_bounded: limits.capacity.is_some(),
        is_closed: AtomicBool::new(false),
        queue_ends: AtomicBool::new(false),
        executor_ends: AtomicBool::new(false),
        threads: Mutex::default(),
        faults: Mutex::default(),
    });
    let group = TaskGroup::new();
    let mut run = Run { on, world, group, records: Vec::new(), handles: Vec::new() };
    for step in steps {
        run.step(step);
    }
    run.let_all_go();
    run.end(end);
    run.world.join_threads();
    crate::common::waiting::wait_for(|| run.records.iter().all(|it| is_set(&it.dropped)));
    drop(run.group.wait_timeout(MINUTE).expect("the group hangs"));
    assert_eq!(run.world.in_flight.load(SeqCst), 0);
    assert_eq!(*run.world.faults.lock().unwrap(), [""; 0]);
}

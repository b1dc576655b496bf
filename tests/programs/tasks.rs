//! Random programs for tasks and their handles on one thread, and the outcome that each must have.
//!
//! The executor keeps its jobs until the program runs or drops one, so the state of each task is
//! known at any time. `tests/task/random_programs.rs` writes the programs with proptest, the fuzz
//! target `tasks` with libFuzzer.

use crate::common::closures::{Counted, Counts};
use filch::executor::{Reason, Rejected, TaskBuilder, from_fn};
use filch::task::{self, Cancel, CancelToken, Job, JoinError, TaskGroup};
use filch::{Executor, JoinHandle};
#[cfg(fuzzing)]
use filch_fuzz::from;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::future::Future;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

/// How many tokens there are; each is the child of the one before.
const TOKENS: usize = 3;

/// The index of a token.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug)]
struct Token(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 2, _>))] usize);

#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
enum Step {
    Spawn {
        panics: bool,
        token: Option<Token>,
        in_group: bool,
    },
    SpawnDetached {
        token: Option<Token>,
    },
    /// Has the executor refuse jobs from now on, or accept them again.
    Refuse(bool),
    RunOldest,
    RunNewest,
    TryRun,
    DropJob,
    Cancel(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 11, _>))] usize),
    Poll(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 11, _>))] usize),
    JoinNow(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 11, _>))] usize),
    DropHandle(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 11, _>))] usize),
    CancelToken(#[cfg_attr(fuzzing, arbitrary(with = from::<0, 2, _>))] usize),
    LookAtGroup,
}

/// Generates programs of fewer than `end` steps.
pub(crate) fn programs(end: usize) -> impl Strategy<Value = Vec<Program>> {
    prop::collection::vec(step().prop_map(Program), 0..end)
}

/// A step. Its kinds are private to this file.
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug)]
pub(crate) struct Program(Step);

fn step() -> impl Strategy<Value = Step> {
    let token = || prop::option::weighted(0.3, (0..TOKENS).prop_map(Token));
    let which = || 0_usize..12;
    let spawn = (prop::bool::weighted(0.2), token(), prop::bool::weighted(0.3))
        .prop_map(|(panics, token, in_group)| Step::Spawn { panics, token, in_group });
    prop_oneof![
        8 => spawn,
        2 => token().prop_map(|token| Step::SpawnDetached { token }),
        1 => prop::bool::weighted(0.3).prop_map(Step::Refuse),
        4 => Just(Step::RunOldest),
        2 => Just(Step::RunNewest),
        1 => Just(Step::TryRun),
        1 => Just(Step::DropJob),
        3 => which().prop_map(Step::Cancel),
        4 => which().prop_map(Step::Poll),
        3 => which().prop_map(Step::JoinNow),
        1 => which().prop_map(Step::DropHandle),
        1 => (0..TOKENS).prop_map(Step::CancelToken),
        1 => Just(Step::LookAtGroup),
    ]
}

/// Whether a task waits, or how it has ended.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Waits,
    Returned,
    Panicked,
    Cancelled,
}

/// The properties of the task to which a job belongs.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// The index in `Run::states`.
    id: usize,
    panics: bool,
    token: Option<usize>,
    in_group: bool,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Handle {
    handle: JoinHandle<usize>,
    id: usize,
    /// Whether it was polled while its task waited, and has not been woken since.
    waits: bool,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Shelf {
    jobs: VecDeque<Job>,
    refuses: bool,
}

struct Run {
    shelf: Arc<Mutex<Shelf>>,
    executor: Box<dyn Executor>,
    counts: Arc<Counts>,
    tokens: Vec<CancelToken>,
    group: TaskGroup,
    states: Vec<State>,
    kinds: Vec<Kind>,
    /// The tasks to which the jobs on the shelf belong, in the shelf's order.
    waiting: VecDeque<Kind>,
    handles: Vec<Handle>,
}

fn executor(shelf: &Arc<Mutex<Shelf>>) -> Box<dyn Executor> {
    let shelf = Arc::clone(shelf);
    Box::new(from_fn(NonZeroUsize::MIN, move |job| {
        let mut shelf = shelf.lock().unwrap();
        if shelf.refuses {
            return Err(Rejected { item: job, reason: Reason::Full });
        }
        shelf.jobs.push_back(job);
        Ok(())
    }))
}

impl Run {
    fn new() -> Self {
        let shelf = Arc::<Mutex<Shelf>>::default();
        let mut tokens = vec![CancelToken::new()];
        while tokens.len() < TOKENS {
            tokens.push(tokens.last().unwrap().child());
        }
        Run {
            executor: executor(&shelf),
            shelf,
            counts: Arc::default(),
            tokens,
            group: TaskGroup::new(),
            states: Vec::new(),
            kinds: Vec::new(),
            waiting: VecDeque::new(),
            handles: Vec::new(),
        }
    }

    fn is_refused(&self) -> bool {
        self.shelf.lock().unwrap().refuses
    }

    fn is_token_cancelled(&self, token: Option<usize>) -> bool {
        token.is_some_and(|it| self.tokens[it].is_cancelled())
    }

    /// Makes a new task's properties and its closure.
    fn task(
        &mut self,
        panics: bool,
        token: Option<usize>,
        in_group: bool,
    ) -> (Kind, impl FnOnce() -> usize + Send + use<>) {
        let kind = Kind { id: self.states.len(), panics, token, in_group };
        self.states.push(State::Waits);
        self.kinds.push(kind);
        let counted = Counted::new(&self.counts);
        let body = move || {
            let counted = counted;
            counted.runs();
            assert!(!task::is_cancelled(), "a cancelled task runs");
            assert!(!panics, "expected");
            kind.id
        };
        (kind, body)
    }

    /// Records a task after its spawn: it is cancelled if it was refused or its token is, and waits
    /// otherwise.
    fn handed_over(&mut self, kind: Kind) {
        if self.is_refused() || self.is_token_cancelled(kind.token) {
            self.states[kind.id] = State::Cancelled;
        } else {
            self.waiting.push_back(kind);
        }
    }

    fn end(&mut self, id: usize, state: State) {
        if self.states[id] != State::Waits {
            return;
        }
        self.states[id] = state;
        for handle in self.handles.iter_mut().filter(|it| it.id == id) {
            let wakes = handle.wakes.0.swap(0, SeqCst);
            assert_eq!(
                wakes,
                usize::from(handle.waits),
                "who waits is woken once, and nobody else"
            );
            handle.waits = false;
        }
    }

    fn run_job(&mut self, job: Job, kind: Kind, tries: bool) {
        let was_waiting = self.states[kind.id] == State::Waits;
        let run = AssertUnwindSafe(|| {
            if tries {
                job.try_run()
            } else {
                {
                    job.run();
                    was_waiting
                }
            }
        });
        match catch_unwind(run) {
            Ok(ran) => assert!(!tries || ran == was_waiting, "a job runs if nobody has it"),
            // A panic goes on only if no handle and no group takes it.
            Err(_) => {
                let is_alone = !kind.in_group && self.handles.iter().all(|it| it.id != kind.id);
                assert!(was_waiting && kind.panics && is_alone, "a panic goes on");
            }
        }
        self.end(kind.id, if kind.panics { State::Panicked } else { State::Returned });
    }

    fn take(&mut self, newest: bool) -> Option<(Job, Kind)> {
        let mut shelf = self.shelf.lock().unwrap();
        let (job, kind) = match newest {
            true => (shelf.jobs.pop_back(), self.waiting.pop_back()),
            false => (shelf.jobs.pop_front(), self.waiting.pop_front()),
        };
        assert_eq!(job.is_some(), kind.is_some(), "as many jobs as were accepted");
        job.zip(kind)
    }

    /// Compares the result of a handle with the state of its ended task.
    fn compare(&self, id: usize, result: Result<usize, JoinError>) {
        match (self.states[id], result) {
            (State::Returned, Ok(value)) => assert_eq!(value, id),
            (State::Panicked, Err(error)) => assert!(error.is_panic()),
            (State::Cancelled, Err(error)) => assert!(error.is_cancelled()),
            (state, result) => panic!("{state:?}, and the handle says {result:?}"),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Spawn { panics, token, in_group } => {
                let token = token.map(|it| it.0);
                let (kind, body) = self.task(panics, token, in_group);
                let mut builder = TaskBuilder::on(&*self.executor);
                builder =
                    if let Some(it) = token { builder.token(&self.tokens[it]) } else { builder };
                builder = if in_group { builder.group(&self.group) } else { builder };
                let handle = builder.spawn(body);
                let wakes = Arc::default();
                self.handles.push(Handle { handle, id: kind.id, waits: false, wakes });
                self.handed_over(kind);
            }
            Step::SpawnDetached { token } => {
                let token = token.map(|it| it.0);
                let (kind, body) = self.task(false, token, false);
                let mut builder = TaskBuilder::on(&*self.executor);
                builder =
                    if let Some(it) = token { builder.token(&self.tokens[it]) } else { builder };
                let accepted = builder.spawn_detached(move || _ = body());
                // A task of a cancelled token is cancelled at once, and its executor is not asked.
                let is_asked = !self.is_token_cancelled(token);
                assert_eq!(accepted.is_err(), is_asked && self.is_refused());
                self.handed_over(kind);
            }
            Step::Refuse(refuses) => self.shelf.lock().unwrap().refuses = refuses,
            Step::RunOldest | Step::RunNewest | Step::TryRun => {
                if let Some((job, kind)) = self.take(matches!(step, Step::RunNewest)) {
                    self.run_job(job, kind, matches!(step, Step::TryRun));
                }
            }
            Step::DropJob => {
                if let Some((job, kind)) = self.take(false) {
                    drop(job);
                    self.end(kind.id, State::Cancelled);
                }
            }
            Step::Cancel(which) if which < self.handles.len() => {
                let id = self.handles[which].id;
                let expected = match self.states[id] {
                    State::Waits => Cancel::Dequeued,
                    _ => Cancel::Finished,
                };
                assert_eq!(self.handles[which].handle.cancel(), expected);
                self.end(id, State::Cancelled);
            }
            Step::Poll(which) if which < self.handles.len() => {
                let is_done = self.states[self.handles[which].id] != State::Waits;
                let handle = &mut self.handles[which];
                let waker = Arc::clone(&handle.wakes).into();
                let polled = Pin::new(&mut handle.handle).poll(&mut Context::from_waker(&waker));
                match polled {
                    Poll::Pending => {
                        assert!(!is_done, "done, and pending");
                        handle.waits = true;
                    }
                    Poll::Ready(result) => {
                        let id = self.handles.swap_remove(which).id;
                        self.compare(id, result);
                    }
                }
            }
            Step::JoinNow(which) if which < self.handles.len() => {
                let Handle { handle, id, wakes, .. } = self.handles.swap_remove(which);
                let is_done = self.states[id] != State::Waits;
                assert_eq!(handle.is_finished(), is_done);
                match handle.join_timeout(Duration::ZERO) {
                    Ok(result) => {
                        assert!(is_done);
                        self.compare(id, result);
                    }
                    Err(handle) => {
                        assert!(!is_done);
                        self.handles.push(Handle { handle, id, waits: false, wakes });
                    }
                }
            }
            Step::DropHandle(which) if which < self.handles.len() => {
                drop(self.handles.swap_remove(which));
            }
            Step::CancelToken(token) => {
                self.tokens[token].cancel();
                for id in 0..self.kinds.len() {
                    if self.kinds[id].token.is_some_and(|it| it >= token) {
                        self.end(id, State::Cancelled);
                    }
                }
            }
            Step::LookAtGroup => {
                let ended = self.group.wait_timeout(Duration::ZERO).is_some();
                let is_one = |kind: &Kind| kind.in_group && self.states[kind.id] == State::Waits;
                assert_eq!(ended, !self.kinds.iter().any(is_one));
            }
            Step::Cancel(_) | Step::Poll(_) | Step::JoinNow(_) | Step::DropHandle(_) => {}
        }
    }
}

/// Runs a program, and then the jobs that are left.
pub(crate) fn check(program: Vec<Program>) {
    let mut run = Run::new();
    for Program(step) in program {
        run.step(step);
    }
    while let Some((job, kind)) = run.take(false) {
        run.run_job(job, kind, false);
    }
    for Handle { handle, id, .. } in std::mem::take(&mut run.handles) {
        let result = handle.join();
        run.compare(id, result);
    }
    run.counts.finish();
}

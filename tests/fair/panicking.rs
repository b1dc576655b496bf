//! What the user gives to a scheduler may panic: policy, clock, executor. It costs no more than one
//! lease or ticket, the panic handler gets the payload, and nothing stays counted (P6, P7).

use crate::common::waiting::{MINUTE, done};
use filch::executor::Rejected;
use filch::fair::{Clock, FairScheduler, Pick, Policy, Ready, Reweighted, Service};
use filch::{Executor, Job, ThreadPool};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Panics at some calls of a name: from one, so many times.
#[derive(Clone)]
struct Fuse(Arc<Mutex<Lit>>);

struct Lit {
    name: &'static str,
    calls_before: usize,
    panics: usize,
}

impl Fuse {
    fn new(name: &'static str, calls_before: usize, panics: usize) -> Self {
        Fuse(Arc::new(Mutex::new(Lit { name, calls_before, panics })))
    }

    fn call(&self, name: &str) {
        let mut lit = self.0.lock().unwrap();
        if lit.name != name {
            return;
        }
        if lit.calls_before > 0 {
            lit.calls_before -= 1;
        } else if lit.panics > 0 {
            lit.panics -= 1;
            drop(lit);
            std::panic::panic_any(self.clone());
        }
    }

    fn is_burnt(&self) -> bool {
        self.0.lock().unwrap().panics == 0
    }
}

/// A policy, a clock and an executor that panic when it says so.
struct Fused<T>(Fuse, T);

impl Policy for Fused<()> {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        self.0.call("pick");
        ready.iter().last().map(Pick::of)
    }
    fn opened(&self, _: usize) {
        self.0.call("opened");
    }
    fn reweighted(&self, _: usize, _: Reweighted, _: Ready<'_>) {
        self.0.call("reweighted");
    }
    fn arrives(&self, _: usize, _: Ready<'_>) {
        self.0.call("arrives");
    }
    fn changed(&self, _: usize, _: Ready<'_>) {
        self.0.call("changed");
    }
    fn begins(&self, _: Pick) {
        self.0.call("begins");
    }
    fn served(&self, _: Pick, _: Service, _: Ready<'_>) {
        self.0.call("served");
    }
}

impl Clock for Fused<Instant> {
    fn now(&self) -> Duration {
        self.0.call("now");
        self.1.elapsed()
    }
}

impl Executor for Fused<ThreadPool> {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.call("execute");
        let submitted = self.1.execute(job);
        self.0.call("having executed");
        submitted
    }
    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        self.0.call("execute_last");
        let submitted = self.1.execute_last(job);
        self.0.call("having executed last");
        submitted
    }
    fn parallelism(&self) -> NonZeroUsize {
        self.0.call("parallelism");
        self.1.parallelism()
    }
    fn is_cancelled(&self) -> bool {
        self.0.call("is_cancelled");
        self.1.is_cancelled()
    }
}

/// A scheduler on which everything panics that the fuse says, and what the panic handler gets.
fn scheduler(fuse: &Fuse, threads: usize) -> (FairScheduler, Receiver<()>) {
    let ((panics, inbox), same) = (mpsc::channel(), fuse.clone());
    let pool = ThreadPool::new(threads).unwrap();
    let fair = FairScheduler::builder(Fused(fuse.clone(), pool))
        .policy(move || Fused(same.clone(), ()))
        .clock(Fused(fuse.clone(), Instant::now()))
        .quantum(Duration::ZERO)
        .measure_waits(true)
        .panic_handler(move |payload| {
            assert!(payload.is::<Fuse>());
            panics.send(()).unwrap();
        })
        .build();
    (fair, inbox)
}

/// Waits until nothing is pending, and for a minute at most.
fn wait_idle(fair: &FairScheduler) {
    let ((done, inbox), fair) = (mpsc::channel(), fair.clone());
    std::thread::spawn(move || {
        fair.wait_idle().unwrap();
        done.send(()).unwrap();
    });
    inbox.recv_timeout(MINUTE).expect("something stays counted");
}

fn nothing_is_lost(name: &'static str, calls_before: usize, panics: usize) {
    let fuse = Fuse::new(name, calls_before, panics);
    let (fair, inbox) = scheduler(&fuse, 2);
    let queues = ["a", "b"].map(|name| fair.queue(name).build().unwrap());
    let runs = Arc::new(AtomicUsize::new(0));
    let mut accepted = 0;
    for round in 0..20 {
        if round % 5 == 4 {
            wait_idle(&fair);
        }
        for queue in &queues {
            let runs = runs.clone();
            accepted +=
                usize::from(queue.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).is_ok());
            queue.set_weight(round + 1).unwrap();
        }
    }
    wait_idle(&fair);
    assert_eq!(runs.load(SeqCst), accepted, "{name}: accepted and run, or refused");
    assert!(accepted >= 40 - panics, "{name}: {accepted} of 40 accepted");
    for _ in 0..panics {
        // A ticket may submit itself again after the last task.
        let told = inbox.recv_timeout(MINUTE);
        assert!(told.is_ok(), "{name}: the handler gets each payload");
    }
    assert!(fuse.is_burnt(), "{name} was not called often enough");
    assert!(inbox.try_recv().is_err(), "{name}: the handler gets each payload once");
    for queue in &queues {
        let begin = Instant::now();
        // The last lease ends after its tasks.
        while queue.metrics().running > 0 {
            assert!(begin.elapsed() < MINUTE, "{name}: a lease stays counted");
            std::thread::yield_now();
        }
    }
    // And it goes on.
    assert_eq!(done(queues[0].spawn(|| 7)), 7);
    wait_idle(&fair);
}

#[test]
fn p6_a_policy_that_panics_costs_its_advice() {
    for name in ["pick", "arrives", "changed", "begins", "served", "opened", "reweighted"] {
        nothing_is_lost(name, 0, 1);
        nothing_is_lost(name, 1, 2);
    }
    nothing_is_lost("pick", 0, 10);
}

#[test]
fn p6_a_clock_that_panics_stands_still() {
    for calls_before in 0..12 {
        nothing_is_lost("now", calls_before, 1);
    }
    nothing_is_lost("now", 3, 10);
}

#[test]
fn p7_an_executor_that_panics_costs_a_ticket() {
    for name in ["execute", "having executed", "execute_last", "having executed last"] {
        nothing_is_lost(name, 0, 1);
        nothing_is_lost(name, 1, 1);
    }
    for calls_before in 0..4 {
        nothing_is_lost("parallelism", calls_before, 1);
    }
}

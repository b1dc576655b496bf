//! Tests when a fair scheduler submits a *ticket*, a job by which it serves its queues. In most
//! tests, the executor keeps the tickets until the test runs one.

use crate::common::waiting::{MINUTE, ended, in_a_minute};
use filch::executor::{Reason, Rejected};
use filch::fair::{FairScheduler, Pick, Policy, Queue, Ready, Service};
use filch::sim::Stepper;
use filch::{Executor, Job, ThreadPool};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

struct Tray {
    jobs: Mutex<VecDeque<Job>>,
    threads: usize,
    /// The number of jobs that the executor still accepts.
    room: AtomicUsize,
    /// Whether `execute_last` runs the oldest job before it returns.
    runs_others: bool,
}

impl Tray {
    fn new(threads: usize) -> Self {
        let (jobs, room) = (Mutex::default(), AtomicUsize::new(usize::MAX));
        Tray { jobs, threads, room, runs_others: false }
    }

    fn len(&self) -> usize {
        self.jobs.lock().unwrap().len()
    }

    fn run_one(&self) -> bool {
        let oldest = self.jobs.lock().unwrap().pop_front();
        oldest.map(Job::run).is_some()
    }

    fn run_all(&self) {
        while self.run_one() {}
    }
}

impl Executor for Tray {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        let taken = |room: usize| room.checked_sub(1);
        if self.room.fetch_update(SeqCst, SeqCst, taken).is_err() {
            return Err(Rejected { item: job, reason: Reason::Full });
        }
        self.jobs.lock().unwrap().push_back(job);
        Ok(())
    }

    fn execute_last(&self, job: Job) -> Result<(), Rejected> {
        self.execute(job)?;
        if self.runs_others {
            self.run_one();
        }
        Ok(())
    }

    fn parallelism(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.threads).unwrap()
    }
}

/// Spawns a task that records the number of tickets in the tray while it runs.
fn spawn_a_look(queue: &Queue, tray: &Arc<Tray>, seen: &Arc<Mutex<Vec<usize>>>) {
    let (tray, seen) = (tray.clone(), seen.clone());
    queue.spawn_detached(move || seen.lock().unwrap().push(tray.len())).unwrap();
}

/// While one ticket searches, further spawns submit none. So the ticket that finds a task must
/// submit another ticket if there is a second task.
#[test]
fn whoever_begins_calls_for_help_if_there_is_more_to_do() {
    let tray = Arc::new(Tray::new(2));
    let fair = FairScheduler::over(tray.clone());
    let queues: Vec<_> = (1..=1200).map(|_| fair.queue("q").build().unwrap()).collect();
    let [in_slot_0, in_slot_1] = [fair.default_queue(), &queues[0]];
    assert_eq!((in_slot_0.slot(), in_slot_1.slot()), (0, 1));
    // Pairs at the same bit of two groups, pairs in one group, and pairs that would look alike if
    // group and bit were exchanged.
    for (first, other) in [(1, 2), (5, 325), (5, 5 * 64), (67, 3), (67, 131), (70, 6 * 64 + 1)] {
        let pair = [first, other].map(|slot| &queues[slot - 1]);
        for alone in [false, true] {
            let seen = Arc::default();
            spawn_a_look(pair[0], &tray, &seen);
            if !alone {
                spawn_a_look(pair[1], &tray, &seen);
            }
            assert_eq!(tray.len(), 1, "one is on its way, and searches");
            tray.run_all();
            let seen = seen.lock().unwrap().clone();
            assert_eq!(seen[0], usize::from(!alone), "{first}, {other}, alone: {alone}");
        }
    }
}

#[test]
fn there_are_no_more_tickets_than_threads() {
    for threads in [1, 2, 3] {
        let tray = Arc::new(Tray::new(threads));
        let fair = FairScheduler::over(tray.clone());
        let (same, seen) = (tray.clone(), Arc::new(AtomicUsize::new(0)));
        // Each task runs the next ticket inside itself, so that all tickets have work at once.
        fn nest(fair: FairScheduler, tray: Arc<Tray>, seen: Arc<AtomicUsize>) {
            let next = (fair.clone(), tray.clone(), seen.clone());
            fair.spawn_detached(move || nest(next.0, next.1, next.2)).unwrap();
            if tray.len() > 0 {
                seen.fetch_add(1, SeqCst);
                tray.run_one();
            } else {
                fair.default_queue().cancel();
            }
        }
        let (inner, noted) = (fair.clone(), seen.clone());
        fair.spawn_detached(move || nest(inner, same, noted)).unwrap();
        tray.run_all();
        assert_eq!(seen.load(SeqCst), threads - 1);
    }
}

#[test]
fn a_full_executor_refuses_nothing_while_a_ticket_is_there() {
    let tray = Arc::new(Tray::new(2));
    tray.room.store(1, SeqCst);
    let fair = FairScheduler::over(tray.clone());
    let (same, outcome) = (fair.clone(), Arc::new(Mutex::new(None)));
    let inner = outcome.clone();
    fair.spawn_detached(move || {
        *inner.lock().unwrap() = Some(same.spawn_detached(|| ()).is_ok());
    })
    .unwrap();
    tray.run_all();
    assert_eq!(*outcome.lock().unwrap(), Some(true));
    assert_eq!(fair.default_queue().metrics().completed, 2);
    assert!(fair.spawn_detached(|| ()).is_err(), "now there is none, and no room for one");
}

/// Waits until the thread that the scheduler started itself has returned its ticket. Otherwise that
/// thread could take the next task, for which no ticket would then be submitted.
fn wait_for_the_last_ticket(fair: &FairScheduler) {
    while !format!("{fair:?}").contains("tickets: 0") {
        thread::yield_now();
    }
}

/// Waits until the scheduler's own thread has dropped its reference to the scheduler and the tray.
fn wait_for_the_last_thread(tray: &Arc<Tray>) {
    while Arc::strong_count(tray) > 1 {
        thread::yield_now();
    }
}

/// `resume` must not run the task on the caller's thread, which may hold a lock that the task
/// takes. So the scheduler starts a thread when its executor is full.
#[test]
fn a_task_that_a_full_executor_does_not_take_runs_on_a_thread_of_its_own() {
    let tray = Arc::new(Tray::new(1));
    let fair = FairScheduler::over(tray.clone());
    let queue = fair.queue("q").paused().build().unwrap();
    for _ in 1..=3 {
        tray.room.store(1, SeqCst);
        queue.pause();
        let task = queue.spawn(thread::current);
        tray.run_all();
        assert!(!task.is_finished(), "it is paused");
        queue.resume();
        assert_ne!(ended(task).unwrap().id(), thread::current().id());
        wait_for_the_last_ticket(&fair);
    }
    drop((fair, queue));
    wait_for_the_last_thread(&tray);
}

/// To cancel the first queue drops its task, and with the task the last handle of the paused queue
/// `other`. A queue without a handle is not paused, so `other` becomes ready. Its task must not run
/// on the cancelling thread, even though the executor is full.
#[test]
fn a_thread_that_cancels_a_queue_runs_no_tasks_of_another() {
    let tray = Arc::new(Tray::new(1));
    let fair = FairScheduler::over(tray.clone());
    let [cancelled, other] =
        ["cancelled", "other"].map(|it| fair.queue(it).paused().build().unwrap());
    tray.room.store(1, SeqCst);
    let task = other.spawn(thread::current);
    cancelled.spawn_detached(move || drop(other)).unwrap();
    tray.run_all();
    assert_eq!(cancelled.cancel(), 1);
    assert_ne!(ended(task).unwrap().id(), thread::current().id());
    wait_for_the_last_ticket(&fair);
    drop((fair, cancelled));
    wait_for_the_last_thread(&tray);
}

/// The queue below is closed, and refuses the ticket for `other`. So the task of `other` is
/// dropped.
#[test]
fn a_thread_that_cancels_a_queue_drops_what_a_closed_executor_does_not_take() {
    let stepper = Stepper::new(1, 1);
    let below = stepper.scheduler().build().queue("below").build().unwrap();
    let fair = FairScheduler::builder(below.clone()).clock(stepper.handle()).build();
    let [cancelled, other] =
        ["cancelled", "other"].map(|it| fair.queue(it).paused().build().unwrap());
    let task = other.spawn(|| ());
    cancelled.spawn_detached(move || drop(other)).unwrap();
    stepper.run_until_idle();
    below.pause();
    below.spawn_detached(|| ()).unwrap();
    below.close();
    assert_eq!(cancelled.cancel(), 1);
    assert!(ended(task).unwrap_err().is_cancelled());
}

#[test]
fn a_ticket_may_run_while_another_scheduler_submits_its_own() {
    let tray = Arc::new(Tray { runs_others: true, ..Tray::new(1) });
    let fairs = [(); 2]
        .map(|()| FairScheduler::builder(tray.clone()).quantum(Duration::from_nanos(1)).build());
    let runs = Arc::new(AtomicUsize::new(0));
    for fair in &fairs {
        for _ in 0..5 {
            let runs = runs.clone();
            fair.spawn_detached(move || _ = runs.fetch_add(1, SeqCst)).unwrap();
        }
    }
    tray.run_all();
    assert_eq!(runs.load(SeqCst), 10);
}

/// The number of picks, and for each call of `served` the pick's note and the number of tasks run.
#[derive(Default)]
struct Book {
    picks: AtomicUsize,
    told: Mutex<Vec<(u128, usize)>>,
}

struct Notes(Arc<Book>);

impl Policy for Notes {
    fn pick(&self, ready: Ready<'_>) -> Option<Pick> {
        let slot = ready.iter().next()?;
        Some(Pick::of(slot).with_note(self.0.picks.fetch_add(1, SeqCst) as u128))
    }

    fn served(&self, pick: Pick, service: Service, _ready: Ready<'_>) {
        self.0.told.lock().unwrap().push((pick.note(), service.tasks));
    }
}

#[test]
fn a_policy_hears_of_each_of_its_picks() {
    let (tray, book) = (Arc::new(Tray::new(1)), Arc::new(Book::default()));
    let noted = book.clone();
    let fair = FairScheduler::builder(tray.clone()).policy(move || Notes(noted.clone())).build();
    let [paused, other] = [(); 2].map(|()| fair.queue("q").build().unwrap());
    [&paused, &other].iter().for_each(|it| it.spawn_detached(|| ()).unwrap());
    paused.pause();
    tray.run_all();
    paused.resume();
    tray.run_all();
    let mut told = book.told.lock().unwrap().clone();
    told.sort_unstable();
    let notes: Vec<_> = told.iter().map(|it| it.0 as usize).collect();
    assert_eq!(notes, (0..book.picks.load(SeqCst)).collect::<Vec<_>>());
    assert_eq!(told[0].1, 0, "the first was of a queue that is paused");
    assert_eq!(told.iter().map(|it| it.1).sum::<usize>(), 2);
}

#[test]
fn a_scheduler_shows_how_many_tickets_it_has_out() {
    let tray = Arc::new(Tray::new(1));
    let fair = FairScheduler::over(tray.clone());
    let shown = |it| format!("FairScheduler {{ {it}, .. }}");
    assert_eq!(format!("{fair:?}"), shown("pending: 0, tickets: 0"));
    fair.spawn_detached(|| ()).unwrap();
    assert_eq!(format!("{fair:?}"), shown("pending: 1, tickets: 1"));
    tray.run_all();
    assert_eq!(format!("{fair:?}"), shown("pending: 0, tickets: 0"));
}

/// A lease has taken its queue out of the ready set, so the only other ticket finds no queue and
/// leaves. Then the lease finds the first of two new tasks. The second must not wait for the first.
#[test]
fn a_task_behind_one_that_a_lease_finds_as_its_queue_runs_dry_is_served() {
    in_a_minute(|| {
        let pool = ThreadPool::new(2).unwrap();
        let queue = FairScheduler::over(pool.clone()).queue("q").build().unwrap();
        let [(starts, started), (goes, go), (runs, ran), (serves, served)] =
            [(); 4].map(|()| mpsc::channel());
        let busy = pool.spawn(move || {
            starts.send(()).unwrap();
            go.recv_timeout(MINUTE).unwrap();
        });
        started.recv_timeout(MINUTE).unwrap();
        queue.spawn_detached(move || runs.send(()).unwrap()).unwrap();
        ran.recv_timeout(MINUTE).unwrap();
        let first = queue.spawn(move || served.recv_timeout(MINUTE / 4).unwrap());
        queue.spawn_detached(move || serves.send(()).unwrap()).unwrap();
        // The other worker, and with it the other ticket, comes while the lease looks once more.
        thread::sleep(Duration::from_millis(150));
        goes.send(()).unwrap();
        ended(first).unwrap();
        ended(busy).unwrap();
    });
}

//! Tests that spans of `tracing` are current in the tasks that they are to accompany (feature
//! `tracing`).

use crate::common::waiting::{done, wait_for};
use filch::executor::{Executor, TaskBuilder, spawn_future};
use filch::fair::WorkQueue;
use filch::pool::LockedPool;
use filch::sim::Stepper;
use filch::task::{CancelToken, ContextFlow, CurrentSpan, Flow, TaskGroup, TaskSpan};
use filch::{FairScheduler, JoinHandle, ThreadPool};
use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, LazyLock, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A span's name, and that of its parent.
type Noted = (String, Option<String>);

/// A layer that records each new span with its parent, and the parent's name of each closed span.
#[derive(Clone, Default)]
struct Parents(Arc<Mutex<Vec<Noted>>>, Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Parents {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map(|it| it.name().to_owned());
        self.0.lock().unwrap().push((span.name().to_owned(), parent));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let parent = context.span(&id).and_then(|it| it.parent());
        self.1.lock().unwrap().extend(parent.map(|it| it.name().to_owned()));
    }
}

/// Returns the layer of the process's only subscriber. It is global, so that workers use it too.
fn noted() -> &'static Parents {
    static NOTED: LazyLock<Parents> = LazyLock::new(|| {
        let parents = Parents::default();
        let subscriber = tracing_subscriber::registry().with(parents.clone());
        tracing::subscriber::set_global_default(subscriber).unwrap();
        parents
    });
    &NOTED
}

fn name_of_current() -> Option<&'static str> {
    tracing::Span::current().metadata().map(|it| it.name())
}

#[test]
fn the_span_of_a_task_is_a_child_of_its_submitters() {
    let noted = noted();
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("a").context(TaskSpan::of("a")).build().unwrap();
    let request = tracing::info_span!("request of a");
    let task = request.in_scope(|| queue.spawn(name_of_current));
    assert_eq!(task.join().unwrap(), Some("task"), "it runs in its own");
    let outside = queue.spawn(|| ());
    outside.join().unwrap();

    let noted = noted.0.lock().unwrap();
    let of_c = Some("request of c".to_owned());
    let tasks = noted.iter().filter(|it| it.0 == "task" && it.1 != of_c);
    let tasks: Vec<_> = tasks.map(|it| &it.1).collect();
    assert_eq!(tasks, [&Some("request of a".to_owned()), &None]);
}

#[test]
fn a_task_runs_in_the_span_that_was_current() {
    noted();
    let pool = ThreadPool::builder().num_threads(1).context(CurrentSpan).build().unwrap();
    let request = tracing::info_span!("request of b");
    let task = request.in_scope(|| pool.spawn(name_of_current));
    assert_eq!(task.join().unwrap(), Some("request of b"));
    assert_eq!(pool.spawn(name_of_current).join().unwrap(), None, "and leaves it");
}

type Name = Option<&'static str>;

/// Returns a pool of two threads whose tasks run in the span that is current at their spawn.
fn traced() -> ThreadPool {
    noted();
    ThreadPool::builder().num_threads(2).context(CurrentSpan).build().unwrap()
}

/// Calls `spawn` in a span "request". Expects that span to be current wherever `spawn` sends a
/// name.
#[track_caller]
fn expect_request(hop: &str, spawn: impl FnOnce(mpsc::Sender<Name>)) {
    let (names, inbox) = mpsc::channel();
    tracing::info_span!("request").in_scope(|| spawn(names));
    let names: Vec<_> = inbox.iter().collect();
    assert!(!names.is_empty() && names.iter().all(|it| *it == Some("request")), "{hop}: {names:?}");
}

fn note(names: &mpsc::Sender<Name>) {
    names.send(name_of_current()).unwrap();
}

/// Returns a future that notes the current span in each of its two polls.
fn note_twice(names: mpsc::Sender<Name>) -> impl Future<Output = ()> + Send {
    let mut is_second = false;
    poll_fn(move |context| {
        note(&names);
        if is_second {
            return Poll::Ready(());
        }
        is_second = true;
        let waker = context.waker().clone();
        thread::spawn(|| waker.wake());
        Poll::Pending
    })
}

#[test]
fn a_span_goes_through_every_hop_of_a_pool() {
    let pool = &traced();
    expect_request("spawn", |it| done(pool.spawn(move || note(&it))));
    expect_request("spawn_detached", |it| pool.spawn_detached(move || note(&it)).unwrap());
    expect_request("spawn_batch", |it| {
        pool.spawn_batch([it.clone(), it].map(|it| move || note(&it))).unwrap();
    });
    expect_request("spawn_future", |it| done(pool.spawn_future(note_twice(it))));
    expect_request("a scope from outside", |it| {
        pool.scope(|scope| (0..2).for_each(|_| scope.spawn(|| note(&it))));
    });
    expect_request("join from outside", |it| {
        let meet_and_note = meeting(&it);
        pool.join(&meet_and_note, &meet_and_note);
    });
    expect_request("broadcast", |it| {
        let names = Mutex::new(it);
        pool.broadcast(move |_| note(&names.lock().unwrap())).unwrap();
    });
    expect_request("spawn_broadcast", |it| {
        let names = Mutex::new(it);
        pool.spawn_broadcast(move |_| note(&names.lock().unwrap())).unwrap();
    });
    expect_request("spawn_broadcast of a scope", |it| {
        let names = Mutex::new(it);
        pool.scope(|scope| scope.spawn_broadcast(|_| note(&names.lock().unwrap()))).unwrap();
    });
    let token = &CancelToken::new();
    expect_request("scope_with", |it| {
        pool.scope_with(token, |scope| (0..2).for_each(|_| scope.spawn(|| note(&it)))).unwrap();
    });
    expect_request("join_with", |it| {
        let meet_and_note = meeting(&it);
        pool.join_with(token, &meet_and_note, &meet_and_note).unwrap();
    });
}

/// Returns a half that notes its span. Each half waits for the other, so two threads must run them.
fn meeting(names: &mpsc::Sender<Name>) -> impl Fn() + Sync + use<> {
    let (names, both) = (Mutex::new(names.clone()), Barrier::new(2));
    move || {
        both.wait();
        note(&names.lock().unwrap());
    }
}

#[test]
fn a_span_goes_through_every_hop_of_a_guest() {
    let pool = &traced();
    expect_request("guest", |it| {
        pool.take_part(|| {
            let meet_and_note = meeting(&it);
            pool.join(&meet_and_note, &meet_and_note);
            pool.scope(|scope| (0..3).for_each(|_| scope.spawn(|| note(&it))));
            let same = it.clone();
            done(pool.spawn(move || note(&same)));
            done(pool.spawn_future(note_twice(it)));
        });
    });
    assert_eq!(name_of_current(), None);
}

#[test]
fn a_span_goes_with_the_jobs_of_a_scope_on_a_worker() {
    let pool = traced();
    let same = pool.clone();
    let task = pool.spawn(move || {
        expect_request("scope", |it| {
            let is_stolen = AtomicBool::new(false);
            same.scope(|scope| {
                scope.spawn(|| {
                    note(&it);
                    is_stolen.store(true, SeqCst);
                });
                // The owner waits here, so the other worker has to take the job.
                wait_for(|| is_stolen.load(SeqCst));
                // The owner may run these jobs itself.
                scope.spawn(|| scope.spawn(|| note(&it)));
                let inner = tracing::info_span!("inner");
                let handle = inner.in_scope(|| scope.spawn_with_handle(name_of_current));
                assert_eq!(handle.join().unwrap(), Some("inner"));
            });
        });
        name_of_current()
    });
    assert_eq!(done(task), None);
}

#[test]
fn a_span_goes_with_a_stolen_half() {
    let pool = traced();
    let same = pool.clone();
    let task = pool.spawn(move || {
        expect_request("join", |it| {
            let (is_stolen, here) = (AtomicBool::new(false), thread::current().id());
            let first = || wait_for(|| is_stolen.load(SeqCst));
            let second = || {
                assert_ne!(thread::current().id(), here);
                note(&it);
                is_stolen.store(true, SeqCst);
            };
            same.join(first, second);
        });
    });
    done(task);
}

#[test]
fn a_span_goes_through_every_hop_of_queues_and_builders() {
    let fair = FairScheduler::builder(traced()).context(CurrentSpan).build();
    let (queue, group) = (&fair.queue("a").build().unwrap(), &TaskGroup::new());
    let any: Arc<dyn Executor> = Arc::new(queue.clone());
    let executors: [&dyn Executor; 5] = [queue, &fair, &any, &traced(), &Arc::new(traced())];
    for executor in executors {
        let task = || TaskBuilder::on(executor);
        expect_request("spawn", |it| done(task().spawn(move || note(&it))));
        expect_request("detached", |it| task().spawn_detached(move || note(&it)).unwrap());
        expect_request("group", |it| {
            task().group(group).spawn_detached(move || note(&it)).unwrap();
        });
        expect_request("without", |it| {
            let before = tracing::Span::current();
            let run = move || before.in_scope(|| note(&it));
            done(task().without_context().spawn(run));
        });
    }
    expect_request("spawn_batch", |it| queue.spawn_batch([move || note(&it)]).unwrap());
    expect_request("future", |it| done(queue.spawn_future(note_twice(it))));
    expect_request("any future", |it| done(spawn_future(any.clone(), note_twice(it))));
    let blocking = WorkQueue::on(queue.clone(), |it: mpsc::Sender<Name>, _| note(&it));
    expect_request("work queue", |it| done(blocking.push(it)));
    expect_request("work queue", |it| done(blocking.try_push(it).unwrap()));
    let asynchronous = WorkQueue::on_async(queue.clone(), |it, _| note_twice(it));
    expect_request("async work queue", |it| done(asynchronous.push(it)));
    // Called below on this thread, and within a task of the queue.
    let fork = |it: mpsc::Sender<Name>| {
        let meet_and_note = meeting(&it);
        queue.join(&meet_and_note, &meet_and_note);
        queue.scope(|scope| (0..3).for_each(|_| scope.spawn(|| note(&it))));
        queue.install(|| note(&it));
    };
    expect_request("fork", fork);
    expect_request("install", |it| queue.install(|| fork(it)));
    group.wait().unwrap();
}

#[test]
fn a_span_goes_through_every_hop_of_a_locked_pool_and_of_a_stepper() {
    noted();
    let (locked, flow) = (LockedPool::new(1).unwrap(), Flow::new(CurrentSpan));
    let task = || locked.task().context(&flow);
    expect_request("locked", |it| done(task().spawn(move || note(&it))));
    expect_request("locked, detached", |it| task().spawn_detached(move || note(&it)).unwrap());
    expect_request("locked, future", |it| done(task().spawn_future(note_twice(it))));
    let fair = FairScheduler::builder(locked).context(CurrentSpan).build();
    expect_request("over locked", |it| done(fair.spawn_future(note_twice(it))));

    let stepper = Stepper::new(1, 2);
    let fair = stepper.scheduler().context(CurrentSpan).build();
    expect_request("stepper", |it| {
        let task = fair.spawn(move || note(&it));
        stepper.run_until_idle();
        done(task);
    });
    expect_request("stepper, future", |it| {
        let mut polls = 0..2;
        let task = fair.spawn_future(poll_fn(move |context| {
            note(&it);
            context.waker().wake_by_ref();
            polls.next().map_or(Poll::Ready(()), |_| Poll::Pending)
        }));
        stepper.run_until_idle();
        done(task);
    });
}

/// The span of a future is closed before its handle reports the end, in whatever way it ends.
#[test]
fn the_span_of_a_future_is_closed_when_it_ends() {
    let (noted, fair) = (noted(), FairScheduler::over(ThreadPool::new(1).unwrap()));
    let queue = fair.queue("c").context(TaskSpan::of("c")).build().unwrap();
    let spawn = |request: &'static str, polls: u32| {
        let mut polls = 0..polls;
        let future = poll_fn(move |context| {
            assert_eq!(name_of_current(), Some("task"));
            context.waker().wake_by_ref();
            polls.next().map_or(Poll::Ready(()), |_| Poll::Pending)
        });
        tracing::info_span!("request of c", request).in_scope(|| queue.spawn_future(future))
    };
    let closed = || noted.1.lock().unwrap().iter().filter(|it| *it == "request of c").count();
    let cancel = |task: JoinHandle<()>| {
        task.cancel();
        assert!(task.join().unwrap_err().is_cancelled());
    };
    done(spawn("ready", 3));
    assert_eq!(closed(), 1, "ready");
    queue.pause();
    cancel(spawn("queued", 0));
    assert_eq!(closed(), 2, "queued");
    queue.resume();
    let asleep = tracing::info_span!("request of c").in_scope(|| queue.spawn_future(pending()));
    done(queue.task().without_context().spawn(|| ()));
    assert_eq!(closed(), 2, "it is asleep");
    cancel(asleep);
    assert_eq!(closed(), 3, "asleep");
    let yields = spawn("yields", u32::MAX);
    queue.cancel();
    assert!(yields.join().unwrap_err().is_cancelled());
    assert_eq!(closed(), 4, "with its queue");
}

#[test]
fn a_span_goes_with_the_jobs_of_a_group() {
    noted();
    let plain = ThreadPool::new(1).unwrap();
    let group = TaskGroup::new().in_context(CurrentSpan);
    let clone = group.clone();
    expect_request("job", |it| plain.execute(clone.job(move || note(&it))).unwrap());
    group.wait().unwrap();
    let flow = Flow::new(CurrentSpan);
    expect_request("builder", |it| {
        done(plain.task().context(&flow).spawn(move || note(&it)));
    });
}

#[test]
fn an_inline_half_enters_nothing() {
    static ENTERED: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });

    struct Counting;

    impl ContextFlow for Counting {
        type Snapshot = ();

        fn capture(&self) {}

        fn enter<R>((): (), run: impl FnOnce() -> R) -> R {
            ENTERED.fetch_add(1, SeqCst);
            DEPTH.set(DEPTH.get() + 1);
            let result = run();
            DEPTH.set(DEPTH.get() - 1);
            result
        }
    }

    let pool = ThreadPool::builder().num_threads(1).context(Counting).build().unwrap();
    let same = pool.clone();
    let task = pool.spawn(move || same.join(|| DEPTH.get(), || DEPTH.get()));
    assert_eq!(done(task), (1, 1));
    assert_eq!(ENTERED.load(SeqCst), 1, "that of the task");
}

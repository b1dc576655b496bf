//! Tests timelines: where and when each task ran, and the files that show it.

use filch::executor::{Inline, ThreadPerJob};
use filch::fair::FairScheduler;
use filch::task::{CancelToken, ContextFlow};
use filch::trace::{Record, Slice, Timeline};
use filch::{Executor, Job, ThreadPool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Barrier, mpsc};
use std::task::Poll;
use std::time::Duration;
use std::{mem, thread};

const MS: Duration = Duration::from_millis(1);

fn pool_of(threads: usize, timeline: &Timeline) -> ThreadPool {
    let builder = ThreadPool::builder().num_threads(threads);
    builder.context(timeline.record("pool")).build().unwrap()
}

fn named<'a>(slices: &'a [Slice], name: &str) -> Vec<&'a Slice> {
    slices.iter().filter(|it| &*it.name == name).collect()
}

/// Returns the timeline's trace events, as a viewer of the Chrome format reads them.
fn picture(timeline: &Timeline) -> Vec<Value> {
    let mut text = Vec::new();
    timeline.write_chrome(&timeline.take(), &mut text).unwrap();
    let picture: Value = serde_json::from_slice(&text).unwrap();
    picture["traceEvents"].as_array().unwrap().clone()
}

fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
    events.iter().filter(|it| it["ph"] == phase).collect()
}

#[test]
fn each_task_that_ran_is_a_slice_of_its_queue() {
    let timeline = Timeline::new();
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let [gold, free] = ["gold", "free"]
        .map(|name| fair.queue(name).context(timeline.record(name)).build().unwrap());
    let tasks: Vec<_> = (0..100)
        .flat_map(|i| [gold.spawn(move || i), free.spawn(move || i), fair.spawn(move || i)])
        .collect();
    tasks.into_iter().for_each(|it| _ = it.join().unwrap());
    fair.wait_idle().unwrap();

    let slices = timeline.take();
    assert_eq!([named(&slices, "gold").len(), named(&slices, "free").len()], [100, 100]);
    assert_eq!(slices.len(), 200, "the default queue has no context");
    assert!(slices.is_sorted_by_key(|it| it.began));
    for slice in &slices {
        assert!(slice.spawned <= Some(slice.began) && slice.began <= slice.ended, "{slice:?}");
    }
    assert!(timeline.take().is_empty(), "they were taken");
    assert_eq!(timeline.lost(), 0);
}

#[test]
fn polls_jobs_of_scopes_calls_of_broadcasts_and_stolen_halves_are_slices() {
    let timeline = Timeline::new();
    let pool = pool_of(2, &timeline);
    let slices = |what: &dyn Fn()| {
        what();
        pool.wait_idle().unwrap();
        timeline.take().len()
    };
    assert_eq!(slices(&|| pool.scope(|scope| (0..3).for_each(|_| scope.spawn(|| ())))), 3);
    assert_eq!(slices(&|| _ = pool.broadcast(|_| ()).unwrap()), 2);
    let yields = || {
        let mut is_first = true;
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            if mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
        })
    };
    assert_eq!(slices(&|| pool.spawn_future(yields()).join().unwrap()), 2);
    assert_eq!(slices(&|| pool.execute(Job::new(|| ())).unwrap()), 0);
    let both = Barrier::new(2);
    let meet = || _ = both.wait();
    assert_eq!(slices(&|| _ = pool.take_part(|| pool.join(meet, meet))), 1);
}

#[test]
fn what_a_thread_runs_is_disjoint_or_nested() {
    let timeline = Timeline::new();
    let pool = pool_of(2, &timeline);
    // A task may run the task that it joins inside its own slice.
    let outer: Vec<_> = (0..50)
        .map(|i| {
            let inner = pool.clone();
            pool.spawn(move || inner.spawn(move || i).join().unwrap())
        })
        .collect();
    outer.into_iter().for_each(|it| _ = it.join().unwrap());
    pool.wait_idle().unwrap();

    let slices = timeline.take();
    assert_eq!(slices.len(), 100);
    let mut open: BTreeMap<usize, Vec<&Slice>> = BTreeMap::new();
    for slice in &slices {
        let open = open.entry(slice.track).or_default();
        open.retain(|outer| outer.ended > slice.began);
        for outer in open.iter() {
            assert!(slice.ended <= outer.ended, "{slice:?} is half in {outer:?}");
        }
        open.push(slice);
    }
}

#[test]
fn a_panic_ends_a_slice_and_a_cancelled_task_has_none() {
    let timeline = Timeline::new();
    let pool = pool_of(1, &timeline);
    pool.spawn(|| panic!("as planned")).join().unwrap_err();
    let token = CancelToken::new();
    token.cancel();
    pool.task().token(&token).spawn(|| ()).join().unwrap_err();
    pool.wait_idle().unwrap();
    assert_eq!(timeline.take().len(), 1);
}

#[test]
fn a_worker_that_slept_shows() {
    let timeline = Timeline::new();
    let (asleep, falls_asleep) = mpsc::channel();
    let parks = timeline.parks();
    let pool = ThreadPool::builder()
        .num_threads(1)
        .context(timeline.record("pool"))
        .on_thread_park(move |index| {
            parks(index);
            asleep.send(()).unwrap();
        })
        .on_thread_unpark(timeline.unparks())
        .build()
        .unwrap();
    // A message may be from a sleep before the first task, so there are several rounds.
    for _ in 0..5 {
        pool.spawn(|| ()).join().unwrap();
        falls_asleep.recv().unwrap();
    }
    pool.spawn(|| ()).join().unwrap();
    pool.wait_idle().unwrap();

    let slices = timeline.take();
    let (ran, slept) = (named(&slices, "pool"), named(&slices, "asleep"));
    assert_eq!(ran.len(), 6);
    let is_between =
        |it: &Slice| ran.windows(2).any(|ran| it.began >= ran[0].ended && it.ended <= ran[1].began);
    let slept = slept.iter().find(|it| is_between(it)).expect("it slept between two tasks");
    assert_eq!((&*slept.thread, slept.spawned, slept.spawned_on), ("filch-0", None, None));
}

#[test]
fn threads_that_have_gone_are_remembered() {
    let timeline = Timeline::new();
    let fair = FairScheduler::builder(ThreadPerJob).context(timeline.record("all")).build();
    (0..4).for_each(|_| fair.spawn(|| ()).join().unwrap());
    fair.wait_idle().unwrap();
    assert_eq!(timeline.take().len(), 4);
}

#[test]
fn a_timeline_shows_no_task_of_another() {
    let first = Timeline::new();
    let pool = pool_of(1, &first);
    for _ in 0..3 {
        // Each new timeline uses the same threads, and perhaps the address of the previous one.
        let second = Timeline::new();
        let fair = FairScheduler::builder(pool.clone()).context(second.record("second")).build();
        fair.spawn(|| ()).join().unwrap();
        fair.wait_idle().unwrap();
        let slices = second.take();
        assert_eq!((slices.len(), &*slices[0].name), (1, "second"));
        assert_eq!(slices[0].spawned_on, Some(0), "the first track is the test's");
    }
    assert!(first.take().is_empty(), "tickets have no context");
}

#[test]
fn the_picture_is_what_chrome_reads() {
    const NAME: &str = "a \"queue\" \\ with\na \u{1}line and ünïcode";
    let timeline = Timeline::new();
    let fair = FairScheduler::over(ThreadPool::new(2).unwrap());
    let queue = fair.queue("odd").context(timeline.record(NAME)).build().unwrap();
    (0..20).for_each(|_| queue.spawn(|| ()).join().unwrap());
    fair.wait_idle().unwrap();

    let events = picture(&timeline);
    let tracks: Vec<&Value> = of_phase(&events, "M")
        .into_iter()
        .filter(|it| it["name"] == "thread_name")
        .map(|it| &it["tid"])
        .collect();
    let (tasks, starts, ends) =
        (of_phase(&events, "X"), of_phase(&events, "s"), of_phase(&events, "f"));
    assert_eq!([tasks.len(), starts.len(), ends.len()], [20; 3]);
    for task in &tasks {
        assert_eq!(task["name"], NAME);
        assert!(tracks.contains(&&task["tid"]));
        assert!(task["dur"].as_f64().unwrap() >= 0.0);
        assert!(task["args"]["waited_us"].as_f64().unwrap() >= 0.0);
    }
    for (start, end) in starts.iter().zip(&ends) {
        assert_eq!(start["id"], end["id"]);
        assert!(start["ts"].as_f64() <= end["ts"].as_f64());
    }
}

#[test]
fn what_is_beyond_the_capacity_is_counted() {
    let timeline = Timeline::with_capacity(10);
    let pool = pool_of(1, &timeline);
    (0..25).for_each(|_| pool.spawn(|| ()).join().unwrap());
    pool.wait_idle().unwrap();
    assert_eq!((timeline.take().len(), timeline.lost()), (10, 15));
    pool.spawn(|| ()).join().unwrap();
    pool.wait_idle().unwrap();
    assert_eq!(timeline.take().len(), 1, "there is room again");
}

#[test]
fn a_slice_is_as_long_as_its_task() {
    let timeline = Timeline::new();
    let pool = pool_of(1, &timeline);
    for _ in 0..2 {
        pool.spawn(|| thread::sleep(MS)).join().unwrap();
    }
    pool.wait_idle().unwrap();
    let slices = timeline.take();
    assert!(slices.iter().all(|it| it.ended - it.began >= MS), "{slices:?}");
    assert!(slices[0].ended <= slices[1].began, "{slices:?}");
}

/// Runs a task on this thread, in a queue whose context records into the timeline.
fn run_here(timeline: &Timeline) {
    let fair = FairScheduler::over(Inline);
    fair.queue("here")
        .context(timeline.record("here"))
        .build()
        .unwrap()
        .spawn_detached(|| ())
        .unwrap();
}

#[test]
fn a_timeline_where_another_has_been_begins_anew() {
    for _ in 0..50 {
        let timeline = Timeline::new();
        run_here(&timeline);
        assert_eq!(timeline.take().len(), 1);
    }
}

#[test]
fn a_thread_has_one_track_of_each_timeline() {
    let timelines = [Timeline::new(), Timeline::new()];
    for _ in 0..5 {
        drop(Timeline::new());
        timelines.iter().for_each(run_here);
    }
    for timeline in timelines {
        let slices = timeline.take();
        assert_eq!((slices.len(), slices.iter().map(|it| it.track).max()), (5, Some(0)));
    }
}

#[test]
fn a_context_may_be_called_asleep() {
    let timeline = Timeline::new();
    let builder = ThreadPool::builder().num_threads(1).context(timeline.record("asleep"));
    let pool = builder.on_thread_park(timeline.parks()).build().unwrap();
    pool.spawn(|| ()).join().unwrap();
    let slices = timeline.take();
    assert_eq!((slices.len(), &*slices[0].name), (1, "asleep"));
    assert!(slices[0].spawned.is_some(), "it is a task");
}

/// When a thread ends, the timeline keeps its slices, but frees the deque that held them.
#[test]
fn threads_that_have_ended_leave_no_more_than_they_have_recorded() {
    crate::common::alone::alone(|| {
        let timeline = Timeline::with_capacity(3);
        let context = timeline.record("short");
        let record = |slices: usize| {
            let context = &context;
            let thread = || (0..slices).for_each(|_| Record::enter(context.capture(), || ()));
            thread::scope(|scope| scope.spawn(thread).join().unwrap());
        };
        record(1);
        let before = crate::heap::total();
        let threads = 1000;
        (0..threads).for_each(|_| record(1));
        record(5);
        let left = crate::heap::total() - before;
        assert!(left < 250 * threads, "{left} bytes of {threads} threads");
        assert_eq!((timeline.take().len() as isize, timeline.lost()), (1 + threads + 3, 2));
        record(1);
        let slices = timeline.take();
        assert_eq!((slices.len(), slices[0].track as isize), (1, threads + 2));
    });
}

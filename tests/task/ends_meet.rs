//! Tests of ends of tasks, together with waits in destructors and wakers, and with panics that are
//! resumed or that a waker raises.

use crate::common::bomb::Bomb;
use crate::common::closures::keep_quiet;
use crate::common::waiting::{MINUTE, ended};
use crate::groups_meet::Held;
use filch::executor::{Executor, Inline, TaskBuilder, spawn_future};
use filch::task::{CancelToken, JoinError, TaskGroup, is_cancelled};
use filch::{FairScheduler, Job, JoinHandle, ThreadPool};
use futures_task::{FutureObj, Spawn};
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Instant;

/// A group keeps the payload of its member's panic. If a second task resumes the member's error,
/// that is a panic of the second task, and must be reported.
#[test]
fn a_members_panic_that_another_task_passes_on_is_told() {
    keep_quiet(&["expected"]);
    let of_member = || {
        let group = TaskGroup::new();
        let member = TaskBuilder::on(&Inline).group(&group).spawn(|| panic!("expected"));
        assert!(group.wait().unwrap_err().is_panic());
        let error: JoinError = ended::<()>(member).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the task panicked: what the panic carried is with the group"
        );
        error.into_panic()
    };
    let payload = of_member();
    let (job, handle) = Job::with_handle(move || resume_unwind(payload));
    drop::<JoinHandle<()>>(handle);
    assert!(catch_unwind(AssertUnwindSafe(|| job.run())).is_err());

    struct PassesOn(Option<Box<dyn std::any::Any + Send>>);
    impl Drop for PassesOn {
        fn drop(&mut self) {
            resume_unwind(self.0.take().unwrap())
        }
    }
    let output = PassesOn(Some(of_member()));
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("q").capacity(8).build().unwrap();
    drop(queue.spawn(move || output));
    queue.wait_idle().unwrap();
    assert_eq!((queue.metrics().panicked, queue.metrics().completed), (1, 0));
}

/// A detached task with a token or a deadline has a handle while it is spawned. Its panic must
/// still count as one that no handle gets.
#[test]
fn no_panic_of_a_detached_task_is_lost() {
    keep_quiet(&["expected"]);
    let (fair, token) = (FairScheduler::over(Inline), CancelToken::new());
    let queue = fair.queue("q").build().unwrap();
    let later = Instant::now() + MINUTE;
    queue.task().token(&token).spawn_detached(|| panic!("expected")).unwrap();
    queue.task().deadline(later).spawn_detached(|| panic!("expected")).unwrap();
    assert_eq!((queue.metrics().panicked, queue.metrics().completed), (2, 0));
}

/// A future without a handle panics within the call that spawns it. The panic handler must get it.
#[test]
fn no_panic_of_a_detached_future_is_lost() {
    struct Panics;

    impl Future for Panics {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            panic!("expected");
        }
    }

    keep_quiet(&["expected"]);
    let (says, hears) = mpsc::channel();
    let handler = move |payload| says.send(payload).unwrap();
    let fair = FairScheduler::builder(Inline).panic_handler(handler).build();
    let queue = fair.queue("q").build().unwrap();
    let future = Box::leak(Box::new(Panics)); // of no size, so nothing leaks
    Spawn::spawn_obj(&queue, FutureObj::new(future)).unwrap();
    assert_eq!((queue.metrics().panicked, queue.metrics().completed), (1, 0));
    assert_eq!(hears.try_recv().unwrap().downcast_ref(), Some(&"expected"));
}

/// A waker that panics when its last reference is dropped.
struct Goes(#[allow(dead_code)] Bomb);

impl Wake for Goes {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_handle_lets_go_though_its_waker_panics_as_it_goes() {
    keep_quiet(&["expected"]);
    for cancels in [true, false] {
        let output = Arc::new(());
        let same = Arc::clone(&output);
        let (job, handle) = Job::with_handle(move || same);
        let mut handle = if cancels { handle.cancel_on_drop() } else { handle };
        let waker = Waker::from(Arc::new(Goes(Bomb)));
        assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker); // the handle has the last one
        assert!(catch_unwind(AssertUnwindSafe(|| drop(handle))).is_err());
        assert_eq!(job.try_run(), !cancels);
        assert_eq!(Arc::strong_count(&output), 1);
    }
}

/// Its destructor joins the handle in the mutex. It sends whether the join was refused, and whether
/// the current task is cancelled.
struct Joins(Arc<Mutex<Option<JoinHandle<()>>>>, mpsc::Sender<(bool, bool)>);

impl Drop for Joins {
    fn drop(&mut self) {
        let own = self.0.lock().unwrap().take().unwrap();
        let is_refused = own.join().is_err_and(|it| it.is_deadlock());
        let _ = self.1.send((is_refused, is_cancelled()));
    }
}

#[test]
fn a_futures_destructor_that_joins_its_own_handle_is_refused() {
    let fair = FairScheduler::over(Inline);
    let executors: [Arc<dyn Executor>; 2] =
        [Arc::new(Inline), Arc::new(fair.queue("q").paused().build().unwrap())];
    for executor in executors {
        let (token, own, (says, hears)) = (CancelToken::new(), Arc::default(), mpsc::channel());
        let joins = Joins(Arc::clone(&own), says);
        let task = TaskBuilder::on(&executor).token(&token).spawn_future(async move {
            let _joins = joins;
            pending::<()>().await
        });
        *own.lock().unwrap() = Some(task);
        thread::spawn(move || token.cancel());
        assert_eq!(hears.recv_timeout(MINUTE).expect("it hangs"), (true, true));
    }
}

#[test]
fn who_awaits_a_cancelled_closure_may_wait_for_its_group() {
    let (held, group, token) = (Held::new(), TaskGroup::new(), CancelToken::new());
    let task = TaskBuilder::on(&held).group(&group).token(&token).spawn(|| ());
    let (says, hears) = mpsc::channel();
    let _waits = spawn_future(Inline, async move {
        assert!(task.await.is_err());
        says.send(group.wait().is_err()).unwrap();
    });
    thread::spawn(move || token.cancel());
    assert!(hears.recv_timeout(MINUTE).expect("it hangs"));
}

/// A waker that records whether the task in which it is called is cancelled.
struct Looks(AtomicBool);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.0.store(is_cancelled(), SeqCst);
    }
}

#[test]
fn a_waker_of_a_cancelled_closure_is_no_part_of_it() {
    let (job, mut handle) = Job::with_handle(|| ());
    let looks = Arc::new(Looks(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&looks));
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    let cancels = Job::with_handle(move || handle.cancel()).0;
    cancels.run();
    assert!(!looks.0.load(SeqCst));
    drop(job);
}

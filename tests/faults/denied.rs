//! Tests a system that denies threads `membarrier(2)`, the barrier that they need before they
//! sleep, or that denies further threads.

use crate::common::waiting::{done, in_a_minute};
use filch::ThreadPool;
use filch::executor::{Inline, Shutdown, spawn_future};
use filch::idle::EventCount;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Makes these system calls fail on this thread from now on. Returns whether that succeeded.
fn deny(calls: &[libc::c_long]) -> bool {
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let returns = |value| step((libc::BPF_RET | libc::BPF_K) as u16, 0, value);
    // Loads the number of the system call. If it is another call, the filter skips the next step
    // but one.
    let mut steps = vec![step((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0)];
    for &call in calls {
        let is_it = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        steps.push(step(is_it, 1, call as u32));
        steps.push(returns(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    steps.push(returns(libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: this call reads and writes no memory of the process.
    let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
    // SAFETY: the kernel copies the filter during the call.
    is_bound
        && unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
        } == 0
}

fn deny_barriers() -> bool {
    deny(&[libc::SYS_membarrier])
}

#[test]
fn a_prepare_that_is_denied_its_barrier_gives_its_place_back() {
    thread::spawn(|| {
        let events = EventCount::asymmetric();
        if !deny_barriers() {
            return println!("skipped: no filter for system calls here");
        }
        match catch_unwind(|| drop(events.prepare())) {
            Err(_) => {
                let shown = format!("{events:?}");
                assert!(
                    shown.contains("preparing: 0"),
                    "a thread counts that is not there: {shown}"
                );
            }
            Ok(()) => println!("skipped: no barriers of this kind here"),
        }
    })
    .join()
    .unwrap();
}

#[test]
fn a_cancel_that_is_denied_its_barrier_leaves_the_pool_to_the_next() {
    let pool = ThreadPool::new(1).unwrap();
    pool.spawn(|| ()).join().unwrap();
    let same = pool.clone();
    let cancels = move || catch_unwind(AssertUnwindSafe(|| same.shutdown(Shutdown::Cancel)));
    let ends = thread::spawn(move || !deny_barriers() || cancels().is_ok());
    if ends.join().unwrap() {
        println!("skipped: no barriers of this kind here, or no filter for system calls");
    }
    in_a_minute(move || pool.shutdown(Shutdown::Cancel).unwrap());
}

/// A thread drops the pool's only worker, and needs a barrier before it drops the queued jobs.
#[test]
fn a_dropped_worker_that_is_denied_its_barrier_leaves_the_pool() {
    let mut mine = None;
    let pool = ThreadPool::builder().num_threads(1).build_with(|worker| {
        mine = Some(worker);
        Ok(())
    });
    let pool = pool.unwrap();
    let left = pool.spawn(|| ());
    let drops = move || catch_unwind(AssertUnwindSafe(|| drop(mine)));
    let ends = thread::spawn(move || !deny_barriers() || drops().is_ok());
    if ends.join().unwrap() {
        println!("skipped: no barriers of this kind here, or no filter for system calls");
    }
    in_a_minute(move || {
        pool.shutdown(Shutdown::Drain).unwrap();
        pool.wait_idle().unwrap();
        assert!(left.join().unwrap_err().is_cancelled());
    });
}

/// The owner of a `join` waits for the second closure, which runs on another thread. The system
/// denies the owner the barrier before its sleep, so the wait panics. If this panic unwound the
/// owner's frame, the second closure would use freed stack memory. So the process must end.
#[test]
fn a_panic_that_would_leave_a_join_behind_ends_the_process() {
    if std::env::var_os("FILCH_DENIED").is_some() {
        let pool = ThreadPool::new(2).unwrap();
        let same = pool.clone();
        let joins = move || {
            let begun = AtomicBool::new(false);
            let first = || {
                while !begun.load(SeqCst) {
                    thread::yield_now();
                }
            };
            let other = || {
                begun.store(true, SeqCst);
                thread::sleep(Duration::from_secs(2));
            };
            if deny_barriers() {
                same.join(first, other);
            }
        };
        if pool.spawn(joins).join().is_ok() {
            println!("skipped: no barriers of this kind here, or no filter for system calls");
        }
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "denied::a_panic_that_would_leave_a_join_behind_ends_the_process"]);
    let output = child.arg("--nocapture").env("FILCH_DENIED", "1").output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_aborted = output.status.code().is_none() && err.contains("a wait cannot be left");
    assert!(is_aborted || out.contains("skipped"), "{out}\n{err}");
}

/// The pool cannot start a second thread. While it tries, the first thread falls asleep. Then the
/// failure makes the pool idle, and a future that awaits this goes on on the thread that tried. The
/// future waits for the pool's end.
#[test]
fn a_future_waits_for_the_end_of_a_pool_that_starts_no_thread() {
    in_a_minute(|| {
        let pool = ThreadPool::new(1).unwrap();
        done(pool.spawn(|| ()));
        if !deny(&[libc::SYS_clone, libc::SYS_clone3]) || pool.resize(2).is_ok() {
            return println!("skipped: no filter for system calls here");
        }
        let (here, start) = (thread::current().id(), Instant::now());
        let tries = Arc::new(AtomicBool::new(false));
        for round in 0.. {
            let until = Instant::now() + Duration::from_micros(round % 200);
            pool.spawn_detached(move || while Instant::now() < until {}).unwrap();
            let (drained, same, is_trying) = (pool.drained(), pool.clone(), Arc::clone(&tries));
            let future = spawn_future(Inline, async move {
                drained.await;
                let is_told_here = is_trying.load(SeqCst) && thread::current().id() == here;
                is_told_here.then(|| same.shutdown(Shutdown::Drain))
            });
            tries.store(true, SeqCst);
            let _ = pool.resize(2);
            tries.store(false, SeqCst);
            if let Some(ended) = done(future) {
                return ended.unwrap();
            }
            if start.elapsed() > Duration::from_secs(20) {
                return println!("skipped: no thread fell asleep at the right moment");
            }
        }
    });
}

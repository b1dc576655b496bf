//! Tests of pools that rayon's own tests leave out.

use rayon::prelude::*;
use rayon_core::{ThreadPoolBuilder, Yield};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;

/// The pool ends when its last job has ended, also one that a job has spawned.
#[test]
fn what_was_spawned_runs_after_the_handle_is_dropped() {
    for threads in [1, 3] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (sender, inbox) = channel();
        pool.spawn(move || {
            let more = sender.clone();
            rayon_core::spawn(move || {
                rayon_core::spawn_fifo(move || {
                    more.send((0..100).into_par_iter().count()).unwrap()
                });
            });
            rayon_core::spawn_broadcast(move |context| sender.send(context.index()).unwrap());
        });
        drop(pool);
        assert_eq!(inbox.iter().count(), threads + 1);
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    let started = Arc::new(AtomicUsize::new(0));
    let ended = started.clone();
    let result = ThreadPoolBuilder::new()
        .num_threads(3)
        .spawn_handler(|thread| {
            if thread.index() == 2 {
                return Err(io::Error::other("no third"));
            }
            let ended = ended.clone();
            std::thread::spawn(move || {
                thread.run();
                ended.fetch_add(1, SeqCst);
            });
            Ok(())
        })
        .build();
    assert_eq!(result.unwrap_err().to_string(), "no third");
    while started.load(SeqCst) < 2 {
        std::thread::yield_now();
    }
}

#[test]
fn a_thread_that_never_runs_leaves_the_others() {
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .spawn_handler(|thread| {
            if thread.index() == 0 {
                std::thread::spawn(|| thread.run());
            }
            Ok(())
        })
        .build()
        .unwrap();
    assert_eq!(pool.install(|| (0..1000).into_par_iter().count()), 1000);
}

/// Pools of one thread that wait for each other, in a circle, with scopes and broadcasts between.
#[test]
fn pools_that_wait_for_each_other_come_to_an_end() {
    let pools = [0, 1, 2].map(|_| ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let counter = AtomicUsize::new(0);
    pools[0].install(|| {
        pools[1].install(|| {
            pools[2].scope(|scope| {
                scope.spawn(|_| {
                    pools[0].broadcast(|_| counter.fetch_add(1, SeqCst));
                    pools[1].install(|| pools[0].install(|| counter.fetch_add(1, SeqCst)));
                });
                scope.spawn_broadcast(|_, _| {
                    _ = pools[1].join(|| counter.fetch_add(1, SeqCst), || ())
                });
            });
        });
    });
    assert_eq!(counter.into_inner(), 3);
}

#[test]
fn a_worker_that_yields_runs_any_job() {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let (sender, inbox) = channel();
        rayon_core::spawn(move || sender.send(7).unwrap());
        assert_eq!(rayon_core::current_thread_has_pending_tasks(), Some(true));
        assert_eq!(rayon_core::yield_local(), Some(Yield::Executed));
        assert_eq!(inbox.recv(), Ok(7));
        assert_eq!(rayon_core::yield_now(), Some(Yield::Idle));
    });
    assert_eq!(rayon_core::yield_now(), None);
}

/// A worker that tries to run another worker fails, and goes on as what it was.
#[test]
fn a_worker_that_cannot_be_another_stays_what_it_was() {
    let outer = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let index = outer.install(|| {
        let tried = std::panic::catch_unwind(|| {
            ThreadPoolBuilder::new()
                .num_threads(1)
                .spawn_handler(|thread| {
                    thread.run();
                    Ok(())
                })
                .build()
                .map(drop)
        });
        assert!(tried.is_err());
        rayon_core::current_thread_index()
    });
    assert_eq!(index, Some(0));
}

#[test]
fn the_current_thread_is_a_worker_that_runs_jobs_in_its_waits() {
    // On a thread of its own, which stays in the pool.
    let thread = std::thread::spawn(|| {
        let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
        assert_eq!(rayon_core::current_thread_index(), Some(0));
        assert_eq!(pool.install(|| (0..1000).into_par_iter().sum::<usize>()), 499_500);
        assert_eq!(rayon_core::broadcast(|context| context.index()), [0]);
        let (sender, inbox) = channel();
        pool.spawn(move || sender.send(rayon_core::current_thread_index()).unwrap());
        assert!(inbox.try_recv().is_err(), "nothing runs by itself");
        assert_eq!(rayon_core::yield_now(), Some(Yield::Executed));
        assert_eq!(inbox.recv().unwrap(), Some(0));
        let again = ThreadPoolBuilder::new().num_threads(2).use_current_thread().build();
        let error = again.unwrap_err().to_string();
        assert_eq!(error, "The current thread is already part of another thread pool.");
        let other = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        assert_eq!(other.install(|| (0..1000).into_par_iter().count()), 1000);
        drop(pool);
        assert_eq!((0..1000).into_par_iter().count(), 1000);
    });
    thread.join().unwrap();
}

//! Models of how a scope ends: its owner waits, and other threads run the last of its jobs.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `JOINED` | `end`, `is_over` | `the_owner_sees_what_the_jobs_did_and_then_takes_the_frame_down` |

use crate::common::{Bound::*, model, spawn};
use filch::idle::{Park, ThreadPark};
use filch::pool::for_models::Countdown;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::Mutex;
use std::task::Waker;

/// The data of a scope on its owner's stack, which jobs on other threads use.
#[derive(Default)]
struct Frame {
    countdown: Countdown,
    bell: Mutex<Option<Waker>>,
    /// The jobs read it, and the owner writes it when it takes the frame down.
    frame: UnsafeCell<()>,
    /// The result of each job.
    results: [UnsafeCell<u32>; 3],
}

// SAFETY: loom checks every access.
unsafe impl Sync for Frame {}
// SAFETY: loom checks every access.
unsafe impl Send for Frame {}

/// Runs a job on a thread other than the owner's. The last job wakes the owner if that waits.
fn run(frame: &Frame, job: usize) {
    // SAFETY: loom reports an access that is not ordered with this one.
    frame.results[job].with_mut(|it| unsafe { *it += 1 });
    let bell = || {
        // The thread that has the last of the jobs still has the frame.
        frame.frame.with(|_| ());
        frame.bell.lock().unwrap().clone()
    };
    frame.frame.with(|_| ());
    if let Some(bell) = frame.countdown.end(bell) {
        bell.expect("the owner has left it before").wake();
    }
}

/// Waits as the owner does: sleeps while jobs are left, and then takes the frame down.
fn wait(frame: &Frame) {
    let mut park = ThreadPark::new();
    if !frame.countdown.is_over() {
        *frame.bell.lock().unwrap() = Some(park.unparker());
        frame.countdown.call();
        while !frame.countdown.is_over() {
            park.park(None);
        }
    }
    frame.frame.with_mut(|_| ());
}

fn sum(frame: &Frame) -> u32 {
    // SAFETY: loom reports an access that is not ordered with this one.
    frame.results.iter().map(|it| it.with(|it| unsafe { *it })).sum()
}

#[test]
fn the_owner_sees_what_the_jobs_did_and_then_takes_the_frame_down() {
    let name = "the_owner_sees_what_the_jobs_did_and_then_takes_the_frame_down";
    model(name, Preemptions(3), || {
        let frame = Arc::new(Frame::default());
        (0..2).for_each(|_| frame.countdown.add_own());
        let thieves = [0, 1].map(|job| {
            let same = frame.clone();
            spawn(move || run(&same, job))
        });
        // The third job is run by the owner itself.
        frame.countdown.add_own();
        // SAFETY: loom reports an access that is not ordered with this one.
        frame.results[2].with_mut(|it| unsafe { *it += 1 });
        frame.countdown.end_own();
        wait(&frame);
        assert_eq!(sum(&frame), 3);
        thieves.into_iter().for_each(|it| it.join().unwrap());
    });
}

/// A job that has been stolen spawns another on its thread, which a third thread may steal.
#[test]
fn what_a_job_spawns_is_waited_for() {
    model("what_a_job_spawns_is_waited_for", Preemptions(3), || {
        let frame = Arc::new(Frame::default());
        frame.countdown.add_own();
        let same = frame.clone();
        let thief = spawn(move || {
            same.countdown.add();
            let again = same.clone();
            let other = spawn(move || run(&again, 1));
            run(&same, 0);
            drop(same);
            other.join().unwrap();
        });
        wait(&frame);
        assert_eq!(sum(&frame), 2);
        thief.join().unwrap();
    });
}

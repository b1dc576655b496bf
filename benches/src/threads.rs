//! Scenarios of the deque with a second thread. The host decides which cores the two threads have,
//! so compare within one run only, and look at [`round_trip`] too.

use crate::contenders::{Deque, Thief};
use crate::items::Item;
use crate::scenarios::Run;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Pushes all items, and then measures a thief on another thread that steals them. The owner waits
/// meanwhile.
pub fn drain<T: Item, D: Deque<T>>(deque: D) -> Run {
    Box::new(move |items| {
        (0..items as usize).for_each(|it| deque.push(T::make(it)));
        let thief = deque.thief();
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut taken = 0;
            while taken < items {
                taken += u64::from(black_box(thief.steal()).is_some());
            }
            start.elapsed()
        });
        (thread.join().expect("the thief"), items)
    })
}

/// Measures an owner that repeatedly pushes 64 items and pops until the deque is empty. Meanwhile a
/// thief steals without pause. If the thief has stolen no item, the number of items is zero.
pub fn under_attack<T: Item, D: Deque<T>>(deque: D) -> Run {
    Box::new(move |items| {
        let thief = deque.thief();
        let (stop, barrier) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
        let (seen, begin) = (stop.clone(), barrier.clone());
        let thread = thread::spawn(move || {
            begin.wait();
            let mut has_stolen = false;
            while !seen.load(Relaxed) {
                has_stolen |= black_box(thief.steal()).is_some();
            }
            has_stolen
        });
        barrier.wait();
        let rounds = items.div_ceil(64);
        let start = Instant::now();
        for _ in 0..rounds {
            (0..64).for_each(|it| deque.push(black_box(T::make(it))));
            while black_box(deque.pop()).is_some() {}
        }
        let time = start.elapsed();
        stop.store(true, Relaxed);
        let has_stolen = thread.join().expect("the thief");
        (time, if has_stolen { 64 * rounds } else { 0 })
    })
}

/// Measures how long a cache line takes to the other core and back.
#[must_use]
pub fn round_trip() -> Duration {
    const TRIPS: usize = 20_000;
    let line = Arc::new(AtomicUsize::new(0));
    let theirs = line.clone();
    let thread = thread::spawn(move || {
        for trip in 0..TRIPS {
            while theirs.load(Acquire) != 2 * trip + 1 {
                spin_loop();
            }
            theirs.store(2 * trip + 2, Release);
        }
    });
    let start = Instant::now();
    for trip in 0..TRIPS {
        line.store(2 * trip + 1, Release);
        while line.load(Acquire) != 2 * trip + 2 {
            spin_loop();
        }
    }
    let time = start.elapsed();
    thread.join().expect("the other end");
    time / TRIPS as u32
}

/// Runs `f` on a thread that stays on the CPU `cpu`. Threads that `f` starts stay there too.
///
/// # Panics
///
/// Panics if the system refuses to bind the thread to that CPU, or if `f` panics.
pub fn pinned<R: Send + 'static>(cpu: usize, f: impl FnOnce() -> R + Send + 'static) -> R {
    let body = move || {
        // SAFETY: a `cpu_set_t` is a mask of bits, and all zero is the valid empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is a local variable, so no other thread uses it.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: the call reads `size_of_val(&set)` bytes from `set`, which is that large.
        let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
        assert_eq!(result, 0, "this thread cannot be pinned to CPU {cpu}");
        f()
    };
    std::thread::spawn(body).join().expect("the pinned thread does not panic")
}

/// Returns the processor time that the process has used so far, on all CPUs.
#[must_use]
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec` to `time`, which is one.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0, "the process's clock can be read");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

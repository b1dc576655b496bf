//! Tests the jobs that a pool refuses, and its errors.

use crate::common::SANITIZED;
use crate::common::waiting::done;
use filch::executor::{Reason, Shutdown};
use filch::{Executor, ThreadPool};
use std::process::Command;
use std::{env, io, thread};

/// Systems take names of threads as strings that end at the first zero byte.
#[test]
fn a_name_with_a_zero_byte_is_refused_when_the_pool_is_made() {
    let error = ThreadPool::builder().thread_name("a\0b").build().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("zero byte"));
}

#[test]
fn nobody_is_there_for_a_broadcast_of_a_closed_pool() {
    let (used, unused) = (ThreadPool::new(2).unwrap(), ThreadPool::new(2).unwrap());
    assert_eq!(used.broadcast(|index| index).unwrap().len(), 2);
    for pool in [used, unused] {
        pool.shutdown(Shutdown::Drain).unwrap();
        assert_eq!(pool.broadcast(|index| index).unwrap_err(), Reason::Closed);
    }
    let builder = ThreadPool::builder().num_threads(1).stack_size(usize::MAX / 8 * 7);
    let none = builder.build().unwrap();
    assert_eq!(none.broadcast(|index| index).unwrap_err(), Reason::Full);
}

/// The test starts itself with little address space. There the pool gets one to three of its four
/// threads, and the others once `room` is free.
#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
fn a_pool_that_got_too_few_threads_asks_for_the_others_again() {
    if SANITIZED {
        return; // a sanitizer reserves terabytes of address space
    }
    if env::var_os("FILCH_LITTLE_ROOM").is_none() {
        let test = thread::current().name().unwrap().to_owned();
        let test = if test == "main" { env::args().next_back().unwrap() } else { test };
        let limited = "ulimit -v 5000000; exec \"$0\" --exact \"$1\" --test-threads=1";
        let mut child = Command::new("sh");
        child.arg("-c").arg(limited).arg(env::current_exe().unwrap()).arg(test);
        let output = child.env("FILCH_LITTLE_ROOM", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(" 1 passed"), "{text}");
        return;
    }
    let room: Vec<u8> = std::hint::black_box(Vec::with_capacity(3_000_000_000));
    let pool = ThreadPool::builder().num_threads(4).stack_size(700_000_000).build().unwrap();
    done(pool.spawn(|| ()));
    let few = pool.metrics().num_workers;
    assert!((1..4).contains(&few), "{few} threads");
    drop(room);
    done(pool.spawn(|| ()));
    assert_eq!(pool.metrics().num_workers, 4);
    assert_eq!(pool.broadcast(|index| index).unwrap().len(), pool.parallelism().get());
}

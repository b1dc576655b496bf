//! Scenarios of threads that wait. Trees whose leaves sleep have several shapes, and fork by
//! `join`, scopes or handles. Other rows are scopes of many jobs and of two. The rival is rayon.

use crate::pools::{Filch, Pool, Rayon};
use crate::scenarios::{Run, Scenario};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The leaves of a tree for each worker of the pool.
const LEAVES: u64 = 6;

/// How a branch waits for its two halves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Join,
    Scope,
    Handles,
}

/// How leaves are split in two. The smaller part is one `skew`-th of them, but at least one leaf.
#[derive(Clone, Copy)]
struct Shape {
    skew: u64,
    is_large_first: bool,
}

impl Shape {
    fn parts(self, leaves: u64) -> (u64, u64) {
        let small = (leaves / self.skew).max(1);
        if self.is_large_first { (leaves - small, small) } else { (small, leaves - small) }
    }
}

fn leaf() {
    thread::sleep(Duration::from_millis(1));
}

fn filch_tree(pool: &filch::ThreadPool, form: Form, shape: Shape, leaves: u64) {
    if leaves == 1 {
        return leaf();
    }
    let (a, b) = shape.parts(leaves);
    let half = |leaves| move || filch_tree(pool, form, shape, leaves);
    match form {
        Form::Join => _ = pool.join(half(a), half(b)),
        Form::Scope => pool.scope(|scope| {
            scope.spawn(half(a));
            scope.spawn(half(b));
        }),
        Form::Handles => {
            let same = pool.clone();
            let second = pool.spawn(move || filch_tree(&same, form, shape, b));
            filch_tree(pool, form, shape, a);
            second.join().expect("no panic");
        }
    }
}

fn rayon_tree(form: Form, shape: Shape, leaves: u64) {
    if leaves == 1 {
        return leaf();
    }
    let (a, b) = shape.parts(leaves);
    let half = |leaves| move || rayon_tree(form, shape, leaves);
    if form == Form::Scope {
        rayon::scope(|scope| {
            scope.spawn(move |_| half(a)());
            scope.spawn(move |_| half(b)());
        });
    } else {
        rayon::join(half(a), half(b));
    }
}

/// Returns filch's pool and rayon's with `threads` threads. All rows share them.
fn pools(threads: usize) -> (Filch, Rayon) {
    static POOLS: Mutex<BTreeMap<usize, (Filch, Rayon)>> = Mutex::new(BTreeMap::new());
    let mut pools = POOLS.lock().expect("no panic");
    pools.entry(threads).or_insert_with(|| (Filch::new(threads), Rayon::new(threads))).clone()
}

/// Waits until the threads of the other pool sleep, and then runs. After the last job of a tree,
/// rayon's 64 threads use 6 ms of processor time within 3 ms. filch's use 0.1 ms.
fn settled(mut run: Run) -> Run {
    Box::new(move |items| {
        thread::sleep(Duration::from_millis(5));
        run(items)
    })
}

/// Returns a run that times `f` on a worker of filch's pool.
fn in_filch(threads: usize, f: impl Fn(&filch::ThreadPool) + Send + Sync + 'static) -> Run {
    let (pool, f) = (pools(threads).0.0, Arc::new(f));
    Box::new(move |items| {
        let (same, f) = (pool.clone(), Arc::clone(&f));
        let time = pool.spawn(move || {
            let start = Instant::now();
            f(&same);
            start.elapsed()
        });
        (time.join().expect("no panic"), items)
    })
}

fn in_rayon(threads: usize, f: impl Fn() + Send + Sync + 'static) -> Run {
    let pool = pools(threads).1.0;
    Box::new(move |items| {
        let time = pool.install(|| {
            let start = Instant::now();
            f();
            start.elapsed()
        });
        (time, items)
    })
}

fn row(name: String, goal: f64, items: u64, filch: Run, rayon: Run) -> (Scenario, &'static str) {
    let contenders = vec![("filch", filch), ("rayon", rayon)];
    // The name is leaked, and so lasts as long as the process, like the pools.
    (Scenario { name: name.leak(), goal, items, contenders }, "rayon")
}

fn tree(form: Form, threads: usize, shape: Shape, name: &str) -> (Scenario, &'static str) {
    let leaves = LEAVES * threads as u64;
    let form_name = match form {
        Form::Join => "join",
        Form::Scope => "scope",
        Form::Handles => "handles",
    };
    row(
        format!("{name}, {threads} workers, {form_name}"),
        1.05,
        leaves,
        settled(in_filch(threads, move |pool| filch_tree(pool, form, shape, leaves))),
        settled(in_rayon(threads, move || rayon_tree(form, shape, leaves))),
    )
}

/// Returns every scenario, each with the rival of its goal.
#[must_use]
pub fn all() -> Vec<(Scenario, &'static str)> {
    let mut rows = Vec::new();
    for threads in [1, 2] {
        rows.push(spawns(threads));
        rows.push(scopes_of_two(threads));
    }
    for threads in [4, 16, 64] {
        for form in [Form::Join, Form::Scope, Form::Handles] {
            for (skew, name) in [(2, "1:1"), (3, "1:2"), (8, "1:7"), (u64::MAX, "chain")] {
                for (is_large_first, order) in [(true, "large first"), (false, "large last")] {
                    let shape = Shape { skew, is_large_first };
                    rows.push(tree(form, threads, shape, &format!("tree {name}, {order}")));
                }
            }
        }
    }
    rows
}

/// Measures one scope of 20,000 jobs.
fn spawns(threads: usize) -> (Scenario, &'static str) {
    const JOBS: u64 = 20_000;
    let filch = in_filch(threads, |pool| {
        let sum = AtomicU64::new(0);
        pool.scope(|scope| {
            (0..JOBS).for_each(|_| scope.spawn(|| _ = sum.fetch_add(1, Relaxed)));
        });
        assert_eq!(sum.into_inner(), JOBS);
    });
    let rayon = in_rayon(threads, || {
        let sum = AtomicU64::new(0);
        rayon::scope(|scope| {
            (0..JOBS).for_each(|_| scope.spawn(|_| _ = sum.fetch_add(1, Relaxed)));
        });
        assert_eq!(sum.into_inner(), JOBS);
    });
    row(format!("scope.spawn, {threads} workers"), 0.8, JOBS, filch, rayon)
}

/// Measures fib 20, in which each branch is a scope of two jobs.
fn scopes_of_two(threads: usize) -> (Scenario, &'static str) {
    const N: u32 = 20;
    const SCOPES: u64 = 10_945;

    fn with_filch(pool: &filch::ThreadPool, n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (mut a, mut b) = (0, 0);
        pool.scope(|scope| {
            scope.spawn(|| a = with_filch(pool, n - 1));
            scope.spawn(|| b = with_filch(pool, n - 2));
        });
        a + b
    }
    fn with_rayon(n: u32) -> u32 {
        if n < 2 {
            return n;
        }
        let (mut a, mut b) = (0, 0);
        rayon::scope(|scope| {
            scope.spawn(|_| a = with_rayon(n - 1));
            scope.spawn(|_| b = with_rayon(n - 2));
        });
        a + b
    }
    let filch = in_filch(threads, |pool| assert_eq!(with_filch(pool, N), 6765));
    let rayon = in_rayon(threads, || assert_eq!(with_rayon(N), 6765));
    row(format!("scope of two, {threads} workers"), 0.7, SCOPES, filch, rayon)
}

//! Random programs of rayon's calls: each part of a program runs once, and the program ends.
//!
//! `FILCH_SOAK_SECONDS` sets how long they run (1 s by default), and `FILCH_SEED` the first seed.

mod common;

use common::pool;
use filch::fair::{FairScheduler, Queue};
use rayon::prelude::*;
use rayon_core::ThreadPool;
use std::fmt::Debug;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{env, process, thread};

/// A part of a program; the number is that of its effect.
#[derive(Debug)]
enum Part {
    Leaf(usize),
    Join(Box<[Part; 2]>),
    Scope(Vec<Part>),
    ScopeFifo(Vec<Part>),
    InPlace(Vec<Part>),
    Iterator(Vec<Part>),
    Spawn(Box<Part>),
    SpawnFifo(Box<Part>),
    /// On each thread of the pool.
    Broadcast(usize),
    ScopeBroadcast(usize),
    SpawnBroadcast(usize),
    Yield(usize),
    /// On another pool, or the same.
    Install(usize, Box<Part>),
    /// The panic of one half, or job, is caught outside; the other runs.
    Panic(Box<Part>),
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// What programs are made of: where they run, and the numbers that are left.
struct Maker {
    random: Random,
    pools: usize,
    effects: usize,
}

impl Maker {
    fn effect(&mut self) -> usize {
        self.effects += 1;
        self.effects - 1
    }

    fn parts(&mut self, depth: usize) -> Vec<Part> {
        (0..self.random.below(4)).map(|_| self.part(depth)).collect()
    }

    fn part(&mut self, depth: usize) -> Part {
        if depth == 0 {
            return Part::Leaf(self.effect());
        }
        let inner = depth - 1;
        match self.random.below(if self.pools > 1 { 15 } else { 13 }) {
            0 | 1 => Part::Join(Box::new([self.part(inner), self.part(inner)])),
            2 => Part::Scope(self.parts(inner)),
            3 => Part::ScopeFifo(self.parts(inner)),
            4 => Part::InPlace(self.parts(inner)),
            5 => Part::Iterator(self.parts(inner)),
            6 => Part::Spawn(Box::new(self.part(inner))),
            7 => Part::SpawnFifo(Box::new(self.part(inner))),
            8 => Part::Broadcast(self.effect()),
            9 => Part::ScopeBroadcast(self.effect()),
            10 => Part::SpawnBroadcast(self.effect()),
            11 => Part::Yield(self.effect()),
            12 => Part::Panic(Box::new(self.part(inner))),
            _ => Part::Install(self.random.below(self.pools), Box::new(self.part(inner))),
        }
    }
}

/// Where a program runs.
struct World {
    pools: Vec<ThreadPool>,
    /// How often each effect has happened, and what it should be, once it is known.
    effects: Vec<[AtomicUsize; 2]>,
    /// Detached jobs.
    pending: AtomicUsize,
}

impl World {
    fn happens(&self, effect: usize, times: usize) {
        self.effects[effect][1].store(times, SeqCst);
        self.effects[effect][0].fetch_add(1, SeqCst);
    }

    fn spawned(self: &Arc<Self>, part: Box<Part>) -> impl FnOnce() + Send + 'static {
        self.pending.fetch_add(1, SeqCst);
        let world = self.clone();
        move || {
            world.run(*part);
            world.pending.fetch_sub(1, SeqCst);
        }
    }

    fn run(self: &Arc<Self>, part: Part) {
        match part {
            Part::Leaf(effect) => self.happens(effect, 1),
            Part::Join(halves) => {
                let [a, b] = *halves;
                rayon_core::join(|| self.run(a), || self.run(b));
            }
            Part::Scope(parts) => rayon_core::scope(|scope| {
                parts.into_iter().for_each(|part| scope.spawn(|_| self.run(part)));
            }),
            Part::ScopeFifo(parts) => rayon_core::scope_fifo(|scope| {
                parts.into_iter().for_each(|part| scope.spawn_fifo(|_| self.run(part)));
            }),
            Part::InPlace(parts) => rayon_core::in_place_scope(|scope| {
                for part in parts {
                    // One that spawns the next.
                    scope.spawn(|scope| scope.spawn(|_| self.run(part)));
                }
            }),
            Part::Iterator(parts) => {
                parts.into_par_iter().with_max_len(1).for_each(|part| self.run(part));
            }
            Part::Spawn(part) => rayon_core::spawn(self.spawned(part)),
            Part::SpawnFifo(part) => rayon_core::spawn_fifo(self.spawned(part)),
            Part::Broadcast(effect) => {
                rayon_core::broadcast(|context| self.happens(effect, context.num_threads()));
            }
            Part::ScopeBroadcast(effect) => rayon_core::scope(|scope| {
                scope.spawn_broadcast(|_, context| self.happens(effect, context.num_threads()));
            }),
            Part::SpawnBroadcast(effect) => {
                let world = self.clone();
                let threads = rayon_core::current_num_threads();
                self.pending.fetch_add(threads, SeqCst);
                rayon_core::spawn_broadcast(move |context| {
                    assert_eq!(context.num_threads(), threads);
                    world.happens(effect, threads);
                    world.pending.fetch_sub(1, SeqCst);
                });
            }
            Part::Yield(effect) => {
                rayon_core::yield_now();
                rayon_core::yield_local();
                self.happens(effect, 1);
            }
            Part::Install(pool, part) => self.pools[pool].install(|| self.run(*part)),
            Part::Panic(part) => {
                let halves =
                    || rayon_core::join(|| panic::resume_unwind(Box::new(7)), || self.run(*part));
                let payload = panic::catch_unwind(AssertUnwindSafe(halves)).map(|((), ())| ());
                assert_eq!(payload.unwrap_err().downcast_ref(), Some(&7));
            }
        }
    }

    fn check(&self) {
        while self.pending.load(SeqCst) > 0 {
            thread::yield_now();
        }
        for (effect, counts) in self.effects.iter().enumerate() {
            let [times, wanted] = counts.each_ref().map(|it| it.load(SeqCst));
            assert_eq!(times, wanted, "effect {effect}");
            assert!(times > 0, "effect {effect} has not happened");
        }
    }
}

/// Ends the process, with the program, if that does not end.
fn watched(seed: u64, program: &dyn Debug, f: impl FnOnce()) {
    let (sender, inbox) = mpsc::channel::<()>();
    let said = format!("seed {seed}: {program:#?}");
    let dog = thread::spawn(move || {
        if inbox.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("does not end: {said}");
            process::abort();
        }
    });
    f();
    drop(sender);
    dog.join().unwrap();
}

fn for_a_while(mut test: impl FnMut(u64)) {
    let number = |name: &str, usual: u64| env::var(name).map_or(usual, |it| it.parse().unwrap());
    let (seconds, seed) = (number("FILCH_SOAK_SECONDS", 1), number("FILCH_SEED", 1));
    let start = Instant::now();
    (seed..).take_while(|_| start.elapsed() < Duration::from_secs(seconds)).for_each(&mut test);
}

fn make(seed: u64, pools: usize) -> (Part, usize, Random) {
    let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut maker = Maker { random, pools, effects: 0 };
    for _ in 0..9 {
        maker.random.below(2);
    }
    let depth = 1 + maker.random.below(6);
    (maker.part(depth), maker.effects, maker.random)
}

fn world(pools: Vec<ThreadPool>, effects: usize) -> Arc<World> {
    let effects = (0..effects).map(|_| Default::default()).collect();
    Arc::new(World { pools, effects, pending: AtomicUsize::new(0) })
}

#[test]
fn programs_lose_no_effect_on_pools_that_wait_for_each_other() {
    for_a_while(|seed| {
        let (program, effects, mut random) = make(seed, 3);
        let pools = (0..3).map(|_| pool(1 + random.below(3))).collect();
        watched(seed, &format!("{program:?}"), || {
            let world = world(pools, effects);
            world.pools[0].install(|| world.run(program));
            world.check();
        });
    });
}

#[test]
fn programs_lose_no_effect_in_tasks_of_queues() {
    for_a_while(|seed| {
        let (program, effects, mut random) = make(seed, 1);
        let pool = pool(1 + random.below(3));
        let fair = FairScheduler::over(pool.as_filch().clone());
        let limits = [1 + random.below(3), 1 + random.below(3)];
        let queues: [Queue; 2] =
            limits.map(|limit| fair.queue("q").max_parallel(limit).build().unwrap());
        let (other, more, _) = make(seed ^ 1 << 60, 1);
        watched(seed, &format!("{program:?}, {other:?}"), || {
            let worlds = [world(vec![], effects), world(vec![], more)];
            thread::scope(|threads| {
                threads.spawn(|| queues[0].install(|| worlds[0].run(program)));
                queues[1].install(|| worlds[1].run(other));
            });
            worlds.iter().for_each(|it| it.check());
        });
    });
}

//! Runs the same programs on crossbeam-deque and on filch under its name, and compares the answers.
//!
//! This package depends on filch under the name of crossbeam-deque, by one line in Cargo.toml. The
//! macro `programs!` expands once for each crate, so its programs compile against both. The tests
//! compare the answers step by step.

/// Expands to the programs on the queues of one crate. Each program returns its answers as text.
macro_rules! programs {
    ($module:ident, $the_crate:ident) => {
        /// The programs on this crate's queues.
        pub mod $module {
            use crate::Rng;
            use std::fmt::{Debug, Write as _};
            use std::sync::Arc;
            use std::sync::atomic::{
                AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Release,
            };
            use $the_crate::{Injector, Steal, Stealer, Worker};

            /// Assigns every method to a function pointer that has crossbeam-deque's signature.
            #[must_use]
            #[allow(clippy::type_complexity)]
            pub fn signatures() -> usize {
                let _: fn() -> Worker<u8> = Worker::new_fifo;
                let _: fn() -> Worker<u8> = Worker::new_lifo;
                let _: fn(&Worker<u8>) -> Stealer<u8> = Worker::stealer;
                let _: fn(&Worker<u8>) -> bool = Worker::is_empty;
                let _: fn(&Worker<u8>) -> usize = Worker::len;
                let _: fn(&Worker<u8>, u8) = Worker::push;
                let _: fn(&Worker<u8>) -> Option<u8> = Worker::pop;
                let _: fn(&Stealer<u8>) -> bool = Stealer::is_empty;
                let _: fn(&Stealer<u8>) -> usize = Stealer::len;
                let _: fn(&Stealer<u8>) -> Steal<u8> = Stealer::steal;
                let _: fn(&Stealer<u8>, &Worker<u8>) -> Steal<()> = Stealer::steal_batch;
                let _: fn(&Stealer<u8>, &Worker<u8>, usize) -> Steal<()> =
                    Stealer::steal_batch_with_limit;
                let _: fn(&Stealer<u8>, &Worker<u8>) -> Steal<u8> = Stealer::steal_batch_and_pop;
                let _: fn(&Stealer<u8>, &Worker<u8>, usize) -> Steal<u8> =
                    Stealer::steal_batch_with_limit_and_pop;
                let _: fn() -> Injector<u8> = Injector::new;
                let _: fn() -> Injector<u8> = Injector::default;
                let _: fn(&Injector<u8>, u8) = Injector::push;
                let _: fn(&Injector<u8>) -> bool = Injector::is_empty;
                let _: fn(&Injector<u8>) -> usize = Injector::len;
                let _: fn(&Injector<u8>) -> Steal<u8> = Injector::steal;
                let _: fn(&Injector<u8>, &Worker<u8>) -> Steal<()> = Injector::steal_batch;
                let _: fn(&Injector<u8>, &Worker<u8>, usize) -> Steal<()> =
                    Injector::steal_batch_with_limit;
                let _: fn(&Injector<u8>, &Worker<u8>) -> Steal<u8> = Injector::steal_batch_and_pop;
                let _: fn(&Injector<u8>, &Worker<u8>, usize) -> Steal<u8> =
                    Injector::steal_batch_with_limit_and_pop;
                let _: fn(&Steal<u8>) -> bool = Steal::is_empty;
                let _: fn(&Steal<u8>) -> bool = Steal::is_success;
                let _: fn(&Steal<u8>) -> bool = Steal::is_retry;
                let _: fn(Steal<u8>) -> Option<u8> = Steal::success;
                let _: fn(Steal<u8>, fn() -> Steal<u8>) -> Steal<u8> = Steal::or_else;
                fn stealer<S: Clone + Debug + Send + Sync>(_: &S) -> usize {
                    1
                }
                fn worker<W: Debug + Send>(_: &W) -> usize {
                    2
                }
                fn injector<I: Debug + Default + Send + Sync>(_: &I) -> usize {
                    8
                }
                fn plain<S: Copy + Clone + Eq + PartialEq + Debug>(_: &S) -> usize {
                    4
                }
                // A closure that ends in `push` returns nothing.
                let w = Worker::new_lifo();
                (0..3).for_each(|it| w.push(it));
                let i = Injector::new();
                (0..3).for_each(|it| i.push(it));
                let deques = w.len() + stealer(&w.stealer()) + worker(&w);
                deques + injector(&i) + plain(&w.stealer().steal()) + plain(&i.steal())
            }

            fn new<T>(fifo: bool) -> Worker<T> {
                if fifo { Worker::new_fifo() } else { Worker::new_lifo() }
            }

            /// Runs a random program of every operation on two deques, and returns its answers.
            #[must_use]
            pub fn random<T: Copy + Debug>(
                seed: u64,
                flavors: (bool, bool),
                item: fn(usize) -> T,
            ) -> String {
                let (mut rng, mut log) = (Rng::new(seed), String::new());
                let deques: [Worker<T>; 2] = [new(flavors.0), new(flavors.1)];
                let stealers: Vec<Stealer<T>> = deques.iter().map(Worker::stealer).collect();
                let mut pushed = 0;
                for _ in 0..2_000 {
                    let (from, to) = (rng.below(2), rng.below(2));
                    let (worker, stealer) = (&deques[from], stealers[from].clone());
                    let limit = 1 + rng.below(40);
                    let said = match rng.below(10) {
                        0..=2 => {
                            for _ in 0..rng.below(60) {
                                pushed += 1;
                                worker.push(item(pushed));
                            }
                            String::new()
                        }
                        3 => format!("{:?}", worker.pop()),
                        4 => format!(
                            "{:?}",
                            (0..rng.below(40)).map(|_| worker.pop()).collect::<Vec<_>>()
                        ),
                        5 => format!("{:?}", stealer.steal().success()),
                        6 => {
                            let stolen = stealer.steal_batch(&deques[to]);
                            format!("{:?} {}", stolen, stolen.is_success())
                        }
                        7 => format!("{:?}", stealer.steal_batch_with_limit(&deques[to], limit)),
                        8 => format!("{:?}", stealer.steal_batch_and_pop(&deques[to]).success()),
                        _ => {
                            let stolen = stealer.steal_batch_with_limit_and_pop(&deques[to], limit);
                            format!("{:?}", stolen.success())
                        }
                    };
                    let lengths = deques.iter().map(Worker::len).collect::<Vec<_>>();
                    let seen =
                        stealers.iter().map(|it| (it.len(), it.is_empty())).collect::<Vec<_>>();
                    let _ = writeln!(log, "{said} {lengths:?} {seen:?}");
                }
                for deque in &deques {
                    let rest: Vec<_> = std::iter::from_fn(|| deque.pop()).collect();
                    let _ = writeln!(log, "{rest:?} {:?}", deque.stealer().steal());
                }
                log
            }

            /// Runs a random program on an injector and a deque. Its answers have the order of the
            /// items but no sizes of batches, because the crates' segments have different sizes.
            #[must_use]
            pub fn injected(seed: u64, fifo: bool) -> String {
                let (mut rng, mut log) = (Rng::new(seed), String::new());
                let (injector, worker) = (Injector::new(), new(fifo));
                let (mut pushed, mut moved) = (0, Vec::new());
                for _ in 0..1_000 {
                    let limit = 1 + rng.below(40);
                    match rng.below(8) {
                        0..=2 => {
                            for _ in 0..rng.below(60) {
                                pushed += 1;
                                injector.push(pushed);
                            }
                        }
                        3 => moved.extend(injector.steal().success()),
                        4 => _ = injector.steal_batch(&worker),
                        5 => _ = injector.steal_batch_with_limit(&worker, limit),
                        6 => moved.extend(injector.steal_batch_and_pop(&worker).success()),
                        _ => {
                            let popped = injector.steal_batch_with_limit_and_pop(&worker, limit);
                            moved.extend(popped.success());
                        }
                    }
                    assert!(worker.len() <= 40);
                    moved.extend(std::iter::from_fn(|| worker.pop()));
                    assert_eq!(injector.len(), pushed - moved.len());
                    assert_eq!(injector.is_empty(), pushed == moved.len());
                }
                while let Steal::Success(item) = injector.steal() {
                    moved.push(item);
                }
                let _ = write!(log, "{moved:?} {:?}", injector.steal());
                log
            }

            /// Sends boxed numbers from two threads to two others. Returns the sum that arrives.
            #[must_use]
            pub fn injecting_threads(items: usize) -> usize {
                let (injector, left) = (Arc::new(Injector::new()), Arc::new(AtomicUsize::new(0)));
                let takers = [true, false].map(|fifo| {
                    let (injector, left) = (Arc::clone(&injector), Arc::clone(&left));
                    std::thread::spawn(move || {
                        let (own, mut sum) = (new::<Box<usize>>(fifo), 0);
                        while left.load(Acquire) < 2 || !injector.is_empty() {
                            let first = injector.steal_batch_and_pop(&own).success();
                            let rest = std::iter::from_fn(|| own.pop());
                            sum += first.into_iter().chain(rest).map(|item| *item).sum::<usize>();
                            std::thread::yield_now();
                        }
                        sum
                    })
                });
                let givers = [0, 1].map(|half| {
                    let (injector, left) = (Arc::clone(&injector), Arc::clone(&left));
                    std::thread::spawn(move || {
                        let numbers = (0..items).filter(|it| it % 2 == half);
                        numbers.for_each(|item| injector.push(Box::new(item)));
                        left.fetch_add(1, Release);
                    })
                });
                givers.into_iter().for_each(|giver| giver.join().unwrap());
                takers.into_iter().map(|taker| taker.join().unwrap()).sum()
            }

            /// Returns the answers of `Steal` for every combination of two attempts.
            #[must_use]
            pub fn combinations() -> String {
                let attempts = [Steal::Empty, Steal::Success(1), Steal::Retry];
                let mut log = String::new();
                for first in attempts {
                    for second in attempts {
                        let collected: Steal<i32> = [first, second].into_iter().collect();
                        let otherwise = first.or_else(|| second);
                        let _ = writeln!(
                            log,
                            "{first:?} {second:?} {collected:?} {otherwise:?} {:?} {}",
                            collected.success(),
                            first == second,
                        );
                    }
                }
                log
            }

            /// Returns the debug text of results whose items have none. It leaves out the queues,
            /// since filch's text for a queue shows its length and crossbeam-deque's does not.
            #[must_use]
            pub fn opaque() -> String {
                struct Opaque;

                let worker = Worker::<Opaque>::new_fifo();
                worker.push(Opaque);
                let stealer = worker.stealer();
                let steals = [stealer.steal(), stealer.steal(), Steal::Retry];
                format!("{steals:?}")
            }

            /// Sends boxed numbers from one thread to two others. Returns the sum that arrives.
            #[must_use]
            pub fn threads(fifo: bool, items: usize) -> usize {
                let (worker, done) = (new(fifo), Arc::new(AtomicBool::new(false)));
                let thieves = [(); 2].map(|()| {
                    let (stealer, own): (Stealer<Box<usize>>, _) = (worker.stealer(), new(!fifo));
                    let done = Arc::clone(&done);
                    std::thread::spawn(move || {
                        let mut sum = 0;
                        while !done.load(Acquire) || !stealer.is_empty() {
                            let first = stealer.steal_batch_and_pop(&own).success();
                            let rest = std::iter::from_fn(|| own.pop());
                            sum += first.into_iter().chain(rest).map(|item| *item).sum::<usize>();
                            std::thread::yield_now();
                        }
                        sum
                    })
                });
                (0..items).for_each(|item| worker.push(Box::new(item)));
                done.store(true, Release);
                thieves.into_iter().map(|thief| thief.join().unwrap()).sum()
            }

            /// Returns whether a batch with a limit of zero items panics on both kinds of queue.
            #[must_use]
            pub fn zero_limit_panics() -> bool {
                let attempt = || {
                    let worker = Worker::<u8>::new_lifo();
                    worker.stealer().steal_batch_with_limit(&Worker::new_lifo(), 0).is_empty()
                };
                let injected = || {
                    Injector::<u8>::new().steal_batch_with_limit(&Worker::new_lifo(), 0).is_empty()
                };
                std::panic::catch_unwind(attempt).is_err()
                    && std::panic::catch_unwind(injected).is_err()
            }
        }
    };
}

programs!(filch, crossbeam_deque);
programs!(crossbeam, original);

/// A small random generator. The same seed gives both crates the same program.
#[derive(Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns the generator for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a random number below the given one.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

#[cfg(test)]
mod tests {
    use super::{crossbeam, filch};
    use std::fmt::Debug;

    const FLAVORS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    fn same_answers<T: Copy + Debug>(item: fn(usize) -> T) {
        for seed in 0..100 {
            for flavors in FLAVORS {
                let ours = filch::random(seed, flavors, item);
                let theirs = crossbeam::random(seed, flavors, item);
                let differs = ours.lines().zip(theirs.lines()).position(|(a, b)| a != b);
                assert_eq!(
                    differs, None,
                    "seed {seed}, flavors {flavors:?}: step at which they differ"
                );
                assert_eq!(ours.len(), theirs.len());
            }
        }
    }

    #[test]
    fn a_one_word_item_gets_the_same_answers() {
        same_answers(|it| it);
    }

    /// The second item is like rayon's `JobRef`: a pointer to a job and the function that runs it.
    #[test]
    fn a_two_word_item_gets_the_same_answers() {
        same_answers(|it| (it, !it));
        same_answers(|it| (it as *const (), usize::count_ones as fn(usize) -> u32));
    }

    #[test]
    fn what_cannot_be_shown_is_shown_alike() {
        assert_eq!(filch::opaque(), crossbeam::opaque());
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        for (fifo, items) in [(false, 40_000), (true, 40_000)] {
            let sum = items * (items - 1) / 2;
            assert_eq!([filch::threads(fifo, items), crossbeam::threads(fifo, items)], [sum; 2]);
        }
    }

    #[test]
    fn an_injector_gives_the_same_items_in_the_same_order() {
        for seed in 0..100 {
            for fifo in [false, true] {
                assert_eq!(filch::injected(seed, fifo), crossbeam::injected(seed, fifo), "{seed}");
            }
        }
    }

    #[test]
    fn nothing_is_lost_in_an_injector() {
        let sum = 40_000 * (40_000 - 1) / 2;
        assert_eq!(
            [filch::injecting_threads(40_000), crossbeam::injecting_threads(40_000)],
            [sum; 2]
        );
    }

    #[test]
    fn steal_combines_in_the_same_way() {
        assert_eq!(filch::combinations(), crossbeam::combinations());
    }

    #[test]
    fn a_batch_of_nothing_panics_in_both() {
        assert!(filch::zero_limit_panics() && crossbeam::zero_limit_panics());
    }

    #[test]
    fn every_method_has_the_same_signature() {
        assert_eq!(filch::signatures(), crossbeam::signatures());
    }
}

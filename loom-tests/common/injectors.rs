//! Small programs on an injector that several models share.

use super::{Bound, each_once, model, spawn};
use filch::{Injector, Steal, Worker};
use loom::sync::Arc;

/// What happens on one thread, one letter a step: `p`ush, push a batch of `2` or of `3`, `t`ry to push,
/// `c`lose, `s`teal, steal a `b`atch of two, steal a batch of two `a`nd pop, ask whether it is `e`mpty.
pub type Steps = &'static str;

/// What a thread did and got: items are numbered by thread, in the order of pushing, and those of one
/// batch differ in the last digit only.
#[derive(Debug, Default)]
struct Log {
    pushed: Vec<u32>,
    refused: Vec<u32>,
    taken: Vec<u32>,
    /// What it had pushed, and how much it had taken, when it found nothing.
    found_nothing: Vec<u32>,
}

impl Log {
    fn next(&self, thread: u32) -> u32 {
        let last = self.pushed.iter().chain(&self.refused).max();
        last.map_or(100 * thread, |last| (last / 10 + 1) * 10)
    }

    fn run(&mut self, thread: u32, steps: Steps, injector: &Injector<u32>) {
        let dest = Worker::new_fifo();
        for step in steps.chars() {
            match step {
                'p' => {
                    let item = self.next(thread);
                    injector.push(item);
                    self.pushed.push(item);
                }
                '2' | '3' => {
                    let first = self.next(thread);
                    let items: Vec<_> = (first..).take(step as usize - '0' as usize).collect();
                    injector.push_batch(items.iter().copied());
                    self.pushed.extend(items);
                }
                't' => {
                    let item = self.next(thread);
                    match injector.try_push(item) {
                        Ok(()) => self.pushed.push(item),
                        Err(back) => {
                            assert!(injector.is_closed(), "refused by one that is open");
                            self.refused.push(back.into_inner());
                        }
                    }
                }
                'c' => _ = injector.close(),
                's' => self.note(injector.steal()),
                'e' if injector.is_empty() => self.note(Steal::Empty),
                'e' => {}
                'b' => {
                    let came = injector.steal_batch_with_limit(&dest, 2);
                    assert_eq!(came.is_success(), !dest.is_empty());
                    self.taken.extend(dest.drain());
                    if came.is_empty() {
                        self.note(Steal::Empty);
                    }
                }
                'a' => {
                    self.note(injector.steal_batch_with_limit_and_pop(&dest, 2));
                    self.taken.extend(dest.drain());
                }
                _ => panic!("a thread cannot `{step}`"),
            }
        }
    }

    fn note(&mut self, found: Steal<u32>) {
        match found {
            Steal::Success(item) => self.taken.push(item),
            Steal::Empty => self.found_nothing.extend(&self.pushed),
            Steal::Retry => panic!("an injector never asks to retry"),
        }
    }
}

/// Runs the steps before alone, then each thread's, then takes what is left. The last thread may `j`oin the first and go
/// on for it: a switch between them is no preemption. Checks that
///
/// - each item that was not refused is taken once;
/// - nobody finds nothing while something lies there that it has pushed itself;
/// - of two items that one thread pushed one after the other, no thread takes the later before the
///   earlier, and the earlier is not still there at the end if the later is gone. The items of one
///   batch are pushed together.
///
/// # Panics
///
/// Panics if one of these fails.
pub fn is_a_queue(name: &str, bound: Bound, before: Steps, threads: &'static [Steps]) {
    model(name, bound, move || {
        let injector = Arc::new(Injector::new());
        let mut logs = vec![Log::default()];
        logs[0].run(0, before, &injector);
        let (mine, others) = threads.split_last().unwrap();
        let mut others: Vec<_> = (1..)
            .zip(others)
            .map(|(thread, steps)| {
                let injector = injector.clone();
                spawn(move || {
                    let mut log = Log::default();
                    log.run(thread, steps, &injector);
                    log
                })
            })
            .collect();
        let (mut log, mine) = match mine.strip_prefix('j') {
            Some(rest) => (others.remove(0).join().unwrap(), rest),
            None => (Log::default(), *mine),
        };
        log.run(threads.len() as u32, mine, &injector);
        logs.push(log);
        logs.extend(others.into_iter().map(|it| it.join().unwrap()));

        let len = injector.len();
        let left: Vec<_> = injector.drain().collect();
        assert!(len >= left.len(), "`len` counts void slots, and nothing too few");
        assert!(injector.is_empty());

        for log in &logs {
            let lost = log.found_nothing.iter().find(|it| left.contains(it));
            assert_eq!(lost, None, "it was there, but who knew it found nothing: {logs:?}");
            for (at, &later) in log.taken.iter().enumerate() {
                let is_earlier = |it: &u32| is_before(*it, later);
                assert!(
                    !log.taken[at..].iter().any(is_earlier) && !left.iter().any(is_earlier),
                    "{later} was taken before an earlier one: {logs:?}, then {left:?}",
                );
            }
        }
        assert!(!left.windows(2).any(|it| is_before(it[1], it[0])), "{left:?}");
        let pushed = logs.iter().flat_map(|it| it.pushed.iter().copied());
        let taken = logs.iter().flat_map(|it| it.taken.iter().copied()).chain(left);
        each_once(pushed, taken.collect());
    });
}

/// Whether one thread had pushed `it` when it began to push `later`.
fn is_before(it: u32, later: u32) -> bool {
    it / 100 == later / 100 && it / 10 < later / 10
}

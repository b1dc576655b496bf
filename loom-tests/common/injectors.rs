//! Small programs on an injector that several models share.

use super::order::{Did, Known};
use super::{Bound, each_once, model, spawn};
use filch::{Injector, Steal, Worker};
use loom::sync::Arc;
use loom::thread::JoinHandle;
use std::iter;

/// The steps of one thread, one letter for each: `p`ush, push a batch of `2` or of `3`, `t`ry to
/// push, `c`lose, `s`teal. The batch steals: a `b`atch of two, a batch of two `a`nd pop. The
/// questions: is the injector `e`mpty, is its `l`ength zero?
pub type Steps = &'static str;

/// The operations of a thread, with their results. An item's number has the pushing thread in its
/// hundreds. The items of one batch differ in the last digit only.
#[derive(Default)]
struct Log {
    did: Vec<Did>,
    last: Option<u32>,
    spawned: Option<JoinHandle<Log>>,
}

impl Log {
    fn next(&mut self, thread: u32) -> u32 {
        let next = self.last.map_or(100 * thread, |last| (last / 10 + 1) * 10);
        self.last = Some(next);
        next
    }

    /// Spawns a thread that does these steps.
    fn spawn(
        &mut self,
        thread: u32,
        steps: Steps,
        injector: &Arc<Injector<u32>>,
    ) -> JoinHandle<Log> {
        self.did.push(Did::Told(thread));
        let injector = injector.clone();
        spawn(move || {
            let mut log = Log::default();
            log.did.push(Did::Heard(thread));
            log.run(thread, steps, &injector);
            log
        })
    }

    /// Joins a thread, and learns of everything that it did.
    fn join(&mut self, other: JoinHandle<Log>) -> Log {
        let mut log = other.join().unwrap();
        let number = log
            .did
            .iter()
            .find_map(|it| if let Did::Heard(it) = it { Some(it + 100) } else { None });
        log.did.extend(number.map(Did::Told));
        self.did.extend(number.map(Did::Heard));
        log
    }

    fn run(&mut self, thread: u32, steps: Steps, injector: &Arc<Injector<u32>>) {
        let dest = Worker::new_fifo();
        let (steps, spawned) = steps.split_once('(').unwrap_or((steps, ""));
        self.do_steps(thread, steps, injector, &dest);
        if let Some((theirs, steps)) = spawned.split_once(')') {
            self.spawned = Some(self.spawn(thread + 10, theirs, injector));
            self.do_steps(thread, steps, injector, &dest);
        }
    }

    fn do_steps(
        &mut self,
        thread: u32,
        steps: Steps,
        injector: &Injector<u32>,
        dest: &Worker<u32>,
    ) {
        for step in steps.chars() {
            match step {
                'p' => {
                    let item = self.next(thread);
                    injector.push(item);
                    self.did.push(Did::Pushed(vec![item]));
                }
                '2' | '3' => {
                    let first = self.next(thread);
                    let items: Vec<_> = (first..).take(step as usize - '0' as usize).collect();
                    injector.push_batch(items.iter().copied());
                    self.did.push(Did::Pushed(items));
                }
                't' => {
                    let item = self.next(thread);
                    match injector.try_push(item) {
                        Ok(()) => self.did.push(Did::Pushed(vec![item])),
                        Err(_) => assert!(injector.is_closed(), "refused by one that is open"),
                    }
                }
                'c' => _ = injector.close(),
                's' => self.note(injector.steal(), dest),
                'e' if injector.is_empty() => self.note(Steal::Empty, dest),
                'e' => {}
                'l' => {
                    let len = injector.len();
                    if len == 0 {
                        self.note(Steal::Empty, dest);
                    }
                }
                'b' => {
                    let came = injector.steal_batch_with_limit(dest, 2);
                    assert_eq!(came.is_success(), !dest.is_empty());
                    match came {
                        Steal::Success(()) => self.did.push(Did::Took(dest.drain().collect())),
                        nothing => self.note(nothing.map(|()| unreachable!()), dest),
                    }
                }
                'a' => self.note(injector.steal_batch_with_limit_and_pop(dest, 2), dest),
                _ => panic!("a thread cannot `{step}`"),
            }
        }
    }

    /// Records the item that was found, and those that came to `dest` with it.
    fn note(&mut self, found: Steal<u32>, dest: &Worker<u32>) {
        self.did.push(match found {
            Steal::Success(item) => Did::Took(iter::once(item).chain(dest.drain()).collect()),
            Steal::Empty => Did::FoundNothing,
            Steal::Retry => panic!("an injector never asks to retry"),
        });
    }
}

/// Runs the steps `before` alone, then each thread's steps, then takes the remaining items. The
/// last thread `j`oins the first one at a step `j`; a switch there is no preemption. At a pair of
/// parentheses, a thread spawns another thread, which does the steps in between. Checks that
///
/// - each item that was not refused is taken once;
/// - no thread finds the queue empty while an item, or a chain of items, is known to be there. In a
///   chain, each item is pushed before the previous item is taken;
/// - no thread takes the later of two items before the earlier, if their pushes have a known order.
///   The earlier item is not left at the end if the later is gone. The items of one batch have no
///   order.
///
/// # Panics
///
/// Panics if one of these fails.
pub fn is_a_queue(name: &str, bound: Bound, before: Steps, threads: &'static [Steps]) {
    model(name, bound, move || {
        let injector = Arc::new(Injector::new());
        let mut log = Log::default();
        log.run(0, before, &injector);
        let (mine, others) = threads.split_last().unwrap();
        let mut others: Vec<_> =
            (1..).zip(others).map(|(thread, steps)| log.spawn(thread, steps, &injector)).collect();
        let mut logs = Vec::new();
        let (thread, (mine, then)) =
            (threads.len() as u32, mine.split_once('j').unwrap_or((mine, "")));
        log.run(thread, mine, &injector);
        if !then.is_empty() {
            logs.push(log.join(others.remove(0)));
            log.run(thread, then, &injector);
        }
        for other in others {
            let mut other = log.join(other);
            if let Some(spawned) = other.spawned.take() {
                logs.push(log.join(spawned));
            }
            logs.push(other);
        }

        let len = injector.len();
        let left: Vec<_> = injector.drain().collect();
        assert_eq!(len, left.len(), "the length of a queue at rest");
        assert!(injector.is_empty());

        log.did.push(Did::Took(left));
        logs.push(log);
        let did: Vec<_> = logs.into_iter().map(|it| it.did).collect();
        let (mut pushed, mut taken) = (Vec::<u32>::new(), Vec::new());
        for it in did.iter().flatten() {
            match it {
                Did::Pushed(items) => pushed.extend(items),
                Did::Took(items) => taken.extend(items),
                Did::FoundNothing | Did::Told(_) | Did::Heard(_) => {}
            }
        }
        each_once(pushed, taken);
        let fault = Known::of(&did).fault();
        assert_eq!(fault, None, "before, each thread, what was left: {did:?}");
    });
}

//! Models of the thread that runs a half of a `join`: its owner, a thief, or a worker that helps
//! while it waits. A *service* is the run of a half for which another thread waits, and its
//! *server* is the worker that runs it. A *stranger* is a job that need not run before the wait
//! ends.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `SERVED` | `open`, `all_of` | `a_helper_takes_what_the_service_has_pushed_and_no_stranger`, except at the sites in `unwitnessed.md` |

use crate::common::{Bound::*, model, spawn};
use filch::pool::for_models::Services;
use filch::{Stealer, Worker};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::*};

const BEFORE: u32 = 0;
const FIRST: usize = 1;
const SECOND: usize = 2;
const AFTER: u32 = 3;
const OTHER: usize = 4;
const THIRD: usize = 5;

/// Returns the item that a service pushes: the number of the wait that the service ends.
fn item(wait: usize) -> u32 {
    wait as u32
}

#[test]
fn a_helper_takes_what_the_service_has_pushed_and_no_stranger() {
    for (wanted, thefts) in [(FIRST, 0), (FIRST, 1), (SECOND, 1), (FIRST, 2)] {
        let name = "a_helper_takes_what_the_service_has_pushed_and_no_stranger";
        model(name, Preemptions(3), move || {
            let (deque, services) = (Worker::new_lifo(), Arc::new(Services::default()));
            deque.push(BEFORE);
            let (stealer, same): (Stealer<u32>, _) = (deque.stealer(), services.clone());
            let helper = spawn(move || {
                // Thefts take the oldest items away, so that the wanted item can become the oldest.
                let stolen = (0..thefts).filter(|_| stealer.steal().is_success()).count();
                (stolen, Services::help(&[(same, stealer)], wanted))
            });
            services.begin(&deque, FIRST, 0, 1);
            deque.push(item(FIRST));
            services.end();
            services.begin(&deque, SECOND, 0, 2);
            deque.push(item(SECOND));
            services.end();
            deque.push(AFTER);
            let (stolen, helped) = helper.join().unwrap();
            assert!(helped.is_none_or(|it| it == item(wanted)), "a stranger: {helped:?}");
            let rest = deque.drain().collect::<Vec<_>>();
            assert_eq!(rest.len() + stolen + helped.iter().count(), 4);
        });
    }
}

/// Either the owner takes its half back, or a helper takes it.
#[test]
fn a_half_is_run_by_its_owner_or_by_a_helper() {
    model("a_half_is_run_by_its_owner_or_by_a_helper", Preemptions(3), || {
        let (deque, services) = (Worker::new_lifo(), Arc::new(Services::default()));
        let (stealer, same): (Stealer<u32>, _) = (deque.stealer(), services.clone());
        services.begin(&deque, FIRST, 0, 1);
        let helper = spawn(move || Services::help(&[(same, stealer)], FIRST));
        let halves = [7, 8];
        halves.iter().for_each(|&half| deque.push(half));
        let ours = [deque.pop(), deque.pop()];
        services.end();
        let mut run: Vec<_> = ours.into_iter().flatten().chain(helper.join().unwrap()).collect();
        run.sort_unstable();
        assert_eq!(run, halves);
    });
}

/// The owner takes its offered halves back by their indices. A thief may steal one meanwhile, and
/// so may a worker whose wait the owner's service ends.
#[test]
fn a_half_is_taken_back_by_its_owner_or_taken_by_another() {
    // The number of halves, whether there is a thief, and whether there is a helper.
    for (halves, steals, helps) in [(2, true, false), (2, false, true), (1, true, true)] {
        let name = "a_half_is_taken_back_by_its_owner_or_taken_by_another";
        model(name, Preemptions(3), move || {
            let (deque, services) = (Worker::new_lifo(), Arc::new(Services::default()));
            services.begin(&deque, FIRST, 0, 1);
            let (same, server) = (deque.stealer(), (services.clone(), deque.stealer()));
            let thief = steals.then(|| spawn(move || same.steal().success()));
            let helper = helps.then(|| spawn(move || Services::help(&[server], FIRST)));
            let indices: Vec<_> = (0..halves).map(|it| Services::offer(&deque, it)).collect();
            let back = |index| Services::take_back(&deque, index) == Some(true);
            let ours: Vec<bool> = indices.into_iter().rev().map(back).collect();
            services.end();
            let others = thief.into_iter().chain(helper).filter_map(|it| it.join().unwrap());
            let mut run: Vec<u32> = others.collect();
            run.extend((0..halves).rev().zip(ours).filter(|it| it.1).map(|it| it.0));
            run.sort_unstable();
            assert_eq!(run, (0..halves).collect::<Vec<_>>());
        });
    }
}

/// The parts of a worker that others know: its services, and its deque.
type Server = (Arc<Services>, Stealer<u32>);

/// Two workers that serve, as a third worker sees them that waits for `FIRST`.
fn two_servers() -> ([Worker<u32>; 2], Arc<[Server; 2]>) {
    let deques = [Worker::new_lifo(), Worker::new_lifo()];
    let servers = deques.each_ref().map(|it| (Arc::new(Services::default()), it.stealer()));
    (deques, Arc::new(servers))
}

/// A worker serves a half that was spawned within the wait. Then it serves a stranger's half at the
/// same address. The id of a wait is the half's address, so both halves have the same wait id.
#[test]
fn help_goes_on_only_to_what_has_come_of_the_service() {
    model("help_goes_on_only_to_what_has_come_of_the_service", Preemptions(3), || {
        let ([_, second], servers) = two_servers();
        let same = servers.clone();
        let helper = spawn(move || Services::leapfrog(&same[..], FIRST));
        let services = &servers[1].0;
        services.begin(&second, SECOND, FIRST, 1);
        second.push(item(SECOND));
        let ours = second.pop();
        services.end();
        services.begin(&second, SECOND, OTHER, 2);
        second.push(item(OTHER));
        let helped = helper.join().unwrap();
        assert!(helped.is_none_or(|it| it == item(SECOND)), "a stranger: {helped:?}");
        assert!(helped.is_none() || ours.is_none());
    });
}

/// The first server ends a half that was spawned within the wait. A stranger's half then has the
/// same address. The second server serves a half that the stranger has spawned.
#[test]
fn help_goes_on_only_while_the_service_between_is_open() {
    model("help_goes_on_only_while_the_service_between_is_open", Preemptions(2), || {
        let ([first, second], servers) = two_servers();
        let same = servers.clone();
        let helper = spawn(move || Services::leapfrog(&same[..], FIRST));
        let freed = Arc::new(AtomicUsize::new(0));
        let (tells, same) = (freed.clone(), servers.clone());
        let ends = spawn(move || {
            let services = &same[0].0;
            services.begin(&first, SECOND, FIRST, 1);
            services.end();
            tells.store(1, Release);
        });
        if freed.load(Acquire) == 1 {
            servers[1].0.begin(&second, THIRD, SECOND, 1);
            second.push(item(OTHER));
        }
        assert_eq!(helper.join().unwrap(), None, "a stranger");
        ends.join().unwrap();
    });
}

/// The helper waits for a half. The first server runs a half that the awaited half spawned. The
/// second server runs a half that the first server's half spawned. The helper must find the item in
/// the second server's deque.
#[test]
fn help_goes_along_a_chain() {
    model("help_goes_along_a_chain", Preemptions(2), || {
        let ([first, second], servers) = two_servers();
        servers[0].0.begin(&first, SECOND, FIRST, 1);
        servers[1].0.begin(&second, THIRD, SECOND, 1);
        second.push(item(THIRD));
        let same = servers.clone();
        let helper = spawn(move || Services::leapfrog(&same[..], FIRST));
        for _ in 0..2 {
            second.push(item(THIRD));
            let ours = second.pop();
            assert!(ours.is_some(), "the helper takes one");
        }
        assert_eq!(helper.join().unwrap(), Some(item(THIRD)), "there was one all the time");
        assert!(second.is_empty());
    });
}

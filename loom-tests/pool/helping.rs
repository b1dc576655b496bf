//! Models of the thread that runs a half of a `join`: its owner, a thief, or a worker that waits
//! for a half that led to it.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `SERVED` | `open`, `look` | `a_helper_takes_what_the_service_has_pushed_and_no_stranger` |

use crate::common::{Bound::*, model, spawn};
use filch::pool::for_models::Services;
use filch::{Stealer, Worker};
use loom::sync::Arc;

const BEFORE: u32 = 0;
const FIRST: usize = 1;
const SECOND: usize = 2;
const AFTER: u32 = 3;

/// The item that a service pushes has the number of its latch.
fn item(latch: usize) -> u32 {
    latch as u32
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
                // Thefts take the oldest items away, so that the wanted one can become the oldest.
                let stolen = (0..thefts).filter(|_| stealer.steal().is_success()).count();
                (stolen, same.help(&stealer, wanted))
            });
            services.begin(&deque, FIRST, 1);
            deque.push(item(FIRST));
            services.end();
            services.begin(&deque, SECOND, 2);
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
        services.begin(&deque, FIRST, 1);
        let helper = spawn(move || same.help(&stealer, FIRST));
        let halves = [7, 8];
        halves.iter().for_each(|&half| deque.push(half));
        let ours = [deque.pop(), deque.pop()];
        services.end();
        let mut run: Vec<_> = ours.into_iter().flatten().chain(helper.join().unwrap()).collect();
        run.sort_unstable();
        assert_eq!(run, halves);
    });
}

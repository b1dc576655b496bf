//! Models of a snapshot that is replaced while a thread reads it.
//!
//! In this table, a *pair* is a named ordering, and a *site* is a function that uses the pair. If
//! the pair is weakened there, a model in the last column fails.
//!
//! | pair | site | fails when weakened |
//! |---|---|---|
//! | `SNAPSHOT` | release in `replace`; acquire in `with` | `a_reader_sees_whole_snapshots_in_order` |

use crate::common::{Bound::*, model, spawn};
use filch::for_models::Snapshot;
use filch::{Steal, Stealer, Worker};
use loom::sync::Arc;

fn replace(snapshot: &Snapshot<Vec<u32>>, next: u32) {
    // SAFETY: each model orders its calls one after the other, and its values may be dropped
    // anywhere.
    unsafe { snapshot.replace(|old| old.iter().copied().chain([next]).collect()) };
}

#[test]
fn a_reader_sees_whole_snapshots_in_order() {
    model("a_reader_sees_whole_snapshots_in_order", Preemptions(3), || {
        let snapshot = Arc::new(Snapshot::new(vec![1]));
        let same = snapshot.clone();
        let reader = spawn(move || [0; 2].map(|_| same.with(Vec::len)));
        replace(&snapshot, 2);
        replace(&snapshot, 3);
        let [first, second] = reader.join().unwrap();
        assert!((1..=second).contains(&first) && second <= 3, "it does not go back");
        assert_eq!(snapshot.with(Vec::clone), [1, 2, 3]);
    });
}

#[test]
fn each_of_two_readers_sees_a_whole_snapshot() {
    model("each_of_two_readers_sees_a_whole_snapshot", Preemptions(2), || {
        let snapshot = Arc::new(Snapshot::new(vec![1]));
        let readers = [0; 2].map(|_| {
            let same = snapshot.clone();
            spawn(move || same.with(Vec::len))
        });
        replace(&snapshot, 2);
        for reader in readers {
            assert!([1, 2].contains(&reader.join().unwrap()));
        }
    });
}

/// The pool's registry: thieves steal while one worker is added and another leaves.
#[test]
fn items_are_taken_once_while_workers_come_and_go() {
    model("items_are_taken_once_while_workers_come_and_go", Preemptions(2), || {
        let old = Worker::new_lifo();
        old.push(1);
        let seats = Arc::new(Snapshot::new(vec![old.stealer()]));
        let same = seats.clone();
        let thief = spawn(move || {
            let steal = |seats: &Vec<Stealer<u32>>| seats.iter().map(Stealer::steal).collect();
            [(); 2].map(|()| same.with(steal)).into_iter().filter_map(Steal::success).sum::<u32>()
        });
        let new = Worker::new_lifo();
        new.push(2);
        // SAFETY: only this thread replaces the snapshot, so the calls come one after the other.
        unsafe { seats.replace(|it| it.iter().cloned().chain([new.stealer()]).collect()) };
        // SAFETY: only this thread replaces the snapshot.
        unsafe { seats.replace(|it| it[1..].to_vec()) };
        let left = [old.pop(), new.pop()];
        let stolen = thief.join().unwrap();
        assert_eq!(left.into_iter().flatten().sum::<u32>() + stolen, 3);
    });
}

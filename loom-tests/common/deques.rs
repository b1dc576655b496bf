//! Small programs on deques that several models share.

use super::{Bound, each_once, model, spawn};
use filch::deque::{Builder, Flavor, Stealer, Worker};

/// The steps of one thread, one letter for each: `p`ush the next number, p`o`p, `r`eserve, `s`teal.
/// The batch steals: a `b`atch of two, a batch of `f`our, a batch of two `a`nd pop.
pub type Steps = &'static str;

/// A deque, the owner's steps before (`before`) and while (`owner`) thieves run, and each thief's
/// steps.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub flavor: Flavor,
    pub capacity: usize,
    pub shrinking: bool,
    pub before: Steps,
    pub owner: Steps,
    pub thieves: &'static [Steps],
    /// The flavor of the deque into which a thief takes batches.
    pub dest: Flavor,
}

/// A LIFO deque that is never full.
pub const LIFO: Program = Program {
    flavor: Flavor::Lifo,
    capacity: 8,
    shrinking: false,
    before: "",
    owner: "",
    thieves: &[],
    dest: Flavor::Lifo,
};

/// A FIFO deque that is never full.
pub const FIFO: Program = Program { flavor: Flavor::Fifo, dest: Flavor::Fifo, ..LIFO };

struct Owner {
    worker: Worker<u32>,
    pushed: u32,
    popped: Vec<u32>,
}

impl Owner {
    fn run(&mut self, steps: Steps) {
        for step in steps.chars() {
            match step {
                'p' => {
                    self.pushed += 1;
                    self.worker.push(self.pushed);
                }
                'o' => self.popped.extend(self.worker.pop()),
                'r' => self.worker.reserve(4),
                _ => panic!("an owner cannot `{step}`"),
            }
        }
    }
}

/// Runs a thief's steps. Returns the items that it took, in the order in which it got them.
fn thief(steps: Steps, stealer: &Stealer<u32>, dest: Flavor) -> Vec<u32> {
    let ours = Worker::with_capacity(dest, 4);
    let mut taken = Vec::new();
    for step in steps.chars() {
        match step {
            's' => taken.extend(stealer.steal().success()),
            'b' => drop(stealer.steal_batch_with_limit(&ours, 2).success()),
            'f' => drop(stealer.steal_batch_with_limit(&ours, 4).success()),
            'a' => taken.extend(stealer.steal_batch_with_limit_and_pop(&ours, 2).success()),
            _ => panic!("a thief cannot `{step}`"),
        }
    }
    taken.extend(ours.drain());
    taken
}

/// Explores a program. Each pushed item is taken once, by a thief or by the owner, and never before
/// it is written (the slots check that).
pub fn an_item_is_taken_once(name: &str, bound: Bound, program: Program) {
    model(name, bound, move || {
        let builder = Builder::new(program.flavor).capacity(program.capacity);
        let worker = builder.shrinking(program.shrinking).build();
        let mut owner = Owner { worker, pushed: 0, popped: Vec::new() };
        owner.run(program.before);

        let spawn_thief = |steps: &Steps| {
            let (steps, stealer) = (*steps, owner.worker.stealer());
            spawn(move || thief(steps, &stealer, program.dest))
        };
        let thieves: Vec<_> = program.thieves.iter().map(spawn_thief).collect();
        owner.run(program.owner);

        let mut taken: Vec<u32> = Vec::new();
        for thief in thieves {
            let stolen = thief.join().unwrap();
            if program.dest == Flavor::Fifo && program.flavor == Flavor::Fifo {
                assert!(stolen.is_sorted(), "a thief got {stolen:?} out of order");
            }
            taken.extend(stolen);
        }
        taken.extend(owner.popped);
        taken.extend(owner.worker.drain());
        each_once(1..=owner.pushed, taken);
    });
}

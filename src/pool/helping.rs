//! Whom a worker that waits can help.
//!
//! A *service* is a job that a worker has taken from another, which waits for it: a half of a `join`, or a job of a scope.
//! While it runs, the worker's deque gets, from the place on at which it then ended, what the service brings about, and
//! nothing else.
//!
//! ```text
//!  worker that runs it                         worker that waits for it, or for what brought it about
//!  ───────────────────                         ──────────────────────────────────────────────────────
//!  1  latch, word: the service is open         a  word, latch: an open service of what we wait for
//!  2  push what it brings about                b  look at the oldest item of the deque: not before its beginning?
//!  3  word := 0                                c  word: as before? then claim the item
//!  4  push what something else brings about
//!
//!  Never: b sees 4, and c misses 3. And the item that b has seen is there as long as no claim but ours succeeds.
//! ```
//!
//! So a stranger is not even taken. A job of a scope that encloses the service is one, unless it is the scope that we wait
//! for: its kind says in how many services the scope began. If the deque has nothing, the worker may wait itself, and then whoever runs what it
//! waits for can be helped: the same, one step further (leapfrogging: Wagner and Calder, 1993; Faxén, 2010).

use super::SERVED;
use super::idle::Waited;
use super::worker::Local;
use crate::deque::{Stealer, Worker};
use crate::idle::Park;
use crate::sync::spin::{Vigil, relax};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Index, KNOWN_SERVICES, Relaxed};
use crate::task::{Job, OnStack, current};
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;

/// After this time a worker that has nobody to take its place looks again whether it can help: there is work that it may not
/// run, so it is not told of every job.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// What a worker waits for: the address of the half, or of the kind of the scope's jobs.
pub(super) type Latch = usize;

/// The latch of nothing that others could serve.
const NOTHING: Latch = 0;

pub(super) fn latch_of(head: *const OnStack) -> Latch {
    head as Latch
}

/// A service, as others know it.
#[derive(Debug, Default)]
struct Service {
    /// Below, the place in the deque at which it began; above, a number that the worker's next services do not have. Zero if
    /// there is none.
    word: AtomicU64,
    /// What it ends.
    latch: AtomicUsize,
    /// What it waits for itself; zero if it does not.
    awaits: AtomicUsize,
}

/// What a worker runs that others wait for, the outermost first.
#[derive(Debug)]
pub struct Services([Service; KNOWN_SERVICES]);

impl Default for Services {
    fn default() -> Self {
        Services(core::array::from_fn(|_| Service::default()))
    }
}

/// How deep a worker is in services.
#[derive(Default)]
pub(super) struct Depth {
    depth: Cell<usize>,
    /// How many there have been.
    count: Cell<u32>,
    /// Where the innermost has begun; what lies below is to stay where it is.
    floor: Cell<Option<Index>>,
}

impl Local {
    /// Runs `f`, which does not panic, as a service.
    pub(super) fn serving<R>(&self, latch: Latch, f: impl FnOnce() -> R) -> R {
        self.with_floor(|floor| {
            let depth = self.depth.depth.get();
            self.depth.count.set(self.depth.count.get().checked_add(1).unwrap_or(1));
            let service = self.seat.services.0.get(depth);
            if let Some(service) = service {
                service.open(latch, floor, self.depth.count.get());
            }
            self.depth.depth.set(depth + 1);
            let result = f();
            self.depth.depth.set(depth);
            service.into_iter().for_each(Service::close);
            result
        })
    }

    /// How many services there are, one within the other.
    pub(super) fn depth(&self) -> usize {
        self.depth.depth.get()
    }

    /// Runs `f`, which does not panic, with the next place of the deque. Meanwhile what is in the deque stays where it is.
    pub(super) fn with_floor<R>(&self, f: impl FnOnce(Index) -> R) -> R {
        self.offer_held(); // I9: it would be offered above the floor otherwise
        let floor = self.deque.next_place();
        let outer = self.depth.floor.replace(Some(floor));
        let result = f(floor);
        self.depth.floor.set(outer);
        result
    }

    /// The newest job of our deque that was not there before the innermost service or scope began.
    pub(super) fn pop_above_floor(&self) -> Option<Job> {
        match self.depth.floor.get() {
            Some(floor) => self.pop_above(floor),
            None => self.deque.pop(),
        }
    }

    /// The newest job of our deque, if it is at this place or above.
    #[inline(always)]
    fn pop_above(&self, place: Index) -> Option<Job> {
        let newest = self.deque.next_place().wrapping_sub(1);
        if is_at_or_above(newest, place as u32) { self.deque.pop() } else { None }
    }

    /// Says what the innermost service waits for; zero if it does not. Returns what it did before.
    fn awaits(&self, latch: Latch) -> Latch {
        let innermost = self.depth().checked_sub(1).and_then(|it| self.seat.services.0.get(it));
        innermost.map_or(0, |service| service.awaits(latch))
    }

    /// Helps until the wait is over, and sleeps when there is nobody to help. `calls` has the bell rung at the end, unless
    /// it is too early for that; `look` is called after each job.
    #[cold]
    pub(super) fn wait_for(
        &self,
        latch: Latch,
        is_over: impl Fn() -> bool,
        calls: impl Fn() -> bool,
        look: impl Fn(),
    ) {
        self.offer_held(); // before `help` notes which jobs are older than its own
        let outer = self.awaits(latch);
        let (mut vigil, mut looks) = (Vigil::new(), 0_u32);
        while !is_over() {
            looks += 1;
            // With many workers it takes longer than a yield.
            let may_help = looks.is_power_of_two();
            if let Some(job) = may_help.then(|| self.leapfrog(latch, false)).flatten() {
                self.help(job, &is_over);
            } else if vigil.goes_on() {
                continue;
            } else if calls() {
                self.sleep_in_wait(latch, None, |_| is_over());
            } else {
                relax();
                continue;
            }
            look();
            (vigil, looks) = (Vigil::new(), 0);
        }
        self.awaits(outer);
    }

    /// Runs a job that another thread waits for, and what it leaves of the same scope. This worker lays the rest aside: the
    /// service is over, so no thread could take it out of a waiting worker's deque.
    fn help(&self, job: Job, is_over: impl Fn() -> bool) {
        let (scope, before) = (job.scope(), self.deque.next_place());
        // A job that is pinned to us may be one that nobody waits for.
        self.run_caught(job);
        while let Some(job) = self.pop_above(before) {
            if job.scope().is_some() && job.scope() == scope && !is_over() {
                self.run(job);
            } else {
                self.shared.lay_aside(job);
            }
        }
    }

    /// Takes a job of the scope that this worker waits for, or one that another thread waits for and that comes of what ends
    /// the latch. `raids` has it take halves, too, that their owner holds, and help those that the other thread waits for;
    /// otherwise it asks for the halves.
    fn leapfrog(&self, latch: Latch, raids: bool) -> Option<Job> {
        if let Some(job) = self.take_urgent().or_else(|| self.shared.shelf.take_of(latch)) {
            return Some(job);
        }
        if latch == NOTHING {
            return None;
        }
        let job = self.shared.registry.with(|seats| {
            let is_ours = |_, words: &_| Job::are_of(words, latch);
            let is_within = Job::are_within;
            let chain = (latch, if raids { seats.len() } else { 0 }, raids);
            seats.iter().find_map(|it| it.stealer.steal_some(is_ours)).or_else(|| {
                steal_from_servers(seats, &self.seat.services, chain, is_within, &|| true)
            })
        })?;
        self.seat.counters.stole(1);
        Some(job)
    }
}

impl Local {
    /// Sleeps until the wait is over, or there may be a job that can be run meanwhile, or runs one; or for `timeout`. If there
    /// are only others, or the thread serves a scheduler, another thread takes the place of this one until the wait is over.
    fn sleep_in_wait(
        &self,
        latch: Latch,
        timeout: Option<Duration>,
        is_over: impl Fn(bool) -> bool,
    ) {
        let idle = &self.shared.idle;
        let mut bell = self.bell.borrow_mut();
        let work = || (self.shared.is_there_work(), current::has_ticket());
        match idle.wait(&mut *bell, timeout, &is_over, work, || self.leapfrog(latch, true)) {
            Waited::Over => return,
            Waited::Helps(job) => {
                drop(bell);
                return self.help(job, || is_over(true));
            }
            Waited::Aside => drop(bell),
        }
        // Their owners do not look here, and we may sleep for long.
        self.expose();
        if self.place_is_taken.get().is_some() {
            // This is within such a section, whose beginning has notified, and not of what has come since.
            idle.searchers.notify_one();
        }
        current::aside(|| {
            let is_taken = self.place_is_taken.get() == Some(true);
            let pause = (!is_taken).then_some(PAUSE);
            let timeout = [timeout, pause].into_iter().flatten().min();
            loop {
                self.bell.borrow_mut().park(timeout);
                let is_recalled = is_taken && !self.seat.relies_on_others.load(Relaxed); // Relaxed: the bell orders it
                let has_some = self.shared.shelf.len() > 0 || !self.seat.urgent.is_empty();
                if is_over(true) || timeout.is_some() || is_recalled || has_some {
                    break;
                }
            }
        });
    }

    /// Sleeps until the bell is rung, or for `timeout`, or for any other reason.
    pub(super) fn sleep_for_bell(&self, timeout: Option<Duration>) {
        self.offer_held();
        self.sleep_in_wait(NOTHING, timeout, |has_slept| has_slept);
    }
}

/// A worker, as those see it that wait.
pub(super) trait Server<T> {
    fn services(&self) -> &Services;
    fn stealer(&self) -> &Stealer<T>;
    /// Takes a half that the worker holds, if `is_so`; unless `raids`, only asks for it.
    fn take_held(&self, raids: bool, is_so: &dyn Fn() -> bool) -> Option<T>;
}

/// Takes an item that has come of a service which ends the latch, or of a service that such a one waits for, and so on.
/// `is_such` gets an item's words, the latch, and in how many services the item's service is; `is_so` says whether the latch is still what it was
/// found to be.
fn steal_from_servers<T, S: Server<T>>(
    seats: &[S],
    own: *const Services,
    (latch, steps, raids): (Latch, usize, bool),
    is_such: fn(&MaybeUninit<T>, Latch, usize) -> bool,
    is_so: &dyn Fn() -> bool,
) -> Option<T> {
    let others = seats.iter().filter(|it| !ptr::eq(it.services(), own));
    let servers =
        others.flat_map(|seat| seat.services().open().enumerate().map(move |it| (seat, it)));
    servers.into_iter().find_map(|(seat, (depth, service))| {
        let view = service.look(latch)?;
        let is_still = || is_so() && view.is_still();
        let job = view.steal(seat.stealer(), |words| is_such(words, latch, depth) && is_so());
        // What it holds has come of its innermost service, and so of each that is open.
        let job = job.or_else(|| seat.take_held(raids, &is_still));
        if job.is_some() {
            return job;
        }
        let next = Some(service.awaited()).filter(|&it| it != NOTHING && steps > 0)?;
        // Its memory may have been used again for a stranger, unless the same service awaits it still: in this order.
        let is_so = || is_so() && service.awaited() == next && view.is_still();
        steal_from_servers(seats, own, (next, steps - 1, raids), is_such, &is_so)
    })
}

/// Whether a place in a deque is that at which a service began, of which we have the low half, or a later one.
fn is_at_or_above(place: Index, began: u32) -> bool {
    (place as u32).wrapping_sub(began) as i32 >= 0
}

impl Services {
    /// Those that may be open.
    fn open(&self) -> impl Iterator<Item = &Service> {
        // Relaxed: it is looked at again.
        self.0.iter().take_while(|it| it.word.load(Relaxed) != 0)
    }
}

impl Service {
    fn open(&self, latch: Latch, began: Index, number: u32) {
        self.awaits.store(0, Relaxed); // Relaxed: the word publishes it
        self.latch.store(latch, SERVED.release());
        self.word.store(u64::from(number) << 32 | u64::from(began as u32), SERVED.release());
    }

    fn awaits(&self, latch: Latch) -> Latch {
        let before = self.awaits.load(Relaxed); // Relaxed: our own
        self.awaits.store(latch, SERVED.release());
        before
    }

    fn awaited(&self) -> Latch {
        self.awaits.load(SERVED.acquire())
    }

    fn close(&self) {
        self.word.store(0, Relaxed); // Relaxed: what is pushed or opened afterwards publishes it
    }

    /// It, if it ends that latch.
    fn look(&self, latch: Latch) -> Option<View<'_>> {
        let word = self.word.load(SERVED.acquire());
        let is_its = word != 0 && self.latch.load(SERVED.acquire()) == latch;
        is_its.then_some(View { service: self, word })
    }
}

/// A service that was open.
struct View<'a> {
    service: &'a Service,
    word: u64,
}

impl View<'_> {
    /// Takes the oldest item of the worker's deque, if it is such a one and was pushed since the service began and while
    /// it was open.
    fn steal<T>(&self, from: &Stealer<T>, is_such: impl Fn(&MaybeUninit<T>) -> bool) -> Option<T> {
        let began = self.word as u32;
        from.steal_some(|place, words| {
            is_at_or_above(place, began) && is_such(words) && self.is_still()
        })
    }

    /// Whether it still was when that was written which we have read before.
    fn is_still(&self) -> bool {
        // Relaxed: behind acquiring reads.
        self.service.word.load(Relaxed) == self.word
    }
}

/// What the models do.
impl Services {
    /// The owner of a deque begins a service.
    pub fn begin<T>(&self, deque: &Worker<T>, latch: usize, number: u32) {
        self.0[0].open(latch, deque.next_place(), number);
    }

    /// It has ended.
    pub fn end(&self) {
        self.0[0].close();
    }

    /// It waits for a latch itself, or, if that is zero, for nothing.
    pub fn wait_for(&self, latch: usize) {
        self.0[0].awaits(latch);
    }

    /// Takes an item that has come of the services of these workers which end a latch, or of what they wait for.
    pub fn leapfrog<T>(servers: &[(Arc<Services>, Stealer<T>)], latch: usize) -> Option<T> {
        let chain = (latch, servers.len(), false);
        steal_from_servers(servers, ptr::null(), chain, |_, _, _| true, &|| true)
    }

    /// Takes an item that has come of the service that ends a latch.
    pub fn help<T>(&self, stealer: &Stealer<T>, latch: usize) -> Option<T> {
        self.0[0].look(latch)?.steal(stealer, |_| true)
    }
}

impl<T> Server<T> for (Arc<Services>, Stealer<T>) {
    fn services(&self) -> &Services {
        &self.0
    }

    fn stealer(&self) -> &Stealer<T> {
        &self.1
    }

    fn take_held(&self, _: bool, _: &dyn Fn() -> bool) -> Option<T> {
        None
    }
}

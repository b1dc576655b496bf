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
//! for: its kind says in how many services the scope began.
//!
//! This is leapfrogging (Wagner and Calder, 1993; Faxén, 2010), which goes from a thief on to the thief for which that waits.
//! Here a service also says what the service of the victim ends in which its half or scope came to be: it is *within* that. So
//! a worker follows what was stolen from its thief, and so on, before the thief waits for it.

use super::SERVED;
use super::idle::Waited;
use super::worker::Local;
use crate::deque::{Stealer, Worker};
use crate::idle::Park;
use crate::sync::spin::{Vigil, relax};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Index, KNOWN_SERVICES, Relaxed};
use crate::task::{Job, OnStack, current};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::iter;
use core::mem::{self, MaybeUninit};
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
    /// What the service ends in which that began which this one ends; zero if in none.
    within: AtomicUsize,
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
    pub(super) fn serving<R>(&self, latch: Latch, within: Latch, f: impl FnOnce() -> R) -> R {
        self.with_floor(|floor| {
            let depth = self.depth.depth.get();
            self.depth.count.set(self.depth.count.get().checked_add(1).unwrap_or(1));
            let service = self.seat.services.0.get(depth);
            if let Some(service) = service {
                service.open(latch, within, floor, self.depth.count.get());
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
            let own = &raw const self.seat.services;
            seats
                .iter()
                .find_map(|it| it.stealer.steal_some(is_ours))
                .or_else(|| steal_from_servers(seats, own, latch, raids, Job::are_within))
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

/// Takes an item that has come of a service which ends the latch, or, if it `goes_on`, of a service that began in such a one,
/// and so on. `is_such` gets an item's words, what its service ends, and in how many others that is.
fn steal_from_servers<T, S: Server<T>>(
    seats: &[S],
    own: *const Services,
    latch: Latch,
    goes_on: bool,
    is_such: fn(&MaybeUninit<T>, Latch, usize) -> bool,
) -> Option<T> {
    let others = seats.iter().filter(|it| !ptr::eq(it.services(), own));
    let views = others.flat_map(View::all_of);
    if !goes_on {
        return views
            .filter(|it| it.latch == latch)
            .find_map(|it| it.take(false, is_such, &|| true));
    }
    let mut views: Vec<View<'_, S>> = views.collect();
    // By what they are within. Those that end the latch come of it, too.
    views.iter_mut().filter(|it| it.latch == latch).for_each(|it| it.within = latch);
    views.sort_unstable_by_key(|it| it.within);
    // Where to look: what services are within, and the service that ends it.
    let mut next = vec![(latch, None)];
    let (mut seen, mut parents) = (vec![false; views.len()], vec![None; views.len()]);
    while let Some((within, parent)) = next.pop() {
        let first = views.partition_point(|it| it.within < within);
        for (index, view) in views.iter().enumerate().skip(first) {
            if view.within != within || mem::replace(&mut seen[index], true) {
                break;
            }
            parents[index] = parent;
            // Their memory may have been used again for strangers, unless they are open still: in this order.
            let path = iter::successors(parent, |&it: &usize| parents[it]);
            let job = view.take(true, is_such, &|| path.clone().all(|it| views[it].is_still()));
            if job.is_some() {
                return job;
            }
            if view.latch != within {
                next.push((view.latch, Some(index)));
            }
        }
    }
    None
}

/// Whether a place in a deque is that at which a service began, of which we have the low half, or a later one.
fn is_at_or_above(place: Index, began: u32) -> bool {
    (place as u32).wrapping_sub(began) as i32 >= 0
}

impl Services {
    /// What the innermost ends, as far as it is known; zero if there is none.
    pub(super) fn innermost(&self) -> Latch {
        // Relaxed: the caller is the owner, or keeps it from opening and closing any.
        self.open().last().map_or(NOTHING, |it| it.latch.load(Relaxed))
    }

    /// Those that may be open.
    fn open(&self) -> impl Iterator<Item = &Service> {
        // Relaxed: it is looked at again.
        self.0.iter().take_while(|it| it.word.load(Relaxed) != 0)
    }
}

impl Service {
    fn open(&self, latch: Latch, within: Latch, began: Index, number: u32) {
        self.within.store(within, SERVED.release());
        self.latch.store(latch, SERVED.release());
        self.word.store(u64::from(number) << 32 | u64::from(began as u32), SERVED.release());
    }

    fn close(&self) {
        self.word.store(0, Relaxed); // Relaxed: what is pushed or opened afterwards publishes it
    }
}

/// A service that was open.
struct View<'a, S> {
    server: &'a S,
    service: &'a Service,
    /// In how many others of its worker it is.
    depth: usize,
    word: u64,
    latch: Latch,
    within: Latch,
}

impl<'a, S> View<'a, S> {
    fn all_of<T>(server: &'a S) -> impl Iterator<Item = View<'a, S>>
    where
        S: Server<T>,
    {
        server.services().open().enumerate().filter_map(move |(depth, service)| {
            let word = service.word.load(SERVED.acquire());
            let latch = service.latch.load(SERVED.acquire());
            let within = service.within.load(SERVED.acquire());
            (word != 0).then_some(View { server, service, depth, word, latch, within })
        })
    }

    /// Takes the oldest item of the worker's deque, if it is such a one and was pushed since the service began and while
    /// it was open, and it `is_so`. Or, if `raids`, a half that the worker holds; otherwise only asks for it.
    fn take<T>(
        &self,
        raids: bool,
        is_such: fn(&MaybeUninit<T>, Latch, usize) -> bool,
        is_so: &dyn Fn() -> bool,
    ) -> Option<T>
    where
        S: Server<T>,
    {
        let began = self.word as u32;
        let is_so = || self.is_still() && is_so();
        let stolen = self.server.stealer().steal_some(|place, words| {
            is_at_or_above(place, began) && is_such(words, self.latch, self.depth) && is_so()
        });
        // What it holds has come of its innermost service, and so of each that is open.
        stolen.or_else(|| self.server.take_held(raids, &is_so))
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
    pub fn begin<T>(&self, deque: &Worker<T>, latch: usize, within: usize, number: u32) {
        self.0[0].open(latch, within, deque.next_place(), number);
    }

    /// It has ended.
    pub fn end(&self) {
        self.0[0].close();
    }

    /// Takes an item that has come of the services of these workers which end a latch, or of those that began in them.
    pub fn leapfrog<T>(servers: &[(Arc<Services>, Stealer<T>)], latch: usize) -> Option<T> {
        steal_from_servers(servers, ptr::null(), latch, true, |_, _, _| true)
    }

    /// Takes an item that has come of the services of these workers which end a latch.
    pub fn help<T>(servers: &[(Arc<Services>, Stealer<T>)], latch: usize) -> Option<T> {
        steal_from_servers(servers, ptr::null(), latch, false, |_, _, _| true)
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

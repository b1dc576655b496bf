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
use crate::deque::{Stealer, Worker};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Index, KNOWN_SERVICES, Relaxed};
use crate::task::OnStack;
use alloc::vec;
use alloc::vec::Vec;
use core::iter;
use core::mem::{self, MaybeUninit};
use core::ptr;

/// What a worker waits for: the address of the half, or of the kind of the scope's jobs.
pub(super) type Latch = usize;

/// The latch of nothing that others could serve.
pub(super) const NOTHING: Latch = 0;

pub(super) fn latch_of(head: *const OnStack) -> Latch {
    head as Latch
}

/// A service, as others know it.
#[derive(Debug, Default)]
pub(super) struct Service {
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
pub struct Services(pub(super) [Service; KNOWN_SERVICES]);

impl Default for Services {
    fn default() -> Self {
        Services(core::array::from_fn(|_| Service::default()))
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
pub(super) fn steal_from_servers<T, S: Server<T>>(
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
pub(super) fn is_at_or_above(place: Index, began: u32) -> bool {
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
    pub(super) fn open(&self, latch: Latch, within: Latch, began: Index, number: u32) {
        self.within.store(within, SERVED.release());
        self.latch.store(latch, SERVED.release());
        self.word.store(u64::from(number) << 32 | u64::from(began as u32), SERVED.release());
    }

    pub(super) fn close(&self) {
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

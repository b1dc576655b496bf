//! The jobs that a worker may run while it waits.
//!
//! A *service* is a job that a worker has taken from another worker, which waits for it. The job is
//! a half of a `join`, or a job of a scope. While the service runs, the items that it spawns go to
//! the end of the server's deque, and no other items do. So these items lie at or above the index
//! at which the deque ended when the service began.
//!
//! ```text
//!  worker that runs it                         worker that waits for it, or for what brought it about
//!  ───────────────────                         ──────────────────────────────────────────────────────
//!  1  latch, word: the service is open         a  word, latch: an open service of what we wait for
//!  2  push what it brings about                b  look at the oldest item of the deque: not before its beginning?
//!  3  word := 0                                c  word: as before? then claim the item
//!  4  push what something else brings about
//!
//!  Never: a helper takes an item that the server pushed after the service ended.
//!  If b sees an item of 4, then c sees 3. If the claim succeeds, it takes the item that b saw.
//! ```
//!
//! A worker that waits takes no stranger. A job of a scope that encloses the service is a stranger,
//! unless the worker waits for that very scope. The job's kind says in how many services its scope
//! began.
//!
//! This is leapfrogging (Wagner and Calder, 1993; Faxén, 2010): a worker helps its thief, and also
//! the thief for which its thief waits. A half or scope is made in some service of the worker that
//! waits for it. The service that ends the half or scope names the latch of that outer service: it
//! is *within* that latch. So a worker finds all jobs that were stolen from its thief, and from
//! that thief's thieves, before any of them waits.

use crate::deque::Stealer;
#[cfg(filch_loom_build)]
use crate::deque::Worker;
use crate::pool::SERVED;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Index, KNOWN_SERVICES, Relaxed};
use crate::task::OnStack;
use alloc::vec::Vec;
use core::iter;
use core::mem::{self, MaybeUninit};
use core::ptr;

/// The address of the half for which a worker waits, or of the kind of a scope's jobs.
pub(crate) type Latch = usize;

/// The latch of a wait that is for neither a half nor a scope.
pub(crate) const NOTHING: Latch = 0;

pub(crate) fn latch_of(head: *const OnStack) -> Latch {
    head as Latch
}

/// A service, as other workers see it.
#[derive(Debug, Default)]
pub(crate) struct OpenService {
    /// The low half is the deque's index at which the service began. The high half is a number that
    /// the worker's next services do not have. Zero if there is no service.
    word: AtomicU64,
    /// The latch that the service ends: that of the half or scope whose job the worker runs.
    latch: AtomicUsize,
    /// The latch of the service in which the half or scope was made; zero if there was none.
    within: AtomicUsize,
}

/// The services of a worker, the outermost first.
#[derive(Debug)]
pub struct Services(pub(crate) [OpenService; KNOWN_SERVICES]);

impl Default for Services {
    fn default() -> Self {
        Services(core::array::from_fn(|_| OpenService::default()))
    }
}

/// A worker, as a waiting worker sees it.
pub(crate) trait Server<T> {
    fn services(&self) -> &Services;
    fn stealer(&self) -> &Stealer<T>;
    /// Asks the worker to offer the halves that it holds. With `raids`, takes the oldest half
    /// instead, if `is_so` returns `true`.
    fn take_held(&self, raids: bool, is_so: &dyn Fn() -> bool) -> Option<T>;
}

/// The memory of a search, which a worker reuses in its next wait.
#[derive(Default)]
pub(crate) struct Views {
    all: Vec<View>,
    /// The services to visit: each a latch, and the view of the service that ends it.
    next: Vec<(Latch, Option<usize>)>,
}

/// Takes an item that an open service has spawned. Without `views`, the service is one that ends
/// `latch`. With `views`, it may also end a latch that was made within `latch`, at any depth.
/// `is_such` decides whether the item is taken. It gets the item's words, the latch of its service,
/// and the number of the worker's services outside that service.
pub(crate) fn steal_from_servers<T, S: Server<T>>(
    seats: &[S],
    own: *const Services,
    latch: Latch,
    views: Option<&mut Views>,
    is_such: fn(&MaybeUninit<T>, Latch, usize) -> bool,
) -> Option<T> {
    let others = seats.iter().enumerate().filter(|it| !ptr::eq(it.1.services(), own));
    let found = others.flat_map(|(seat, it)| View::all_of(seat, it.services()));
    let Some(Views { all, next }) = views else {
        let mut direct = found.filter(|it| it.latch == latch);
        return direct.find_map(|it| it.take(seats, false, is_such, &|| true));
    };
    all.clear();
    all.extend(found);
    // Sorted by `within`. Services that end `latch` count as within it, so that the search begins
    // with them.
    all.iter_mut().filter(|it| it.latch == latch).for_each(|it| it.within = latch);
    all.sort_unstable_by_key(|it| it.within);
    next.clear();
    next.push((latch, None));
    while let Some((within, parent)) = next.pop() {
        let first = all.partition_point(|it| it.within < within);
        for index in first..all.len() {
            let view = &mut all[index];
            if view.within != within || mem::replace(&mut view.is_seen, true) {
                break;
            }
            view.parent = parent;
            let view = &all[index];
            // If a service on the path has ended, its latch's memory may belong to a stranger now.
            // So `take` checks that all are still open, from the innermost outwards.
            let path = iter::successors(parent, |&it: &usize| all[it].parent);
            let is_so = || path.clone().all(|it| all[it].is_still(seats));
            let job = view.take(seats, true, is_such, &is_so);
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

/// Returns whether an index of a deque is at or above the index at which a service began. `began`
/// is the low half of that index.
pub(crate) fn is_at_or_above(place: Index, began: u32) -> bool {
    (place as u32).wrapping_sub(began) as i32 >= 0
}

impl Services {
    /// Returns the latch of the innermost known service; zero if there is none.
    pub(crate) fn innermost(&self) -> Latch {
        // Relaxed: the caller is the owner, or keeps the owner from opening and closing services.
        self.open().last().map_or(NOTHING, |it| it.latch.load(Relaxed))
    }

    fn open(&self) -> impl Iterator<Item = &OpenService> {
        // Relaxed: this is a first look. Other threads read the word again, with acquire.
        self.0.iter().take_while(|it| it.word.load(Relaxed) != 0)
    }
}

impl OpenService {
    pub(crate) fn open(&self, latch: Latch, within: Latch, began: Index, number: u32) {
        self.within.store(within, SERVED.release());
        self.latch.store(latch, SERVED.release());
        self.word.store(u64::from(number) << 32 | u64::from(began as u32), SERVED.release());
    }

    pub(crate) fn close(&self) {
        self.word.store(0, Relaxed); // Relaxed: the next push, or the next `open`, publishes it
    }
}

struct View {
    seat: usize,
    /// How many other services of its worker the service is in.
    depth: usize,
    word: u64,
    latch: Latch,
    within: Latch,
    is_seen: bool,
    /// The view from which the search came to this view.
    parent: Option<usize>,
}

impl View {
    fn all_of(seat: usize, services: &Services) -> impl Iterator<Item = View> {
        services.open().enumerate().filter_map(move |(depth, service)| {
            let word = service.word.load(SERVED.acquire());
            let latch = service.latch.load(SERVED.acquire());
            let within = service.within.load(SERVED.acquire());
            let view = View { seat, depth, word, latch, within, is_seen: false, parent: None };
            (word != 0).then_some(view)
        })
    }

    /// Takes the oldest item of the worker's deque, if it was pushed while this service was open,
    /// and `is_such` and `is_so` return `true`. Otherwise, with `raids`, takes a half that the
    /// worker holds. Without `raids`, asks the worker to offer its halves.
    fn take<T, S: Server<T>>(
        &self,
        seats: &[S],
        raids: bool,
        is_such: fn(&MaybeUninit<T>, Latch, usize) -> bool,
        is_so: &dyn Fn() -> bool,
    ) -> Option<T> {
        let (server, began) = (&seats[self.seat], self.word as u32);
        let is_so = || self.is_still(seats) && is_so();
        let stolen = server.stealer().steal_some(|place, words| {
            is_at_or_above(place, began) && is_such(words, self.latch, self.depth) && is_so()
        });
        // The worker's halves come from its innermost service, and so from each open service.
        stolen.or_else(|| server.take_held(raids, &is_so))
    }

    /// Returns whether the service was still open when the words that the caller has read were
    /// written.
    fn is_still<T, S: Server<T>>(&self, seats: &[S]) -> bool {
        let service = &seats[self.seat].services().0[self.depth];
        // Relaxed: the caller's earlier reads acquire (SERVED).
        service.word.load(Relaxed) == self.word
    }
}

/// The operations that only models use.
#[cfg(filch_loom_build)]
impl Services {
    /// Begins a service of the deque's owner.
    pub fn begin<T>(&self, deque: &Worker<T>, latch: usize, within: usize, number: u32) {
        self.0[0].open(latch, within, deque.next_place(), number);
    }

    /// Ends the service.
    pub fn end(&self) {
        self.0[0].close();
    }

    /// Pushes an item as `join` offers a half. Returns its index.
    pub fn offer<T>(deque: &Worker<T>, item: T) -> Index {
        let place = deque.next_place();
        deque.push(item);
        place
    }

    /// Takes the newest item back, whose index is `place`. Returns whether it was still there.
    pub fn take_back<T>(deque: &Worker<T>, place: Index) -> Option<bool> {
        deque.take_back(place)
    }

    /// Takes an item spawned by a service that ends a latch, or by a service within it.
    pub fn leapfrog<T>(servers: &[(Arc<Services>, Stealer<T>)], latch: usize) -> Option<T> {
        steal_from_servers(servers, ptr::null(), latch, Some(&mut Views::default()), |_, _, _| true)
    }

    /// Takes an item spawned by a service that ends a latch.
    pub fn help<T>(servers: &[(Arc<Services>, Stealer<T>)], latch: usize) -> Option<T> {
        steal_from_servers(servers, ptr::null(), latch, None, |_, _, _| true)
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

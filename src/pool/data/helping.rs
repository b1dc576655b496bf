//! The jobs that a worker may run while it waits.
//!
//! | word | meaning |
//! |---|---|
//! | service | the run of a half of a `join`, or of a job of a scope, for which another thread waits |
//! | server | the worker that runs a service, and meanwhile pushes only the service's items |
//! | helper | a worker that waits, and may take items that an open service has spawned |
//! | stranger | a job that need not have run for the awaited half or scope to end |
//! | hold, offer | of a server: to keep a half in a list on its stack; to push it to its deque |
//!
//! ```text
//!  server's deque:   │ older items │ items that the service spawns │
//!                                  ▲
//!                                  word: the index at which the service began
//!
//!  server                                  helper
//!  ──────                                  ──────
//!  1  write wait, then word: it is open    a  read word, then wait: open, and ends our wait?
//!  2  push items that the service spawns   b  look at the oldest item: at or above word's index?
//!  3  word := 0                            c  read word again: unchanged? then claim the item
//!  4  push other items
//!
//!  Never: a helper takes an item that the server pushed after the service ended.
//!  If b sees an item of 4, then c sees 3. A claim that succeeds takes the item that b saw.
//! ```
//!
//! A helper takes these items of a service, and leaves all others alone as strangers, such as jobs
//! of a scope that encloses the service:
//!
//! - halves of `join`s, and jobs of scopes that were opened within the service;
//! - jobs of the scope for which the helper waits, and of the scope whose wait the service ends.
//!
//! A scope was opened within the service if more services are around the scope than around the
//! service. If the worker that opened a scope spawns a job into it, the job's first word has the
//! number of services around the scope. A job that another thread has spawned has no such number,
//! and counts as a job of an enclosing scope.
//!
//! Suppose a helper waits for half h. The worker that runs h may wait for a half k that a third
//! worker runs. The helper then also helps the third worker, and so on: *leapfrogging* (Wagner and
//! Calder, 1993; Faxén, 2010). So each service has two *wait ids*, numbers that identify waits.
//! `wait` identifies the wait for the service's half or scope; the service *ends* that wait. If the
//! half or scope was made in an outer service, `within` identifies the wait that the outer service
//! ends. The helper follows these ids, even if the worker that runs h does not wait yet:
//!
//! ```text
//!  service of worker    runs half          wait   within
//!  A                    h                  h      0         found, because it ends h
//!  B                    k, made in h       k      h         found, because it is within h
//!  C                    l, made in k       l      k         found, because it is within k
//! ```

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

/// The id of a wait: the address of the object for which the worker waits. This is a half of a
/// `join`, the field `kind` of a scope, or a scope's job that has a handle.
pub(crate) type WaitId = usize;

/// The id of a wait for none of these objects.
pub(crate) const NOTHING: WaitId = 0;

pub(crate) fn wait_id_of(head: *const OnStack) -> WaitId {
    head as WaitId
}

#[derive(Debug, Default)]
pub(crate) struct OpenService {
    /// The low 32 bits are those of the index in the deque at which the service began. The high 32
    /// bits are the service's number, which differs from those of the worker's next services. So a
    /// helper notices if this service has ended and another one has begun. The word is zero if no
    /// service is open.
    word: AtomicU64,
    /// The wait that the service ends: the wait for the half or scope whose job the worker runs.
    wait: AtomicUsize,
    /// If the half or scope was made in an outer service, the wait that the outer service ends.
    /// Zero if it was made outside all services.
    within: AtomicUsize,
}

/// The services of a worker that other workers can see: the outermost `KNOWN_SERVICES` of them,
/// outermost first.
#[derive(Debug)]
pub struct Services(pub(crate) [OpenService; KNOWN_SERVICES]);

impl Default for Services {
    fn default() -> Self {
        Services(core::array::from_fn(|_| OpenService::default()))
    }
}

pub(crate) trait Server<T> {
    fn services(&self) -> &Services;
    fn stealer(&self) -> &Stealer<T>;
    /// Asks the worker to offer the halves that it holds. With `raids`, also takes the oldest of
    /// them, if `is_so` returns `true` while the worker is kept from letting go of its halves.
    fn take_held(&self, raids: bool, is_so: &dyn Fn() -> bool) -> Option<T>;
}

/// The buffers of a search by `steal_from_servers`. A worker keeps them for its next search.
#[derive(Default)]
pub(crate) struct Views {
    all: Vec<View>,
    /// The waits within which the search has still to look for services. Beside each wait is the
    /// index in `all` of the service that ends this wait, or `None` for the wait at which the
    /// search began.
    next: Vec<(WaitId, Option<usize>)>,
}

/// Takes an item that an open service of another worker than the caller (`own`) has spawned.
///
/// Looks at services that end `wait`; with `views`, also at services within `wait`, at any depth.
/// Takes only an item that `is_such` accepts. `is_such` gets the item's words, the wait that the
/// service ends, and the number of services around that service.
///
/// If a service has no such item, asks its worker to offer the halves that it holds. With `raids`,
/// then takes one of these halves.
pub(crate) fn steal_from_servers<T, S: Server<T>>(
    seats: &[S],
    own: *const Services,
    wait: WaitId,
    views: Option<&mut Views>,
    raids: bool,
    is_such: fn(&MaybeUninit<T>, WaitId, usize) -> bool,
) -> Option<T> {
    let others = seats.iter().enumerate().filter(|it| !ptr::eq(it.1.services(), own));
    let found = others.flat_map(|(seat, it)| View::all_of(seat, it.services()));
    let Some(Views { all, next }) = views else {
        let mut direct = found.filter(|it| it.wait == wait);
        return direct.find_map(|it| it.take(seats, raids, is_such, &|| true));
    };
    all.clear();
    all.extend(found);
    // The search begins with the services that end `wait`, so these count as within `wait`.
    all.iter_mut().filter(|it| it.wait == wait).for_each(|it| it.within = wait);
    all.sort_unstable_by_key(|it| it.within);
    next.clear();
    next.push((wait, None));
    while let Some((within, parent)) = next.pop() {
        let first = all.partition_point(|it| it.within < within);
        for index in first..all.len() {
            let view = &mut all[index];
            if view.within != within || mem::replace(&mut view.is_seen, true) {
                break;
            }
            view.parent = parent;
            let view = &all[index];
            // `path` has the services by which the search has come to this one, from the innermost
            // outwards. `take` checks that they are all still open. The id of a wait is the
            // address of its half or scope. So once a service has ended, a new wait can get the
            // same id. Without the check, the search could mistake this service for one within
            // `wait`.
            let path = iter::successors(parent, |&it: &usize| all[it].parent);
            let is_so = || path.clone().all(|it| all[it].is_still(seats));
            let job = view.take(seats, raids, is_such, &is_so);
            if job.is_some() {
                return job;
            }
            if view.wait != within {
                next.push((view.wait, Some(index)));
            }
        }
    }
    None
}

/// Returns whether an index of a deque is at or above the index whose low half is `began`.
pub(crate) fn is_at_or_above(index: Index, began: u32) -> bool {
    (index as u32).wrapping_sub(began) as i32 >= 0
}

impl Services {
    /// Returns the wait that the innermost of these services ends; zero if there is none.
    pub(crate) fn innermost(&self) -> WaitId {
        // Relaxed: the caller is the owner, or keeps the owner from opening and closing services.
        self.open().last().map_or(NOTHING, |it| it.wait.load(Relaxed))
    }

    fn open(&self) -> impl Iterator<Item = &OpenService> {
        // Relaxed: a first look. `View::all_of` reads the word again, with acquire.
        self.0.iter().take_while(|it| it.word.load(Relaxed) != 0)
    }
}

impl OpenService {
    pub(crate) fn open(&self, wait: WaitId, within: WaitId, began: Index, number: u32) {
        self.within.store(within, SERVED.release());
        self.wait.store(wait, SERVED.release());
        self.word.store(u64::from(number) << 32 | u64::from(began as u32), SERVED.release());
    }

    pub(crate) fn close(&self) {
        self.word.store(0, Relaxed); // Relaxed: the next push, or the next `open`, publishes it
    }
}

struct View {
    seat: usize,
    /// How many open services of the same worker enclose this service.
    depth: usize,
    word: u64,
    wait: WaitId,
    within: WaitId,
    is_seen: bool,
    /// The index in `Views::all` of the view from which the search reached this one.
    parent: Option<usize>,
}

impl View {
    fn all_of(seat: usize, services: &Services) -> impl Iterator<Item = View> {
        services.open().enumerate().filter_map(move |(depth, service)| {
            let word = service.word.load(SERVED.acquire());
            let wait = service.wait.load(SERVED.acquire());
            let within = service.within.load(SERVED.acquire());
            let view = View { seat, depth, word, wait, within, is_seen: false, parent: None };
            (word != 0).then_some(view)
        })
    }

    /// Takes the oldest item of the server's deque. The item must have been pushed while this
    /// service was open, and `is_such` and `is_so` must both return `true`. If there is no such
    /// item, asks the server to offer its held halves. With `raids`, then takes the oldest of these
    /// halves if `is_so` returns `true`.
    fn take<T, S: Server<T>>(
        &self,
        seats: &[S],
        raids: bool,
        is_such: fn(&MaybeUninit<T>, WaitId, usize) -> bool,
        is_so: &dyn Fn() -> bool,
    ) -> Option<T> {
        let (server, began) = (&seats[self.seat], self.word as u32);
        let is_so = || self.is_still(seats) && is_so();
        let stolen = server.stealer().steal_some(|index, words| {
            is_at_or_above(index, began) && is_such(words, self.wait, self.depth) && is_so()
        });
        // A server offers its held halves when a service begins. So each half that it still holds
        // was made in its innermost service. `self` is that innermost service or encloses it. So
        // the half was made within `self`, too.
        stolen.or_else(|| server.take_held(raids, &is_so))
    }

    /// Returns whether this service is still open: whether its word is unchanged (step c of the
    /// picture above).
    fn is_still<T, S: Server<T>>(&self, seats: &[S]) -> bool {
        let service = &seats[self.seat].services().0[self.depth];
        // Relaxed: the caller's earlier reads acquire. If they saw a write from after this service,
        // this load sees that the service has ended (SERVED).
        service.word.load(Relaxed) == self.word
    }
}

/// The operations that only models use.
#[cfg(filch_loom_build)]
impl Services {
    /// Begins a service of the deque's owner.
    pub fn begin<T>(&self, deque: &Worker<T>, wait: usize, within: usize, number: u32) {
        self.0[0].open(wait, within, deque.next_index(), number);
    }

    /// Ends the service.
    pub fn end(&self) {
        self.0[0].close();
    }

    /// Pushes an item as `join` offers a half. Returns its index.
    pub fn offer<T>(deque: &Worker<T>, item: T) -> Index {
        let index = deque.next_index();
        deque.push(item);
        index
    }

    /// Takes the item at `index` back. Returns `Some(true)` if the owner got it, `Some(false)` if
    /// it was stolen, and `None` if the newest item is another.
    pub fn take_back<T>(deque: &Worker<T>, index: Index) -> Option<bool> {
        deque.take_back(index)
    }

    /// Takes an item spawned by a service that ends `wait`, or a wait within `wait`.
    pub fn leapfrog<T>(servers: &[(Arc<Services>, Stealer<T>)], wait: usize) -> Option<T> {
        steal_from_servers(
            servers,
            ptr::null(),
            wait,
            Some(&mut Views::default()),
            true,
            |_, _, _| true,
        )
    }

    /// Takes an item spawned by a service that ends `wait`.
    pub fn help<T>(servers: &[(Arc<Services>, Stealer<T>)], wait: usize) -> Option<T> {
        steal_from_servers(servers, ptr::null(), wait, None, false, |_, _, _| true)
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

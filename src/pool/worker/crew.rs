//! How the threads of a pool start, block, are *discharged* because there are too many, and go. The
//! *crew* is the record of these threads; its lock guards their counts. The user's wakers are
//! called outside that lock. A *place* is a worker's right to count as one of the threads that the
//! pool is to run. A worker is *spare* if it sleeps because enough others run.

use super::local::{Local, Vacancy};
use crate::deque::Worker;
use crate::executor::Reason;
use crate::idle::{Park, ThreadPark};
use crate::pool::GONE;
use crate::pool::data::pool::{CLOSED, Crew, ENDING, MISSING, PRESENT, Pool, SPARE, SURPLUS};
use crate::pool::data::registry::Seat;
use crate::pool::data::settings::at_least_one;
use crate::pool::frames::held::Held;
use crate::sync::{Arc, Relaxed, thread};
use crate::task::current;
use alloc::format;
use crossbeam_utils::CachePadded;
use std::io;

// An access below without a comment is `Relaxed` because the lock of the crew orders it, or because
// its value is only a hint.
impl Pool {
    /// Starts the threads that the pool lacks. Returns an error if the pool still has no thread
    /// afterwards: the system gives none, or another thread is closing the pool. The caller then
    /// refuses its job, because no thread would run the job even if the injector took it.
    #[cold]
    pub(crate) fn start(this: &Arc<Self>) -> Result<(), Reason> {
        let _ = Pool::start_all(this);
        let crew = this.crew.lock();
        if crew.alive > 0 {
            Ok(())
        } else if crew.is_closing {
            Err(Reason::Closed)
        } else {
            Err(Reason::Full)
        }
    }

    /// Starts the threads that the pool lacks. Returns an error if any is still missing.
    pub(crate) fn start_all(this: &Arc<Self>) -> io::Result<()> {
        let mut crew = this.crew.lock();
        let attention = this.attention.load(Relaxed);
        if attention & MISSING == 0 || crew.is_closing || this.settings.is_hosted {
            return Ok(());
        }
        let result = Pool::fill(this, &mut crew);
        if result.is_ok() {
            // `MISSING` is cleared after the threads have started, because a spawner that sees it
            // cleared starts no thread.
            this.attention.fetch_and(!MISSING, Relaxed);
        }
        drop(crew);
        this.give_up(&result);
        result
    }

    /// Starts the missing threads. If the system has none to give, the next spawn from outside
    /// tries again.
    fn fill(this: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        let mut result = Ok(());
        while crew.is_too_small() && this.may_start(crew) && result.is_ok() {
            result = Pool::start_one(this, crew);
        }
        if result.is_err() {
            this.attention.fetch_or(MISSING, Relaxed);
        }
        result
    }

    /// Starts a thread for the jobs that a closing pool still has, if all of its threads are
    /// blocked.
    fn start_for_rest(this: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        let is_needed = crew.is_closing && crew.alive <= crew.blocked && this.is_there_work();
        if is_needed && this.may_start(crew) {
            return Pool::start_one(this, crew);
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn start_if_closing(this: &Arc<Self>) {
        let mut crew = this.crew.lock();
        let result = Pool::start_for_rest(this, &mut crew);
        drop(crew);
        this.give_up(&result);
    }

    fn fill_or_start_for_rest(this: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        if crew.is_closing { Pool::start_for_rest(this, crew) } else { Pool::fill(this, crew) }
    }

    fn may_start(&self, crew: &Crew) -> bool {
        crew.alive + crew.leaving < self.settings.max_threads && !self.settings.is_hosted
    }

    /// Starts a thread. On an error the caller releases the lock and calls `give_up`.
    fn start_one(this: &Arc<Self>, crew: &mut Crew) -> io::Result<()> {
        let vacancy = Pool::add_vacancy(this, crew, false);
        let seat = Arc::clone(&vacancy.seat);
        let name = format!("{}-{}", this.settings.thread_name, seat.index);
        match thread::spawn(name, this.settings.stack_size, move || Local::live(vacancy)) {
            Ok(thread) => {
                crew.threads[seat.index] = Some(thread);
                Ok(())
            }
            Err(error) => {
                this.remove_vacancy(crew, &seat);
                Err(error)
            }
        }
    }

    pub(crate) fn add_vacancy(this: &Arc<Self>, crew: &mut Crew, is_guest: bool) -> Vacancy {
        let (index, bell) = (crew.take_index(), ThreadPark::new());
        let (deque, yielded) = (Worker::new_lifo(), Worker::new_fifo());
        let seat = Arc::new(Seat {
            index,
            is_guest,
            stealer: deque.stealer(),
            yielded: yielded.stealer(),
            pinned: Default::default(),
            urgent: Default::default(),
            held: CachePadded::new(Held::new()),
            services: Default::default(),
            bell: bell.unparker(),
            counters: Default::default(),
            runs_in_waits: Default::default(),
            runs_in_park: Default::default(),
            relies_on_others: Default::default(),
        });
        this.registry.add(&seat);
        this.idle.activate();
        this.present.fetch_add(PRESENT, Relaxed);
        if is_guest {
            // `guests` and the count of running workers change together under the lock, here and in
            // `unseat`. So `run_enough` sees both changes or neither.
            crew.guests += 1;
            this.idle.step_back();
        } else {
            crew.alive += 1;
        }
        Vacancy { shared: Arc::clone(this), seat, deque, yielded, bell }
    }

    /// Removes the seat of a worker that gets no thread. The caller releases the lock, and then
    /// counts the worker as resting and gone, as `give_up` does.
    pub(crate) fn remove_vacancy(&self, crew: &mut Crew, seat: &Arc<Seat>) {
        self.registry.remove(seat);
        crew.taken[seat.index] = false;
        crew.alive -= 1;
    }

    /// If `result` is an error, counts the thread that could not start as resting and gone. The
    /// caller holds no lock, because this can call the user's wakers. These can wait for the pool's
    /// end, so they are called last, by `go`.
    fn give_up<T>(&self, result: &io::Result<T>) {
        if result.is_err() {
            self.idle.rest_untold();
            self.go();
        }
    }

    pub(crate) fn resize(this: &Arc<Self>, threads: usize) -> io::Result<()> {
        let threads = at_least_one(threads)?.get();
        if this.settings.is_hosted {
            let error = "another layer starts the threads of this pool";
            return Err(io::Error::new(io::ErrorKind::Unsupported, error));
        }
        if threads > this.settings.max_threads {
            let most = format!("the pool has {} threads at most", this.settings.max_threads);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, most));
        }
        let mut crew = this.crew.lock();
        crew.target = threads;
        this.threads.store(threads, Relaxed);
        if crew.is_closing || crew.alive == 0 {
            return Ok(()); // the threads start with the first job
        }
        let result = Pool::fill(this, &mut crew);
        let is_too_large = crew.is_too_large();
        this.mark_spare(&crew);
        drop(crew);
        this.give_up(&result);
        if is_too_large {
            this.attention.fetch_or(SURPLUS, Relaxed);
        }
        this.idle.notify_all();
        result
    }

    /// If there are too many workers, discharges the calling worker, which is then to leave.
    /// Returns whether it is discharged. A closing pool discharges no worker: its workers leave by
    /// themselves, and until then each might have to run the last job.
    pub(crate) fn discharges(&self) -> bool {
        let mut crew = self.crew.lock();
        let discharges = crew.is_too_large() && !crew.is_closing;
        if discharges {
            crew.alive -= 1;
            crew.leaving += 1;
        }
        if crew.is_closing || !crew.is_too_large() {
            self.attention.fetch_and(!SURPLUS, Relaxed);
        }
        self.mark_spare(&crew);
        discharges
    }

    /// Lets another thread take the place of a worker that begins to block. Afterwards
    /// `relies_on_others` of the seat says whether another thread has the place.
    pub(crate) fn begin_blocking(this: &Arc<Self>, seat: &Seat) {
        let mut crew = this.crew.lock();
        let before = crew.alive;
        crew.blocked += usize::from(!seat.is_guest);
        // `begin_blocking` returns no error: if the system gives no thread, the pool runs with
        // fewer.
        let result = Pool::fill_or_start_for_rest(this, &mut crew);
        this.mark_spare(&crew);
        // The threads of a closing pool leave when they find no job, so no worker can rely on them.
        let is_taken = !crew.is_closing && !crew.is_too_small();
        let is_started = crew.alive > before;
        seat.relies_on_others.store(is_taken, Relaxed);
        drop(crew);
        this.give_up(&result);
        if !is_taken {
            this.recall();
        }
        if !is_started {
            this.idle.notify_of_place();
        }
    }

    /// Wakes the workers that block, or sleep in a wait, while other threads have their places.
    /// Called when too few workers run. Also called when the pool closes, since perhaps only these
    /// workers can run the jobs.
    #[cold]
    pub(crate) fn recall(&self) {
        self.registry.with(|seats| {
            // Relaxed: the flags were set under the lock of the crew, which the caller has held
            // since.
            let relying = seats.iter().filter(|it| it.relies_on_others.swap(false, Relaxed));
            relying.for_each(|it| it.bell.wake_by_ref());
        });
    }

    pub(crate) fn end_blocking(&self, seat: &Seat) {
        let mut crew = self.crew.lock();
        crew.blocked -= usize::from(!seat.is_guest);
        let surplus = crew.surplus();
        self.mark_spare(&crew);
        drop(crew);
        // Relaxed: `may_go` and `stay` are hints. A worker that is woken needlessly sleeps again.
        if surplus > self.idle.may_go.load(Relaxed) {
            // A worker that sleeps without a timeout (`stay`) never leaves by itself. Once woken,
            // it finds `SPARE`, sleeps again with a timeout, and can then leave. `notify_one` wakes
            // the worker that fell asleep last, so each call could wake the same one. So this call
            // wakes several at once: twice as many as are surplus, so that the next need not.
            if self.idle.stay.load(Relaxed) > 0 {
                self.idle.searchers.notify_many(2 * surplus);
            } else {
                self.idle.notify_one();
            }
        }
    }

    /// Returns whether enough workers run: the wanted number and at least `others` more. A caller
    /// that itself counts as running passes 1, and so asks about the other workers. Workers that
    /// rest, block or sleep in a wait do not count. Returns `false` in a closed pool. Also returns
    /// `false` while `SPARE` is not set, because then no worker is surplus.
    pub(crate) fn run_enough(&self, others: usize) -> bool {
        let attention = self.attention.load(Relaxed);
        attention & SPARE != 0 && attention & CLOSED == 0 && {
            let crew = self.crew.lock();
            self.idle.running() >= crew.target + crew.guests + others
        }
    }

    fn mark_spare(&self, crew: &Crew) {
        if crew.is_too_large() {
            self.attention.fetch_or(SPARE, Relaxed);
        } else {
            self.attention.fetch_and(!SPARE, Relaxed);
        }
    }

    /// Removes a worker's seat and returns `true`, unless the worker has to stay. Other threads can
    /// no longer steal from the worker or pin jobs to it. It no longer counts as running, and this
    /// call notifies another worker. A worker has to stay if jobs are pinned to it. So does a
    /// discharged worker in a closing pool, because perhaps no other worker is left to run the
    /// jobs. A worker that stays is no longer discharged.
    pub(crate) fn unseat(this: &Arc<Self>, seat: &Arc<Seat>, is_discharged: bool) -> bool {
        let mut crew = this.crew.lock();
        if seat.has_pinned() || is_discharged && crew.is_closing {
            crew.alive += usize::from(is_discharged);
            crew.leaving -= usize::from(is_discharged);
            if crew.is_too_large() {
                this.attention.fetch_or(SURPLUS, Relaxed);
            }
            this.mark_spare(&crew);
            return false;
        }
        this.registry.remove(seat);
        crew.gone.add(&seat.counters);
        this.idle.step_aside();
        if seat.is_guest {
            crew.guests -= 1;
        } else {
            crew.alive -= usize::from(!is_discharged);
            crew.leaving += usize::from(!is_discharged);
        }
        // After this worker last looked for a job, another worker might have blocked, relying on
        // this one to run the remaining jobs. So if the pool is closing and all its other workers
        // are blocked, this call starts a thread for these jobs.
        let result = Pool::start_for_rest(this, &mut crew);
        drop(crew);
        this.give_up(&result);
        // This worker might have used up a notification that was meant for any worker, so both
        // branches below notify another worker. A guest's place ends with the guest. Any other
        // worker leaves its place free, so `notify_of_place` also notifies a spare worker, which
        // can take the place.
        if seat.is_guest {
            this.idle.notify_one();
        } else {
            this.idle.notify_of_place();
        }
        true
    }

    /// Frees the worker's index, after its stop hook has returned. Then starts a thread if the pool
    /// lacks one, because this worker counts no longer against `max_threads`.
    pub(crate) fn vacate(this: &Arc<Self>, seat: &Seat, is_discharged: bool) {
        let mut crew = this.crew.lock();
        crew.taken[seat.index] = false;
        if is_discharged {
            // Detaches the thread. Otherwise its handle would stay until the pool closes.
            drop(crew.threads[seat.index].take());
        }
        if seat.is_guest {
            return;
        }
        crew.leaving -= 1;
        let result = Pool::fill_or_start_for_rest(this, &mut crew);
        drop(crew);
        this.give_up(&result);
    }

    /// Counts a thread as gone, and notifies `quiet`. The last thread of a closing pool first calls
    /// `tell_end`, which reports the pool's end. During that call the count still includes the
    /// thread. So the threads that wait for the pool's end also wait for `tell_end`.
    pub(crate) fn go(&self) {
        let mut present = self.present.load(Relaxed);
        loop {
            if present == PRESENT | ENDING {
                // Read again, with acquire (GONE). So the destructors and listeners that `tell_end`
                // calls see the writes of the threads that have gone.
                present = self.present.load(GONE.acquire());
                // A destructor that `tell_end` calls might wait for the pool's end. It gets an
                // error instead, as on a thread of the pool.
                current::as_stranger(self.id, || {
                    self.idle.quiet.notify_all(); // a listener may wait for a thread that waits
                    self.tell_end();
                });
            }
            let less = present - PRESENT;
            match self.present.compare_exchange(present, less, GONE.release(), Relaxed) {
                Ok(_) => break,
                Err(now) => present = now,
            }
        }
        self.idle.quiet.notify_all(); // also if only the jobs that `tell_end` drops were left
    }
}

impl Local {
    /// Notifies a worker of a job that this worker has put into its own deque, or put back there.
    #[inline(always)]
    pub(crate) fn notify_of_spawned(&self) {
        self.shared.notify_of_jobs();
        self.start_if_closing();
    }

    /// Called after this worker has put jobs into its own deque, or has moved jobs. If this worker
    /// has given its place away, it runs none of them before it takes the place back. In a closing
    /// pool, the other threads may have left. So if all others there have left or block, this call
    /// starts a thread for the jobs. Starts none in a hosted pool, or beyond `max_threads`.
    ///
    /// A thread that leaves after this call locks the crew after this worker. So that thread sees
    /// the jobs, and itself starts a thread for them (`unseat`).
    #[inline(always)]
    pub(crate) fn start_if_closing(&self) {
        if self.has_stepped_aside.get() {
            Pool::start_if_closing(&self.shared);
        }
    }
}

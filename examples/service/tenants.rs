//! The tenants: their settings, read from a file, and the counts of their requests by outcome.

use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toml::{Table, Value};

/// The settings of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// The value of the header `x-tenant` in the tenant's requests.
    pub name: String,
    /// Its share relative to the other tenants.
    pub weight: u64,
    /// The most requests that wait or run.
    pub capacity: usize,
    /// The most requests that run at once.
    pub max_parallel: Option<usize>,
    /// The most megabytes of request bodies in memory.
    pub megabytes: usize,
}

impl Tenant {
    /// Returns a tenant with the default settings and this weight.
    #[must_use]
    pub fn new(name: &str, weight: u64) -> Self {
        Tenant { name: name.to_owned(), weight, capacity: 64, max_parallel: None, megabytes: 64 }
    }

    /// Reads the tenants from the text of a file.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names what is wrong with the text.
    pub fn read(text: &str) -> Result<Vec<Tenant>, String> {
        let table: Table = text.parse().map_err(|error| format!("not TOML: {error}"))?;
        if table.is_empty() {
            return Err("there is no tenant; add `[name]` and `weight = 1`".to_owned());
        }
        table.iter().map(|(name, settings)| one(name, settings)).collect()
    }
}

fn one(name: &str, settings: &Value) -> Result<Tenant, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if !(1..=64).contains(&name.len()) || !name.chars().all(is_plain) {
        return Err(format!("`{name}`: a name has 1 to 64 letters, digits, `-` or `_`"));
    }
    let Value::Table(settings) = settings else {
        return Err(format!("`{name}` is no table; write `[{name}]`"));
    };
    let mut tenant = Tenant::new(name, 1);
    for (key, value) in settings {
        let number = |most: i64| match value {
            Value::Integer(number) if (1..=most).contains(number) => Ok(*number as usize),
            _ => Err(format!("`{name}`: {key} is an integer from 1 to {most}")),
        };
        match key.as_str() {
            "weight" => tenant.weight = number(1_000_000)? as u64,
            "capacity" => tenant.capacity = number(1_000_000)?,
            "max_parallel" => tenant.max_parallel = Some(number(1024)?),
            "megabytes" => tenant.megabytes = number(4096)?,
            _ => return Err(format!("`{name}` has no setting called {key}")),
        }
    }
    Ok(tenant)
}

/// A tenant of a running server.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) tenant: Tenant,
    pub(crate) counts: Counts,
    /// One permit for each KiB of a body.
    room: Arc<Semaphore>,
}

/// The counts of requests that were passed to the engine, by outcome.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Requests whose computation began and ended, perhaps by a panic.
    pub(crate) ran: AtomicU64,
    /// Requests that were dropped before they began: refused, cancelled or expired.
    pub(crate) dropped: AtomicU64,
    /// Requests that the queue refused because it was full or closed. `Server::no_room` counts the
    /// requests whose body found no room.
    pub(crate) refused: AtomicU64,
    /// Requests that had not begun by their deadline, and whose client was told so. Only queues
    /// count them.
    pub(crate) expired: AtomicU64,
    /// The time for which computations ran, in nanoseconds.
    pub(crate) busy: AtomicU64,
}

impl Account {
    pub(crate) fn new(tenant: Tenant) -> Self {
        let room = Arc::new(Semaphore::new(tenant.megabytes << 10));
        Account { tenant, counts: Counts::default(), room }
    }

    /// Reserves room for a body until the permit is dropped.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let kib = u32::try_from(bytes.div_ceil(1024).max(1)).unwrap_or(u32::MAX);
        self.room.clone().try_acquire_many_owned(kib).map_err(|_| {
            let sentence = "this tenant's requests take up all of its memory; try again in 1 s";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
                .retry_after(Duration::from_secs(1))
        })
    }
}

/// Counts a request when this guard is dropped. A request that began counts as run.
#[derive(Debug)]
pub(crate) struct Counted {
    account: Arc<Account>,
    began: Option<Instant>,
}

impl Counted {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Counted { account, began: None }
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = &self.account.counts;
        match self.began {
            Some(began) => {
                let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                counts.busy.fetch_add(nanos, Relaxed);
                counts.ran.fetch_add(1, Relaxed);
            }
            None => _ = counts.dropped.fetch_add(1, Relaxed),
        }
    }
}

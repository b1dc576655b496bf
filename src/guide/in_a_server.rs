//! In a server: tokio for the connections, filch for the computations.
//!
//! A server that computes has two kinds of work. Connections wait most of the time, and each wants
//! a thread for microseconds: tokio is made for that. Computations never wait, and each wants a
//! thread for milliseconds. On the same threads, computations delay connections. On
//! `spawn_blocking` or rayon, requests start in the order of arrival: a busy client delays others.
//!
//! ```text
//!   connection ──▶ tokio: reads the request ──▶ queue of the tenant ──▶ filch: computes
//!        ▲                                            │ full: 503            │
//!        └────── tokio: writes the response ◀─────────┴──────────────────────┘
//! ```
//!
//! `examples/service/main.rs` is a server with tokio for the connections and filch for the
//! computations. It has axum, metrics and a load test. A layer of tower, from the crate in
//! `compat/tower`, puts its requests into queues.
//!
//! # A request
//!
//! The handler awaits the handle of a task, on any runtime. When the client leaves, axum and hyper
//! drop the handler's future, and with it the handle. `cancel_on_drop` then cancels the task.
//!
//! ```
//! use filch::executor::Reason;
//! use filch::fair::Queue;
//! use std::time::{Duration, Instant};
//!
//! /// Returns a status and a body.
//! async fn answer(tenant: &Queue, patience: Duration, body: Vec<u8>) -> (u16, String) {
//!     let compute = move || body.iter().map(|it| u64::from(*it)).sum::<u64>().to_string();
//!     match tenant.task().deadline(Instant::now() + patience).try_spawn(compute) {
//!         Ok(task) => match task.cancel_on_drop().await {
//!             Ok(result) => (200, result),
//!             Err(error) if error.is_expired() => (504, "too late".into()),
//!             Err(error) if error.is_panic() => (500, "a bug".into()),
//!             Err(_) => (503, "the server stops".into()),
//!         },
//!         Err(refused) if refused.reason == Reason::Full => (503, "try again later".into()),
//!         Err(_) => (503, "the server stops".into()),
//!     }
//! }
//!
//! let fair = filch::FairScheduler::over(filch::ThreadPool::new(2)?);
//! let gold = fair.queue("gold").weight(3).capacity(100).build()?;
//! let same = gold.clone();
//! let request = async move { answer(&same, Duration::from_secs(60), vec![1, 2, 3]).await };
//! assert_eq!(fair.spawn_future(request).join()?, (200, "6".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Backpressure
//!
//! Three limits keep the memory bounded:
//!
//! - [`capacity`](crate::fair::QueueBuilder::capacity) bounds the requests of a tenant that wait or
//!   run. A refused request gets 503 and `Retry-After` at once, and can go to another server.
//! - The bodies of waiting requests need a limit in bytes. In the example, a semaphore for each
//!   tenant counts them.
//! - Connections need a limit too, because idle or slow connections are in no queue. They also need
//!   timeouts, or else silent clients hold all of them. In the example, hyper's
//!   `header_read_timeout` ends idle connections.
//!
//! A capacity bounds how much a tenant's requests delay each other. Weights bound how much one
//! tenant's requests delay those of other tenants. But a running task is never interrupted, so a
//! request can wait until a task of another tenant ends. If those tasks are long, give their queue
//! a [`max_parallel`](crate::fair::QueueBuilder::max_parallel) below the number of threads.
//!
//! # Threads of I/O and threads that compute
//!
//! Threads of tokio and threads that compute share the processors. A thread of tokio that reads a
//! request needs microseconds, but can wait for milliseconds behind threads that compute. So the
//! example gives its computing threads a lower priority, in
//! [`on_thread_start`](crate::pool::Builder::on_thread_start): on Linux a niceness of 5. In its
//! load test, a light tenant sends requests beside another tenant's flood. On two cores, this
//! reduced the 99th percentile of the light tenant's latency from 10.1 to 7.3 ms.
//!
//! # Spans
//!
//! With the feature `tracing`, give the scheduler the context `CurrentSpan`: a task then runs
//! inside the span of the request that spawned it. A scheduler whose tasks need tokio's timers or
//! sockets takes a [`ContextFlow`](crate::task::ContextFlow) whose `capture` returns
//! `Handle::current()`, and whose `enter` holds the guard of `handle.enter()`.
//!
//! # Metrics
//!
//! [`trace::prometheus`](crate::trace::prometheus) writes reports as text. For an exporter of the
//! facade `metrics`, the feature `metrics` publishes the same numbers under the same names:
//!
//! ```
//! # #[cfg(feature = "metrics")]
//! /// Call it before each scrape, or at intervals.
//! fn publish(fair: &filch::FairScheduler, pool: &filch::ThreadPool) {
//!     filch::trace::metrics::queues(&fair.report());
//!     filch::trace::metrics::pool(&pool.metrics());
//! }
//! ```
//!
//! These are worth an alert: a rising `filch_queue_refused_total`, and the quantile 0.99 of
//! `filch_queue_wait_seconds`.
//!
//! # The end
//!
//! 1. Stop accepting connections, and let the requests that have arrived finish.
//! 2. Call [`shutdown_timeout`](crate::FairScheduler::shutdown_timeout) of the scheduler with
//!    `Drain`, on a thread that may block. A future can await
//!    [`drained`](crate::FairScheduler::drained) instead.
//! 3. If tasks are left when that call times out, call `shutdown_timeout` with `Cancel`: queued
//!    requests get their error at once.
//!
//! # One machine and several
//!
//! A cluster's scheduler chooses the machine, and filch shares the threads of that machine. Neither
//! needs to know the other. These settings correspond:
//!
//! | engine | its setting | the same in a queue |
//! |---|---|---|
//! | Kubernetes | `resources.requests.cpu` of a container | `weight`, but between tenants inside one container |
//! | Trino, resource groups | `schedulingWeight`, `hardConcurrencyLimit`, `maxQueued` | `weight`; `max_parallel`; `capacity`, which counts running tasks too |
//! | Spark, fair scheduler | `weight` of a pool | `weight` |
//! | | `minShare` of a pool | none; a higher priority comes closest |
//! | YARN, capacity scheduler | `capacity` of a queue, in percent | `weight`, in the same proportions |
//!
//! A tenant gets its share on each machine. If all machines are equal, its share of the cluster is
//! the mean of these shares. A machine on which the tenant has no work counts as zero. If its
//! requests go to one machine only, it gets no more than its share of that machine.

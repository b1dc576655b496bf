//! Duffy's comparison of thread pools (2008), over every executor of this crate.
//!
//! `cargo run --release --example harness [-- --tasks N] [--threads N] [--baseline NAME]`
//!
//! A task only counts down a shared word. In the *separated* shape the workers are blocked while
//! the tasks are queued, so queuing and draining are timed separately. In the *overlapped* shape
//! both happen at once. In the *recursive* shapes, 10,000 tasks spawn 100 each, or 100 tasks spawn
//! 10,000 each. A pool whose tasks carry a context is measured as an executor of its own. The
//! results go to `target/filch/harness.tsv` and `harness.svg`.

mod chart;
mod heap;
mod run;

use filch::executor::{ExecutorId, Inline, Rejected, ThreadPerJob, from_fn};
use filch::pool::LockedPool;
use filch::task::ContextFlow;
use filch::{Executor, Job, ThreadPool};
use indicatif::{ProgressBar, ProgressStyle};
use run::{Measured, SHAPES, Shape};
use std::error::Error;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::{env, fs, io, thread};

struct Options {
    tasks: usize,
    threads: usize,
    baseline: String,
}

/// An executor to measure. It gets one of every `one_in` tasks, because `ThreadPerJob` is too slow
/// for all of them.
struct Subject {
    name: &'static str,
    executor: Arc<dyn Executor>,
    one_in: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let subjects = subjects(options.threads)?;
    if !subjects.iter().any(|it| it.name == options.baseline) {
        let names: Vec<_> = subjects.iter().map(|it| it.name).collect();
        return Err(format!("there is no such executor; choose one of {}", names.join(", ")).into());
    }

    let bar = ProgressBar::new((subjects.len() * SHAPES.len()) as u64);
    bar.set_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}, {eta} left")?);
    let mut rows = Vec::new();
    for shape in SHAPES {
        for subject in &subjects {
            bar.set_message(format!("{}: {}", shape.name(), subject.name));
            let tasks = (options.tasks / subject.one_in).max(100);
            let measured = run::measure(&subject.executor, shape, tasks, options.threads);
            rows.push((shape, subject.name, measured));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();

    print!("{}", table(&rows, &options));
    let folder = Path::new("target/filch");
    fs::create_dir_all(folder)?;
    let paths = [folder.join("harness.tsv"), folder.join("harness.svg")];
    fs::write(&paths[0], tsv(&rows))?;
    chart::draw(&paths[1], &rows)?;
    println!("\nwritten: {}", paths.map(|it: PathBuf| it.display().to_string()).join(", "));
    Ok(())
}

fn options() -> Result<Options, Box<dyn Error>> {
    const USAGE: &str = "usage: harness [--tasks N] [--threads N] [--baseline NAME]";
    let threads = thread::available_parallelism().map_or(2, usize::from).max(2);
    let mut options = Options { tasks: 1_000_000, threads, baseline: "LockedPool".into() };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{USAGE}; {argument} has no value"))?;
        let number = || match value.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{argument} wants a positive number, not `{value}`")),
        };
        match &*argument {
            "--tasks" => options.tasks = number()?,
            "--threads" => options.threads = number()?,
            "--baseline" => options.baseline = value,
            _ => return Err(format!("{USAGE}; there is no option `{argument}`").into()),
        }
    }
    Ok(options)
}

fn subjects(threads: usize) -> io::Result<Vec<Subject>> {
    let context = ThreadPool::builder().num_threads(threads).context(Request).build()?;
    let subject = |name, executor, one_in| Subject { name, executor, one_in };
    Ok(vec![
        subject("LockedPool", Arc::new(LockedPool::new(threads)?), 1),
        subject("ThreadPool", Arc::new(ThreadPool::new(threads)?), 1),
        subject("ThreadPool, context", Arc::new(WithContext(context)), 1),
        subject("std channel", Arc::new(channel(threads)), 1),
        subject("Inline", Arc::new(Inline), 1),
        subject("ThreadPerJob", Arc::new(ThreadPerJob), 500),
    ])
}

/// A context that goes with tasks: the request to which a task belongs.
struct Request;

thread_local!(static REQUEST: std::cell::Cell<u64> = const { std::cell::Cell::new(7) });

impl ContextFlow for Request {
    type Snapshot = u64;

    fn capture(&self) -> u64 {
        REQUEST.get()
    }

    fn enter<R>(request: u64, run: impl FnOnce() -> R) -> R {
        let before = REQUEST.replace(request);
        let result = run();
        REQUEST.set(before);
        result
    }
}

/// A pool that runs each job as a task with the pool's context. The pool's own `execute` adds no
/// context to a job.
struct WithContext(ThreadPool);

impl Executor for WithContext {
    fn execute(&self, job: Job) -> Result<(), Rejected> {
        self.0.spawn_detached(move || job.run())
    }

    fn parallelism(&self) -> NonZeroUsize {
        self.0.parallelism()
    }

    fn id(&self) -> Option<ExecutorId> {
        self.0.id()
    }
}

/// Returns an executor whose threads take jobs from a standard channel under a lock.
fn channel(threads: usize) -> impl Executor {
    let (sender, jobs) = mpsc::channel::<Job>();
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..threads {
        let jobs = Arc::clone(&jobs);
        thread::spawn(move || {
            loop {
                let job = jobs.lock().expect("no thread panics with the lock").recv();
                match job {
                    Ok(job) => job.run(),
                    Err(_) => return,
                }
            }
        });
    }
    let parallelism = NonZeroUsize::new(threads).expect("not zero");
    from_fn(parallelism, move |job| {
        sender.send(job).expect("the threads live as long as the sender");
        Ok(())
    })
}

type Row = (Shape, &'static str, Measured);

fn table(rows: &[Row], options: &Options) -> String {
    let mut text = format!(
        "{} tasks, {} threads; nanoseconds a task; ratios to {}\n",
        options.tasks, options.threads, options.baseline
    );
    for shape in SHAPES {
        let rows = || rows.iter().filter(|it| it.0 == shape);
        let baseline = rows().find(|it| it.1 == options.baseline).map(|it| it.2.total);
        let _ = writeln!(
            text,
            "\n{:<24} {:>9} {:>9} {:>9} {:>7} {:>12}",
            shape.name(),
            "queue",
            "drain",
            "total",
            "ratio",
            "allocations"
        );
        for (_, name, measured) in rows() {
            let phase = |time: Option<f64>| time.map_or("-".into(), |it| format!("{it:.1}"));
            let ratio = baseline.map_or("-".into(), |it| format!("{:.2}", measured.total / it));
            let _ = writeln!(
                text,
                "  {name:<22} {:>9} {:>9} {:>9.1} {ratio:>7} {:>12.3}",
                phase(measured.queue),
                phase(measured.drain),
                measured.total,
                measured.allocations
            );
        }
    }
    text
}

fn tsv(rows: &[Row]) -> String {
    let mut text = "shape\texecutor\tqueue_ns\tdrain_ns\ttotal_ns\tallocations\n".to_owned();
    for (shape, name, measured) in rows {
        let phase = |time: Option<f64>| time.map_or("-".into(), |it| format!("{it:.3}"));
        let [queue, drain] = [measured.queue, measured.drain].map(phase);
        let Measured { total, allocations, .. } = measured;
        let shape = shape.name();
        let _ = writeln!(text, "{shape}\t{name}\t{queue}\t{drain}\t{total:.3}\t{allocations:.4}");
    }
    text
}

//! Child processes: with a time limit, into a log, several at a time.

use crate::Result;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How a child ended.
#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    /// It outlived its limit and was killed.
    Hung,
}

impl End {
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, End::Exited(status) if status.success())
    }
}

/// Runs a child to its end, or kills it when `limit` is over; also tells the seconds it took.
pub(crate) fn run(command: &mut Command, limit: Option<Duration>) -> Result<(End, f64)> {
    let start = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let end = match limit {
        None => End::Exited(child.wait()?),
        Some(limit) => wait(&mut child, start + limit)?,
    };
    Ok((end, start.elapsed().as_secs_f64()))
}

fn wait(child: &mut Child, deadline: Instant) -> Result<End> {
    // Most children live for milliseconds, a few for minutes.
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(End::Hung);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Whether the child ends well. What it prints is nobody's business.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Sends whatever the child prints to a file.
pub(crate) fn log_to<'a>(command: &'a mut Command, path: &Path) -> Result<&'a mut Command> {
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(command.stdout(file.try_clone()?).stderr(file))
}

/// The last lines of a log, indented; tests that passed are left out.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let passed = |line: &&str| line.starts_with("test ") && line.ends_with(" ok");
    let all: Vec<&str> = text.lines().filter(|line| !passed(line)).collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| format!("    {line}\n")).collect()
}

/// Does `work` to every item, on as many threads as there are cores; results keep their order.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = work(item);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Numbers the steps of a long command as they finish, on stderr.
pub(crate) struct Progress {
    total: usize,
    done: AtomicUsize,
}

impl Progress {
    pub(crate) fn of(total: usize) -> Self {
        Progress { total, done: AtomicUsize::new(0) }
    }

    pub(crate) fn step(&self, what: impl std::fmt::Display) {
        let done = self.done.fetch_add(1, Relaxed) + 1;
        let width = self.total.to_string().len();
        eprintln!("[{done:>width$}/{}] {what}", self.total);
    }
}

#[cfg(test)]
mod tests {
    use super::{End, each, run};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(each(&items, |item| item * 2), (0..200).step_by(2).collect::<Vec<_>>());
    }

    #[test]
    fn a_child_that_outlives_its_limit_is_killed() {
        let mut sleeper = Command::new("sleep");
        let (end, _) = run(sleeper.arg("600"), Some(Duration::ZERO)).unwrap();
        assert!(matches!(end, End::Hung));
    }
}

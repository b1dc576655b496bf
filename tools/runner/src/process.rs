//! Child processes: with a time limit, into a log, several at a time.

use crate::result::Result;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use wait_timeout::ChildExt as _;

/// How a child ended.
#[derive(Debug)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It outlived its limit and was killed.
    Hung,
}

impl End {
    /// Tells whether the child exited with success.
    pub fn is_success(&self) -> bool {
        matches!(self, End::Exited(status) if status.success())
    }
}

/// Runs a child to its end, or kills it when `limit` is over; also tells the seconds it took.
pub fn run(command: &mut Command, limit: Option<Duration>) -> Result<(End, f64)> {
    let start = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let status = match limit {
        None => Some(child.wait()?),
        Some(limit) => child.wait_timeout(limit)?,
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok((status.map_or(End::Hung, End::Exited), start.elapsed().as_secs_f64()))
}

/// Tells whether the child ends well. Its output is thrown away.
pub fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Sends all that the child prints to a file.
pub fn log_to<'a>(command: &'a mut Command, path: &Path) -> Result<&'a mut Command> {
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(command.stdout(file.try_clone()?).stderr(file))
}

/// Returns the last lines of a log, indented; tests that passed are left out.
pub fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let passed = |line: &&str| line.starts_with("test ") && line.ends_with(" ok");
    let all: Vec<&str> = text.lines().filter(|line| !passed(line)).collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| format!("    {line}\n")).collect()
}

/// Does `work` to every item, on as many threads as there are cores; results keep their order.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
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
#[derive(Debug)]
pub struct Progress {
    total: usize,
    done: AtomicUsize,
}

impl Progress {
    /// Begins to count to this total.
    pub fn of(total: usize) -> Self {
        Progress { total, done: AtomicUsize::new(0) }
    }

    /// Prints a step that is done, with its number.
    pub fn step(&self, what: impl std::fmt::Display) {
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

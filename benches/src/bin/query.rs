//! Two tenants query the same texts with rayon's iterators, at the same time, on the same threads.
//! There are no queues here; compat/rayon-core/examples/query.rs has them beside it.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// A tenant's name, its weight, and how many clients it has. The one with the larger share asks
/// less.
pub(crate) const TENANTS: [(&str, u64, usize); 2] = [("gold", 3, 2), ("free", 1, 6)];

/// What is asked, and for how long.
pub(crate) struct Load {
    texts: Vec<String>,
    time: Duration,
}

impl Load {
    /// By the arguments of the program: seconds, and a folder.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let mut arguments = env::args().skip(1);
        let seconds: f64 = arguments.next().map_or(Ok(3.0), |it| it.parse())?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let src = || root.map(|it| it.join("src")).filter(|it| it.join("lib.rs").is_file()).last();
        let folder = arguments.next().map(PathBuf::from).or_else(src).ok_or("which folder?")?;
        let mut texts = Vec::new();
        texts_in(&folder, &mut texts)?;
        let bytes: usize = texts.iter().map(String::len).sum();
        println!("{} files, {} KB, in {}", texts.len(), bytes >> 10, folder.display());
        Ok(Load { texts, time: Duration::from_secs_f64(seconds) })
    }

    /// How often each word is there: grouped in parallel, then sorted in parallel.
    pub(crate) fn frequent_words(&self) -> Vec<(&str, usize)> {
        let count = |mut words: HashMap<_, _>, word| {
            *words.entry(word).or_insert(0) += 1;
            words
        };
        let merge = |a: HashMap<_, usize>, b: HashMap<_, usize>| {
            let (mut large, small) = if a.len() > b.len() { (a, b) } else { (b, a) };
            small.into_iter().for_each(|(word, times)| *large.entry(word).or_insert(0) += times);
            large
        };
        let words =
            self.texts.par_iter().flat_map_iter(|text| text.split(|it: char| !it.is_alphabetic()));
        let groups =
            words.filter(|it| it.len() > 3).fold(HashMap::new, count).reduce(HashMap::new, merge);
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.par_sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        groups.truncate(10);
        groups
    }

    /// Has all clients ask as often as they can, and shows how many answers each tenant got. `ask`
    /// gets the tenant's index.
    pub(crate) fn run(&self, title: &str, ask: impl Fn(usize) + Sync) {
        let answers = [const { AtomicUsize::new(0) }; 2];
        let begin = Barrier::new(TENANTS.iter().map(|it| it.2).sum());
        thread::scope(|clients| {
            for (tenant, (_, _, count)) in TENANTS.iter().enumerate() {
                for _ in 0..*count {
                    let (ask, answers, begin) = (&ask, &answers, &begin);
                    clients.spawn(move || {
                        begin.wait();
                        let start = Instant::now();
                        while start.elapsed() < self.time {
                            ask(tenant);
                            answers[tenant].fetch_add(1, Relaxed);
                        }
                    });
                }
            }
        });
        let answers = answers.map(AtomicUsize::into_inner);
        let all = answers.iter().sum::<usize>().max(1);
        println!("\n{title}: {all} answers");
        for ((name, _, clients), answers) in TENANTS.iter().zip(answers) {
            let (share, bar) = (100 * answers / all, "#".repeat(40 * answers / all));
            println!("  {name}, {clients} clients  {answers:>6} answers  {share:>3} %  {bar}");
        }
    }

    /// Without queues, on this pool.
    pub(crate) fn run_on(&self, pool: &ThreadPool, whose: &str) {
        let title = format!("on {whose} threads, without queues");
        self.run(&title, |_| pool.install(|| drop(self.frequent_words())));
    }
}

fn texts_in(folder: &Path, texts: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            texts_in(&path, texts)?;
        } else if path.extension().is_some_and(|it| it == "rs" || it == "md" || it == "txt") {
            texts.extend(fs::read_to_string(path));
        }
    }
    Ok(())
}

#[allow(dead_code)] // the example has a `main` of its own
fn main() -> Result<(), Box<dyn Error>> {
    let load = Load::new()?;
    load.run_on(&ThreadPoolBuilder::new().build()?, "rayon's");
    Ok(())
}

//! Two tenants query the same texts with rayon's iterators, at the same time, on the same threads: without queues, and in
//! queues with weights 3 and 1.
//!
//! `cargo run --release --example query -- [SECONDS] [FOLDER]`

use filch::fair::{FairScheduler, Queue};
use rayon::prelude::*;
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// A tenant's name, its weight, and how many clients it has. The one with the larger share asks less.
const TENANTS: [(&str, u64, usize); 2] = [("gold", 3, 2), ("free", 1, 6)];

type Texts = Vec<String>;

/// How often each word is there: grouped in parallel, then sorted in parallel.
fn frequent_words(texts: &Texts) -> Vec<(&str, usize)> {
    let count = |mut words: HashMap<_, _>, word| {
        *words.entry(word).or_insert(0) += 1;
        words
    };
    let merge = |a: HashMap<_, usize>, b: HashMap<_, usize>| {
        let (mut large, small) = if a.len() > b.len() { (a, b) } else { (b, a) };
        small.into_iter().for_each(|(word, times)| *large.entry(word).or_insert(0) += times);
        large
    };
    let words = texts.par_iter().flat_map_iter(|text| text.split(|it: char| !it.is_alphabetic()));
    let groups =
        words.filter(|it| it.len() > 3).fold(HashMap::new, count).reduce(HashMap::new, merge);
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.par_sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    groups.truncate(10);
    groups
}

fn texts_in(folder: &Path, texts: &mut Texts) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            texts_in(&path, texts)?;
        } else if path.extension().is_some_and(|it| it == "rs" || it == "md" || it == "txt") {
            texts.extend(fs::read_to_string(path));
        }
    }
    Ok(())
}

/// Has all clients ask as often as they can for a time. Returns how many answers each tenant got.
fn load(time: Duration, ask: impl Fn(usize) + Sync) -> [usize; 2] {
    let answers = [const { AtomicUsize::new(0) }; 2];
    let begin = Barrier::new(TENANTS.iter().map(|it| it.2).sum());
    thread::scope(|clients| {
        for (tenant, (_, _, count)) in TENANTS.iter().enumerate() {
            for _ in 0..*count {
                let (ask, answers, begin) = (&ask, &answers, &begin);
                clients.spawn(move || {
                    begin.wait();
                    let start = Instant::now();
                    while start.elapsed() < time {
                        ask(tenant);
                        answers[tenant].fetch_add(1, Relaxed);
                    }
                });
            }
        }
    });
    answers.map(AtomicUsize::into_inner)
}

fn show(title: &str, answers: [usize; 2]) {
    println!("\n{title}");
    let all = answers.iter().sum::<usize>().max(1);
    for ((name, _, clients), answers) in TENANTS.iter().zip(answers) {
        let (share, bar) = (100 * answers / all, "#".repeat(40 * answers / all));
        println!("  {name}, {clients} clients  {answers:>6} answers  {share:>3} %  {bar}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(3.0), |it| it.parse())?;
    let folder = arguments
        .next()
        .map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src"), PathBuf::from);
    let mut texts = Texts::new();
    texts_in(&folder, &mut texts)?;
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} files, {} KB, in {}", texts.len(), bytes >> 10, folder.display());

    let pool: ThreadPool = ThreadPoolBuilder::new().build()?;
    let found = pool.install(|| frequent_words(&texts));
    let found: Vec<_> = found.iter().map(|(word, times)| format!("{word} {times}")).collect();
    println!("most frequent: {}", found.join(", "));

    let time = Duration::from_secs_f64(seconds);
    let answers = load(time, |_| pool.install(|| drop(frequent_words(&texts))));
    show("without queues: each client gets the same", answers);

    let fair = FairScheduler::over(pool.as_filch().clone());
    let queues: Vec<Queue> = TENANTS
        .iter()
        .map(|(name, weight, _)| fair.queue(name).weight(*weight).build())
        .collect::<Result<_, _>>()?;
    let answers = load(time, |tenant| queues[tenant].install(|| drop(frequent_words(&texts))));
    show("in queues with weights 3 and 1: so do the tenants", answers);
    for queue in &queues {
        let metrics = queue.metrics();
        println!(
            "  {}: {:.2?} of thread time",
            metrics.name.as_deref().unwrap_or(""),
            metrics.service
        );
    }
    Ok(())
}

//! Two tenants query the same texts at the same time with rayon's iterators, on the same threads
//! and without queues. compat/rayon-core/examples/query runs the same queries in queues, too.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// For each tenant, its name, its weight and its number of clients. The tenant with the larger
/// weight has fewer clients.
pub(crate) const TENANTS: [(&str, u64, usize); 2] = [("gold", 3, 2), ("free", 1, 6)];

const USAGE: &str = "\
usage: query [SECONDS [FOLDER]]
  SECONDS  how long the clients ask in each setting, by default 3
  FOLDER   the Rust, Markdown and text files in it are queried, by default those of filch";

/// The texts that the clients query, and for how long they do.
pub(crate) struct Load {
    texts: Vec<String>,
    time: Duration,
}

/// The answers that each tenant got in one setting.
pub(crate) struct Outcome {
    pub(crate) setting: String,
    pub(crate) tenants: [Answers; 2],
}

pub(crate) struct Answers {
    pub(crate) count: usize,
    /// The median time of a query.
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
}

impl Answers {
    /// Summarizes queries that took `times`, of which there is at least one.
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let count = times.len();
        Answers { count, median: times[count / 2], worst: times[count - 1] }
    }
}

impl Outcome {
    /// Returns a tenant's part of all answers.
    pub(crate) fn share(&self, tenant: usize) -> f64 {
        let all: usize = self.tenants.iter().map(|it| it.count).sum();
        self.tenants[tenant].count as f64 / all as f64
    }

    fn print(&self) {
        println!("\n{}", self.setting);
        for (tenant, ((name, _, clients), it)) in TENANTS.iter().zip(&self.tenants).enumerate() {
            let (count, share) = (it.count, self.share(tenant));
            let [median, worst] = [it.median, it.worst].map(|it| it.as_secs_f64() * 1e3);
            let (percent, bar) = (share * 100.0, "#".repeat((share * 30.0) as usize));
            print!("  {name}, {clients} clients  {count:>6} answers  {percent:>3.0} %");
            println!("   median {median:>7.1} ms  worst {worst:>7.1} ms   {bar}");
        }
    }

    /// Returns one line: the setting, and for each tenant the number of answers, and the median and
    /// the worst time in nanoseconds.
    pub(crate) fn row(&self) -> String {
        let of = |it: &Answers| {
            format!("\t{}\t{}\t{}", it.count, it.median.as_nanos(), it.worst.as_nanos())
        };
        let [first, second] = self.tenants.each_ref().map(of);
        format!("{}{first}{second}\n", self.setting)
    }
}

impl Load {
    /// Reads the load from the arguments of the program: the seconds, and the folder of the texts.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let mut arguments = env::args().skip(1);
        let seconds = arguments.next().unwrap_or("3".into());
        let time = seconds.parse().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
        let time = time.ok_or(USAGE)?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let src = || root.map(|it| it.join("src")).filter(|it| it.join("lib.rs").is_file()).last();
        let folder = arguments.next().map(PathBuf::from).or_else(src).ok_or(USAGE)?;
        let mut texts = Vec::new();
        texts_in(&folder, &mut texts).map_err(|error| format!("{}: {error}", folder.display()))?;
        let bytes: usize = texts.iter().map(String::len).sum();
        println!("{} files, {} KB, in {}", texts.len(), bytes >> 10, folder.display());
        Ok(Load { texts, time })
    }

    /// Returns how often each word occurs. Groups and sorts the words in parallel.
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

    /// Runs all clients, each of which repeats `ask` without pause. Returns each tenant's number of
    /// answers and their times. `ask` gets the tenant's index.
    pub(crate) fn run(&self, setting: &str, ask: impl Fn(usize) + Sync) -> Outcome {
        let begin = Barrier::new(TENANTS.iter().map(|it| it.2).sum());
        let client = |tenant| {
            let mut times = Vec::new();
            begin.wait();
            let start = Instant::now();
            while times.is_empty() || start.elapsed() < self.time {
                let asked = Instant::now();
                ask(tenant);
                times.push(asked.elapsed());
            }
            times
        };
        let times = thread::scope(|threads| {
            let client = &client;
            let clients = [0, 1].map(|tenant| {
                let clients = 0..TENANTS[tenant].2;
                clients.map(|_| threads.spawn(move || client(tenant))).collect::<Vec<_>>()
            });
            clients.map(|it| it.into_iter().flat_map(|it| it.join().expect("it asks")).collect())
        });
        let outcome = Outcome { setting: setting.to_owned(), tenants: times.map(Answers::of) };
        outcome.print();
        outcome
    }

    /// Runs the load on `pool`, without queues.
    pub(crate) fn run_on(&self, pool: &ThreadPool, whose: &str) -> Outcome {
        let setting = format!("on {whose} threads, without queues");
        self.run(&setting, |_| pool.install(|| drop(self.frequent_words())))
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
    let outcome = load.run_on(&ThreadPoolBuilder::new().build()?, "rayon's");
    // The example `query` reads this row for its chart.
    env::var_os("FILCH_TSV").map_or(Ok(()), |path| Ok(fs::write(path, outcome.row())?))
}

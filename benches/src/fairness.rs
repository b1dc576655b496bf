//! Makes the tables of `versus fair`, from the measurements in `fair.rs`, `forks.rs` and
//! `sizes.rs`.

use crate::{fair, forks, sizes};
use std::fmt::Write as _;

/// A table: the text to print, and for programs a line of name, goal and value for each row.
struct Table {
    text: String,
    tsv: String,
}

type Make = fn(rounds: usize, heading: &str) -> Table;

/// For each table, the beginning of its heading and the function that measures it.
const TABLES: [(&str, Make); 11] = [
    ("ns a task, median", tasks),
    ("ns a fork, median", forks),
    ("ns a lease of one task", leases),
    ("ns a queue, by queues", |rounds, heading| {
        by_size(heading, "two reports and their difference", sizes::reports(rounds))
    }),
    ("us a thread, by threads", |rounds, heading| {
        by_size(heading, "each waits for its queue", sizes::waits(rounds.min(5)))
    }),
    ("ns a task, by tasks", |rounds, heading| {
        by_size(heading, "spawned with one token", sizes::tokens(rounds.min(5)))
    }),
    ("ns a token, by tokens", |rounds, heading| {
        by_size(heading, "a chain, made, cancelled and dropped", sizes::chains(rounds.min(5)))
    }),
    ("ns a task, by tasks in a group", |rounds, heading| {
        by_size(heading, "one comes into a group as one ends", sizes::groups(rounds.min(5)))
    }),
    ("multiples of the fair time", batches),
    ("share of a queue that forks", shares),
    ("ms until an urgent task begins", waits),
];

/// Measures the tables whose headings contain `only`. Returns the text to print, and the rows as
/// tab-separated values.
#[must_use]
pub fn tables(rounds: usize, only: &str) -> (String, String) {
    let (mut text, mut tsv) = (String::new(), String::from("row\tgoal\tvalue\n"));
    for (heading, make) in TABLES.into_iter().filter(|it| it.0.contains(only)) {
        let table = make(rounds, heading);
        text.push('\n');
        text.push_str(&table.text);
        tsv.push_str(&table.tsv);
    }
    (text, tsv)
}

impl Table {
    /// Returns a table without rows. Its columns are the row's name, `columns` and a verdict.
    fn new(heading: &str, columns: &[&str]) -> Self {
        let mut text = format!("{heading:<34}");
        columns.iter().for_each(|it| _ = write!(text, " {it:>14}"));
        text.push_str("  verdict\n");
        Table { text, tsv: String::new() }
    }

    fn row(&mut self, name: &str, cells: &[String], verdict: &str) {
        let _ = write!(self.text, "{name:<34}");
        cells.iter().for_each(|it| _ = write!(self.text, " {it:>14}"));
        let _ = writeln!(self.text, "  {verdict}");
    }

    fn value(&mut self, name: &str, goal: &str, value: &str) {
        let _ = writeln!(self.tsv, "{name}\t{goal}\t{value}");
    }
}

fn verdict(is_reached: bool) -> &'static str {
    if is_reached { "ok" } else { "above goal" }
}

fn tasks(rounds: usize, heading: &str) -> Table {
    let columns = ["bare pool", "filch", "Toub (a lock)", "above bare", "goal"];
    let mut table = Table::new(heading, &columns);
    for row in fair::costs(rounds) {
        let [bare, ours, toub] = row.times.map(|it| format!("{it:.1}"));
        let (above, goal) = (format!("{:.1}", row.above), row.goal.to_string());
        table.value(row.name, &goal, &above);
        table.row(row.name, &[bare, ours, toub, above, goal], verdict(row.above <= row.goal));
    }
    table
}

fn forks(rounds: usize, heading: &str) -> Table {
    let mut table = Table::new(heading, &["bare pool", "in a queue", "above bare", "goal"]);
    for row in forks::costs(rounds) {
        let [bare, queued] = row.times.map(|it| format!("{it:.1}"));
        let (above, goal) = (format!("{:.1}", row.above), forks::GOAL.to_string());
        table.value(&row.name, &goal, &above);
        table.row(&row.name, &[bare, queued, above, goal], verdict(row.above <= forks::GOAL));
    }
    table
}

fn leases(rounds: usize, heading: &str) -> Table {
    let mut table = Table::new(heading, &["round robin", "weighted fair", "goal"]);
    for (ready, goal, times) in fair::leases(rounds) {
        let (name, weighted) = (format!("{ready} ready queues"), times[1]);
        let verdict = goal.map_or("", |goal| verdict(weighted <= goal));
        let goal = goal.map_or("-".to_owned(), |it| it.to_string());
        let [in_turn, weighted] = times.map(|it| format!("{it:.1}"));
        table.value(&format!("{name}, weighted fair"), &goal, &weighted);
        table.row(&name, &[in_turn, weighted, goal], verdict);
    }
    table
}

/// Returns a table with a row for each size, such as a number of queues, and the cost at that size.
fn by_size(heading: &str, what: &str, values: Vec<(usize, f64)>) -> Table {
    let mut table = Table { text: format!("{heading}\n"), tsv: String::new() };
    for (size, value) in values {
        let name = format!("{size}, {what}");
        let _ = writeln!(table.text, "{name:<45} {value:>10.2}");
        table.value(&name, "-", &format!("{value:.2}"));
    }
    table
}

fn batches(rounds: usize, heading: &str) -> Table {
    let mut table = Table::new(heading, &["small batch", "both", "goal"]);
    for (name, it) in fair::batches(rounds) {
        let verdict = match name {
            "one queue (FIFO)" => "(for comparison)",
            _ => verdict(it.small <= 1.5),
        };
        let [small, all] = [it.small, it.all].map(|it| format!("{it:.2}"));
        table.value(&format!("small batch, {name}"), "1.5", &small);
        table.row(name, &[small, all, "1.5".to_owned()], verdict);
    }
    table
}

fn shares(rounds: usize, heading: &str) -> Table {
    let (due, most) = forks::SHARE;
    let goal = format!("{due} ± {most}");
    let mut table = Table::new(heading, &["share", "goal"]);
    for (name, share) in forks::shares(rounds) {
        let verdict = if (share - due).abs() <= most { "ok" } else { "off" };
        let share = format!("{share:.3}");
        table.value(&format!("share, {name}"), &goal, &share);
        table.row(&name, &[share, goal.clone()], verdict);
    }
    table
}

fn waits(rounds: usize, heading: &str) -> Table {
    let mut table = Table::new(heading, &["median", "longest", "goal"]);
    for (name, [median, longest]) in forks::waits(rounds) {
        let (goal, verdict) = match name {
            "no worker kept" => ("-".to_owned(), "(for comparison)"),
            _ => (forks::WAIT.to_string(), verdict(median <= forks::WAIT)),
        };
        let [median, longest] = [median, longest].map(|it| format!("{it:.3}"));
        table.value(&format!("urgent, {name}, median"), &goal, &median);
        table.value(&format!("urgent, {name}, longest"), "-", &longest);
        table.row(name, &[median, longest, goal], verdict);
    }
    table
}

//! The layers of the crate: each module imports only from the layers below it.

use crate::svg::{AMBER, BLUE, GREEN, GREY, INK, PALE, QUIET, VIOLET};
use crate::svg::{Anchor, Area, Font, Picture, Stroke, Tone, area};

const NAME: Font = Font::code(13.0).bold();
const NOTE: Font = Font::plain(11.0).colored(QUIET);

/// A name of the crate, and two lines about it.
type Card = (&'static str, [&'static str; 2]);

const FAIR: [Card; 4] = [
    ("FairScheduler", ["shares one executor", "among queues"]),
    ("Queue", ["weight, limit;", "an executor itself"]),
    ("Policy", ["RoundRobin,", "WeightedFair"]),
    ("WorkQueue", ["a function", "with a limit"]),
];
const EXECUTORS: [Card; 5] = [
    ("ThreadPool", ["its threads", "steal work"]),
    ("LockedPool", ["one queue:", "the baseline"]),
    ("Inline", ["at once, on the", "caller's thread"]),
    ("ThreadPerJob", ["a thread", "for each job"]),
    ("from_fn", ["rayon, tokio …:", "a closure"]),
];
const TASKS: [Card; 5] = [
    ("Job", ["a closure", "in four words"]),
    ("JoinHandle", ["waits, cancels,", "runs it itself"]),
    ("TaskGroup", ["waits for many,", "with a timeout"]),
    ("CancelToken", ["asks tasks to stop,", "and their children"]),
    ("ContextFlow", ["what goes along", "with a task"]),
];
const PRIMITIVES: [Card; 4] = [
    ("Worker, Stealer", ["a deque: owner at one", "end, thieves at the other"]),
    ("Injector", ["anybody pushes,", "anybody takes"]),
    ("EventCount", ["sleeps until there", "is work, misses none"]),
    ("Searchers", ["look for a while", "before they sleep"]),
];

/// The positions of cards. The two upper layers are narrower, for the tower beside them.
const LEFT: f64 = 184.0;
const WIDE: f64 = 744.0;
const NARROW: f64 = 600.0;

pub(crate) fn draw() -> Picture {
    let mut picture = Picture::new("The storeys of filch", 960.0, 640.0);
    let title = Font::plain(17.0).bold();
    picture.text((32.0, 36.0), Anchor::Start, title, "The house");
    let rule = "a module imports only what is below it";
    picture.text((928.0, 36.0), Anchor::End, Font::plain(13.0).colored(QUIET), rule);
    picture.arrow((20.0, 60.0), (20.0, 612.0), Stroke::new(QUIET, 1.5));

    storey(&mut picture, (56.0, 112.0), &["fairness", "fair"]);
    storey(&mut picture, (184.0, 164.0), &["executors", "executor, pool"]);
    storey(&mut picture, (364.0, 84.0), &["tasks", "task"]);
    storey(&mut picture, (464.0, 84.0), &["primitives", "idle, injector,", "deque, steal"]);
    storey(&mut picture, (564.0, 52.0), &["foundation", "sync"]);

    cards(&mut picture, area(LEFT, 68.0, NARROW, 66.0), VIOLET, &FAIR);
    executors(&mut picture);
    cards(&mut picture, area(LEFT, 373.0, WIDE, 66.0), GREEN, &TASKS);
    cards(&mut picture, area(LEFT, 473.0, WIDE, 66.0), BLUE, &PRIMITIVES);
    let door = "the one door: atomics, orderings with names, reclamation, threads, clock";
    picture.card(area(LEFT, 573.0, WIDE, 34.0), GREY, &[(Font::plain(12.0), door)]);
    tower(&mut picture);
    picture
}

/// Draws a band, with its name and modules at the left.
fn storey(picture: &mut Picture, (y, height): (f64, f64), names: &[&str]) {
    let band = area(32.0, y, LEFT + WIDE - 20.0, height);
    picture.rounded(band, 8.0, Tone { fill: PALE, edge: "none" });
    let fonts = [Font::plain(14.0).bold(), Font::code(11.0).colored(QUIET)];
    let lines: Vec<_> = names.iter().enumerate().map(|(at, it)| (fonts[at.min(1)], *it)).collect();
    picture.lines(area(38.0, y, LEFT - 46.0, height), Anchor::Start, &lines);
}

fn cards(picture: &mut Picture, row: Area, tone: Tone, cards: &[Card]) {
    for (place, (name, [first, second])) in row.columns(cards.len(), 10.0).zip(cards) {
        picture.card(place, tone, &[(NAME, name), (NOTE, first), (NOTE, second)]);
    }
}

/// Draws the trait, its implementations, and the arrow from the layer above.
fn executors(picture: &mut Picture) {
    let stroke = Stroke::new(INK, 1.5);
    let middle = LEFT + (NARROW - 30.0) / 8.0;
    picture.arrow((middle, 134.0), (middle, 196.0), stroke);
    let note = Font::plain(12.0).colored(QUIET);
    picture.text((middle + 10.0, 158.0), Anchor::Start, note, "stands on any executor");

    let row = area(LEFT, 270.0, NARROW, 66.0);
    for place in row.columns(EXECUTORS.len(), 10.0) {
        let x = place.x + place.width / 2.0;
        picture.line((x, 240.0), (x, 270.0), Stroke::new(AMBER.edge, 1.0).dashed());
    }
    let says = "accepts a job, or hands it back";
    let lines = [(Font::code(14.0).bold(), "trait Executor"), (NOTE, says)];
    picture.card(area(LEFT, 196.0, NARROW, 44.0), AMBER, &lines);
    cards(picture, row, AMBER, &EXECUTORS);
}

/// Draws the simulation beside both layers: it is an executor, and imports the fair scheduler.
fn tower(picture: &mut Picture) {
    let lines = [
        (Font::code(11.0).colored(QUIET), "sim, above fair"),
        (NAME, "Stepper"),
        (NOTE, "an executor"),
        (NOTE, "on virtual time,"),
        (NOTE, "one step at a time;"),
        (NOTE, "the same result"),
        (NOTE, "in each run"),
    ];
    let place = area(LEFT + NARROW + 10.0, 68.0, WIDE - NARROW - 10.0, 268.0);
    picture.card(place, Tone { fill: "#f4ece4", edge: "#93735a" }, &lines);
}

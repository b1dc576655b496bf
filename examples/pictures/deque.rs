//! A deque's ring of slots, after some operations on a real one.

use crate::svg::{Anchor, BLUE, Font, INK, PALE, Picture, Point, QUIET, RED, Stroke, Tone};
use filch::deque::{Flavor, Worker};
use std::f64::consts::TAU;
use std::iter;

/// Slots of the ring.
const SLOTS: usize = 8;
const INNER: f64 = 44.0;
const OUTER: f64 = 84.0;

#[derive(Clone, Copy)]
enum Step {
    Push(&'static str),
    Steal,
    Pop,
}

/// A deque after some steps: its last answer and its items.
struct Frame {
    flavor: Flavor,
    answer: String,
    /// How many items were taken at the top. This is also the index of the oldest item left.
    top: usize,
    /// The items, oldest first.
    items: Vec<&'static str>,
}

impl Frame {
    /// Applies the steps to a new deque, then takes out the remaining items to record them.
    fn after(flavor: Flavor, steps: &[Step]) -> Self {
        let worker = Worker::with_capacity(flavor, SLOTS);
        let stealer = worker.stealer();
        let (mut top, mut answer) = (0, String::new());
        for step in steps {
            match step {
                Step::Push(item) => {
                    worker.push(*item);
                    answer = format!("push({item:?})");
                }
                Step::Steal => {
                    // `Debug` of a `Steal` leaves the item out.
                    let item = stealer.steal().success().expect("there is an item, and no rival");
                    top += 1;
                    answer = format!("steal() = Success({item:?})");
                }
                Step::Pop => {
                    let popped = worker.pop();
                    top += usize::from(popped.is_some() && flavor == Flavor::Fifo);
                    answer = format!("pop() = {popped:?}");
                }
            }
        }
        assert_eq!(worker.capacity(), SLOTS, "the ring has not grown");
        let length = worker.len();
        let items: Vec<_> = iter::from_fn(|| stealer.steal().success()).collect();
        assert_eq!(items.len(), length);
        Frame { flavor, answer, top, items }
    }

    fn bottom(&self) -> usize {
        self.top + self.items.len()
    }
}

pub(crate) fn draw() -> Picture {
    let mut picture = Picture::new("A work-stealing deque, step by step", 960.0, 770.0);
    heading(&mut picture);
    for (at, (caption, frame)) in frames().iter().enumerate() {
        let center = (160.0 + (at % 3) as f64 * 320.0, 262.0 + (at / 3) as f64 * 330.0);
        let left = center.0 - 128.0;
        let number = format!("{}  {caption}", at + 1);
        picture.text((left, center.1 - 140.0), Anchor::Start, Font::plain(13.0).bold(), &number);
        ring(&mut picture, center, frame);
        below(&mut picture, center, frame);
    }
    picture
}

fn frames() -> [(&'static str, Frame); 6] {
    use Step::{Pop, Push, Steal};
    let mut steps = Vec::from(["a", "b", "c", "d", "e"].map(Push));
    let pushed = Frame::after(Flavor::Lifo, &steps);
    steps.push(Steal);
    let stolen = Frame::after(Flavor::Lifo, &steps);
    steps.push(Steal);
    let stolen_again = Frame::after(Flavor::Lifo, &steps);
    steps.push(Pop);
    let newest = Frame::after(Flavor::Lifo, &steps);
    let oldest = Frame::after(Flavor::Fifo, &steps);
    steps.extend(["f", "g", "h", "i", "j"].map(Push));
    let around = Frame::after(Flavor::Lifo, &steps);
    [
        ("the owner has pushed a b c d e", pushed),
        ("a thief steals the oldest", stolen),
        ("a thief steals again", stolen_again),
        ("LIFO: the owner pops the newest", newest),
        ("FIFO, after 3: pops the oldest", oldest),
        ("after 4: pushes f g h i j", around),
    ]
}

fn heading(picture: &mut Picture) {
    let (title, text) = (Font::plain(17.0).bold(), Font::plain(13.0));
    picture.text((32.0, 36.0), Anchor::Start, title, "A work-stealing deque");
    let note = "slot = index mod capacity; the answers are a real deque's";
    picture.text((928.0, 36.0), Anchor::End, text.colored(QUIET), note);
    let top = "top: thieves steal here, and the owner of a FIFO deque pops here";
    picture.text((32.0, 64.0), Anchor::Start, text.colored(RED.edge), top);
    let bottom = "bottom: the owner pushes here, and pops here if the deque is LIFO";
    picture.text((32.0, 86.0), Anchor::Start, text.colored(BLUE.edge), bottom);
}

/// Returns the point at distance `radius` from the center, `slots` slots clockwise from the top.
fn polar(center: Point, radius: f64, slots: f64) -> Point {
    let (sin, cos) = (slots / SLOTS as f64 * TAU).sin_cos();
    (center.0 + radius * sin, center.1 - radius * cos)
}

fn ring(picture: &mut Picture, center: Point, frame: &Frame) {
    for slot in 0..SLOTS {
        let item = (frame.top..frame.bottom()).position(|index| index % SLOTS == slot);
        let fill = if item.is_some() { BLUE.fill } else { PALE };
        let (begin, end) = (slot as f64, slot as f64 + 1.0);
        picture.path(&sector(center, begin, end), Tone { fill, edge: "#8f979f" });
        let middle = begin + 0.5;
        if let Some(item) = item {
            let (x, y) = polar(center, (INNER + OUTER) / 2.0, middle);
            let font = Font::code(18.0).bold();
            picture.text((x, y + 6.0), Anchor::Middle, font, frame.items[item]);
        }
        let (x, y) = polar(center, INNER - 11.0, middle);
        let small = Font::plain(10.0).colored(QUIET);
        picture.text((x, y + 3.5), Anchor::Middle, small, &slot.to_string());
    }
    pointer(picture, center, frame.top, ("top", RED.edge));
    pointer(picture, center, frame.bottom(), ("bottom", BLUE.edge));
}

fn sector(center: Point, begin: f64, end: f64) -> String {
    let point = |radius, slots| {
        let (x, y) = polar(center, radius, slots);
        format!("{x:.1} {y:.1}")
    };
    format!(
        "M{}A{OUTER} {OUTER} 0 0 1 {}L{}A{INNER} {INNER} 0 0 0 {}Z",
        point(OUTER, begin),
        point(OUTER, end),
        point(INNER, end),
        point(INNER, begin)
    )
}

/// Draws an arrow from outside to the slot of an index.
fn pointer(picture: &mut Picture, center: Point, index: usize, name: (&str, &'static str)) {
    let middle = (index % SLOTS) as f64 + 0.5;
    let (from, to) = (polar(center, OUTER + 28.0, middle), polar(center, OUTER + 3.0, middle));
    picture.arrow(from, to, Stroke::new(name.1, 2.0));
    let (x, y) = polar(center, OUTER + 32.0, middle);
    let anchor = if x > center.0 { Anchor::Start } else { Anchor::End };
    picture.text((x, y + 4.0), anchor, Font::code(12.0).bold().colored(name.1), name.0);
}

/// Draws the deque's answer and its items.
fn below(picture: &mut Picture, (x, y): Point, frame: &Frame) {
    let who = if frame.answer.starts_with("steal") { RED.edge } else { BLUE.edge };
    let answer = Font::code(13.0).bold().colored(who);
    picture.text((x, y + 138.0), Anchor::Middle, answer, &frame.answer);
    let (length, flavor) = (frame.items.len(), format!("{:?}", frame.flavor).to_uppercase());
    let state = format!("{flavor}: top {}, bottom {}, len {length}", frame.top, frame.bottom());
    picture.text((x, y + 158.0), Anchor::Middle, Font::code(12.0).colored(INK), &state);
}

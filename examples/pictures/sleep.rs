//! The event count's protocol: a sleeper and a notifier, of which at least one sees the other.

use crate::svg::{AMBER, BLUE, GREEN, INK, PAPER, QUIET, RED};
use crate::svg::{Anchor, Area, Font, Line, Picture, Stroke, Tone, area};

const TEXT: Font = Font::plain(12.0);
const CODE: Font = Font::code(13.0).bold();
const WIDTH: f64 = 330.0;
const SLEEPER: f64 = 52.0;
const NOTIFIER: f64 = 598.0;

pub(crate) fn draw() -> Picture {
    let title = "The event count: how a thread goes to sleep without missing work";
    let mut picture = Picture::new(title, 960.0, 690.0);
    let heading = Font::plain(17.0).bold();
    picture.text((32.0, 36.0), Anchor::Start, heading, "Going to sleep without missing work");
    let time = Stroke::new(QUIET, 1.5);
    picture.arrow((26.0, 64.0), (26.0, 512.0), time);
    picture.text((16.0, 530.0), Anchor::Start, TEXT.colored(QUIET), "time");
    for (x, name, tone) in [(SLEEPER, "sleeper", BLUE), (NOTIFIER, "notifier", GREEN)] {
        let font = Font::plain(15.0).bold().colored(tone.edge);
        picture.text((x + WIDTH / 2.0, 74.0), Anchor::Middle, font, name);
    }
    between(&mut picture);
    sleeper(&mut picture);
    notifier(&mut picture);
    never(&mut picture);
    picture
}

/// Draws a numbered step of one side.
fn step(picture: &mut Picture, place: Area, tone: Tone, number: &str, lines: &[Line<'_>]) {
    picture.rounded(place, 6.0, tone);
    let font = Font::plain(14.0).bold().colored(tone.edge);
    picture.lines(Area { width: 26.0, ..place }, Anchor::Middle, &[(font, number)]);
    let rest = Area { x: place.x + 24.0, width: place.width - 24.0, ..place };
    picture.lines(rest, Anchor::Start, lines);
}

fn sleeper(picture: &mut Picture) {
    let place = |y, height| area(SLEEPER, y, WIDTH, height);
    let lines = [(CODE, "prepare"), (TEXT, "prepared += 1, in the word")];
    step(picture, place(88.0, 46.0), BLUE, "1", &lines);
    fence(picture, place(150.0, 28.0), "2");
    let lines = [(TEXT, "look once more, at everything")];
    step(picture, place(194.0, 46.0), BLUE, "3", &lines);
    picture.arrow((SLEEPER + 48.0, 240.0), (SLEEPER + 48.0, 290.0), Stroke::new(INK, 1.5));
    picture.arrow((SLEEPER + 240.0, 240.0), (SLEEPER + 240.0, 290.0), Stroke::new(INK, 1.5));
    picture.text((SLEEPER + 56.0, 268.0), Anchor::Start, TEXT.colored(QUIET), "something");
    picture.text((SLEEPER + 234.0, 268.0), Anchor::End, TEXT.colored(QUIET), "nothing");
    let lines = [(CODE, "cancel"), (TEXT, "passes a"), (TEXT, "signal on")];
    step(picture, area(SLEEPER, 290.0, 98.0, 118.0), BLUE, "4", &lines);
    let lines = [
        (CODE, "commit"),
        (TEXT, "a signal, another stamp:"),
        (TEXT, "look again; otherwise,"),
        (TEXT, "in one step: prepared −= 1,"),
        (TEXT, "and on top of the list"),
    ];
    step(picture, area(SLEEPER + 106.0, 290.0, WIDTH - 106.0, 118.0), BLUE, "4", &lines);
    let x = SLEEPER + 240.0;
    picture.arrow((x, 408.0), (x, 450.0), Stroke::new(INK, 1.5));
    let lines = [(TEXT, "asleep until taken off,"), (TEXT, "then look again")];
    step(picture, area(SLEEPER + 106.0, 450.0, WIDTH - 106.0, 52.0), BLUE, "5", &lines);
}

fn notifier(picture: &mut Picture) {
    let place = |y, height| area(NOTIFIER, y, WIDTH, height);
    let lines = [(TEXT, "change something:"), (TEXT, "the work is there to be seen")];
    step(picture, place(88.0, 46.0), GREEN, "a", &lines);
    fence(picture, place(150.0, 28.0), "b");
    let lines = [(CODE, "notify"), (TEXT, "read the word: is anybody there?")];
    step(picture, place(194.0, 46.0), GREEN, "c", &lines);
    let answers = [
        (262.0, "", "nobody", "nothing to do, and nothing is written"),
        (318.0, "d", "somebody has prepared", "a signal, in the word"),
        (454.0, "d", "else, somebody sleeps", "take the newest off the list, wake it"),
    ];
    let (right, spine) = (NOTIFIER + WIDTH - 28.0, NOTIFIER + WIDTH - 10.0);
    picture.line((spine, 240.0), (spine, 476.0), Stroke::new(INK, 1.5));
    for (y, number, found, what) in answers {
        let lines = [(TEXT.colored(QUIET), found), (TEXT, what)];
        step(picture, area(NOTIFIER, y, WIDTH - 28.0, 44.0), GREEN, number, &lines);
        picture.arrow((spine, y + 22.0), (right, y + 22.0), Stroke::new(INK, 1.5));
    }
}

fn fence(picture: &mut Picture, place: Area, number: &str) {
    step(picture, place, AMBER, number, &[(CODE, "LOOK_AGAIN")][..]);
    let x = place.x + place.width - 8.0;
    picture.text((x, place.y + 18.0), Anchor::End, TEXT, "fence (SeqCst)");
}

/// Draws the arrows between the two sides.
fn between(picture: &mut Picture) {
    let (left, right) = (SLEEPER + WIDTH, NOTIFIER);
    let middle = (left + right) / 2.0;
    let note = |picture: &mut Picture, y: f64, tone: Tone, lines: &[&str]| {
        let height = lines.len() as f64 * 16.0 + 4.0;
        let place = area(middle - 88.0, y, 176.0, height);
        picture.rounded(place, 4.0, Tone { fill: PAPER, edge: "none" });
        let font = TEXT.colored(tone.edge);
        let lines: Vec<_> = lines.iter().map(|it| (font, *it)).collect();
        picture.lines(place, Anchor::Middle, &lines);
    };
    picture.arrow((left, 104.0), (right, 216.0), Stroke::new(BLUE.edge, 1.5).dashed());
    picture.arrow((right, 104.0), (left, 216.0), Stroke::new(GREEN.edge, 1.5).dashed());
    note(picture, 78.0, GREEN, &["b before 2:", "3 sees the change of a"]);
    note(picture, 214.0, BLUE, &["2 before b:", "c sees the sleeper of 1"]);
    picture.arrow((right, 340.0), (left, 340.0), Stroke::new(GREEN.edge, 1.5));
    note(picture, 316.0, GREEN, &["look again"]);
    picture.arrow((right, 476.0), (left, 476.0), Stroke::new(GREEN.edge, 1.5));
    note(picture, 454.0, GREEN, &["a wake-up"]);
}

/// Draws the outcome that the two fences exclude.
fn never(picture: &mut Picture) {
    let lines = [
        (Font::plain(14.0).bold().colored(RED.edge), "Never: both miss"),
        (TEXT, "3 misses what a changed, and c misses the sleeper of 1."),
        (
            TEXT,
            "One of the fences comes first in the order of all SeqCst operations; the side of the later one sees the other.",
        ),
        (TEXT, "Without them both can miss (store buffering), and the sleeper sleeps on work."),
    ];
    picture.card(area(SLEEPER, 560.0, NOTIFIER + WIDTH - SLEEPER, 96.0), RED, &lines);
}

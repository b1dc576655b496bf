//! Draws each tenant's share of the answers, and the times of its queries, for each setting.

use crate::svg::{AMBER, Anchor, BLUE, Font, Picture, QUIET, Stroke, Tone, area};
use crate::without::{Answers, Outcome, TENANTS};
use std::time::Duration;

const TONES: [Tone; 2] = [AMBER, BLUE];

const LEFT: f64 = 24.0;
/// The width of all answers.
const SHARES: f64 = 340.0;
/// Where the times begin, and the width of the longest.
const TIMES: f64 = 400.0;
const LONGEST: f64 = 200.0;
const TOP: f64 = 122.0;
/// The height of a setting.
const ROW: f64 = 88.0;

/// Reads an outcome from its row.
pub(crate) fn outcome(row: &str) -> Option<Outcome> {
    let (setting, numbers) = row.split_once('\t')?;
    let numbers: Vec<u64> = numbers.split('\t').filter_map(|it| it.parse().ok()).collect();
    let of = |it: &[u64]| {
        let [median, worst] = [it[1], it[2]].map(Duration::from_nanos);
        Answers { count: it[0] as usize, median, worst }
    };
    let tenants: Vec<_> = numbers.chunks_exact(3).map(of).collect();
    Some(Outcome { setting: setting.to_owned(), tenants: tenants.try_into().ok()? })
}

pub(crate) fn draw(outcomes: &[Outcome]) -> String {
    let height = TOP + ROW * outcomes.len() as f64;
    let mut picture = Picture::new("Two tenants query the same files at once", 840.0, height);
    let (title, small) = (Font::plain(17.0).bold(), Font::plain(12.0));
    picture.text((LEFT, 34.0), Anchor::Start, title, "Two tenants query the same files at once");
    for (tenant, (name, weight, clients)) in TENANTS.iter().enumerate() {
        let x = LEFT + 190.0 * tenant as f64;
        picture.rounded(area(x, 48.0, 14.0, 14.0), 3.0, TONES[tenant]);
        let text = format!("{name}: weight {weight}, {clients} clients");
        picture.text((x + 20.0, 59.0), Anchor::Start, small, &text);
    }
    let quiet = small.colored(QUIET);
    let all: u64 = TENANTS.iter().map(|it| it.1).sum();
    let goal = TENANTS[0].1 as f64 / all as f64;
    let shares = format!("share of the answers; dashed: by weight, {:.0} %", goal * 100.0);
    picture.text((LEFT, 90.0), Anchor::Start, quiet, &shares);
    picture.text(
        (TIMES, 90.0),
        Anchor::Start,
        quiet,
        "time of a query: box to the median, line to the worst",
    );
    let worst = outcomes.iter().flat_map(|it| it.tenants.iter().map(|it| it.worst)).max();
    let scale = LONGEST / worst.unwrap_or_default().as_secs_f64().max(1e-9);
    for (at, outcome) in outcomes.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        picture.text((LEFT, y), Anchor::Start, small.bold(), &outcome.setting);
        let first = outcome.share(0) * SHARES;
        for (tenant, (x, width)) in
            [(LEFT, first), (LEFT + first, SHARES - first)].into_iter().enumerate()
        {
            picture.rounded(area(x, y + 10.0, width, 44.0), 0.0, TONES[tenant]);
            let share = format!("{:.0} %", outcome.share(tenant) * 100.0);
            if width > 40.0 {
                picture.text((x + width / 2.0, y + 36.0), Anchor::Middle, small, &share);
            }
        }
        let x = LEFT + goal * SHARES;
        picture.line((x, y + 10.0), (x, y + 60.0), Stroke::new(QUIET, 1.5).dashed());
        for (tenant, it) in outcome.tenants.iter().enumerate() {
            let y = y + 10.0 + 24.0 * tenant as f64;
            let [median, worst] = [it.median, it.worst].map(|it| it.as_secs_f64() * scale);
            picture.line(
                (TIMES, y + 10.0),
                (TIMES + worst, y + 10.0),
                Stroke::new(TONES[tenant].edge, 1.5),
            );
            picture.rounded(area(TIMES, y + 2.0, median, 16.0), 0.0, TONES[tenant]);
            let text = format!("median {:.1?}, worst {:.1?}", it.median, it.worst);
            picture.text((TIMES + worst + 8.0, y + 14.0), Anchor::Start, small, &text);
        }
    }
    picture.into_svg()
}

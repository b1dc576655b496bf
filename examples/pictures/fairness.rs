//! The service of two batches over time, under three schedulers: the lines of a simulation.

use crate::simulation::{self, ARRIVAL, LARGE, Run, SMALL, Sharing, THREADS};
use crate::svg::{self, Anchor, Font, INK, Picture, QUIET, Stroke};
use plotters::prelude::*;
use std::error::Error;
use std::time::Duration;

/// Charts have whole coordinates, so they are drawn larger and scaled down to get smooth lines.
const SCALE: u32 = 4;
const PANEL: (u32, u32) = (304 * SCALE, 250 * SCALE);
const PANELS: [(Sharing, &str, &str); 3] = [
    (Sharing::OneQueue, "FIFO", "one queue for both"),
    (Sharing::InTurn, "RoundRobin", "a task of each in turn"),
    (Sharing::ByTime, "WeightedFair", "time by weight, 1:1"),
];
/// The distance between the points of a line.
const SAMPLE: Duration = Duration::from_millis(10);

pub(crate) fn draw() -> Result<Picture, Box<dyn Error>> {
    let title = "Service over time: a small batch arrives while a large one is under way";
    let mut picture = Picture::new(title, 960.0, 450.0);
    heading(&mut picture);
    for (at, (sharing, name, what)) in PANELS.into_iter().enumerate() {
        let run = simulation::run(sharing)?;
        let x = 16.0 + at as f64 * 308.0;
        let left = x + 44.0;
        picture.text((left, 114.0), Anchor::Start, Font::code(14.0).bold(), name);
        let quiet = Font::plain(12.0).colored(QUIET);
        picture.text((left, 132.0), Anchor::Start, quiet, what);
        picture.part((x, 138.0), 1.0 / f64::from(SCALE), &panel(&run)?);
        below(&mut picture, left, &run);
    }
    Ok(picture)
}

fn heading(picture: &mut Picture) {
    let (title, text) = (Font::plain(17.0).bold(), Font::plain(12.0));
    let question = "A large batch is under way when a small one arrives";
    picture.text((32.0, 36.0), Anchor::Start, title, question);
    for (x, batch, name, tone) in
        [(32.0, LARGE, "large", svg::BLUE), (256.0, SMALL, "small", svg::RED)]
    {
        picture.line((x, 61.0), (x + 20.0, 61.0), Stroke::new(tone.edge, 2.5));
        let what = format!("{name}: {} tasks of {} ms", batch.tasks, batch.cost.as_millis());
        picture.text((x + 26.0, 65.0), Anchor::Start, text, &what);
    }
    picture.line((484.0, 61.0), (504.0, 61.0), Stroke::new(QUIET, 1.5).dashed());
    picture.text((510.0, 65.0), Anchor::Start, text, "small arrives");
    let note = format!("service over virtual time, in s; {THREADS} threads");
    picture.text((928.0, 65.0), Anchor::End, text.colored(QUIET), &note);
    picture.line((32.0, 84.0), (928.0, 84.0), Stroke::new("#d8dad5", 1.0));
}

/// Draws the results below the lines.
fn below(picture: &mut Picture, x: f64, run: &Run) {
    let font = Font::plain(12.0).colored(INK);
    let took = run.ends()[0] - ARRIVAL;
    let done = format!("small batch done {:.2} s after it came", took.as_secs_f64());
    picture.text((x, 408.0), Anchor::Start, font, &done);
    let share = format!("its share while both had work: {:.0} %", run.share() * 100.0);
    picture.text((x, 428.0), Anchor::Start, font, &share);
}

fn color(hex: &str) -> RGBColor {
    let part = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour of ours");
    RGBColor(part(1), part(3), part(5))
}

/// Returns the elements of a chart, without the tag around them.
fn panel(run: &Run) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, PANEL).into_drawing_area();
        let most = (LARGE.cost * LARGE.tasks as u32).as_secs_f64();
        let [small, large] = run.ends();
        let end = small.max(large);
        let mut chart = ChartBuilder::on(&area)
            .margin(8 * SCALE)
            .x_label_area_size(24 * SCALE)
            .y_label_area_size(36 * SCALE)
            .build_cartesian_2d(0.0..end.as_secs_f64(), 0.0..most)?;
        let (quiet, pale) = (color(QUIET), color("#e4e6e1"));
        let labels = ("sans-serif", 12 * SCALE).into_font().color(&color(INK));
        let mut mesh = chart.configure_mesh();
        let (grid, axis) = (pale.stroke_width(SCALE), quiet.stroke_width(SCALE));
        mesh.light_line_style(TRANSPARENT).bold_line_style(grid).axis_style(axis);
        mesh.label_style(labels).x_labels(6).y_labels(5);
        mesh.set_all_tick_mark_size(4 * SCALE);
        mesh.x_label_formatter(&|it| format!("{it:.1}")).y_label_formatter(&|it| format!("{it}"));
        mesh.draw()?;
        let arrival = ARRIVAL.as_secs_f64();
        let marks = [(arrival, 0.0), (arrival, most)];
        chart.draw_series(DashedLineSeries::new(
            marks,
            5 * SCALE,
            4 * SCALE,
            quiet.stroke_width(SCALE),
        ))?;
        for (which, tone) in [svg::RED, svg::BLUE].into_iter().enumerate() {
            let times = (0..).map(|it| SAMPLE * it).take_while(|it| *it <= end);
            let line = times.map(|it| (it.as_secs_f64(), run.services(it)[which]));
            chart.draw_series(LineSeries::new(line, color(tone.edge).stroke_width(2 * SCALE)))?;
        }
        area.present()?;
    }
    let lines: Vec<_> = text.lines().filter(|it| !it.trim().is_empty()).collect();
    Ok(lines[1..lines.len() - 1].join("\n"))
}

//! Draws a bar for each executor and shape, on a logarithmic scale. A *shape* is a way in which
//! tasks are spawned, such as recursively.

use crate::Row;
use crate::run::SHAPES;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

/// The least and the most nanoseconds that the chart shows.
const SCALE: std::ops::Range<f64> = 1.0..100_000.0;

pub(crate) fn draw(path: &Path, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (1000, 640)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut names = Vec::new();
    for (_, name, _) in rows {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    // Each shape is a group of bars, with a gap of one bar.
    let width = names.len() + 1;
    let mut chart = ChartBuilder::on(&area)
        .caption("nanoseconds a task", ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(32)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..(width * SHAPES.len()) as f64, SCALE.log_scale())?;
    chart.configure_mesh().disable_x_mesh().disable_x_axis().y_desc("ns").draw()?;
    for (group, shape) in SHAPES.iter().enumerate() {
        let place = ((group * width) as f64 + 0.1, SCALE.end * 0.7);
        let style = ("sans-serif", 14).into_font();
        chart.plotting_area().draw(&Text::new(shape.name(), place, style))?;
    }
    for (which, name) in names.iter().enumerate() {
        let color = Palette99::pick(which).filled();
        let bars = rows.iter().filter(|row| row.1 == *name).map(|(shape, _, measured)| {
            let group = SHAPES.iter().position(|it| it == shape).unwrap_or_default();
            let left = (group * width + which) as f64;
            let top = measured.total.clamp(SCALE.start, SCALE.end);
            Rectangle::new([(left + 0.1, SCALE.start), (left + 0.9, top)], color)
        });
        chart
            .draw_series(bars)?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], color));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    area.present()?;
    Ok(())
}

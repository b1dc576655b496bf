//! Draws the service of both batches over time, for each setting and policy.

use crate::{Outcome, SETTINGS, Sharing};
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

pub(crate) fn draw(path: &Path, outcomes: &[Outcome]) -> Result<(), Box<dyn Error>> {
    let (columns, rows) = (Sharing::ALL.len(), SETTINGS.len());
    let area = SVGBackend::new(path, (400 * columns as u32, 280 * rows as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    for (outcome, part) in outcomes.iter().zip(area.split_evenly((rows, columns))) {
        let end = outcome.samples.last().map_or(1.0, |it| it.0);
        let most = outcome.samples.last().map_or(1.0, |it| it.1[0].max(it.1[1])).max(1e-3);
        let title = format!("{}: {}", outcome.sharing.name(), outcome.setting.title);
        let mut chart = ChartBuilder::on(&part)
            .caption(title, ("sans-serif", 14))
            .margin(8)
            .x_label_area_size(24)
            .y_label_area_size(40)
            .build_cartesian_2d(0.0..end, 0.0..most)?;
        chart.configure_mesh().light_line_style(WHITE).x_labels(5).y_labels(5).draw()?;
        let names: &[&str] = match outcome.sharing {
            Sharing::OneQueue => &["both, s"],
            _ => &["small batch, s", "large batch, s"],
        };
        for (which, name) in names.iter().enumerate() {
            let color = [RED, BLUE][which];
            let line = outcome.samples.iter().map(|it| (it.0, it.1[which]));
            chart
                .draw_series(LineSeries::new(line, color.stroke_width(2)))?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], color));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

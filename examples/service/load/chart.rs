//! Draws the light tenant's latencies, alone and beside the heavy tenant, in each mode.

use super::measure::Measured;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

/// The bars of a mode: a name, a colour, the latency in milliseconds.
fn bars(row: &Measured) -> [(&'static str, RGBColor, f64); 4] {
    let (pale, dark) = (RGBColor(160, 190, 230), RGBColor(40, 90, 170));
    let (light, red) = (RGBColor(240, 170, 150), RGBColor(190, 50, 40));
    [
        ("alone, p50", pale, row.alone.p50 * 1e3),
        ("alone, p99", dark, row.alone.p99 * 1e3),
        ("beside heavy, p50", light, row.beside.p50 * 1e3),
        ("beside heavy, p99", red, row.beside.p99 * 1e3),
    ]
}

pub(crate) fn draw(path: &Path, rows: &[Measured]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (760, 360)).into_drawing_area();
    draw_on(&area, rows).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}

fn draw_on(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    rows: &[Measured],
) -> Result<(), Box<dyn Error>> {
    let latencies = || rows.iter().flat_map(bars).map(|it| it.2);
    let most = latencies().fold(1.0, f64::max) * 1.6;
    let least = latencies().fold(most, f64::min) / 2.0;
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption("Latency of a light tenant's requests, in milliseconds", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..rows.len() as f64, (least..most).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .y_labels(4)
        .y_label_formatter(&|it| format!("{it:.0}"))
        .draw()?;
    for which in 0..4 {
        let of_mode = |(mode, row): (usize, &Measured)| {
            let (_, color, height) = bars(row)[which];
            let left = mode as f64 + 0.1 + 0.2 * which as f64;
            Rectangle::new([(left, least), (left + 0.19, height)], color.filled())
        };
        let Some((name, color, _)) = rows.first().map(|row| bars(row)[which]) else {
            return Ok(());
        };
        chart
            .draw_series(rows.iter().enumerate().map(of_mode))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    }
    for (mode, row) in rows.iter().enumerate() {
        for (which, (_, _, height)) in bars(row).into_iter().enumerate() {
            let place = (mode as f64 + 0.12 + 0.2 * which as f64, height * 1.12);
            let digits = usize::from(height < 10.0);
            let text = Text::new(format!("{height:.digits$}"), place, ("sans-serif", 12));
            chart.draw_series([text])?;
        }
        let (x, y) = chart.backend_coord(&(mode as f64 + 0.4, least));
        area.draw(&Text::new(row.mode.name(), (x - 30, y + 8), ("sans-serif", 15)))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    area.present()?;
    Ok(())
}

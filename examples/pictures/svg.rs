//! A picture in SVG that may stand alone or inside a page: boxes, lines, arrows and text.
//!
//! The width of a text depends on the reader's fonts. The estimate here is on the wide side. A text
//! that does not fit its place is a mistake in the picture, and drawing it panics.

use std::fmt::Write as _;

pub(crate) const INK: &str = "#2b2f36";
pub(crate) const QUIET: &str = "#666c75";
pub(crate) const PALE: &str = "#f1f2ef";
pub(crate) const PAPER: &str = "#fdfdfb";

/// The colours of a shape's inside and edge.
#[derive(Clone, Copy)]
pub(crate) struct Tone {
    pub(crate) fill: &'static str,
    pub(crate) edge: &'static str,
}

pub(crate) const BLUE: Tone = Tone { fill: "#dfe9f5", edge: "#4f76a3" };
pub(crate) const GREEN: Tone = Tone { fill: "#e0eedd", edge: "#5c8f5c" };
pub(crate) const AMBER: Tone = Tone { fill: "#f8ecd3", edge: "#a87d2c" };
pub(crate) const VIOLET: Tone = Tone { fill: "#ebe4f4", edge: "#7d62a3" };
pub(crate) const RED: Tone = Tone { fill: "#f8e1dd", edge: "#b04f45" };
pub(crate) const GREY: Tone = Tone { fill: PALE, edge: "#a9aea9" };

pub(crate) type Point = (f64, f64);

#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

pub(crate) const fn area(x: f64, y: f64, width: f64, height: f64) -> Area {
    Area { x, y, width, height }
}

impl Area {
    /// Returns `count` areas of equal width, side by side, with gaps between them.
    pub(crate) fn columns(self, count: usize, gap: f64) -> impl Iterator<Item = Area> {
        let width = (self.width - gap * (count - 1) as f64) / count as f64;
        (0..count).map(move |it| Area { x: self.x + it as f64 * (width + gap), width, ..self })
    }
}

/// The part of a text that lies at its point: the beginning, the middle or the end.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy)]
pub(crate) struct Font {
    size: f64,
    family: &'static str,
    is_bold: bool,
    color: &'static str,
}

impl Font {
    pub(crate) const fn plain(size: f64) -> Self {
        Font { size, family: "sans-serif", is_bold: false, color: INK }
    }

    /// Returns a font for names from the code.
    pub(crate) const fn code(size: f64) -> Self {
        Font { family: "monospace", ..Font::plain(size) }
    }

    pub(crate) const fn bold(self) -> Self {
        Font { is_bold: true, ..self }
    }

    pub(crate) const fn colored(self, color: &'static str) -> Self {
        Font { color, ..self }
    }

    fn width_of(self, text: &str) -> f64 {
        // Bold letters are wider, except in a monospaced font.
        let per_char = match (self.family, self.is_bold) {
            ("monospace", _) => 0.62,
            (_, true) => 0.64,
            (_, false) => 0.57,
        };
        text.chars().count() as f64 * per_char * self.size
    }
}

/// One line of text in a box.
pub(crate) type Line<'a> = (Font, &'a str);

#[derive(Clone, Copy)]
pub(crate) struct Stroke {
    color: &'static str,
    width: f64,
    dashes: &'static str,
}

impl Stroke {
    pub(crate) const fn new(color: &'static str, width: f64) -> Self {
        Stroke { color, width, dashes: "" }
    }

    pub(crate) const fn dashed(self) -> Self {
        Stroke { dashes: " stroke-dasharray=\"5 4\"", ..self }
    }
}

pub(crate) struct Picture {
    title: &'static str,
    size: (f64, f64),
    body: String,
}

impl Picture {
    /// Returns an empty sheet with paper drawn on it, so that the picture is legible on any
    /// background.
    pub(crate) fn new(title: &'static str, width: f64, height: f64) -> Self {
        let mut picture = Picture { title, size: (width, height), body: String::new() };
        let sheet = area(0.5, 0.5, width - 1.0, height - 1.0);
        picture.rounded(sheet, 12.0, Tone { fill: PAPER, edge: "#d8dad5" });
        picture
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes everything");
    }

    pub(crate) fn rounded(&mut self, area: Area, radius: f64, tone: Tone) {
        let (Area { x, y, width, height }, Tone { fill, edge }) = (area, tone);
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="{radius}" fill="{fill}" stroke="{edge}"/>"#
        ));
    }

    /// Draws a box with lines of text in its middle.
    pub(crate) fn card(&mut self, area: Area, tone: Tone, lines: &[Line<'_>]) {
        self.rounded(area, 6.0, tone);
        self.lines(area, Anchor::Middle, lines);
    }

    /// Draws lines of text, one below the other, centred in the height of an area.
    pub(crate) fn lines(&mut self, area: Area, anchor: Anchor, lines: &[Line<'_>]) {
        let height: f64 = lines.iter().map(|it| it.0.size * 1.3).sum();
        assert!(height <= area.height, "{:?} has no room: {height}", lines[0].1);
        let mut y = area.y + (area.height - height) / 2.0;
        for (font, text) in lines {
            let width = font.width_of(text);
            assert!(width <= area.width - 8.0, "{text:?} is {width} wide, and has {}", area.width);
            y += font.size * 1.3;
            let x = match anchor {
                Anchor::Start => area.x + 4.0,
                Anchor::Middle => area.x + area.width / 2.0,
                Anchor::End => area.x + area.width - 4.0,
            };
            self.text((x, y - font.size * 0.32), anchor, *font, text);
        }
    }

    /// Draws a text on a base line.
    pub(crate) fn text(&mut self, (x, y): Point, anchor: Anchor, font: Font, text: &str) {
        let width = font.width_of(text);
        let (left, anchor) = match anchor {
            Anchor::Start => (x, "start"),
            Anchor::Middle => (x - width / 2.0, "middle"),
            Anchor::End => (x - width, "end"),
        };
        let is_inside = left >= 2.0 && left + width <= self.size.0 - 2.0 && y <= self.size.1;
        assert!(is_inside, "{text:?} leaves the picture: {left} to {}", left + width);
        let Font { size, family, is_bold, color } = font;
        let weight = if is_bold { " font-weight=\"bold\"" } else { "" };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-family="{family}" font-size="{size}"{weight} fill="{color}">{text}</text>"#
        ));
    }

    pub(crate) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        let ((x1, y1), (x2, y2), Stroke { color, width, dashes }) = (from, to, stroke);
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{color}" stroke-width="{width}"{dashes}/>"#
        ));
    }

    /// Draws a line with a tip. The tip is a shape rather than a marker. Markers need ids, which
    /// would have to differ among all pictures of a page.
    pub(crate) fn arrow(&mut self, from: Point, to: Point, stroke: Stroke) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        let (dx, dy) = (dx / length, dy / length);
        let (long, half) = (9.0, 4.0);
        let neck = (to.0 - dx * long, to.1 - dy * long);
        self.line(from, (neck.0 + dx, neck.1 + dy), stroke);
        let tip = format!(
            "M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z",
            to.0,
            to.1,
            neck.0 - dy * half,
            neck.1 + dx * half,
            neck.0 + dy * half,
            neck.1 - dx * half
        );
        self.path(&tip, Tone { fill: stroke.color, edge: "none" });
    }

    pub(crate) fn path(&mut self, path: &str, tone: Tone) {
        let Tone { fill, edge } = tone;
        self.add(format_args!(r#"<path d="{path}" fill="{fill}" stroke="{edge}"/>"#));
    }

    /// Adds the elements of another picture, moved and scaled.
    pub(crate) fn part(&mut self, (x, y): Point, scale: f64, elements: &str) {
        let transform = format!("translate({x:.1} {y:.1}) scale({scale})");
        self.add(format_args!("<g transform=\"{transform}\">\n{elements}\n</g>"));
    }

    /// Returns the file's text. The tag has a line of its own and no line is blank, so Markdown
    /// treats it all as HTML.
    pub(crate) fn into_svg(self) -> String {
        let Picture { title, size: (width, height), body } = self;
        let text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" role="img" width="100%" viewBox="0 0 {width} {height}" style="max-width:{width}px;height:auto">
<title>{title}</title>
{body}</svg>
"#
        );
        assert!(text.lines().all(|it| !it.trim().is_empty()), "a blank line ends the picture");
        text
    }
}

//! The computations: hashes, compressed files, smaller images.

use crate::problem::Problem;
use axum::http::StatusCode;
use filch::task;
use flate2::Compression;
use flate2::write::GzEncoder;
use image::imageops::FilterType;
use image::{ImageFormat, ImageReader, Limits};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{Cursor, Write};

/// The greatest width and height of an image in a request.
const MOST_PIXELS: u32 = 4096;
/// The greatest width and height of a result. With this limit, scaling takes at most 64 MB.
const MOST_SCALED: u32 = 1024;
/// The most memory that decoding an image may take.
const MOST_MEMORY: u64 = 64 << 20;
/// How many bytes are compressed between two checks for a cancellation.
const PIECE: usize = 64 << 10;

/// A computation and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// SHA-256 of the body, and then of each hash in turn.
    Hash { rounds: u32 },
    /// Gzip.
    Compress { level: u32 },
    /// A PNG of at most this size, with the proportions of the image in the body.
    Resize { width: u32, height: u32 },
}

/// A result.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl Operation {
    /// Reads the operation from a path and its query. Returns `None` if the path names no
    /// operation.
    pub(crate) fn read(
        path: &str,
        query: &HashMap<String, String>,
    ) -> Option<Result<Self, Problem>> {
        let settings = Settings(query);
        match path {
            "/hash" => Some(settings.hash()),
            "/compress" => Some(settings.compress()),
            "/resize" => Some(settings.resize()),
            _ => None,
        }
    }

    pub(crate) fn run(self, body: &[u8]) -> Result<Output, Problem> {
        match self {
            Operation::Hash { rounds } => hash(body, rounds),
            Operation::Compress { level } => compress(body, level),
            Operation::Resize { width, height } => resize(body, width, height),
        }
    }
}

struct Settings<'a>(&'a HashMap<String, String>);

impl Settings<'_> {
    fn hash(self) -> Result<Operation, Problem> {
        self.has_only(&["rounds"])?;
        Ok(Operation::Hash { rounds: self.number("rounds", 1, 1..=10_000_000)? })
    }

    fn compress(self) -> Result<Operation, Problem> {
        self.has_only(&["level"])?;
        Ok(Operation::Compress { level: self.number("level", 6, 0..=9)? })
    }

    fn resize(self) -> Result<Operation, Problem> {
        self.has_only(&["width", "height"])?;
        let side = |name| self.number(name, 256, 1..=MOST_SCALED);
        Ok(Operation::Resize { width: side("width")?, height: side("height")? })
    }

    fn has_only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.keys().find(|it| !known.contains(&it.as_str())) {
            Some(name) => {
                let known = known.join(" and ");
                Err(Problem::bad(format!("there is no setting {name:?}; there is {known}")))
            }
            None => Ok(()),
        }
    }

    fn number(
        &self,
        name: &str,
        default: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, Problem> {
        let Some(text) = self.0.get(name) else { return Ok(default) };
        text.parse().ok().filter(|it| range.contains(it)).ok_or_else(|| {
            Problem::bad(format!("{name} is a number from {} to {}", range.start(), range.end()))
        })
    }
}

/// Returns an error if the running request was cancelled, since no client reads its result.
fn go_on() -> Result<(), Problem> {
    match task::is_cancelled() {
        true => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the request was cancelled")),
        false => Ok(()),
    }
}

fn hash(body: &[u8], rounds: u32) -> Result<Output, Problem> {
    let mut hash = Sha256::digest(body);
    for round in 1..rounds {
        hash = Sha256::digest(hash);
        if round % 1024 == 0 {
            go_on()?;
        }
    }
    Ok(Output { content_type: "text/plain", bytes: format!("{hash:x}\n").into_bytes() })
}

fn compress(body: &[u8], level: u32) -> Result<Output, Problem> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    for piece in body.chunks(PIECE) {
        go_on()?;
        encoder.write_all(piece).map_err(|_| Problem::panicked())?;
    }
    let bytes = encoder.finish().map_err(|_| Problem::panicked())?;
    Ok(Output { content_type: "application/gzip", bytes })
}

fn resize(body: &[u8], width: u32, height: u32) -> Result<Output, Problem> {
    let is_wrong = |error| {
        let sentence = format!("the body is no image that this server reads: {error}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence.replace('\n', " "))
    };
    let mut reader = ImageReader::new(Cursor::new(body))
        .with_guessed_format()
        .map_err(|it| is_wrong(it.into()))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_PIXELS);
    limits.max_image_height = Some(MOST_PIXELS);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let image = reader.decode().map_err(is_wrong)?;
    go_on()?;
    let image = image.resize(width, height, FilterType::Lanczos3);
    go_on()?;
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).map_err(|_| Problem::panicked())?;
    Ok(Output { content_type: "image/png", bytes: bytes.into_inner() })
}

//! Draws the pictures of the documentation: the layers, the deque, the event count and fairness.
//!
//! ```text
//! cargo run --release --example pictures [-- [--check] [FOLDER]]
//! ```
//!
//! The example writes into FOLDER, by default `docs/pictures`. With `--check` it compares the
//! pictures with the files there. The pictures are computed where possible. The frames of
//! `deque.svg` are the answers of a real `Worker` and its `Stealer`. The lines of `fairness.svg`
//! come from a simulation on a virtual clock. So the same sources give the same files, byte by
//! byte. Each file has its own background, no blank lines and no ids, so a page of rustdoc can
//! contain it.

mod architecture;
mod deque;
mod fairness;
mod simulation;
mod sleep;
mod svg;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

const USAGE: &str = "usage: cargo run --release --example pictures [-- [--check] [FOLDER]]";

fn main() -> ExitCode {
    let (folder, is_check) = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("pictures: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match pictures(&folder, is_check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pictures: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folder, and whether to compare instead of writing. An error is the text to print.
fn arguments() -> Result<(PathBuf, bool), String> {
    let (mut folder, mut is_check) = (None, false);
    for argument in env::args_os().skip(1) {
        match argument.to_string_lossy().as_ref() {
            "-h" | "--help" => {
                println!("{USAGE}");
                std::process::exit(0);
            }
            "--check" => is_check = true,
            option if option.starts_with('-') => {
                return Err(format!("there is no option `{option}`"));
            }
            "" => return Err("FOLDER is empty".into()),
            _ if folder.is_some() => return Err("one FOLDER at most".into()),
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    Ok((folder.unwrap_or_else(|| "docs/pictures".into()), is_check))
}

fn pictures(folder: &Path, is_check: bool) -> Result<(), Box<dyn Error>> {
    let pictures = [
        ("architecture.svg", architecture::draw()),
        ("deque.svg", deque::draw()),
        ("sleep.svg", sleep::draw()),
        ("fairness.svg", fairness::draw()?),
    ];
    let failed = |what, path: &Path, error| format!("cannot {what} {}: {error}", path.display());
    for (name, picture) in pictures {
        let (path, text) = (folder.join(name), picture.into_svg());
        if is_check {
            let there = fs::read_to_string(&path).map_err(|it| failed("read", &path, it))?;
            if there != text {
                return Err(format!("{} is out of date: omit --check", path.display()).into());
            }
            println!("{}: up to date", path.display());
        } else {
            fs::create_dir_all(folder).map_err(|it| failed("make", folder, it))?;
            fs::write(&path, &text).map_err(|it| failed("write", &path, it))?;
            println!("{}: {} bytes", path.display(), text.len());
        }
    }
    Ok(())
}

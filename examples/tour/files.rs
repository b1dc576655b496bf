//! Finds the files, and does a job's work on one file: reads, hashes and counts it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;
use xxhash_rust::xxh3::Xxh3;

/// The result of a walk.
pub(crate) struct Found {
    pub(crate) files: Vec<FileAt>,
    /// Entries that could not be listed.
    pub(crate) unreachable: usize,
}

/// A regular file.
pub(crate) struct FileAt {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// Finds all regular files under a path, in a fixed order. Follows no symbolic link except the path
/// itself.
///
/// # Errors
///
/// Returns an error that names the path if nothing can be read there.
pub(crate) fn find(path: &Path) -> io::Result<Found> {
    let mut found = Found { files: Vec::new(), unreachable: 0 };
    for entry in WalkDir::new(path).sort_by_file_name() {
        match entry.and_then(|it| Ok((it.metadata()?, it))) {
            Ok((about, entry)) if about.is_file() => {
                found.files.push(FileAt { path: entry.into_path(), bytes: about.len() });
            }
            Ok(_) => {}
            Err(error) if error.depth() == 0 => {
                let cause = error.io_error().map_or(error.to_string(), ToString::to_string);
                return Err(io::Error::other(format!("{}: {cause}", path.display())));
            }
            Err(_) => found.unreachable += 1,
        }
    }
    Ok(found)
}

/// A summary of a file's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest {
    pub(crate) hash: u64,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
}

/// Reads a file from its beginning to its end.
pub(crate) fn digest(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3::new();
    let (mut bytes, mut lines) = (0, 0);
    let mut buffer = [0; 64 * 1024];
    loop {
        let piece = match file.read(&mut buffer) {
            Ok(0) => return Ok(Digest { hash: hash.digest(), bytes, lines }),
            Ok(length) => &buffer[..length],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(piece);
        bytes += piece.len() as u64;
        lines += piece.iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
}

//! A tree with every mutant that compiles.

use crate::listed::{Kind, Mutant};
use crate::weave::{self, Piece};
use runner::{Result, cargo, folders};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the switches ask.
const SWITCH: &str = include_str!("switch.rs");

/// Rounds of the compiler: types are looked at before borrows, and one error may hide another.
const ROUNDS: usize = 30;

/// A copy of the repository, mutants and all.
pub(crate) struct Tree {
    folder: PathBuf,
    target: PathBuf,
    models: bool,
    /// By number; these can be switched on.
    pub(crate) woven: BTreeSet<usize>,
    /// What the compiler refuses, as it would by itself.
    pub(crate) refused: BTreeSet<usize>,
}

impl Tree {
    /// Copies what git knows of, and weaves until the rest compiles.
    pub(crate) fn grow(mutants: &[Mutant], models: bool) -> Result<Self> {
        let kind = if models { "models" } else { "tests" };
        let all = folders::folder(folders::reports()?.join("mutants"))?;
        let mut tree = Tree {
            folder: folders::folder(all.join(format!("tree-{kind}")))?,
            target: all.join(format!("target-{kind}")),
            models,
            woven: BTreeSet::new(),
            refused: BTreeSet::new(),
        };
        tree.copy()?;
        let mut left_out = BTreeSet::new();
        for round in 0..ROUNDS {
            let pieces = tree.weave(mutants, &left_out)?;
            let errors = tree.check()?;
            eprintln!(
                "{kind}: round {round}, {} mutants, {} errors",
                tree.woven.len(),
                errors.len()
            );
            if errors.is_empty() {
                return Ok(tree);
            }
            for error in errors {
                let Some(piece) = error.piece(&pieces) else {
                    // A `match` is told of its arms, which have guards now.
                    let next = error.next(&pieces);
                    let next = next.ok_or_else(|| format!("{kind}: {}", error.text))?;
                    left_out.extend(&next.mutants);
                    continue;
                };
                left_out.extend(&piece.mutants);
                if let [one] = piece.mutants[..] {
                    // A function that returns `impl Trait` has one type, so it cannot have two
                    // ends.
                    let alone =
                        mutants[one].kind != Kind::Body || !mutants[one].returns.contains("impl ");
                    tree.refused.extend(alone.then_some(one));
                }
            }
        }
        Err(format!("{kind}: errors without end in {}", tree.folder.display()).into())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn copy(&self) -> Result {
        // A file that has moved since an earlier run must not stand in both places.
        let _ = fs::remove_dir_all(&self.folder);
        let listed =
            Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).output()?;
        for file in String::from_utf8(listed.stdout)?.lines() {
            let to = self.folder.join(file);
            folders::folder(to.parent().ok_or("a file is in a folder")?.to_owned())?;
            // A file that git knows of may be gone.
            if let Ok(text) = fs::read(file) {
                write(&to, &text)?;
            }
        }
        write(&self.folder.join("src/mutant_switch.rs"), b"")
    }

    fn weave(&mut self, mutants: &[Mutant], left_out: &BTreeSet<usize>) -> Result<Pieces> {
        let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            let all = files.entry(&mutant.file).or_default();
            if !left_out.contains(&number) {
                all.push((number, mutant));
            }
        }
        files.entry("src/lib.rs").or_default();
        let mut pieces = Pieces::new();
        self.woven.clear();
        for (file, mutants) in files {
            let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
            let mut woven = weave::weave(&text, &mutants)?;
            if file == "src/lib.rs" {
                woven.text.push_str("\n#[doc(hidden)]\npub mod mutant_switch;\n");
            }
            write(&self.folder.join(file), woven.text.as_bytes())?;
            self.woven.extend(&woven.mutants);
            pieces.insert(file.to_owned(), woven.pieces);
        }
        let switch = format!("{SWITCH}\nconst COUNT: usize = {};\n", mutants.len());
        write(&self.folder.join("src/mutant_switch.rs"), switch.as_bytes())?;
        Ok(pieces)
    }

    fn check(&self) -> Result<Vec<CompileError>> {
        let mut command = self.cargo("check");
        command.args(["--lib", "--message-format=json"]).stderr(Stdio::null());
        let output = command.output()?;
        let errors = errors(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() && errors.is_empty() {
            return Err(format!("cargo check says nothing in {}", self.folder.display()).into());
        }
        Ok(errors)
    }

    /// A command of cargo's on this tree.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = cargo::stable();
        let flags = if self.models { "--cap-lints allow --cfg loom" } else { "--cap-lints allow" };
        command.env("RUSTFLAGS", flags).current_dir(&self.folder);
        // Nobody looks where they fail.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
        command.args([subcommand, "--package", "filch", "--target-dir"]).arg(&self.target);
        if !self.models {
            command.arg("--all-features");
        }
        command
    }
}

/// By file.
type Pieces = BTreeMap<String, Vec<Piece>>;

/// Writes what is not there yet, so that cargo sees what has changed.
fn write(path: &Path, text: &[u8]) -> Result {
    if fs::read(path).ok().as_deref() != Some(text) {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// An error of the compiler's, and where it is.
#[derive(Debug, PartialEq)]
struct CompileError {
    text: String,
    places: Vec<(String, usize, usize)>,
}

impl CompileError {
    /// The smallest piece that holds it.
    fn piece<'a>(&self, pieces: &'a Pieces) -> Option<&'a Piece> {
        self.places.iter().find_map(|(file, start, end)| {
            let holds = |it: &&Piece| it.bytes.start <= *start && *end <= it.bytes.end;
            pieces.get(file)?.iter().find(holds)
        })
    }

    /// The first behind it.
    fn next<'a>(&self, pieces: &'a Pieces) -> Option<&'a Piece> {
        let (file, _, end) = self.places.first()?;
        let behind = pieces.get(file)?.iter().filter(|it| it.bytes.start >= *end);
        behind.min_by_key(|it| (it.bytes.start, it.bytes.len()))
    }
}

fn errors(messages: &str) -> Vec<CompileError> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut errors = Vec::new();
    for message in messages.map(|it| it["message"].clone()) {
        let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
        if message["level"] != "error" || spans.is_empty() {
            continue;
        }
        let (first, others): (Vec<&Value>, Vec<&Value>) =
            spans.iter().partition(|it| it["is_primary"] == true);
        let places = first.into_iter().chain(others).filter_map(place).collect();
        let text = message["rendered"].as_str().unwrap_or_default().to_owned();
        errors.push(CompileError { text, places });
    }
    errors
}

/// Where a span is; that of a macro is where we call it.
fn place(span: &Value) -> Option<(String, usize, usize)> {
    let inside = &span["expansion"]["span"];
    if inside.is_object() {
        return place(inside);
    }
    let byte = |name: &str| usize::try_from(span[name].as_u64()?).ok();
    Some((span["file_name"].as_str()?.to_owned(), byte("byte_start")?, byte("byte_end")?))
}

#[cfg(test)]
mod tests {
    use super::{Piece, Pieces, errors};

    #[test]
    fn an_error_belongs_to_the_smallest_piece_around_it() {
        let message = r#"{"reason":"compiler-message","message":{"level":"error","rendered":"no Default",
            "spans":[{"file_name":"src/a.rs","byte_start":9,"byte_end":12,"is_primary":false},
                     {"file_name":"/std/macros.rs","byte_start":5,"byte_end":6,"is_primary":true,"expansion":
                      {"span":{"file_name":"src/a.rs","byte_start":30,"byte_end":33,"expansion":null}}}]}}"#;
        let found = errors(&message.replace('\n', ""));
        let piece = |bytes, number| Piece { bytes, mutants: vec![number] };
        let pieces = Pieces::from([("src/a.rs".into(), vec![piece(28..34, 3), piece(5..50, 7)])]);
        assert_eq!(found[0].piece(&pieces).unwrap().mutants, [3]);
        assert_eq!(found[0].places[1], ("src/a.rs".to_owned(), 9, 12));
    }

    #[test]
    fn warnings_and_summaries_are_no_errors() {
        let warning = r#"{"message":{"level":"warning","spans":[{"file_name":"a","byte_start":1,"byte_end":2}]}}"#;
        let summary = r#"{"message":{"level":"error","rendered":"aborting","spans":[]}}"#;
        assert!(errors(&format!("{warning}\n{summary}\n")).is_empty());
    }
}

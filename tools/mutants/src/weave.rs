//! All mutants of a file in one text, each behind a switch.
//!
//! A build for each mutant is most of a campaign's hours. Here every one is compiled once, next to
//! what it replaces, and the environment says which one a process shall be.

use crate::listed::{Mutant, Place};
use crate::sites::{Found, Shape, Site};
use runner::Result;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A mutant, and what it is called.
type Numbered<'a> = (usize, &'a Mutant);

/// What is added to the source: one mutant's code, or a place where some are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// In the woven text.
    pub(crate) bytes: Range<usize>,
    pub(crate) mutants: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct Woven {
    pub(crate) text: String,
    pub(crate) pieces: Vec<Piece>,
    /// Those that are in the text.
    pub(crate) mutants: Vec<usize>,
}

/// Weaves the mutants of a file into its text; they are called by their numbers.
pub(crate) fn weave(text: &str, mutants: &[Numbered<'_>]) -> Result<Woven> {
    let lines = Lines::of(text);
    let found = Found::within(text)?;
    // Those of one expression are alternatives to each other.
    let mut groups: BTreeMap<_, Vec<Numbered<'_>>> = BTreeMap::new();
    let mut woven = Vec::new();
    for (number, mutant) in mutants {
        let Some(site) = found.site(mutant) else { continue };
        woven.push(*number);
        let key = (site.from, Reverse(site.to), site.shape.rank());
        groups.entry(key).or_default().push((*number, mutant));
    }
    let edit = |group: &Vec<Numbered<'_>>| {
        let site = found.site(group[0].1)?;
        Some(Edit::of(text, &lines, &site, group))
    };
    let edits: Vec<Edit> = groups.values().filter_map(edit).collect();
    let (text, pieces) = apply(text, &edits);
    Ok(Woven { text, pieces, mutants: woven })
}

/// From places to offsets.
struct Lines<'a>(Vec<(usize, &'a str)>);

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            lines.push((start, line));
            start += line.len() + 1;
        }
        Lines(lines)
    }

    fn offset(&self, at: Place) -> usize {
        let (start, line) = self.0[at.line - 1];
        start + line.char_indices().nth(at.column).map_or(line.len(), |(offset, _)| offset)
    }
}

fn is(number: usize) -> String {
    format!("crate::mutant_switch::is({number})")
}

fn alternatives(
    group: &[Numbered<'_>],
    other: impl Fn(&Mutant) -> String,
) -> Vec<(String, Vec<usize>)> {
    let mut added = Vec::new();
    for (at, (number, mutant)) in group.iter().enumerate() {
        let otherwise = if at == 0 { "(if" } else { "else if" };
        added.push((
            format!("{otherwise} {} {{ ({}) }} ", is(*number), other(mutant)),
            vec![*number],
        ));
    }
    added.push(("else { (".to_owned(), Vec::new()));
    added
}

/// What goes before an expression, and what behind it.
struct Edit {
    bytes: Range<usize>,
    before: Vec<(String, Vec<usize>)>,
    behind: String,
    mutants: Vec<usize>,
}

impl Edit {
    fn of(text: &str, lines: &Lines<'_>, site: &Site, group: &[Numbered<'_>]) -> Self {
        let bytes = lines.offset(site.from)..lines.offset(site.to);
        let slice = |(from, to): (Place, Place)| &text[lines.offset(from)..lines.offset(to)];
        let (before, behind) = match &site.shape {
            Shape::Body => {
                let early = |(number, mutant): &Numbered<'_>| {
                    let value = &mutant.replacement;
                    (format!("if {} {{ return {value}; }} ", is(*number)), vec![*number])
                };
                (group.iter().map(early).collect(), String::new())
            }
            Shape::Binary { left, right } => {
                let (left, right) = (slice(*left), slice(*right));
                let other = |it: &Mutant| format!("({left}) {} ({right})", it.replacement);
                (alternatives(group, other), ") })".to_owned())
            }
            Shape::Whole => {
                let other = |it: &Mutant| {
                    let part = lines.offset(it.from)..lines.offset(it.to);
                    let (left, right) =
                        (&text[bytes.start..part.start], &text[part.end..bytes.end]);
                    format!("{left}{}{right}", it.replacement)
                };
                (alternatives(group, other), ") })".to_owned())
            }
            Shape::Guard => {
                let opening = |(number, mutant): &Numbered<'_>| {
                    let switch = is(*number);
                    let opening = match mutant.replacement == "true" {
                        true => format!("{switch} || ("),
                        false => format!("!{switch} && ("),
                    };
                    (opening, vec![*number])
                };
                (group.iter().map(opening).collect(), ")".repeat(group.len()))
            }
            Shape::Pattern => {
                let off: Vec<String> = group.iter().map(|it| format!("!{}", is(it.0))).collect();
                (vec![(format!(" if {}", off.join(" && ")), Vec::new())], String::new())
            }
        };
        Edit { bytes, before, behind, mutants: group.iter().map(|it| it.0).collect() }
    }
}

/// Makes all edits. They are disjoint or nested, an outer one before those in it.
fn apply(source: &str, edits: &[Edit]) -> (String, Vec<Piece>) {
    let mut woven = Unfinished { source, copied: 0, text: String::new(), pieces: Vec::new() };
    let mut open: Vec<(&Edit, usize)> = Vec::new();
    for edit in edits {
        while let Some((inner, start)) = open.last().filter(|it| it.0.bytes.end <= edit.bytes.start)
        {
            woven.close(inner, *start);
            open.pop();
        }
        woven.copy_to(edit.bytes.start);
        open.push((edit, woven.text.len()));
        for (added, mutants) in &edit.before {
            let start = woven.text.len();
            woven.text.push_str(added);
            if !mutants.is_empty() {
                woven.piece(start, mutants);
            }
        }
    }
    open.into_iter().rev().for_each(|(inner, start)| woven.close(inner, start));
    woven.copy_to(source.len());
    // An error belongs to the smallest that holds it.
    woven.pieces.sort_by_key(|it| it.bytes.len());
    (woven.text, woven.pieces)
}

struct Unfinished<'a> {
    source: &'a str,
    copied: usize,
    text: String,
    pieces: Vec<Piece>,
}

impl Unfinished<'_> {
    fn copy_to(&mut self, offset: usize) {
        self.text.push_str(&self.source[self.copied..offset]);
        self.copied = offset;
    }

    fn close(&mut self, edit: &Edit, start: usize) {
        self.copy_to(edit.bytes.end);
        self.text.push_str(&edit.behind);
        self.piece(start, &edit.mutants);
    }

    /// What was written from `start` on is theirs.
    fn piece(&mut self, start: usize, mutants: &[usize]) {
        self.pieces.push(Piece { bytes: start..self.text.len(), mutants: mutants.to_vec() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Mutant, Numbered, Place, weave};
    use crate::listed::Kind;

    const SOURCE: &str = "\
fn f(a: u32, b: u32) -> bool {
    a + 1 < b
}
const fn g(a: u32) -> u32 {
    a + 1
}
fn h(a: Option<u32>) -> u32 {
    match a {
        Some(a) if a > 3 => 1,
        Some(_) => 2,
        _ => 3,
    }
}
";

    fn mutant(kind: Kind, line: usize, columns: (usize, usize), replacement: &str) -> Mutant {
        Mutant {
            name: String::new(),
            file: String::new(),
            kind,
            from: Place { line, column: columns.0 },
            to: Place { line, column: columns.1 },
            replacement: replacement.to_owned(),
            returns: String::new(),
        }
    }

    fn woven(mutants: &[Mutant]) -> String {
        let numbered: Vec<Numbered<'_>> = mutants.iter().enumerate().collect();
        let woven = weave(SOURCE, &numbered).unwrap();
        assert!(syn::parse_file(&woven.text).is_ok(), "{}", woven.text);
        woven.text.replace("crate::mutant_switch::is", "is")
    }

    #[test]
    fn each_mutant_stands_beside_what_it_replaces() {
        let text = woven(&[
            mutant(Kind::Body, 2, (4, 13), "true"),
            mutant(Kind::Binary, 2, (6, 7), "-"),
            mutant(Kind::Binary, 2, (10, 11), "=="),
            mutant(Kind::Binary, 2, (10, 11), ">"),
        ]);
        let expected = "    if is(0) { return true; } \
            (if is(2) { ((a + 1) == (b)) } else if is(3) { ((a + 1) > (b)) } \
            else { ((if is(1) { ((a) - (1)) } else { (a + 1) }) < b) })\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn arms_have_guards() {
        let text = woven(&[
            mutant(Kind::Guard, 9, (19, 24), "true"),
            mutant(Kind::Guard, 9, (19, 24), "false"),
            mutant(Kind::Arm, 9, (8, 30), ""),
            mutant(Kind::Arm, 10, (8, 21), ""),
        ]);
        assert!(
            text.contains("Some(a) if is(0) || (!is(1) && (!is(2) && (a > 3))) => 1,"),
            "{text}"
        );
        assert!(text.contains("Some(_) if !is(3) => 2,"), "{text}");
    }

    #[test]
    fn what_the_compiler_computes_has_no_switch() {
        let constant = mutant(Kind::Binary, 5, (6, 7), "-");
        let woven = weave(SOURCE, &[(0, &constant)]).unwrap();
        assert_eq!((woven.text.as_str(), woven.mutants.len()), (SOURCE, 0));
    }
}

//! All mutants of a file in one text, each behind a switch.
//!
//! A build for each mutant is most of a campaign's hours. Here every one is compiled once, next to what it replaces,
//! and the environment says which one a process shall be.

use super::listed::{Kind, Mutant, Place};
use crate::Result;
use proc_macro2::{LineColumn, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A mutant, and what it is called.
type Numbered<'a> = (usize, &'a Mutant);

/// What is added to the source: one mutant's code, or a place where some are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// In the woven text.
    pub(super) bytes: Range<usize>,
    pub(super) mutants: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Woven {
    pub(super) text: String,
    pub(super) pieces: Vec<Piece>,
    /// Those that are in the text.
    pub(super) mutants: Vec<usize>,
}

/// Weaves the mutants of a file into its text; they are called by their numbers.
pub(super) fn weave(text: &str, mutants: &[Numbered<'_>]) -> Result<Woven> {
    let lines = Lines::of(text);
    let mut found = Found::default();
    found.visit_file(&syn::parse_file(text)?);
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

/// Where a mutant can be switched.
#[derive(Clone, Debug)]
struct Site {
    from: Place,
    to: Place,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// The statements of a body.
    Body,
    /// An expression with two operands.
    Binary {
        left: (Place, Place),
        right: (Place, Place),
    },
    /// An expression that may be written in another way: with a part replaced.
    Whole,
    /// A guard, and where an arm's pattern ends if it has none.
    Guard,
    Pattern,
}

impl Shape {
    /// Of shapes with the same ends the outer one has the lower rank.
    fn rank(&self) -> u8 {
        match self {
            Shape::Body => 0,
            Shape::Guard | Shape::Pattern => 1,
            Shape::Binary { .. } | Shape::Whole => 2,
        }
    }
}

/// Sites, by the start of what cargo-mutants replaces.
#[derive(Default)]
struct Found {
    sites: HashMap<(Place, Kind), Site>,
    structs: Vec<(Place, Place)>,
    /// How deep we are in what is computed by the compiler, where nothing can be switched.
    constant: usize,
}

fn place(at: LineColumn) -> Place {
    Place { line: at.line, column: at.column }
}

fn ends(span: Span) -> (Place, Place) {
    (place(span.start()), place(span.end()))
}

impl Found {
    fn site(&self, mutant: &Mutant) -> Option<Site> {
        match mutant.kind {
            Kind::Field => {
                let around = |it: &&(Place, Place)| it.0 <= mutant.from && mutant.to <= it.1;
                let (from, to) = *self.structs.iter().filter(around).max()?;
                Some(Site { from, to, shape: Shape::Whole })
            }
            kind => self.sites.get(&(mutant.from, kind)).cloned(),
        }
    }

    fn add(&mut self, key: Place, kind: Kind, (from, to): (Place, Place), shape: Shape) {
        if self.constant == 0 {
            self.sites.insert((key, kind), Site { from, to, shape });
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let is_constant = usize::from(signature.constness.is_some());
        self.constant += is_constant;
        if let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) {
            let (from, to) = (ends(first.span()).0, ends(last.span()).1);
            self.add(from, Kind::Body, (from, to), Shape::Body);
        }
        visit::visit_block(self, block);
        self.constant -= is_constant;
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constant += 1;
        visit(self);
        self.constant -= 1;
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.function(&it.sig, &it.block);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.function(&it.sig, &it.block);
    }

    fn visit_trait_item_fn(&mut self, it: &'ast syn::TraitItemFn) {
        if let Some(block) = &it.default {
            self.function(&it.sig, block);
        }
    }

    fn visit_item_const(&mut self, it: &'ast syn::ItemConst) {
        self.constant(|found| visit::visit_item_const(found, it));
    }

    fn visit_item_static(&mut self, it: &'ast syn::ItemStatic) {
        self.constant(|found| visit::visit_item_static(found, it));
    }

    fn visit_impl_item_const(&mut self, it: &'ast syn::ImplItemConst) {
        self.constant(|found| visit::visit_impl_item_const(found, it));
    }

    fn visit_expr_const(&mut self, it: &'ast syn::ExprConst) {
        self.constant(|found| visit::visit_expr_const(found, it));
    }

    fn visit_expr_repeat(&mut self, it: &'ast syn::ExprRepeat) {
        self.visit_expr(&it.expr);
    }

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        let shape = Shape::Binary { left: ends(it.left.span()), right: ends(it.right.span()) };
        self.add(ends(it.op.span()).0, Kind::Binary, ends(it.span()), shape);
        visit::visit_expr_binary(self, it);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        self.add(ends(it.op.span()).0, Kind::Unary, ends(it.span()), Shape::Whole);
        visit::visit_expr_unary(self, it);
    }

    fn visit_expr_struct(&mut self, it: &'ast syn::ExprStruct) {
        if self.constant == 0 {
            self.structs.push(ends(it.span()));
        }
        visit::visit_expr_struct(self, it);
    }

    fn visit_arm(&mut self, it: &'ast syn::Arm) {
        let start = ends(it.span()).0;
        match &it.guard {
            Some((_, guard)) => {
                let guard = ends(guard.span());
                self.add(guard.0, Kind::Guard, guard, Shape::Guard);
                self.add(start, Kind::Arm, guard, Shape::Guard);
            }
            None => {
                let end = ends(it.pat.span()).1;
                self.add(start, Kind::Arm, (end, end), Shape::Pattern);
            }
        }
        visit::visit_arm(self, it);
    }
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

/// Makes all edits, of which an inner one comes behind those around it.
fn apply(source: &str, edits: &[Edit]) -> (String, Vec<Piece>) {
    let mut text = String::new();
    let mut pieces = Vec::new();
    let mut starts = vec![0; edits.len()];
    // At one offset first what ends there, from the inside, then what begins, from the outside.
    let last = edits.len();
    let mut cuts: Vec<(usize, usize, bool)> = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        cuts.push((edit.bytes.start, last + 1 + at, true));
        // What is empty ends when it has begun.
        let order = if edit.bytes.is_empty() { 2 * last + 1 + at } else { last - at };
        cuts.push((edit.bytes.end, order, false));
    }
    cuts.sort_unstable();
    let mut copied = 0;
    for (offset, order, begins) in cuts {
        text.push_str(&source[copied..offset]);
        copied = offset;
        if begins {
            let at = order - last - 1;
            starts[at] = text.len();
            for (added, mutants) in &edits[at].before {
                let start = text.len();
                text.push_str(added);
                let bytes = start..text.len();
                pieces.extend(
                    (!mutants.is_empty()).then(|| Piece { bytes, mutants: mutants.clone() }),
                );
            }
        } else {
            let at = if order > last { order - 2 * last - 1 } else { last - order };
            text.push_str(&edits[at].behind);
            pieces
                .push(Piece { bytes: starts[at]..text.len(), mutants: edits[at].mutants.clone() });
        }
    }
    text.push_str(&source[copied..]);
    // An error belongs to the smallest that holds it.
    pieces.sort_by_key(|it| it.bytes.len());
    (text, pieces)
}

#[cfg(test)]
mod tests {
    use super::{weave, Kind, Mutant, Numbered, Place};

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

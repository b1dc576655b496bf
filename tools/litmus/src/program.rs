//! A litmus test as it is written: the C of herd7, as much of it as the tests here need.

use crate::parser::Parser;
use crate::result::Result;
use crate::syntax::{Condition, ORDERS, Statement};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// Places that do not begin with zero.
    pub(crate) first: BTreeMap<String, i64>,
    pub(crate) threads: Vec<Vec<Statement>>,
    pub(crate) bad: Condition,
    /// The orderings that have names: for each, the number of the statement.
    pub(crate) sites: Vec<Site>,
    /// The claims of the test, each from a comment `(* claim: … *)`.
    pub(crate) claims: Vec<String>,
}

/// A named end of a pair, on one line of a test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Site {
    pub(crate) line: usize,
    /// As in the table of the audit: `deque::CLAIM.release in src/deque/thief.rs::claim`.
    pub(crate) name: String,
    /// Of a compare-exchange, the ordering of its failure.
    pub(crate) is_on_failure: bool,
}

/// What stands before the name of such a site.
const ON_FAILURE: &str = "on failure: ";

impl Site {
    /// Whether both are names of one ordering.
    pub(crate) fn is_same(&self, other: &Site) -> bool {
        let key = |it: &Site| (it.line, it.half().to_owned(), it.is_on_failure);
        key(self) == key(other)
    }

    /// `acquire`, `release` or `fence`.
    pub(crate) fn half(&self) -> &str {
        let pair = self.name.split(" in ").next().unwrap_or_default();
        pair.rsplit('.').next().unwrap_or_default()
    }
}

impl Program {
    /// The test of this text, with these sites weakened.
    pub(crate) fn parse(text: &str, weakened: &[&Site]) -> Result<Program> {
        let mut sites = Vec::new();
        let mut body = String::new();
        let (mut claims, mut in_comment) = (Vec::new(), false);
        let mut lines = text.lines().enumerate();
        let (_, head) = lines.next().ok_or("the file is empty")?;
        let name = head.strip_prefix("C ").ok_or("the first line is `C <name>`")?.trim();
        for (at, line) in lines {
            let line = line.trim();
            if in_comment || line.starts_with("(*") {
                in_comment = !line.ends_with("*)");
                let claim = line.trim_start_matches("(*").trim_end_matches("*)").trim();
                if let Some(claim) = claim.strip_prefix("claim: ") {
                    claims.push(claim.to_owned());
                }
                continue;
            }
            let (code, comment) = line.split_once("//").unwrap_or((line, ""));
            let mut code = code.to_owned();
            for label in comment.split(';').map(str::trim).filter(|it| it.contains("::")) {
                let name = label.trim_start_matches(ON_FAILURE);
                let is_on_failure = name.len() < label.len();
                let site = Site { line: at, name: name.to_owned(), is_on_failure };
                if weakened.contains(&&site) {
                    code = weaken(&code, &site)?;
                }
                sites.push(site);
            }
            body += &code;
            body.push('\n');
        }
        let mut parser = Parser::new(&body)?;
        let (first, threads, bad) = parser.test()?;
        Ok(Program { name: name.to_owned(), first, threads, bad, sites, claims })
    }
}

/// The line with the ordering of this site a step weaker: its first that has this half, or its
/// last.
fn weaken(code: &str, site: &Site) -> Result<String> {
    let half = site.half();
    let (start, end) = match code.rfind(", ") {
        Some(last) if site.is_on_failure => code.split_at(last),
        Some(last) if code.contains("compare_exchange") => (&code[..last], &code[last..]),
        _ => ("", code),
    };
    let (part, is_end) =
        if site.is_on_failure || start.is_empty() { (end, true) } else { (start, false) };
    for (name, order) in ORDERS {
        if let Some(weaker) = order.without(half).filter(|_| part.contains(name)) {
            let (weaker, _) = ORDERS.iter().find(|(_, it)| *it == weaker).expect("all have names");
            let part = part.replacen(name, weaker, 1);
            return Ok(if is_end { format!("{start}{part}") } else { format!("{part}{end}") });
        }
    }
    Err(format!("`{code}` has no {half} to weaken").into())
}

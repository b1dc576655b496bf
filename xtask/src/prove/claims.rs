//! Reads the first sentence of a file, and the claim of each named ordering, for the report.

use runner::Result;
use std::collections::BTreeMap;
use std::fs;

/// Returns the first sentence of a file's header.
pub(super) fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    let all = lines.collect::<Vec<&str>>().join(" ");
    let end = all.find([':', '.', ';']).unwrap_or(all.len());
    all[..end].to_owned()
}

/// Returns the claim of each pair, from its section of `proofs/orderings.md`.
pub(super) fn claims() -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string("proofs/orderings.md")?;
    let mut claims = BTreeMap::new();
    for section in text.split("\n### ").skip(1) {
        let (name, rest) = section.split_once('\n').unwrap_or((section, ""));
        let Some((_, claim)) = rest.split_once("*Claim.*") else { continue };
        let end = ["*Who.*", "\n\n"].into_iter().filter_map(|end| claim.find(end)).min();
        let words = claim[..end.unwrap_or(claim.len())].split_whitespace();
        claims.insert(name.trim().to_owned(), words.collect::<Vec<_>>().join(" "));
    }
    Ok(claims)
}

//! Checks that the sentences of the texts and comments are short.

use crate::source::{Findings, Source, files, rust_files};

const MOST: usize = 25; // words
/// Beside `proofs/*.md`.
const TEXTS: &str = "README.md DESIGN.md CHANGELOG.md CONTRIBUTING.md benches/README.md";

/// The prose in a line, if any, and whether it is a passage of its own.
fn prose(line: &str, is_rust: bool) -> Option<(&str, bool)> {
    let line = line.trim_start();
    let line = match line.strip_prefix("//") {
        Some(comment) if is_rust => comment.trim_start_matches(['/', '!', ' ']),
        _ if is_rust => return line.split_once(" // ").map(|it| (it.1, true)),
        _ => line,
    };
    let is_none = line.is_empty() || line.starts_with(['#', '!']);
    (!is_none).then_some((line, line.starts_with('|')))
}

/// The sentences that are too long: where their passages begin, and the words.
fn long_sentences(text: &Source) -> Vec<(usize, Vec<&str>)> {
    let (mut sentences, mut is_fenced, mut is_code) = (vec![(0, vec![])], false, false);
    for (number, line) in text.lines() {
        let is_fence = line.trim_start_matches([' ', '/', '!']).starts_with("```");
        is_fenced ^= is_fence;
        let prose = prose(line, text.path.ends_with(".rs")).filter(|_| !is_fenced && !is_fence);
        let (prose, is_alone) = prose.unwrap_or(("", true));
        let first = prose.split(' ').next().unwrap_or_default();
        if is_alone || first == "-" || first.ends_with('.') && first.parse::<f32>().is_ok() {
            sentences.push((number, vec![]));
            is_code = false;
        }
        for part in prose.split_inclusive([' ', '`']) {
            let (word, was_code) = (part.trim(), is_code);
            is_code ^= part.ends_with('`');
            // Code counts as one word, which is its opening backtick.
            if !was_code && (is_code || word.contains(char::is_alphanumeric)) {
                sentences.last_mut().unwrap().1.push(word);
            }
            let is_end = word.trim_end_matches([')', '"', '*']).ends_with(['.', '!', '?', '|']);
            if is_end && !was_code && word != "al." {
                sentences.push((number, vec![]));
            }
        }
        if is_alone {
            sentences.push((number + 1, vec![]));
        }
    }
    sentences.retain(|(_, words)| words.len() > MOST);
    sentences
}

#[test]
fn a_sentence_can_be_read_at_once() {
    let mut findings = Findings::of("a sentence has at most 25 words");
    let proofs = files("proofs").into_iter().filter(|it| it.ends_with(".md"));
    let texts =
        TEXTS.split(' ').map(str::to_owned).chain(proofs).filter_map(|it| Source::read(&it));
    for text in texts.chain(rust_files("src")) {
        for (line, words) in long_sentences(&text) {
            let begin = format!("{} words: {} …", words.len(), words[..6].join(" "));
            findings.add_line(&text, line, &begin);
        }
    }
}

#[test]
fn a_long_sentence_is_noticed() {
    let (long, short) = ("word ".repeat(MOST + 1), "word ".repeat(MOST - 1));
    let long_in = |path: &str, text| long_sentences(&Source { path: path.into(), text }).len();
    let text = format!("{long}.\n- {long}\n\n| {long}| {short}|\n2. {long}\n\n{short}al. `a` .");
    assert_eq!(long_in("a.md", text), 5);
    let text = format!("{short}`{long}`.\n- {short}\n\n{short}\n```\n{long}\n```\n# {long}");
    assert_eq!(long_in("a.md", text), 0);
    let text = format!("/// {long}\nf({long}); // {short}\n// {short}\n//! ```\n//! {long}");
    assert_eq!(long_in("a.rs", text), 1);
}

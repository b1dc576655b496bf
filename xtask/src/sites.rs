//! Finds the named orderings in the source, and those that a run has passed.
//!
//! A run reports a site by its line. A line moves with every edit above it, so a site is known by
//! its key: `deque::PUBLISH.release in src/deque/owner.rs::publish`.

use runner::{Result, folders};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The halves of a named ordering, as methods.
const HALVES: [&str; 5] = ["release", "acquire", "fence", "light_fence", "heavy_fence"];

/// One use of a named ordering. Sites are sorted by file and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The name that the constant gives itself, with its module in front.
    pub(crate) pair: String,
    pub(crate) half: String,
}

impl Site {
    /// Parses `deque::PUBLISH.release at src/deque/owner.rs:123`, as a model build writes it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, place) = text.split_once(" at ")?;
        let (pair, half) = name.rsplit_once('.')?;
        let (file, line) = place.rsplit_once(':')?;
        let line = line.parse().ok()?;
        Some(Site { file: file.into(), line, pair: pair.into(), half: half.into() })
    }

    /// The inverse of [`parse`](Self::parse).
    pub(crate) fn text(&self) -> String {
        format!("{}.{} at {}:{}", self.pair, self.half, self.file, self.line)
    }
}

/// The stable keys of sites, in the order of the sites. `read` returns the text of a file.
pub(crate) fn keys(sites: &[Site], read: impl Fn(&str) -> Result<String>) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut keys = Vec::new();
    for site in sites {
        if !texts.contains_key(&site.file) {
            texts.insert(site.file.clone(), read(&site.file)?);
        }
        let function = enclosing_function(&texts[&site.file], site.line).unwrap_or("no function");
        let key = format!("{}.{} in {}::{function}", site.pair, site.half, site.file);
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        keys.push(if *count == 1 { key } else { format!("{key} #{count}") });
    }
    Ok(keys)
}

/// The name of the function around a line, counted from 1.
///
/// The source is formatted, so it is the nearest line above that holds `fn` and is indented less.
fn enclosing_function(text: &str, line: usize) -> Option<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let limit = indent(lines.get(line.checked_sub(1)?)?);
    let above = lines[..line - 1].iter().rev();
    above.filter(|line| indent(line) < limit).find_map(|line| function_name(line))
}

/// Returns the name if the line is of the form `pub(crate) unsafe fn name<…>(`.
fn function_name(line: &str) -> Option<&str> {
    let code = line.split("//").next()?;
    let at = code.find("fn ")?;
    let name = code[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let starts_a_word = code[..at].chars().next_back().is_none_or(char::is_whitespace);
    (starts_a_word && !name.is_empty()).then_some(name)
}

/// Returns every site in the source.
pub(crate) fn in_source() -> Result<Vec<Site>> {
    let files = folders::files(Path::new("src"), "rs")?;
    let mut sites = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        sites.extend(in_text(&file.to_string_lossy().replace('\\', "/"), &text));
    }
    sites.sort();
    sites.dedup();
    Ok(sites)
}

/// Finds the calls of a half on a constant, as in `NAME.half()`, even with a line break in between.
fn in_text(file: &str, text: &str) -> Vec<Site> {
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect();
    let mut sites = Vec::new();
    for half in HALVES {
        for (at, _) in code.match_indices(&format!(".{half}(")) {
            let before = code[..at].trim_end();
            let start = before
                .rfind(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_')
                .map_or(0, |last| last + 1);
            let name = &before[start..];
            let whole = !before[..start].ends_with(|c: char| c.is_ascii_lowercase());
            if whole && name.starts_with(|c: char| c.is_ascii_uppercase()) {
                let line = code[..at].matches('\n').count() + 1;
                let pair = format!("{}::{name}", module(file));
                sites.push(Site { file: file.to_owned(), line, pair, half: half.to_owned() });
            }
        }
    }
    sites
}

/// Returns the module whose constants a file uses: the folder or file right under `src`.
fn module(file: &str) -> &str {
    let inside = file.strip_prefix("src/").unwrap_or(file);
    let first = inside.split('/').next().unwrap_or(inside);
    first.strip_suffix(".rs").unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::{Site, enclosing_function, function_name, in_text, keys};

    const OWNER: &str = "\
impl<T> Worker<T> {
    /// Calls `PUBLISH.release()` in the end.
    pub fn push(&self, item: T) {
        // fn not_this()
        self.bottom.store(1, PUBLISH.release());
    }

    fn claim(&self) {
        let success = both(CLAIM.acquire(), CLAIM.release());
        let each = |at| match at {
            0 => self.load(CLAIM.acquire()),
            _ => LAST_ITEM
                .fence(),
        };
        guard.release();
        fn inner() {
            1
        }
        self.load(CLAIM.acquire());
    }
}
";

    fn site(name: &str, half: &str, line: usize) -> Site {
        let text = format!("deque::{name}.{half} at src/deque/owner.rs:{line}");
        let site = Site::parse(&text).unwrap();
        assert_eq!(site.text(), text);
        site
    }

    #[test]
    fn sites_are_calls_on_constants_outside_comments() {
        let mut found = in_text("src/deque/owner.rs", OWNER);
        found.sort();
        let expected = [
            site("PUBLISH", "release", 5),
            site("CLAIM", "acquire", 9),
            site("CLAIM", "release", 9),
            site("CLAIM", "acquire", 11),
            site("LAST_ITEM", "fence", 13),
            site("CLAIM", "acquire", 19),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_key_names_the_function_and_numbers_repeats() {
        let mut sites = in_text("src/deque/owner.rs", OWNER);
        sites.sort();
        let expected = [
            "deque::PUBLISH.release in src/deque/owner.rs::push",
            "deque::CLAIM.acquire in src/deque/owner.rs::claim",
            "deque::CLAIM.release in src/deque/owner.rs::claim",
            "deque::CLAIM.acquire in src/deque/owner.rs::claim #2",
            "deque::LAST_ITEM.fence in src/deque/owner.rs::claim",
            "deque::CLAIM.acquire in src/deque/owner.rs::claim #3",
        ];
        assert_eq!(keys(&sites, |_| Ok(OWNER.into())).unwrap(), expected);
    }

    #[test]
    fn a_function_that_has_ended_does_not_enclose() {
        assert_eq!(enclosing_function(OWNER, 19), Some("claim"));
        assert_eq!(enclosing_function(OWNER, 1), None);
        assert_eq!(enclosing_function(OWNER, 1000), None);
    }

    #[test]
    fn function_names_are_found_behind_any_qualifier() {
        assert_eq!(function_name("    pub(crate) unsafe fn take<T>(slot: T) {"), Some("take"));
        assert_eq!(function_name("    const fn of(n: usize) {"), Some("of"));
        assert_eq!(function_name("    call: fn (u8),"), None);
        assert_eq!(function_name("    // fn gone() {"), None);
    }

    #[test]
    fn other_text_is_not_a_site() {
        assert_eq!(Site::parse("deque::PUBLISH.release"), None);
        assert_eq!(Site::parse("deque::PUBLISH.release at src/a.rs:x"), None);
    }
}

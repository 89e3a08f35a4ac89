//! The options of requests, their kinds and their documented defaults are those of `bindings/options.txt`, which all languages share.

use std::collections::BTreeMap;
use std::path::Path;

/// A request of the list, the type that has its options, and what that has beside them.
const REQUESTS: [(&str, &str, &str, &[&str]); 10] = [
    ("connect", "ClientBuilder", "connect.rs", &[]),
    ("lock", "LockRequest", "locks/request.rs", &[]),
    ("all", "LockAllRequest", "locks/all.rs", &[]),
    ("all", "RwLockRequest", "locks/rw_lock.rs", &["readers"]),
    ("any", "LockAnyRequest", "locks/any.rs", &[]),
    ("any", "SemaphoreRequest", "locks/permits.rs", &["watch_holder"]),
    ("run", "RunRequest", "runs/once.rs", &[]),
    ("elect", "ElectionRequest", "groups/elect.rs", &[]),
    ("shards", "ShardsRequest", "groups/shards/mod.rs", &[]),
    ("holder", "HolderMatch", "admin/release_if.rs", &[]),
];
/// Tables of options in the docs: the heading before each, the request, and the column that has the defaults.
const TABLES: [(&str, &str, &str, usize); 5] = [
    ("defaults", "## A lock\n", "lock", 1),
    ("defaults", "## A run\n", "run", 1),
    ("defaults", "## A client\n", "connect", 1),
    ("once", "## Which work, and for how long\n", "run", 2),
    ("node", "## Work that is done once\n", "run", 1),
];

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    kind: String,
    is_in_rust: bool,
    default: Option<String>,
}

type Options = BTreeMap<String, Listed>;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The options of each request of the list.
fn listed() -> BTreeMap<String, Options> {
    let mut requests: BTreeMap<String, Options> = BTreeMap::new();
    let mut request = String::new();
    for line in read("../bindings/options.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(option) = line.strip_prefix("  ") else {
            request = line.to_owned();
            continue;
        };
        let (words, default) =
            option.split_once(" = ").map_or((option, None), |(words, default)| (words, Some(default)));
        let words: Vec<&str> = words.split(' ').collect();
        let listed = Listed {
            kind: words[1].to_owned(),
            is_in_rust: words.len() == 2 || words.contains(&"rust"),
            default: default.map(str::to_owned),
        };
        requests.entry(request.clone()).or_default().insert(words[0].to_owned(), listed);
    }
    requests
}

/// The settings of a type with their kinds and docs, as its source has them.
fn declared(of: &str, file: &str) -> BTreeMap<String, (String, String)> {
    let source = read(&format!("src/{file}"));
    let mut found = BTreeMap::new();
    for (head, begin) in [("impl ", " {\n"), ("settings! { ", ":"), ("settings_of_locks! { ", ":")] {
        let is_passed_on = head.starts_with("settings_of_locks");
        let head = format!("{head}{of}{begin}");
        for block in source.split(head.as_str()).skip(1).filter_map(|rest| rest.split("\n}").next()) {
            let mut docs = String::new();
            for line in block.lines().map(str::trim) {
                if let Some(doc) = line.strip_prefix("///") {
                    docs.push_str(doc);
                } else if !line.starts_with("#[") {
                    found.extend(setting(line, is_passed_on).map(|(name, kind)| (name, (kind, docs.clone()))));
                    docs.clear();
                }
            }
        }
    }
    found
}

/// Reads `pub fn name(self, value: Type) -> Self {`, or `name(value: Type);` of what is passed on to locks.
fn setting(line: &str, is_passed_on: bool) -> Option<(String, String)> {
    let (name, given) = match line.strip_prefix("pub fn ") {
        Some(function) => {
            let (name, given) = function.strip_suffix(") -> Self {")?.split_once('(')?;
            (name, given.trim_start_matches("mut ").strip_prefix("self")?)
        }
        None if !is_passed_on => return None,
        None => line.strip_suffix(");")?.split_once('(')?,
    };
    let kind = match given.split_once(": ").map(|(_, of)| of) {
        None | Some("bool") => "flag",
        Some("Duration") => "length",
        Some("u32" | "u64" | "usize") => "number",
        Some("impl AsRef<str>" | "impl Into<String>") => "text",
        Some("impl AsRef<[u8]>") => "bytes",
        Some("&LockInfo") => "object",
        Some(of) if of.starts_with("impl Fn") => "function",
        Some(other) => panic!("which kind of option is {other}, of {line}?"),
    };
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then(|| (if name == "no_renewal" { "renew" } else { name }.to_owned(), kind.to_owned()))
}

/// Tells if a text names this default.
fn tells(text: &str, default: &str) -> bool {
    let (text, default) = (text.to_lowercase(), default.to_lowercase());
    ["default ", "default: ", "or else "].iter().any(|before| text.contains(&format!("{before}{default}")))
        || [" by default", " unless set"].iter().any(|after| text.contains(&format!("{default}{after}")))
}

#[test]
fn the_settings_of_requests_are_as_listed() {
    let listed = listed();
    for (request, of, file, more) in REQUESTS {
        let expected: BTreeMap<&str, &str> = listed[request]
            .iter()
            .filter(|(_, option)| option.is_in_rust)
            .map(|(name, option)| (name.as_str(), option.kind.as_str()))
            .collect();
        let declared = declared(of, file);
        assert!(more.iter().all(|name| declared.contains_key(*name)), "{of}: {more:?}");
        let found: BTreeMap<&str, &str> = declared
            .iter()
            .filter(|(name, _)| !more.contains(&name.as_str()))
            .map(|(name, (kind, _))| (name.as_str(), kind.as_str()))
            .collect();
        assert_eq!(found, expected, "{of}, and `{request}` of bindings/options.txt");
    }
}

#[test]
fn documented_defaults_are_as_listed() {
    let listed = listed();
    let mut told = 0;
    for (request, of, file, _) in REQUESTS {
        for (name, (_, docs)) in declared(of, file) {
            let default = listed[request].get(&name).and_then(|option| option.default.as_deref());
            if let Some(default) = default.filter(|_| !docs.trim().is_empty()) {
                assert!(tells(&docs, default), "{of}::{name} should tell of its default, {default}:{docs}");
                told += 1;
            }
        }
    }
    assert!(told >= 20, "{told}");
}

#[test]
fn tables_of_options_have_the_defaults_that_are_listed() {
    let listed = listed();
    for (page, heading, request, column) in TABLES {
        let text = read(&format!("../docs/{page}.md"));
        let (_, section) = text.split_once(heading).unwrap_or_else(|| panic!("docs/{page}.md: {heading}"));
        let section = section.split("\n## ").next().unwrap_or_default();
        let mut seen = 0;
        for line in section.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> =
                line.trim_matches(['|', ' ']).split(" | ").map(|cell| cell.trim_matches([' ', '|'])).collect();
            let mut names = cells[0].split('`').skip(1).step_by(2);
            let request = if cells[0].ends_with(" of shards") { "shards" } else { request };
            let Some(name) = names.next().map(snake_case) else { continue };
            let Some(option) = listed[request].get(&name) else { continue };
            seen += 1;
            if let Some(default) = &option.default {
                let cell = cells.get(column).copied().unwrap_or_default();
                let is_told = if page == "node" { tells(cell, default) } else { cell.contains(default.as_str()) };
                assert!(is_told, "docs/{page}.md should say of `{name}` that its default is {default}: {cell}");
            }
        }
        assert!(seen > 1, "docs/{page}.md has no table after {heading}");
    }
}

fn snake_case(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter.is_ascii_uppercase() {
        true => format!("_{}", letter.to_ascii_lowercase()),
        false => letter.to_string(),
    });
    letters.collect()
}

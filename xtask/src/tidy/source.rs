//! Just enough of Rust's grammar to look at code without its comments, strings and tests.

/// A file's code. Both texts keep every line break, so line numbers stay true.
pub struct Source {
    /// Without comments and the contents of strings.
    pub code: String,
    /// Also without items under `#[cfg(test)]`: what users run.
    pub shipped: String,
}

impl Source {
    pub fn new(text: &str) -> Source {
        let code = without_comments(text);
        let shipped = without_tests(&code);
        Source { code, shipped }
    }
}

/// An identifier or one character of punctuation; `::` is one token.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub line: usize,
    pub text: &'a str,
}

impl Token<'_> {
    fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// A path such as `std::time::Instant`; every leaf of a `use` tree is a path of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Path<'a> {
    pub line: usize,
    pub segments: Vec<&'a str>,
}

pub fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (text, after) = rest.split_at(length);
        if first == '\n' {
            line += 1;
        } else if !first.is_whitespace() {
            tokens.push(Token { line, text });
        }
        rest = after;
    }
    tokens
}

pub fn paths<'a>(tokens: &[Token<'a>]) -> Vec<Path<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let starts = tokens[at].is_name() && tokens[at].text != "as";
        at = if starts { path(tokens, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// Reads the path that starts at `at`, below `prefix`; returns where it ends.
fn path<'a>(tokens: &[Token<'a>], at: usize, prefix: &[&'a str], found: &mut Vec<Path<'a>>) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut segments = prefix.to_vec();
    // `std::{self}` names `std` itself.
    if text(at) != "self" || prefix.is_empty() {
        segments.push(text(at));
    }
    let mut end = at + 1;
    while text(end) == "::" {
        if text(end + 1) == "{" {
            end += 2;
            while end < tokens.len() && text(end) != "}" {
                end = if tokens[end].is_name() { path(tokens, end, &segments, found) } else { end + 1 };
            }
            return end + 1;
        }
        if !tokens.get(end + 1).is_some_and(Token::is_name) {
            break;
        }
        segments.push(text(end + 1));
        end += 2;
    }
    found.push(Path { line: tokens[end - 1].line, segments });
    if text(end) == "as" && tokens.get(end + 2).is_some_and(|token| matches!(token.text, "," | "}")) {
        // The other name that a leaf of a `use` tree is given.
        end += 2;
    }
    end
}

/// Blanks comments and the contents of string and character literals.
fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = at
            + if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                block_comment(rest)
            } else if rest.starts_with('"') {
                string(rest)
            } else if let Some(length) = raw_string(text, at) {
                length
            } else if let Some(length) = character(rest) {
                length
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
        blank(&mut out[at..end]);
        at = end;
    }
    text_of(out)
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let step = &rest.as_bytes()[at..];
        if step.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if step.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at.min(rest.len())
}

fn string(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of a raw string whose `r` stands at `at`.
fn raw_string(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix('r')?;
    // `br` and `cr` start raw strings too; any other letter before the `r` makes it part of a name.
    let mut before = text[..at].chars().rev();
    let last = before.next().filter(|c| !matches!(c, 'b' | 'c')).or_else(|| before.next());
    if last.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = rest[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(1 + hashes + 1 + length)
}

/// The length of a character literal; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    if first == '\\' {
        // The escaped character may itself be a quote.
        let escaped = inner[1..].chars().next()?.len_utf8();
        return inner[1 + escaped..].find('\'').map(|at| 1 + 1 + escaped + at + 1);
    }
    inner[first.len_utf8()..].starts_with('\'').then_some(1 + first.len_utf8() + 1)
}

/// Blanks items under `#[cfg(test)]`, and the whole file under `#![cfg(test)]`. Expects code without comments.
fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut at = 0;
    while let Some(found) = code[at..].find('#') {
        let start = at + found;
        let inner = code[start + 1..].starts_with('!');
        let open = start + 1 + usize::from(inner);
        if !code[open..].starts_with('[') {
            at = start + 1;
            continue;
        }
        let after = open + balanced(&code[open..]);
        let attribute: String = code[open..after].split_whitespace().collect();
        at = after;
        if attribute == "[cfg(test)]" || attribute.starts_with("[cfg(all(test,") {
            at = if inner { code.len() } else { after + item(&code[after..]) };
            blank(&mut out[start..at]);
        }
    }
    text_of(out)
}

/// The length of the item (or field, or match arm) that follows an attribute, further attributes included.
fn item(code: &str) -> usize {
    let bytes = code.as_bytes();
    let skip_space = |at: usize| at + code[at..].len() - code[at..].trim_start().len();
    let mut at = skip_space(0);
    while code[at..].starts_with("#[") {
        at = skip_space(at + 1 + balanced(&code[at + 1..]));
    }
    let word = code[at..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let is_item = ITEM_WORDS.contains(&word);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                let end = at + balanced(&code[at..]);
                let next = skip_space(end);
                // `use a::{b};` goes on to its semicolon.
                return if code[next..].starts_with(';') { next + 1 } else { end };
            }
            b'(' | b'[' => at += balanced(&code[at..]),
            b';' => return at + 1,
            b',' if !is_item => return at + 1,
            b'}' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Words that start an item; in those a comma may stand between generic parameters.
const ITEM_WORDS: [&str; 14] = [
    "pub", "mod", "fn", "use", "impl", "struct", "enum", "const", "static", "type", "trait", "extern", "async",
    "unsafe",
];

/// The length of the bracketed text that `code` starts with.
fn balanced(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth <= 1 => return at + 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

/// Whole characters were blanked, byte by byte, so the text is still valid; the lossy form saves an `expect`.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: &str) -> String {
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn seen(code: &str) -> Vec<String> {
        paths(&tokens(code)).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_go_and_lines_stay() {
        let source = Source::new("a // b\n/* c\n/* d */ e */ f\n/// g\nh");
        assert_eq!(words(&source.code), "a f h");
        assert_eq!(source.code.lines().count(), 5);
    }

    #[test]
    fn strings_and_characters_go() {
        assert_eq!(words(&Source::new(r#"f("a // b", 'c', '\'', '"') + d"#).code), "f( , , , ) + d");
        assert_eq!(words(&Source::new("f(\"a \\\" b\") + c").code), "f( ) + c");
        assert_eq!(words(&Source::new("x = r#\"a \" b\"# + br\"c\" + d").code), "x = + b + d");
        assert_eq!(words(&Source::new("x = \"ä // ö\" + 'ü' + d").code), "x = + + d");
    }

    #[test]
    fn lifetimes_names_and_raw_names_stay() {
        assert_eq!(words(&Source::new("fn f<'a, 'b>(x: &'a str) {}").code), "fn f<'a, 'b>(x: &'a str) {}");
        assert_eq!(words(&Source::new("for_ r#type bar\"x\"").code), "for_ r#type bar");
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_file() {
        assert_eq!(words(&Source::new("a \"b\\").code), "a");
        assert_eq!(words(&Source::new("a r#\"b").code), "a");
        assert_eq!(words(&Source::new("a /* b").code), "a");
    }

    #[test]
    fn test_items_do_not_ship() {
        let shipped = |text: &str| words(&Source::new(text).shipped);
        assert_eq!(shipped("a();\n#[cfg(test)]\nmod tests { fn x() { b(); } }\nfn c() {}"), "a(); fn c() {}");
        assert_eq!(shipped("#[cfg(test)]\n#[allow(x)]\nfn f<A, B>(a: [u8; 3]) -> A { b } fn c() {}"), "fn c() {}");
        assert_eq!(shipped("#[cfg(test)] extern crate std; use c::d;"), "use c::d;");
        assert_eq!(shipped("#[cfg(test)] use a::{b, c}; use d;"), "use d;");
        assert_eq!(shipped("#[cfg(all(test, unix))] mod tests; use d;"), "use d;");
        assert_eq!(shipped("struct S { #[cfg(test)] a: Vec<u8>, b: u8 }"), "struct S { b: u8 }");
        assert_eq!(shipped("#![cfg(test)]\nfn f() {}"), "");
    }

    #[test]
    fn other_conditions_ship() {
        let text = "#[cfg(unix)] fn a() {} #[cfg(not(test))] fn b() {} #[derive(C)] struct D; let x = '#';";
        assert_eq!(words(&Source::new(text).shipped), words(&Source::new(text).code));
    }

    #[test]
    fn use_trees_become_paths() {
        assert_eq!(
            seen("std::{self, time::{Duration, Instant as I}, net::*}; x"),
            ["std", "std::time::Duration", "std::time::Instant", "std::net", "x"]
        );
    }

    #[test]
    fn calls_and_types_are_paths() {
        assert_eq!(seen("::libc::time(x.y::<C>())"), ["libc::time", "x", "y", "C"]);
        assert_eq!(seen("<T as std::fmt::Debug>::fmt"), ["T", "std::fmt::Debug", "fmt"]);
    }

    #[test]
    fn paths_know_their_line() {
        let found: Vec<_> =
            paths(&tokens("use std::{\n    fs,\n    net::TcpStream,\n};")).iter().map(|p| p.line).collect();
        assert_eq!(found, [1, 2, 3]);
    }
}

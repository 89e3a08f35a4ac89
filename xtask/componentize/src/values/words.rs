//! Names and sentences, as each language writes them.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Field, Kind, Model, Unit};

const WIDTH: usize = 120;

/// Names by where they come from, for a line each.
pub(super) fn by_module(
    names: impl IntoIterator<Item = (String, String)>,
) -> impl Iterator<Item = (String, BTreeSet<String>)> {
    let mut modules = BTreeMap::<_, BTreeSet<_>>::new();
    for (from, name) in names {
        modules.entry(from).or_default().insert(name);
    }
    modules.into_iter()
}

/// As a language lists several.
pub(super) fn listed(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

pub(super) fn camel(name: &str) -> String {
    name.split('-').map(capital).collect()
}

pub(super) fn lower_camel(name: &str) -> String {
    let mut words = name.split('-');
    words.next().unwrap_or_default().to_owned() + &words.map(capital).collect::<String>()
}

pub(super) fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// The name of a type where those of errors are taken by exceptions.
pub(crate) fn class(name: &str) -> String {
    match name {
        "config-error" => "SettingError".to_owned(),
        "error" => "CommandError".to_owned(),
        name => camel(name),
    }
}

/// How a language writes what stands between backquotes.
pub(crate) struct Quoting {
    pub(crate) name: fn(&str) -> String,
    pub(crate) case: fn(&str, &str) -> String,
    /// The name of one of an enumeration.
    pub(crate) literal: fn(&str) -> String,
}

/// Docs with the names of a language.
pub(crate) fn quoted(docs: &str, model: &Model, quoting: &Quoting) -> String {
    let pieces = docs.split('`').enumerate().map(|(n, piece)| match n % 2 {
        0 => piece.to_owned(),
        _ => format!("`{}`", name_in(piece, model, quoting)),
    });
    pieces.collect()
}

/// Names that docs quote and that are the same in every language.
const HEADERS: [&str; 1] = ["content-type"];

fn name_in(piece: &str, model: &Model, quoting: &Quoting) -> String {
    if !piece.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        || HEADERS.contains(&piece)
    {
        return piece.to_owned();
    }
    let shown = |name: &str| {
        let fields = model.types().flat_map(|named| match &named.kind {
            Kind::Record(fields) => fields.as_slice(),
            Kind::Plain(_) | Kind::Variant(_) | Kind::Enum(_) => &[],
        });
        let length = fields.into_iter().find(|field| field.unit == Unit::Length && field.name == name);
        (quoting.name)(length.map_or(name, |field| &field.shown))
    };
    let is_literal = model.types().any(|named| match &named.kind {
        Kind::Enum(cases) => cases.iter().any(|case| case.name == piece),
        Kind::Record(_) | Kind::Plain(_) | Kind::Variant(_) => false,
    });
    match piece.split_once('.') {
        None if is_literal => (quoting.literal)(piece),
        None => shown(piece),
        Some((of, name)) => match model.types().find(|named| named.name == of).map(|named| &named.kind) {
            Some(Kind::Variant(_)) => (quoting.case)(of, name),
            Some(Kind::Record(_) | Kind::Plain(_) | Kind::Enum(_)) => format!("{}.{}", class(of), shown(name)),
            None => format!("{}.{}", camel(of), shown(name)),
        },
    }
}

/// The text of a setting, in seconds where a language counts in them.
pub(super) fn of_field(field: &Field, unit: &str, per_unit: f64) -> String {
    match field.unit {
        Unit::Length => format!("{} In {unit}.", in_unit(&field.docs, per_unit)),
        Unit::Nanoseconds | Unit::None => field.docs.clone(),
    }
}

/// Numbers of milliseconds in another unit; those that are no milliseconds say their own.
fn in_unit(docs: &str, per_unit: f64) -> String {
    let mut out = String::new();
    let mut rest = docs;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|letter: char| !letter.is_ascii_digit() && letter != ',').unwrap_or(from.len());
        let digits = from[..end].trim_end_matches(',');
        rest = &from[digits.len()..];
        out += before;
        let has_unit = [" h)", " days)", " years)"].iter().any(|unit| rest.starts_with(unit));
        match digits.replace(',', "").parse::<f64>() {
            Ok(number) if !has_unit => out += &grouped(number / per_unit),
            _ => out += digits,
        }
    }
    out + rest
}

fn grouped(number: f64) -> String {
    let text = number.to_string();
    let (whole, part) = text.split_once('.').map_or((text.as_str(), None), |(whole, part)| (whole, Some(part)));
    let digits = whole.len();
    let mut out = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (digits - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    part.map_or(out.clone(), |part| format!("{out}.{part}"))
}

/// Paragraphs whose lines fit behind an indent, `first` of which is written already.
pub(crate) fn wrapped(text: &str, indent: usize, first: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, paragraph) in text.split("\n\n").enumerate() {
        if n > 0 {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let lead = indent + if lines.is_empty() { first } else { 0 };
            if !line.is_empty() && lead + line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
    }
    lines
}

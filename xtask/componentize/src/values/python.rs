//! The types as dataclasses of Python.

use super::model::{Case, ELSEWHERE, Field, Kind, Model, Named, Ty};
use super::words::{self, Quoting, camel, class, snake, wrapped};

const HEAD: &str = r#""""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal, TypeAlias

Seconds: TypeAlias = float | timedelta
"#;
/// Fields that `repr` does not show.
const SECRETS: [&str; 9] =
    ["nonce", "secret-access-key", "session-token", "password", "body", "commands", "replies", "headers", "seed"];
/// The same of one type. A url is refused where a password stands in it, and may be shown before.
const SECRETS_OF: [(&str, &str); 2] = [("credentials.token", "token"), ("store.redis-http", "url")];
const PYTHON: Quoting = Quoting { name: snake, case: case_class, literal: snake };

fn case_class(of: &str, case: &str) -> String {
    format!("{}.{}", class(of), camel(case))
}

pub(super) fn write(model: &Model) -> String {
    let mut out = HEAD.to_owned();
    let (mut classes, mut names) = (Vec::new(), Vec::new());
    // What the interface of guards has beside its errors is in `leasehold.fence`.
    for named in model.types().filter(|named| !ELSEWHERE.contains(&named.name.as_str())) {
        match &named.kind {
            Kind::Enum(cases) => enumeration(model, named, cases, &mut out),
            Kind::Record(fields) if model.stands_alone(&named.name) => {
                line(&mut out, "\n");
                dataclass(model, (&class(&named.name), &named.docs), &named.name, fields, 0, &mut out);
                classes.push((named.name.clone(), class(&named.name)));
            }
            Kind::Variant(cases) => {
                variant(model, named, cases, &mut out);
                for case in cases {
                    classes.push((format!("{}.{}", named.name, case.name), case_class(&named.name, &case.name)));
                }
            }
            Kind::Record(_) | Kind::Plain(_) => continue,
        }
        names.push(class(&named.name));
    }
    line(&mut out, "\n\nCLASSES: dict[str, type] = {");
    for (name, class) in classes {
        line(&mut out, &format!("    {name:?}: {class},"));
    }
    line(&mut out, "}");
    names.sort();
    line(&mut out, "\n__all__ = [");
    for name in names {
        line(&mut out, &format!("    {name:?},"));
    }
    line(&mut out, "]");
    out
}

fn enumeration(model: &Model, named: &Named, cases: &[Case], out: &mut String) {
    let names: Vec<_> = cases.iter().map(|case| format!("{:?}", snake(&case.name))).collect();
    line(out, &format!("\n{}: TypeAlias = Literal[{}]", class(&named.name), names.join(", ")));
    let cases = cases.iter().map(|case| format!("\n\n{}: {}", snake(&case.name), case.docs));
    doc(model, &(named.docs.clone() + &cases.collect::<String>()), 0, out);
}

fn variant(model: &Model, named: &Named, cases: &[Case], out: &mut String) {
    line(out, &format!("\n\nclass {}:", class(&named.name)));
    doc(model, &named.docs, 4, out);
    for case in cases {
        line(out, "");
        let name = format!("{}.{}", named.name, case.name);
        dataclass(model, (&camel(&case.name), &case.docs), &name, model.fields(case), 4, out);
    }
    let names: Vec<_> = cases.iter().map(|case| camel(&case.name)).collect();
    let whole = format!("    Case: TypeAlias = {}", names.join(" | "));
    if whole.len() <= 120 {
        line(out, &format!("\n{whole}"));
    } else {
        line(out, &format!("\n    Case: TypeAlias = (\n        {}\n    )", names.join("\n        | ")));
    }
}

fn dataclass(model: &Model, (class, docs): (&str, &str), of: &str, fields: &[Field], indent: usize, out: &mut String) {
    let lead = " ".repeat(indent);
    line(out, &format!("{lead}@dataclass(frozen=True, slots=True)\n{lead}class {class}:"));
    doc(model, docs, indent + 4, out);
    line(out, &format!("\n{lead}    _of: ClassVar[str] = {of:?}"));
    let needed = fields.iter().rposition(|field| !field.is_optional()).map_or(0, |at| at + 1);
    for (n, field) in fields.iter().enumerate() {
        let is_secret = SECRETS.contains(&field.name.as_str()) || SECRETS_OF.contains(&(of, field.name.as_str()));
        let default = match (is_secret, n >= needed) {
            (true, true) => " = field(default=None, repr=False)",
            (true, false) => " = field(repr=False)",
            (false, true) => " = None",
            (false, false) => "",
        };
        let optional = if field.default.is_some() { " | None" } else { "" };
        let ty = match field.unit {
            super::model::Unit::Length if field.is_optional() => "Seconds | None".to_owned(),
            super::model::Unit::Length => "Seconds".to_owned(),
            super::model::Unit::Nanoseconds | super::model::Unit::None => python(model, &field.ty) + optional,
        };
        line(out, &format!("{lead}    {}: {ty}{default}", snake(&field.shown)));
        doc(model, &words::of_field(field, "seconds", 1000.0), indent + 4, out);
    }
}

fn python(model: &Model, ty: &Ty) -> String {
    match ty {
        Ty::Flag => "bool".to_owned(),
        Ty::U16 | Ty::U32 | Ty::U64 => "int".to_owned(),
        Ty::Text => "str".to_owned(),
        Ty::Bytes => "bytes".to_owned(),
        Ty::Items(of) => format!("Sequence[{}]", python(model, of)),
        Ty::Maybe(of) => format!("{} | None", python(model, of)),
        Ty::Resource(name) => camel(name),
        Ty::Named { name, .. } => match model.named(ty).map(|named| &named.kind) {
            Some(Kind::Variant(_)) => format!("{}.Case", class(name)),
            Some(Kind::Plain(fields)) => match &fields[..] {
                [only] => python(model, &only.ty),
                fields => {
                    let fields: Vec<_> = fields.iter().map(|field| python(model, &field.ty)).collect();
                    format!("tuple[{}]", fields.join(", "))
                }
            },
            Some(Kind::Record(_) | Kind::Enum(_)) | None => class(name),
        },
    }
}

fn doc(model: &Model, docs: &str, indent: usize, out: &mut String) {
    let lead = " ".repeat(indent);
    let docs = words::quoted(docs, model, &PYTHON).replace('`', "``");
    let lines = wrapped(&docs, indent, 3);
    match &lines[..] {
        // The quotes at the end must fit as well.
        [only] if indent + only.chars().count() + 6 <= 120 => line(out, &format!("{lead}\"\"\"{only}\"\"\"")),
        lines => {
            for (n, text) in lines.iter().enumerate() {
                let quotes = if n == 0 { "\"\"\"" } else { "" };
                line(out, format!("{lead}{quotes}{text}").trim_end());
            }
            line(out, &format!("{lead}\"\"\""));
        }
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

//! The types as dataclasses of Python.

use std::collections::BTreeSet;

use super::File;
use super::model::{Case, Field, Kind, Model, Named, Ty};
use super::words::{self, Quoting, by_module, camel, class, listed, snake, wrapped};

const HEAD: &str = r#""""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations
"#;
const PACKAGE: &str = "leasehold.protocol._values";
/// From the standard library: the module, a name of it, and what shows that it is used.
const IMPORTS: [(&str, &str, &str); 7] = [
    ("collections.abc", "Sequence", "Sequence["),
    ("dataclasses", "dataclass", "@dataclass"),
    ("dataclasses", "field", "= field("),
    ("datetime", "timedelta", "timedelta"),
    ("typing", "ClassVar", "ClassVar["),
    ("typing", "Literal", "Literal["),
    ("typing", "TypeAlias", ": TypeAlias"),
];
/// The type of lengths of time, and its module.
const SECONDS: (&str, &str) = ("types", "Seconds");
/// The interface that is too long for one module, and the module for what hosts pass in there.
const APART: (&str, &str) = ("client", "inputs");
/// The module for what its locks are told, and what that is.
const TOLD: (&str, [&str; 3]) = ("events", ["event", "failure", "lost-reason"]);
/// Fields that `repr` does not show.
const SECRETS: [&str; 11] = [
    "nonce",
    "secret-access-key",
    "session-token",
    "password",
    "body",
    "commands",
    "replies",
    "headers",
    "seed",
    "params",
    "rows",
];
/// The same of one type. A url is refused where a password stands in it, and may be shown before.
const SECRETS_OF: [(&str, &str); 2] = [("credentials.token", "token"), ("store.redis-http", "url")];
const PYTHON: Quoting = Quoting { name: snake, case: case_class, literal: snake };

fn case_class(of: &str, case: &str) -> String {
    format!("{}.{}", class(of), camel(case))
}

/// A module, and what is declared in it.
struct Module<'a> {
    name: &'a str,
    types: Vec<&'a Named>,
}

pub(super) fn write(model: &Model) -> Vec<File> {
    let modules = modules(model);
    let mut files: Vec<_> =
        modules.iter().map(|module| (format!("{}.py", module.name), text(model, &modules, module))).collect();
    files.push(("__init__.py".to_owned(), package(&modules)));
    files
}

fn modules(model: &Model) -> Vec<Module<'_>> {
    let mut modules = Vec::new();
    for interface in &model.interfaces {
        let (long, inputs) = APART;
        let is_apart = |named: &&Named| interface.name == long && named.is_read && !named.is_written;
        let (apart, types): (Vec<_>, Vec<_>) = model.declared(interface).partition(is_apart);
        let (events, told) = TOLD;
        let (told, types) = types.into_iter().partition(|named| told.contains(&named.name.as_str()));
        modules.push(Module { name: &interface.name, types });
        modules.push(Module { name: inputs, types: apart });
        modules.push(Module { name: events, types: told });
    }
    modules.retain(|module| !module.types.is_empty());
    modules
}

/// The package: everything from its modules.
fn package(modules: &[Module<'_>]) -> String {
    let mut out = HEAD.to_owned();
    let names: BTreeSet<_> = modules.iter().map(|module| module.name).collect();
    import(names.iter().map(|name| (PACKAGE.to_owned(), (*name).to_owned())), &mut out);
    for name in &names {
        line(&mut out, &format!("from {PACKAGE}.{name} import *  # noqa: F403"));
    }
    line(&mut out, "\nCLASSES: dict[str, type] = {");
    names.iter().for_each(|name| line(&mut out, &format!("    **{name}.CLASSES,")));
    line(&mut out, "}\n\"\"\"By the names that the WIT has for them.\"\"\"");
    exports(modules.iter().flat_map(|module| &module.types), &mut out);
    out
}

fn text(model: &Model, modules: &[Module<'_>], module: &Module<'_>) -> String {
    let body = body(model, module);
    let mut out = HEAD.to_owned();
    let (home, seconds) = SECONDS;
    let alias =
        if module.name == home { format!("\n{seconds}: TypeAlias = float | timedelta\n") } else { String::new() };
    let uses = |sign: &str| body.contains(sign) || alias.contains(sign);
    let used = IMPORTS.iter().filter(|(_, _, sign)| uses(sign));
    import(used.map(|(from, name, _)| ((*from).to_owned(), (*name).to_owned())), &mut out);
    let mentioned: BTreeSet<_> = module.types.iter().flat_map(|named| model.mentions(named)).collect();
    let mut others = BTreeSet::new();
    for other in modules.iter().filter(|other| other.name != module.name) {
        let here = other.types.iter().filter(|named| mentioned.iter().any(|(_, name)| *name == named.name));
        others.extend(here.map(|named| (format!("{PACKAGE}.{}", other.name), class(&named.name))));
    }
    if module.name != home && body.contains(&format!(": {seconds}")) {
        others.insert((format!("{PACKAGE}.{home}"), seconds.to_owned()));
    }
    import(others, &mut out);
    out + &alias + &body
}

/// One line for each module, below an empty one.
fn import(names: impl IntoIterator<Item = (String, String)>, out: &mut String) {
    for (n, (from, names)) in by_module(names).enumerate() {
        let space = if n == 0 { "\n" } else { "" };
        line(out, &format!("{space}from {from} import {}", listed(&names)));
    }
}

fn body(model: &Model, module: &Module<'_>) -> String {
    let mut out = String::new();
    let mut classes = Vec::new();
    for named in &module.types {
        match &named.kind {
            Kind::Enum(cases) => enumeration(model, named, cases, &mut out),
            Kind::Record(fields) | Kind::Plain(fields) => {
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
        }
    }
    line(&mut out, "\n\nCLASSES: dict[str, type] = {");
    for (name, class) in classes {
        line(&mut out, &format!("    {name:?}: {class},"));
    }
    line(&mut out, "}");
    exports(&module.types, &mut out);
    out
}

fn exports<'a>(types: impl IntoIterator<Item = &'a &'a Named>, out: &mut String) {
    let mut names: Vec<_> = types.into_iter().map(|named| class(&named.name)).collect();
    names.sort();
    line(out, "\n__all__ = [");
    names.iter().for_each(|name| line(out, &format!("    {name:?},")));
    line(out, "]");
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

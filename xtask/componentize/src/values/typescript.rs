//! The types as TypeScript sees plain objects.

use std::collections::BTreeSet;

use super::File;
use super::model::{Case, Field, Interface, Kind, Model, Named, Ty, Unit};
use super::words::{self, Quoting, by_module, class, listed, lower_camel, wrapped};

const HEAD: &str = "\
// Generated from wit/leasehold.wit by `cargo xtask component --bless`. Do not edit.
";
const TYPESCRIPT: Quoting =
    Quoting { name: lower_camel, case: |of, name| format!("{} {name}", class(of)), literal: str::to_owned };

pub(super) fn write(model: &Model) -> Vec<File> {
    let mut index = HEAD.to_owned() + "\n";
    let mut files = Vec::new();
    for interface in model.interfaces.iter().filter(|interface| model.declared(interface).next().is_some()) {
        let name = &interface.name;
        line(&mut index, &format!("export type * from \"./{name}.js\";"));
        files.push((format!("{name}.d.ts"), module(model, interface)));
    }
    files.push(("index.d.ts".to_owned(), index));
    files
}

fn module(model: &Model, interface: &Interface) -> String {
    let mut out = HEAD.to_owned();
    let mentioned: BTreeSet<_> = model.declared(interface).flat_map(|named| model.mentions(named)).collect();
    let foreign = mentioned.into_iter().filter(|(from, _)| *from != interface.name);
    for (n, (from, names)) in by_module(foreign.map(|(from, name)| (from.to_owned(), class(name)))).enumerate() {
        let space = if n == 0 { "\n" } else { "" };
        line(&mut out, &format!("{space}import type {{ {} }} from \"./{from}.js\";", listed(&names)));
    }
    for named in model.declared(interface) {
        match &named.kind {
            Kind::Record(fields) | Kind::Plain(fields) => {
                doc(model, &named.docs, 0, &mut out, Space::Before);
                line(&mut out, &format!("export interface {} {{", class(&named.name)));
                fields.iter().for_each(|field| self::field(model, field, 2, &mut out));
                line(&mut out, "}");
            }
            Kind::Variant(cases) => variant(model, named, cases, &mut out),
            Kind::Enum(cases) => {
                let about = cases.iter().map(|case| format!("\n\n`{:?}`: {}", case.name, case.docs));
                doc(model, &(named.docs.clone() + &about.collect::<String>()), 0, &mut out, Space::Before);
                let names: Vec<_> = cases.iter().map(|case| format!("{:?}", case.name)).collect();
                line(&mut out, &format!("export type {} = {};", class(&named.name), names.join(" | ")));
            }
        }
    }
    out
}

fn variant(model: &Model, named: &Named, cases: &[Case], out: &mut String) {
    doc(model, &named.docs, 0, out, Space::Before);
    line(out, &format!("export type {} =", class(&named.name)));
    for (n, case) in cases.iter().enumerate() {
        doc(model, &case.docs, 2, out, Space::None);
        let end = if n + 1 == cases.len() { ";" } else { "" };
        let fields = model.fields(case);
        if fields.is_empty() {
            line(out, &format!("  | {{ type: {:?} }}{end}", case.name));
            continue;
        }
        line(out, &format!("  | {{\n      type: {:?};", case.name));
        fields.iter().for_each(|field| self::field(model, field, 6, out));
        line(out, &format!("    }}{end}"));
    }
}

fn field(model: &Model, field: &Field, indent: usize, out: &mut String) {
    doc(model, &words::of_field(field, "milliseconds", 1.0), indent, out, Space::None);
    // An option says so itself.
    let (optional, undefined) = match (field.is_optional(), field.default) {
        (true, Some(_)) => ("?", " | undefined"),
        (true, None) => ("?", ""),
        (false, _) => ("", ""),
    };
    let ty = typescript(model, &field.ty, field.unit) + undefined;
    line(out, &format!("{}{}{optional}: {ty};", " ".repeat(indent), lower_camel(&field.shown)));
}

fn typescript(model: &Model, ty: &Ty, unit: Unit) -> String {
    match ty {
        Ty::Flag => "boolean".to_owned(),
        Ty::U64 if unit == Unit::Nanoseconds => "bigint".to_owned(),
        Ty::U16 | Ty::U32 | Ty::U64 => "number".to_owned(),
        Ty::Text => "string".to_owned(),
        Ty::Bytes => "Uint8Array".to_owned(),
        Ty::Items(of) => format!("{}[]", typescript(model, of, unit)),
        Ty::Maybe(of) => format!("{} | undefined", typescript(model, of, unit)),
        Ty::Resource(name) => class(name),
        Ty::Named { name, .. } => match model.named(ty).map(|named| &named.kind) {
            Some(Kind::Plain(fields)) => match &fields[..] {
                [only] => typescript(model, &only.ty, Unit::None),
                fields => {
                    let fields: Vec<_> = fields.iter().map(|field| typescript(model, &field.ty, Unit::None)).collect();
                    format!("[{}]", fields.join(", "))
                }
            },
            Some(Kind::Record(_) | Kind::Variant(_) | Kind::Enum(_)) | None => class(name),
        },
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Before,
    None,
}

fn doc(model: &Model, docs: &str, indent: usize, out: &mut String, space: Space) {
    if space == Space::Before {
        line(out, "");
    }
    let lead = " ".repeat(indent);
    let lines = wrapped(&words::quoted(docs, model, &TYPESCRIPT), indent + 3, 0);
    match &lines[..] {
        [only] if indent + only.chars().count() + 7 <= 120 => line(out, &format!("{lead}/** {only} */")),
        lines => {
            line(out, &format!("{lead}/**"));
            lines.iter().for_each(|text| line(out, format!("{lead} * {text}").trim_end()));
            line(out, &format!("{lead} */"));
        }
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

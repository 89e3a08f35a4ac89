//! The types as Rust, read from and written as values of any language, and the calls by name.
//!
//! An interface is a module of three files: its types, how values become them and are made of them, and its calls.

mod calls;
mod values;

use std::collections::BTreeSet;

use super::File;
use super::model::{Interface, Kind, Model, Named, Ty};
use super::words::{by_module, camel, listed, snake};

const HEAD: &str = "//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.";

pub(super) fn write(model: &Model) -> Vec<File> {
    let mut root = format!("{HEAD}\n\n");
    let mut files = Vec::new();
    for interface in &model.interfaces {
        let module = snake(&interface.name);
        line(&mut root, &format!("pub mod {module};"));
        files.push((format!("{module}.rs"), types(interface)));
        if !interface.types.is_empty() {
            files.push((format!("{module}/values.rs"), values::write(model, interface)));
        }
        if interface.has_calls() {
            files.push((format!("{module}/calls.rs"), calls::write(interface)));
        }
    }
    files.push(("mod.rs".to_owned(), root));
    files
}

fn types(interface: &Interface) -> String {
    let mut out = format!("{HEAD}\n//!\n");
    interface.docs.lines().for_each(|text| line(&mut out, format!("//! {text}").trim_end()));
    line(&mut out, "");
    if interface.has_calls() {
        line(&mut out, "mod calls;");
    }
    if !interface.types.is_empty() {
        line(&mut out, "mod values;");
    }
    let imports = interface.names_in_types();
    let foreign = imports.into_iter().filter(|(of, _)| *of != interface.name);
    import(interface, foreign.collect(), &mut out);
    if interface.has_calls() {
        line(&mut out, "");
        calls::export(interface, &mut out);
    }
    interface.types.iter().for_each(|named| declare(named, &mut out));
    out
}

/// Types from where they are declared.
fn import(here: &Interface, names: BTreeSet<(&str, &str)>, out: &mut String) {
    if !names.is_empty() {
        line(out, "");
    }
    let place = |of| if of == here.name { "super".to_owned() } else { format!("crate::wit::{}", snake(of)) };
    for (from, names) in by_module(names.into_iter().map(|(of, name)| (place(of), camel(name)))) {
        line(out, &format!("use {from}::{};", braced(&names)));
    }
}

/// Names behind a path.
fn braced(names: &BTreeSet<String>) -> String {
    if names.len() == 1 { listed(names) } else { format!("{{{}}}", listed(names)) }
}

fn declare(named: &Named, out: &mut String) {
    let name = camel(&named.name);
    line(out, "");
    docs(out, 0, &named.docs);
    match &named.kind {
        Kind::Record(fields) | Kind::Plain(fields) => {
            line(out, &format!("pub struct {name} {{"));
            for field in fields {
                docs(out, 4, &field.docs);
                line(out, &format!("    pub {}: {},", snake(&field.name), rust(&field.ty)));
            }
            line(out, "}");
        }
        Kind::Variant(cases) | Kind::Enum(cases) => {
            line(out, &format!("pub enum {name} {{"));
            for case in cases {
                docs(out, 4, &case.docs);
                let payload = case.payload.as_ref().map(|payload| format!("({})", rust(payload)));
                line(out, &format!("    {}{},", camel(&case.name), payload.unwrap_or_default()));
            }
            line(out, "}");
        }
    }
}

fn rust(ty: &Ty) -> String {
    match ty {
        Ty::Flag => "bool".to_owned(),
        Ty::U16 => "u16".to_owned(),
        Ty::U32 => "u32".to_owned(),
        Ty::U64 => "u64".to_owned(),
        Ty::Text => "String".to_owned(),
        Ty::Bytes => "Vec<u8>".to_owned(),
        Ty::Items(of) => format!("Vec<{}>", rust(of)),
        Ty::Maybe(of) => format!("Option<{}>", rust(of)),
        Ty::Named { name, .. } | Ty::Resource(name) => camel(name),
    }
}

fn docs(out: &mut String, indent: usize, docs: &str) {
    for text in docs.lines() {
        line(out, format!("{}/// {text}", " ".repeat(indent)).trim_end());
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

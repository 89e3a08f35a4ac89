//! Types of Go: records are structs, variants sealed interfaces, enumerations numbers with names.

use super::{line, names};
use crate::values::{Case, Field, Kind, Model, Named, Quoting, Ty, quoted, wrapped};

const GO: Quoting = Quoting { name: names::public, case: names::case, literal: str::to_owned };
const COMMENT: &str = "// ";

pub(super) fn declare(model: &Model, named: &Named, out: &mut String) {
    let name = names::public(&named.name);
    doc(model, &format!("{name}: {}", named.docs), 0, out, Space::Before);
    match &named.kind {
        Kind::Record(fields) | Kind::Plain(fields) => record(model, &name, fields, out),
        Kind::Variant(cases) => variant(model, &named.name, &name, cases, out),
        Kind::Enum(cases) => enumeration(model, &named.name, &name, cases, out),
    }
}

fn record(model: &Model, name: &str, fields: &[Field], out: &mut String) {
    line(out, &format!("type {name} struct {{"));
    for field in fields {
        doc(model, &field.docs, 1, out, Space::None);
        let ty = of(&field.ty);
        line(out, &format!("\t{} {ty} `wit:\"{}\"`", names::member(&field.name), field.name));
    }
    line(out, "}");
}

/// A case is a type of its own with the fields of its payload.
fn variant(model: &Model, of: &str, name: &str, cases: &[Case], out: &mut String) {
    line(out, &format!("type {name} interface {{\n\tis{name}()\n}}"));
    for case in cases {
        let case_name = names::case(of, &case.name);
        doc(model, &format!("{case_name}: {}", case.docs), 0, out, Space::Before);
        let payload = case.payload.as_ref().map_or_else(|| "struct{}".to_owned(), self::of);
        // The payload of `wait.for` is called `wait-for`.
        if payload != case_name {
            line(out, &format!("type {case_name} {payload}\n"));
        }
        line(out, &format!("func ({case_name}) is{name}() {{}}"));
    }
}

fn enumeration(model: &Model, of: &str, name: &str, cases: &[Case], out: &mut String) {
    line(out, &format!("type {name} uint8\n\nconst ("));
    for (n, case) in cases.iter().enumerate() {
        doc(model, &case.docs, 1, out, Space::None);
        let ty = if n == 0 { format!(" {name} = iota") } else { String::new() };
        line(out, &format!("\t{}{ty}", names::case(of, &case.name)));
    }
    let shown: Vec<_> = cases.iter().map(|case| format!("{:?}", case.name)).collect();
    let table = format!("namesOf{name}");
    line(out, &format!(")\n\nvar {table} = [...]string{{{}}}", shown.join(", ")));
    line(out, &format!("\n// String is the name in the WIT.\nfunc (v {name}) String() string {{ return {table}[v] }}"));
}

/// The type of a value. An optional one is a pointer; bytes are nil instead.
pub(super) fn of(ty: &Ty) -> String {
    match ty {
        Ty::Flag => "bool".to_owned(),
        Ty::U16 => "uint16".to_owned(),
        Ty::U32 => "uint32".to_owned(),
        Ty::U64 => "uint64".to_owned(),
        Ty::Text => "string".to_owned(),
        Ty::Bytes => "[]byte".to_owned(),
        Ty::Items(item) => format!("[]{}", of(item)),
        Ty::Maybe(inner) if **inner == Ty::Bytes => "[]byte".to_owned(),
        Ty::Maybe(inner) => format!("*{}", of(inner)),
        Ty::Resource(name) => format!("*{}", names::public(name)),
        Ty::Named { name, .. } => names::public(name),
    }
}

/// Names of cases for programs that read values from files, such as the golden vectors. Where nobody calls it, the linker leaves
/// it out.
pub(super) fn cases(model: &Model) -> String {
    let mut out = String::new();
    line(&mut out, "\n// Variants has a value of each case of each variant, by the name in the WIT.");
    line(&mut out, "func Variants() map[reflect.Type]map[string]any {\n\treturn map[reflect.Type]map[string]any{");
    for named in model.types() {
        if let Kind::Variant(cases) = &named.kind {
            line(&mut out, &format!("\t\treflect.TypeFor[{}](): {{", names::public(&named.name)));
            for case in cases {
                line(&mut out, &format!("\t\t\t{:?}: {}{{}},", case.name, names::case(&named.name, &case.name)));
            }
            line(&mut out, "\t\t},");
        }
    }
    line(&mut out, "\t}\n}\n\n// Enumerations has the names of each enumeration, by number.");
    line(&mut out, "func Enumerations() map[reflect.Type][]string {\n\treturn map[reflect.Type][]string{");
    for named in model.types() {
        if let Kind::Enum(_) = &named.kind {
            let name = names::public(&named.name);
            line(&mut out, &format!("\t\treflect.TypeFor[{name}](): namesOf{name}[:],"));
        }
    }
    line(&mut out, "\t}\n}");
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Before,
    None,
}

pub(super) fn doc(model: &Model, docs: &str, indent: usize, out: &mut String, space: Space) {
    if space == Space::Before {
        line(out, "");
    }
    let lead = "\t".repeat(indent);
    for text in wrapped(&quoted(docs, model, &GO), indent * 4 + COMMENT.len(), 0) {
        line(out, format!("{lead}{COMMENT}{text}").trim_end());
    }
}

//! How values become the types, and are made of them.

use super::super::model::{Case, Field, Interface, Kind, Model, Named, Ty, Unit};
use super::super::words::{camel, snake};
use super::{HEAD, line};

pub(super) fn write(model: &Model, interface: &Interface) -> String {
    let mut out = format!("{HEAD}\n\nuse super::*;\nuse crate::face::*;\n");
    interface.types.iter().for_each(|named| self::named(model, named, &mut out));
    out
}

fn named(model: &Model, named: &Named, out: &mut String) {
    let name = camel(&named.name);
    if named.is_read {
        line(out, "");
        line(out, &format!("impl Read for {name} {{"));
        line(out, "    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {");
        match &named.kind {
            Kind::Record(fields) => read_record(fields, out),
            Kind::Plain(fields) => read_plain(fields, out),
            Kind::Variant(cases) => read_cases(&named.name, cases, out),
            Kind::Enum(cases) => read_names(cases, out),
        }
        line(out, "    }");
        line(out, "}");
    }
    if named.is_written {
        write_named(model, named, &name, out);
    }
}

fn read_record(fields: &[Field], out: &mut String) {
    let names: Vec<_> = fields.iter().map(|field| format!("{:?}", field.shown)).collect();
    line(out, &format!("        from.only(&[{}])?;", names.join(", ")));
    line(out, "        Ok(Self {");
    for field in fields {
        let (name, shown) = (snake(&field.name), &field.shown);
        let read = match (field.unit, &field.ty, field.default) {
            (Unit::Length, Ty::Maybe(_), _) => format!("length(from, {shown:?})?"),
            (Unit::Length, _, Some(default)) => format!("length(from, {shown:?})?.unwrap_or({default})"),
            (Unit::Length, _, None) => format!("needed(length(from, {shown:?})?, {shown:?})?"),
            (_, _, Some(default)) => format!("field::<Option<_>, _>(from, {shown:?})?.unwrap_or({default})"),
            (_, _, None) => format!("field(from, {shown:?})?"),
        };
        line(out, &format!("            {name}: {read},"));
    }
    line(out, "        })");
}

/// A list of the fields, or the only one itself.
fn read_plain(fields: &[Field], out: &mut String) {
    if let [only] = fields {
        line(out, &format!("        Ok(Self {{ {}: Read::read(from)? }})", snake(&only.name)));
        return;
    }
    let names: Vec<_> = fields.iter().map(|field| snake(&field.name)).collect();
    line(out, &format!("        let [{}] = from.tuple()?;", names.join(", ")));
    let read: Vec<_> = names.iter().map(|name| format!("{name}: Read::read(&{name})?")).collect();
    line(out, &format!("        Ok(Self {{ {} }})", read.join(", ")));
}

fn read_cases(of: &str, cases: &[Case], out: &mut String) {
    let names: Vec<_> = cases.iter().map(|case| format!("{:?}", case.name)).collect();
    line(out, &format!("        let case = from.case({of:?}, &[{}])?;", names.join(", ")));
    line(out, "        Ok(match case {");
    for (n, case) in cases.iter().enumerate() {
        let pattern = if n + 1 == cases.len() { "_".to_owned() } else { n.to_string() };
        let name = camel(&case.name);
        match &case.payload {
            Some(_) => line(out, &format!("            {pattern} => Self::{name}(Read::read(from)?),")),
            None => line(out, &format!("            {pattern} => {{ from.only(&[])?; Self::{name} }}")),
        }
    }
    line(out, "        })");
}

fn read_names(cases: &[Case], out: &mut String) {
    let names: Vec<_> = cases.iter().map(|case| format!("{:?}", case.name)).collect();
    line(out, &format!("        Ok(match from.name(&[{}])? {{", names.join(", ")));
    for (n, case) in cases.iter().enumerate() {
        let pattern = if n + 1 == cases.len() { "_".to_owned() } else { n.to_string() };
        line(out, &format!("            {pattern} => Self::{},", camel(&case.name)));
    }
    line(out, "        })");
}

fn write_named(model: &Model, named: &Named, name: &str, out: &mut String) {
    if let Kind::Record(fields) = &named.kind {
        line(out, "");
        line(out, &format!("impl Fields for {name} {{"));
        line(out, "    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {");
        line(out, "        vec![");
        for field in fields {
            let written = written(&format!("self.{}", snake(&field.name)), &field.ty, field.unit);
            line(out, &format!("            ({:?}, {written}),", field.shown));
        }
        line(out, "        ]");
        line(out, "    }");
        line(out, "}");
        // What only cases hold is never written by itself.
        if !model.stands_alone(&named.name) {
            return;
        }
    }
    line(out, "");
    line(out, &format!("impl Write for {name} {{"));
    line(out, "    fn write<W: Sink>(self, to: &W) -> W::Value {");
    match &named.kind {
        Kind::Record(_) => line(out, &format!("        to.record({:?}, self.fields(to))", named.name)),
        Kind::Plain(fields) => match &fields[..] {
            [only] => line(out, &format!("        self.{}.write(to)", snake(&only.name))),
            fields => {
                let fields: Vec<_> =
                    fields.iter().map(|field| format!("self.{}.write(to)", snake(&field.name))).collect();
                line(out, &format!("        to.items(vec![{}])", fields.join(", ")));
            }
        },
        Kind::Variant(cases) => {
            line(out, "        match self {");
            for case in cases {
                let (pattern, fields) = match case.payload {
                    Some(_) => ("(payload)", "payload.fields(to)"),
                    None => ("", "Vec::new()"),
                };
                let arm = format!(
                    "Self::{}{pattern} => to.case({:?}, {:?}, {fields}),",
                    camel(&case.name),
                    named.name,
                    case.name
                );
                line(out, &format!("            {arm}"));
            }
            line(out, "        }");
        }
        Kind::Enum(cases) => {
            line(out, "        to.name(match self {");
            for case in cases {
                line(out, &format!("            Self::{} => {:?},", camel(&case.name), case.name));
            }
            line(out, "        })");
        }
    }
    line(out, "    }");
    line(out, "}");
}

/// A value as an expression of the language.
pub(super) fn written(value: &str, ty: &Ty, unit: Unit) -> String {
    match (unit, ty) {
        (Unit::Nanoseconds, Ty::Maybe(_)) => format!("{value}.map_or_else(|| to.nothing(), |ns| to.nanoseconds(ns))"),
        (Unit::Nanoseconds, _) => format!("to.nanoseconds({value})"),
        (Unit::Length | Unit::None, _) => format!("{value}.write(to)"),
    }
}

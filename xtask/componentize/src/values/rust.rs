//! The types as Rust, read from and written as values of any language, and the calls by name.

use super::model::{Call, Case, Field, Interface, Kind, Model, Named, Place, Resource, Ty, Unit, unit};
use super::words::{camel, snake};

const HEAD: &str = "\
//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
";

pub(super) fn write(model: &Model) -> String {
    let mut out = HEAD.to_owned();
    for interface in &model.interfaces {
        module(model, interface, &mut out);
    }
    out
}

fn module(model: &Model, interface: &Interface, out: &mut String) {
    line(out, "");
    docs(out, 0, &interface.docs);
    line(out, &format!("pub mod {} {{", snake(&interface.name)));
    line(out, "    use crate::face::*;");
    for (from, name) in interface.imports() {
        line(out, &format!("    use super::{}::{};", snake(from), camel(name)));
    }
    for named in &interface.types {
        self::named(model, named, out);
    }
    if !interface.calls.is_empty() || !interface.resources.is_empty() {
        calls(interface, out);
    }
    line(out, "}");
}

fn named(model: &Model, named: &Named, out: &mut String) {
    let name = camel(&named.name);
    line(out, "");
    docs(out, 4, &named.docs);
    match &named.kind {
        Kind::Record(fields) | Kind::Plain(fields) => {
            line(out, &format!("    pub struct {name} {{"));
            for field in fields {
                docs(out, 8, &field.docs);
                line(out, &format!("        pub {}: {},", snake(&field.name), rust(&field.ty)));
            }
            line(out, "    }");
        }
        Kind::Variant(cases) | Kind::Enum(cases) => {
            line(out, &format!("    pub enum {name} {{"));
            for case in cases {
                docs(out, 8, &case.docs);
                let payload = case.payload.as_ref().map(|payload| format!("({})", rust(payload)));
                line(out, &format!("        {}{},", camel(&case.name), payload.unwrap_or_default()));
            }
            line(out, "    }");
        }
    }
    if named.is_read {
        line(out, "");
        line(out, &format!("    impl Read for {name} {{"));
        line(out, "        fn read<S: Source>(from: &S) -> Result<Self, Unfit> {");
        match &named.kind {
            Kind::Record(fields) => read_record(fields, out),
            Kind::Plain(fields) => read_plain(fields, out),
            Kind::Variant(cases) => read_cases(&named.name, cases, out),
            Kind::Enum(cases) => read_names(cases, out),
        }
        line(out, "        }");
        line(out, "    }");
    }
    if named.is_written {
        write_named(model, named, &name, out);
    }
}

fn read_record(fields: &[Field], out: &mut String) {
    let names: Vec<_> = fields.iter().map(|field| format!("{:?}", field.shown)).collect();
    line(out, &format!("            from.only(&[{}])?;", names.join(", ")));
    line(out, "            Ok(Self {");
    for field in fields {
        let (name, shown) = (snake(&field.name), &field.shown);
        let read = match (field.unit, &field.ty, field.default) {
            (Unit::Length, Ty::Maybe(_), _) => format!("length(from, {shown:?})?"),
            (Unit::Length, _, Some(default)) => format!("length(from, {shown:?})?.unwrap_or({default})"),
            (Unit::Length, _, None) => format!("needed(length(from, {shown:?})?, {shown:?})?"),
            (_, _, Some(default)) => format!("field::<Option<_>, _>(from, {shown:?})?.unwrap_or({default})"),
            (_, _, None) => format!("field(from, {shown:?})?"),
        };
        line(out, &format!("                {name}: {read},"));
    }
    line(out, "            })");
}

/// A list of the fields, or the only one itself.
fn read_plain(fields: &[Field], out: &mut String) {
    if let [only] = fields {
        line(out, &format!("            Ok(Self {{ {}: Read::read(from)? }})", snake(&only.name)));
        return;
    }
    let names: Vec<_> = fields.iter().map(|field| snake(&field.name)).collect();
    line(out, &format!("            let [{}] = from.tuple()?;", names.join(", ")));
    let read: Vec<_> = names.iter().map(|name| format!("{name}: Read::read(&{name})?")).collect();
    line(out, &format!("            Ok(Self {{ {} }})", read.join(", ")));
}

fn read_cases(of: &str, cases: &[Case], out: &mut String) {
    let names: Vec<_> = cases.iter().map(|case| format!("{:?}", case.name)).collect();
    line(out, &format!("            let case = from.case({of:?}, &[{}])?;", names.join(", ")));
    line(out, "            Ok(match case {");
    for (n, case) in cases.iter().enumerate() {
        let pattern = if n + 1 == cases.len() { "_".to_owned() } else { n.to_string() };
        let name = camel(&case.name);
        match &case.payload {
            Some(_) => line(out, &format!("                {pattern} => Self::{name}(Read::read(from)?),")),
            None => line(out, &format!("                {pattern} => {{ from.only(&[])?; Self::{name} }}")),
        }
    }
    line(out, "            })");
}

fn read_names(cases: &[Case], out: &mut String) {
    let names: Vec<_> = cases.iter().map(|case| format!("{:?}", case.name)).collect();
    line(out, &format!("            Ok(match from.name(&[{}])? {{", names.join(", ")));
    for (n, case) in cases.iter().enumerate() {
        let pattern = if n + 1 == cases.len() { "_".to_owned() } else { n.to_string() };
        line(out, &format!("                {pattern} => Self::{},", camel(&case.name)));
    }
    line(out, "            })");
}

fn write_named(model: &Model, named: &Named, name: &str, out: &mut String) {
    if let Kind::Record(fields) = &named.kind {
        line(out, "");
        line(out, &format!("    impl Fields for {name} {{"));
        line(out, "        fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {");
        line(out, "            vec![");
        for field in fields {
            let written = written(&format!("self.{}", snake(&field.name)), &field.ty, field.unit);
            line(out, &format!("                ({:?}, {written}),", field.shown));
        }
        line(out, "            ]");
        line(out, "        }");
        line(out, "    }");
        // What only cases hold is never written by itself.
        if !model.stands_alone(&named.name) {
            return;
        }
    }
    line(out, "");
    line(out, &format!("    impl Write for {name} {{"));
    line(out, "        fn write<W: Sink>(self, to: &W) -> W::Value {");
    match &named.kind {
        Kind::Record(_) => line(out, &format!("            to.record({:?}, self.fields(to))", named.name)),
        Kind::Plain(fields) => match &fields[..] {
            [only] => line(out, &format!("            self.{}.write(to)", snake(&only.name))),
            fields => {
                let fields: Vec<_> =
                    fields.iter().map(|field| format!("self.{}.write(to)", snake(&field.name))).collect();
                line(out, &format!("            to.items(vec![{}])", fields.join(", ")));
            }
        },
        Kind::Variant(cases) => {
            line(out, "            match self {");
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
                line(out, &format!("                {arm}"));
            }
            line(out, "            }");
        }
        Kind::Enum(cases) => {
            line(out, "            to.name(match self {");
            for case in cases {
                line(out, &format!("                Self::{} => {:?},", camel(&case.name), case.name));
            }
            line(out, "            })");
        }
    }
    line(out, "        }");
    line(out, "    }");
}

fn written(value: &str, ty: &Ty, unit: Unit) -> String {
    match (unit, ty) {
        (Unit::Nanoseconds, Ty::Maybe(_)) => format!("{value}.map_or_else(|| to.nothing(), |ns| to.nanoseconds(ns))"),
        (Unit::Nanoseconds, _) => format!("to.nanoseconds({value})"),
        (Unit::Length | Unit::None, _) => format!("{value}.write(to)"),
    }
}

fn calls(interface: &Interface, out: &mut String) {
    line(out, "");
    line(out, "    /// What there is beside values.");
    line(out, "    pub(crate) trait Guest {");
    for resource in &interface.resources {
        let name = camel(&resource.name);
        line(
            out,
            &format!(
                "        /// See [`Guest{name}`].\n        #[allow(dead_code)]\n        type {name}: Guest{name};"
            ),
        );
    }
    for call in &interface.calls {
        signature(call, out);
    }
    line(out, "    }");
    if !interface.calls.is_empty() {
        line(out, "");
        line(out, "    /// Calls a function of the interface by its name.");
        line(
            out,
            "    ///\n    /// # Errors\n    /// Whatever the function refuses, and arguments that it does not take.",
        );
        line(out, "    pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {");
        dispatch("crate::Component", &interface.calls, out);
        line(out, "    }");
    }
    for resource in &interface.resources {
        self::resource(interface, resource, out);
    }
}

fn resource(interface: &Interface, resource: &Resource, out: &mut String) {
    let (module, name) = (snake(&interface.name), camel(&resource.name));
    line(out, "");
    line(out, "    /// Its calls.");
    line(out, &format!("    pub(crate) trait Guest{name}: Sized {{"));
    for call in &resource.calls {
        signature(call, out);
    }
    line(out, "    }");
    line(out, "");
    docs(out, 4, &resource.docs);
    line(out, &format!("    pub struct {name}(pub(crate) crate::{module}::{name});"));
    line(out, "");
    line(out, &format!("    impl {name} {{"));
    line(
        out,
        &format!(
            "        pub(crate) fn new(made: crate::{module}::{name}) -> Self {{\n            Self(made)\n        }}"
        ),
    );
    line(out, "");
    line(out, "        /// Makes one by the name of a static function.");
    line(
        out,
        "        ///\n        /// # Errors\n        /// Whatever the function refuses, and arguments that it does not take.",
    );
    line(out, "        pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {");
    let (makers, methods): (Vec<_>, Vec<_>) = resource.calls.iter().partition(|call| call.place == Place::Resource);
    line(out, "            match name {");
    for call in makers {
        arguments(call, out);
        let names: Vec<_> = call.params.iter().map(|(name, _)| snake(name)).collect();
        let call = format!("<crate::{module}::{name} as Guest{name}>::{}({})", snake(&call.name), names.join(", "));
        line(out, &format!("                    Ok({call}?)\n                }}"));
    }
    line(out, "                _ => Err(Problem::no_call(name)),\n            }\n        }");
    line(out, "");
    line(out, "        /// Calls a method by its name.");
    line(
        out,
        "        ///\n        /// # Errors\n        /// Whatever the method refuses, and arguments that it does not take.",
    );
    line(
        out,
        "        pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {",
    );
    dispatch("self.0", methods, out);
    line(out, "        }");
    line(out, "    }");
}

fn signature(call: &Call, out: &mut String) {
    let on = if call.place == Place::Instance { "&self, " } else { "" };
    let params: Vec<_> = call.params.iter().map(|(name, ty)| format!("{}: {}", snake(name), rust(ty))).collect();
    let answer = call.answer.as_ref().map_or("()".to_owned(), rust);
    let answer = match &call.error {
        Some(error) => format!("Result<{answer}, {}>", rust(error)),
        None => answer,
    };
    docs(out, 8, &call.docs);
    line(out, &format!("        fn {}({on}{}) -> {answer};", snake(&call.name), params.join(", ")));
}

fn arguments(call: &Call, out: &mut String) {
    line(out, &format!("                {:?} => {{", call.name));
    let names: Vec<_> = call.params.iter().map(|(name, _)| snake(name)).collect();
    line(out, &format!("                    let [{}] = arguments(args)?;", names.join(", ")));
    for (name, _) in &call.params {
        line(out, &format!("                    let {} = argument({}, {name:?})?;", snake(name), snake(name)));
    }
}

fn dispatch<'a>(on: &str, calls: impl IntoIterator<Item = &'a Call>, out: &mut String) {
    line(out, "            match name {");
    for call in calls {
        arguments(call, out);
        let names: Vec<_> = call.params.iter().map(|(name, _)| snake(name)).collect();
        let (path, on) = if call.place == Place::Instance { (".", on) } else { ("::", on) };
        let guest = match path {
            "." => format!("{on}.{}", snake(&call.name)),
            _ => format!("<{on} as Guest>::{}", snake(&call.name)),
        };
        let question = if call.error.is_some() { "?" } else { "" };
        let made = format!("{guest}({}){question}", names.join(", "));
        match &call.answer {
            Some(answer) => {
                let written = written("made", answer, unit(&call.name));
                line(out, &format!("                    let made = {made};\n                    Ok({written})"));
            }
            None => line(out, &format!("                    {made};\n                    Ok(to.nothing())")),
        }
        line(out, "                }");
    }
    line(out, "                _ => Err(Problem::no_call(name)),");
    line(out, "            }");
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

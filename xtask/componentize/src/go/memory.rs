//! Values in the memory of the module: how each type is stored there, loaded from there, and made flat parameters.

use super::layout;
use super::{line, names, types};
use crate::values::{Case, Field, Kind, Model, Named, Ty};

/// The parts that no type needs for itself.
pub(super) const SHARED: &str = include_str!("core.go.txt");

pub(super) fn write(model: &Model, named: &Named, out: &mut String) {
    let name = names::public(&named.name);
    match &named.kind {
        Kind::Record(fields) | Kind::Plain(fields) => record(model, &name, fields, out),
        Kind::Variant(cases) => variant(model, &named.name, &name, cases, out),
        Kind::Enum(_) => enumeration(&name, out),
    }
}

fn record(model: &Model, name: &str, fields: &[Field], out: &mut String) {
    let offsets = layout::offsets(model, fields.iter().map(|field| &field.ty));
    let each = |of: &dyn Fn(&Field, u32) -> String| {
        fields.iter().zip(&offsets).map(|(field, offset)| of(field, *offset)).collect::<String>()
    };
    let stores = each(&|field, at| {
        format!("\t{}\n", store(model, &field.ty, &place(at), &format!("v.{}", names::member(&field.name))))
    });
    line(out, &format!("\nfunc (c *Core) store{name}(p uint32, v {name}) {{\n{stores}}}"));
    let loads =
        each(&|field, at| format!("\t\t{}: {},\n", names::member(&field.name), load(model, &field.ty, &place(at))));
    line(out, &format!("\nfunc (c *Core) load{name}(p uint32) {name} {{\n\treturn {name}{{\n{loads}\t}}\n}}"));
    let flats =
        each(&|field, _| format!("\t{}\n", flat(model, &field.ty, &format!("v.{}", names::member(&field.name)))));
    line(out, &format!("\nfunc (c *Core) flat{name}(to *flat, v {name}) {{\n{flats}}}"));
}

fn variant(model: &Model, of: &str, name: &str, cases: &[Case], out: &mut String) {
    let at = place(layout::payload(model, cases.iter().map(|case| case.payload.as_ref())));
    let each = |one: &dyn Fn(usize, &Case, &str) -> String| {
        let text = |(n, case): (usize, &Case)| one(n, case, &names::case(of, &case.name));
        cases.iter().enumerate().map(text).collect::<String>()
    };
    let inner = |payload: &Ty| format!("{}(v)", types::of(payload));
    let stores = each(&|n, case, name| {
        let payload = case.payload.as_ref().map(|ty| format!("\t\t{}\n", store(model, ty, &at, &inner(ty))));
        format!("\tcase {name}:\n\t\tc.putU8(p, {n})\n{}", payload.unwrap_or_default())
    });
    let has_payload = cases.iter().any(|case| case.payload.is_some());
    let v = if has_payload { "v := " } else { "" };
    let lost = format!("\tdefault:\n\t\tpanic(noCase({name:?}))\n\t}}");
    line(
        out,
        &format!("\nfunc (c *Core) store{name}(p uint32, v {name}) {{\n\tswitch {v}v.(type) {{\n{stores}{lost}\n}}"),
    );
    let loads = each(&|n, case, name| match &case.payload {
        Some(ty) => format!("\tcase {n}:\n\t\treturn {name}({})\n", load(model, ty, &at)),
        None => format!("\tcase {n}:\n\t\treturn {name}{{}}\n"),
    });
    line(out, &format!("\nfunc (c *Core) load{name}(p uint32) {name} {{\n\tswitch c.getU8(p) {{\n{loads}{lost}\n}}"));
    let flats = each(&|n, case, name| {
        let payload = case.payload.as_ref().map(|ty| format!("\t\t{}\n", flat(model, ty, &inner(ty))));
        format!("\tcase {name}:\n\t\tto.add({n})\n{}", payload.unwrap_or_default())
    });
    let width = layout::flat(model, &Ty::Named { interface: String::new(), name: of.to_owned() }).len();
    line(
        out,
        &format!(
            "\nfunc (c *Core) flat{name}(to *flat, v {name}) {{\n\tend := to.n + {width}\n\tswitch {v}v.(type) \
             {{\n{flats}{lost}\n\tto.n = end\n}}"
        ),
    );
}

fn enumeration(name: &str, out: &mut String) {
    line(out, &format!("\nfunc (c *Core) store{name}(p uint32, v {name}) {{ c.putU8(p, uint8(v)) }}"));
    line(out, &format!("\nfunc (c *Core) load{name}(p uint32) {name} {{ return {name}(c.getU8(p)) }}"));
    line(out, &format!("\nfunc (c *Core) flat{name}(to *flat, v {name}) {{ to.add(uint64(v)) }}"));
}

pub(super) fn place(offset: u32) -> String {
    if offset == 0 { "p".to_owned() } else { format!("p+{offset}") }
}

/// The name of the helpers for a type, behind `store`, `load` or `flat`.
fn helper(ty: &Ty) -> String {
    match ty {
        Ty::Flag => "Flag".to_owned(),
        Ty::U16 => "U16".to_owned(),
        Ty::U32 => "U32".to_owned(),
        Ty::U64 => "U64".to_owned(),
        Ty::Text => "Text".to_owned(),
        Ty::Bytes => "Bytes".to_owned(),
        Ty::Named { name, .. } => names::public(name),
        Ty::Items(_) | Ty::Maybe(_) | Ty::Resource(_) => unreachable!("invariant: the WIT has no list of lists"),
    }
}

/// The statement that stores `value` at `place`.
pub(super) fn store(model: &Model, ty: &Ty, place: &str, value: &str) -> String {
    match ty {
        Ty::Items(item) => {
            let layout::Layout { size, align } = layout::of(model, item);
            format!("storeList(c, {place}, {value}, {size}, {align}, (*Core).store{})", helper(item))
        }
        Ty::Maybe(of) if **of == Ty::Bytes => format!("c.storeMaybeBytes({place}, {value})"),
        Ty::Maybe(of) => {
            let at = layout::payload(model, [Some(&**of)]);
            format!("storeMaybe(c, {place}, {at}, {value}, (*Core).store{})", helper(of))
        }
        Ty::Flag | Ty::U16 | Ty::U32 | Ty::U64 | Ty::Text | Ty::Bytes | Ty::Resource(_) | Ty::Named { .. } => {
            format!("c.store{}({place}, {value})", helper(ty))
        }
    }
}

/// The expression that loads a value from `place`.
pub(super) fn load(model: &Model, ty: &Ty, place: &str) -> String {
    match ty {
        Ty::Items(item) => {
            let size = layout::of(model, item).size;
            format!("loadList(c, {place}, {size}, (*Core).load{})", helper(item))
        }
        Ty::Maybe(of) if **of == Ty::Bytes => format!("c.loadMaybeBytes({place})"),
        Ty::Maybe(of) => {
            let at = layout::payload(model, [Some(&**of)]);
            format!("loadMaybe(c, {place}, {at}, (*Core).load{})", helper(of))
        }
        Ty::Resource(name) => format!("&{}{{c, c.loadU32({place})}}", names::public(name)),
        Ty::Flag | Ty::U16 | Ty::U32 | Ty::U64 | Ty::Text | Ty::Bytes | Ty::Named { .. } => {
            format!("c.load{}({place})", helper(ty))
        }
    }
}

/// The statement that adds `value` to flat parameters.
pub(super) fn flat(model: &Model, ty: &Ty, value: &str) -> String {
    match ty {
        Ty::Items(item) => {
            let layout::Layout { size, align } = layout::of(model, item);
            format!("flatList(c, to, {value}, {size}, {align}, (*Core).store{})", helper(item))
        }
        Ty::Maybe(of) if **of == Ty::Bytes => format!("c.flatMaybeBytes(to, {value})"),
        Ty::Maybe(of) => {
            let width = layout::flat(model, of).len();
            format!("flatMaybe(c, to, {width}, {value}, (*Core).flat{})", helper(of))
        }
        Ty::Flag | Ty::U16 | Ty::U32 | Ty::U64 | Ty::Text | Ty::Bytes | Ty::Resource(_) | Ty::Named { .. } => {
            format!("c.flat{}(to, {value})", helper(ty))
        }
    }
}

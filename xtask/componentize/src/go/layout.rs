//! The canonical ABI: where values lie in memory, and which flat parameters they become.

use crate::values::{Field, Kind, Model, Named, Ty};

/// The most flat parameters of a function; more of them lie in memory.
pub(super) const MOST_FLAT: usize = 16;
/// Cases of a variant are counted by one byte in memory.
const MOST_CASES: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) size: u32,
    pub(super) align: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flat {
    I32,
    I64,
}

const fn scalar(size: u32) -> Layout {
    Layout { size, align: size }
}

/// A pointer and a length.
const POINTERS: Layout = Layout { size: 8, align: 4 };

pub(super) fn of(model: &Model, ty: &Ty) -> Layout {
    match ty {
        Ty::Flag => scalar(1),
        Ty::U16 => scalar(2),
        Ty::U32 | Ty::Resource(_) => scalar(4),
        Ty::U64 => scalar(8),
        Ty::Text | Ty::Bytes | Ty::Items(_) => POINTERS,
        Ty::Maybe(of) => of_cases(model, [Some(&**of)]),
        Ty::Named { .. } => of_named(model, named(model, ty)),
    }
}

fn of_named(model: &Model, named: &Named) -> Layout {
    match &named.kind {
        Kind::Record(fields) | Kind::Plain(fields) => of_fields(model, fields.iter().map(|field| &field.ty)),
        Kind::Variant(cases) | Kind::Enum(cases) => {
            assert!(cases.len() <= MOST_CASES, "invariant: {} has few cases", named.name);
            of_cases(model, cases.iter().map(|case| case.payload.as_ref()))
        }
    }
}

pub(super) fn of_fields<'a>(model: &Model, fields: impl IntoIterator<Item = &'a Ty>) -> Layout {
    let (mut size, mut align) = (0_u32, 1);
    for of in fields.into_iter().map(|field| self::of(model, field)) {
        size = size.next_multiple_of(of.align) + of.size;
        align = align.max(of.align);
    }
    Layout { size: size.next_multiple_of(align), align }
}

fn of_cases<'a>(model: &Model, cases: impl IntoIterator<Item = Option<&'a Ty>>) -> Layout {
    let payloads: Vec<_> = cases.into_iter().flatten().map(|payload| of(model, payload)).collect();
    let align = payloads.iter().map(|payload| payload.align).max().unwrap_or(1);
    let biggest = payloads.iter().map(|payload| payload.size).max().unwrap_or(0);
    Layout { size: (align + biggest).next_multiple_of(align), align }
}

/// Where the payload of a variant lies behind its tag of one byte: as its most demanding case wants it.
pub(super) fn payload<'a>(model: &Model, cases: impl IntoIterator<Item = Option<&'a Ty>>) -> u32 {
    of_cases(model, cases).align
}

/// The offsets of fields.
pub(super) fn offsets<'a>(model: &Model, fields: impl IntoIterator<Item = &'a Ty>) -> Vec<u32> {
    let mut at = 0_u32;
    let offset = |of: Layout| {
        let offset = at.next_multiple_of(of.align);
        at = offset + of.size;
        offset
    };
    fields.into_iter().map(|field| of(model, field)).map(offset).collect()
}

pub(super) fn flat(model: &Model, ty: &Ty) -> Vec<Flat> {
    match ty {
        Ty::Flag | Ty::U16 | Ty::U32 | Ty::Resource(_) => vec![Flat::I32],
        Ty::U64 => vec![Flat::I64],
        Ty::Text | Ty::Bytes | Ty::Items(_) => vec![Flat::I32; 2],
        Ty::Maybe(of) => flat_cases(model, [Some(&**of)]),
        Ty::Named { .. } => match &named(model, ty).kind {
            Kind::Record(fields) | Kind::Plain(fields) => flat_fields(model, fields),
            Kind::Variant(cases) | Kind::Enum(cases) => {
                flat_cases(model, cases.iter().map(|case| case.payload.as_ref()))
            }
        },
    }
}

fn flat_fields(model: &Model, fields: &[Field]) -> Vec<Flat> {
    fields.iter().flat_map(|field| flat(model, &field.ty)).collect()
}

/// The tag, and then what fits every case.
fn flat_cases<'a>(model: &Model, cases: impl IntoIterator<Item = Option<&'a Ty>>) -> Vec<Flat> {
    let mut joined = vec![Flat::I32];
    for payload in cases.into_iter().flatten() {
        for (n, part) in flat(model, payload).into_iter().enumerate() {
            match joined.get_mut(n + 1) {
                None => joined.push(part),
                Some(there) if *there != part => *there = Flat::I64,
                Some(_) => {}
            }
        }
    }
    joined
}

pub(super) fn named<'a>(model: &'a Model, ty: &Ty) -> &'a Named {
    model.named(ty).unwrap_or_else(|| unreachable!("invariant: the WIT defines all types that it names"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn model() -> Model {
        Model::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/leasehold.wit")).unwrap()
    }

    fn ty(name: &str) -> Ty {
        Ty::Named { interface: String::new(), name: name.to_owned() }
    }

    /// As the canonical ABI says, worked out by hand.
    #[test]
    fn values_lie_where_the_canonical_abi_puts_them() {
        let model = model();
        let size = |name: &str| {
            let Layout { size, align } = of(&model, &ty(name));
            (size, align)
        };
        assert_eq!(size("now"), (16, 8));
        assert_eq!(size("poll"), (1, 1));
        assert_eq!(size("limits"), (24, 4));
        // A tag, and a u64 where it is aligned.
        assert_eq!(size("wait"), (16, 8));
        // id, node, deadline, a list.
        assert_eq!(size("transmit"), (32, 8));
        let Kind::Record(fields) = &named(&model, &ty("transmit")).kind else { panic!("a record") };
        assert_eq!(offsets(&model, fields.iter().map(|field| &field.ty)), [0, 8, 16, 24]);
    }

    #[test]
    fn flat_parameters_fit_every_case() {
        use Flat::{I32, I64};
        let model = model();
        assert_eq!(flat(&model, &ty("now")), [I64, I64]);
        assert_eq!(flat(&model, &ty("wait")), [I32, I64]);
        assert_eq!(flat(&model, &Ty::Maybe(Box::new(Ty::Bytes))), [I32, I32, I32]);
        // In one case a number where another has a pointer.
        let both = flat(&model, &ty("credentials"));
        assert_eq!(both[..5], [I32, I32, I32, I32, I64]);
    }
}

//! The values and calls of the WIT.
#![expect(clippy::wildcard_enum_match_arm, reason = "enums of another crate, of whose cases the WIT uses few")]

use std::collections::BTreeSet;
use std::path::Path;

use wit_parser::{Docs, Function, FunctionKind, Resolve, Type, TypeDefKind, TypeId};

use crate::{Result, on};

/// The value, in Rust's words, of a field that is left out where the WIT has no option for it.
const DEFAULTS: [(&str, &str, &str); 9] = [
    ("config", "limits", "Limits { locks: None, orphans: None, observations: None }"),
    ("node-config", "poll", "Poll::Acquire"),
    ("node-config", "watch", "false"),
    ("lock-options", "wait", "Wait::Forever"),
    ("lock-options", "lock-delay-ms", "0"),
    ("lock-options", "renewal", "Renewal::Automatic"),
    ("lock-options", "owner", "String::new()"),
    ("run-options", "trust-quorum", "false"),
    ("run-options", "even-if-done", "false"),
];
/// Records that are written as a plain list of what is in them.
const PLAIN: [&str; 2] = ["http-header", "redis-command"];
/// Records that the packages have elsewhere, with the guards.
pub(crate) const ELSEWHERE: [&str; 2] = ["dynamodb-guard", "redis-guard"];
/// Where lengths of time are settings, given as everywhere else in a package.
const SETTINGS: [&str; 2] = ["types", "stores"];

pub(crate) struct Model {
    pub(crate) interfaces: Vec<Interface>,
}

pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) types: Vec<Named>,
    pub(crate) calls: Vec<Call>,
    pub(crate) resources: Vec<Resource>,
}

pub(crate) struct Resource {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) calls: Vec<Call>,
}

pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) place: Place,
    pub(crate) params: Vec<(String, Ty)>,
    pub(crate) answer: Option<Ty>,
    pub(crate) error: Option<Ty>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Interface,
    Resource,
    Instance,
}

pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) kind: Kind,
    /// Hosts pass it in.
    pub(crate) is_read: bool,
    /// Hosts get it.
    pub(crate) is_written: bool,
}

pub(crate) enum Kind {
    Record(Vec<Field>),
    Plain(Vec<Field>),
    Variant(Vec<Case>),
    Enum(Vec<Case>),
}

pub(crate) struct Field {
    /// As the WIT has it.
    pub(crate) name: String,
    /// As languages have it, in kebab case still.
    pub(crate) shown: String,
    pub(crate) docs: String,
    pub(crate) ty: Ty,
    pub(crate) default: Option<&'static str>,
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A setting that is a length of time.
    Length,
    /// Too large for a floating-point number.
    Nanoseconds,
    None,
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) docs: String,
    /// The record whose fields it has.
    pub(crate) payload: Option<Ty>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Ty {
    Flag,
    U16,
    U32,
    U64,
    Text,
    Bytes,
    Items(Box<Ty>),
    Maybe(Box<Ty>),
    Named { interface: String, name: String },
    Resource(String),
}

impl Model {
    pub(crate) fn of(wit: &Path) -> Result<Self> {
        Self::without(wit, &[])
    }

    /// Without these interfaces.
    pub(crate) fn without(wit: &Path, left_out: &[&str]) -> Result<Self> {
        let mut resolve = Resolve::default();
        let package = resolve.push_file(wit).map_err(|error| on(wit, format!("{error:#}")))?;
        let interfaces = resolve.packages[package].interfaces.iter();
        let interfaces = interfaces.filter(|(name, _)| !left_out.contains(&name.as_str())).map(|(_, id)| *id);
        let interfaces: Vec<_> = interfaces.collect();
        let functions = || interfaces.iter().flat_map(|id| resolve.interfaces[*id].functions.values());
        let [mut read, mut written] = [BTreeSet::new(), BTreeSet::new()];
        for function in functions() {
            function.params.iter().for_each(|param| reach(&resolve, param.ty, &mut read));
            function.result.iter().for_each(|result| reach(&resolve, *result, &mut written));
        }
        let interfaces = interfaces.iter().map(|id| {
            let interface = &resolve.interfaces[*id];
            let name = interface.name.clone().unwrap_or_default();
            let mut types = Vec::new();
            let mut resources = Vec::new();
            for (type_name, id) in &interface.types {
                let definition = &resolve.types[*id];
                let docs = docs(&definition.docs);
                let kind = match &definition.kind {
                    TypeDefKind::Record(record) => {
                        let fields = record.fields.iter().map(|field| Field {
                            default: default(type_name, &field.name),
                            ..self::field(
                                &resolve,
                                &name,
                                &field.name,
                                field.ty,
                                self::docs(&field.docs),
                                read.contains(id),
                            )
                        });
                        match PLAIN.contains(&type_name.as_str()) {
                            true => Kind::Plain(fields.collect()),
                            false => Kind::Record(fields.collect()),
                        }
                    }
                    TypeDefKind::Variant(variant) => Kind::Variant(
                        variant
                            .cases
                            .iter()
                            .map(|case| self::case(&case.name, &case.docs, case.ty.map(|ty| self::ty(&resolve, ty))))
                            .collect(),
                    ),
                    TypeDefKind::Enum(of) => {
                        Kind::Enum(of.cases.iter().map(|case| self::case(&case.name, &case.docs, None)).collect())
                    }
                    TypeDefKind::Resource => {
                        let calls = interface.functions.values().filter(|call| belongs(call, *id));
                        let calls = calls.map(|call| self::call(&resolve, call)).collect();
                        resources.push(Resource { name: type_name.clone(), docs, calls });
                        continue;
                    }
                    // Names for what other types are made of; no language needs them.
                    _ => continue,
                };
                types.push(Named {
                    name: type_name.clone(),
                    docs,
                    kind,
                    is_read: read.contains(id),
                    is_written: written.contains(id),
                });
            }
            let calls = interface.functions.values().filter(|call| call.kind == FunctionKind::Freestanding);
            let calls = calls.map(|call| self::call(&resolve, call)).collect();
            Interface { docs: self::docs(&interface.docs), name, types, calls, resources }
        });
        Ok(Self { interfaces: interfaces.collect() })
    }

    pub(crate) fn types(&self) -> impl Iterator<Item = &Named> {
        self.interfaces.iter().flat_map(|interface| &interface.types)
    }

    pub(crate) fn named(&self, of: &Ty) -> Option<&Named> {
        let Ty::Named { name, .. } = of else { return None };
        self.types().find(|named| named.name == *name)
    }

    /// The fields of a case.
    pub(crate) fn fields(&self, case: &Case) -> &[Field] {
        match case.payload.as_ref().and_then(|payload| self.named(payload)).map(|named| &named.kind) {
            Some(Kind::Record(fields)) => fields,
            Some(Kind::Plain(_) | Kind::Variant(_) | Kind::Enum(_)) | None => &[],
        }
    }

    /// The declarations where cases have the fields of their payloads, by interface.
    pub(crate) fn declared<'a>(&'a self, interface: &'a Interface) -> impl Iterator<Item = &'a Named> {
        interface.types.iter().filter(|named| match &named.kind {
            _ if ELSEWHERE.contains(&named.name.as_str()) => false,
            Kind::Record(_) => self.stands_alone(&named.name),
            Kind::Variant(_) | Kind::Enum(_) => true,
            Kind::Plain(_) => false,
        })
    }

    /// The types that stand in its fields where cases have those of their payloads: where they are, and what they are
    /// called.
    pub(crate) fn mentions<'a>(&'a self, named: &'a Named) -> BTreeSet<(&'a str, &'a str)> {
        let fields: Vec<_> = match &named.kind {
            Kind::Record(fields) | Kind::Plain(fields) => fields.iter().collect(),
            Kind::Variant(cases) | Kind::Enum(cases) => cases.iter().flat_map(|case| self.fields(case)).collect(),
        };
        let mut found = BTreeSet::new();
        for ty in fields.into_iter().map(|field| field.ty.innermost()) {
            match self.named(ty) {
                Some(plain) if matches!(plain.kind, Kind::Plain(_)) => found.extend(self.mentions(plain)),
                _ => found.extend(ty.name()),
            }
        }
        found
    }

    /// Records that stand in fields or calls, and not as payloads of cases alone.
    pub(crate) fn stands_alone(&self, name: &str) -> bool {
        let fields = self.types().flat_map(|named| match &named.kind {
            Kind::Record(fields) | Kind::Plain(fields) => fields.as_slice(),
            Kind::Variant(_) | Kind::Enum(_) => &[],
        });
        let calls = self.interfaces.iter().flat_map(|interface| {
            interface.calls.iter().chain(interface.resources.iter().flat_map(|resource| &resource.calls))
        });
        let in_calls = calls.flat_map(|call| call.params.iter().map(|(_, ty)| ty).chain(&call.answer));
        fields.map(|field| &field.ty).chain(in_calls).any(|ty| ty.mentions(name))
    }
}

impl Interface {
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty() || !self.resources.is_empty()
    }

    /// The parts of its types, with the interface and the name of each.
    pub(crate) fn names_in_types(&self) -> BTreeSet<(&str, &str)> {
        let types = self.types.iter().flat_map(|named| match &named.kind {
            Kind::Record(fields) | Kind::Plain(fields) => fields.iter().map(|field| &field.ty).collect(),
            Kind::Variant(cases) | Kind::Enum(cases) => {
                cases.iter().filter_map(|case| case.payload.as_ref()).collect::<Vec<_>>()
            }
        });
        types.filter_map(Ty::name).collect()
    }

    /// The arguments and answers of its calls.
    pub(crate) fn names_in_calls(&self) -> BTreeSet<(&str, &str)> {
        let calls = self.calls.iter().chain(self.resources.iter().flat_map(|resource| &resource.calls));
        let types = calls.flat_map(|call| call.params.iter().map(|(_, ty)| ty).chain(&call.answer).chain(&call.error));
        types.filter_map(Ty::name).collect()
    }
}

impl Ty {
    /// Without lists and options.
    fn innermost(&self) -> &Self {
        match self {
            Self::Items(of) | Self::Maybe(of) => of.innermost(),
            other => other,
        }
    }

    /// Where it is declared, and what it is called.
    fn name(&self) -> Option<(&str, &str)> {
        match self.innermost() {
            Self::Named { interface, name } => Some((interface, name)),
            _ => None,
        }
    }

    fn mentions(&self, wanted: &str) -> bool {
        self.name().is_some_and(|(_, name)| name == wanted)
    }
}

impl Field {
    /// It may be left out.
    pub(crate) fn is_optional(&self) -> bool {
        self.default.is_some() || matches!(self.ty, Ty::Maybe(_))
    }
}

pub(crate) fn unit(name: &str) -> Unit {
    if name.ends_with("-ns") { Unit::Nanoseconds } else { Unit::None }
}

fn field(resolve: &Resolve, interface: &str, name: &str, of: Type, docs: String, is_read: bool) -> Field {
    let length =
        name.strip_suffix("-ms").filter(|rest| is_read && SETTINGS.contains(&interface) && !rest.ends_with("unix"));
    Field {
        name: name.to_owned(),
        shown: length.unwrap_or(name).to_owned(),
        docs,
        ty: ty(resolve, of),
        default: None,
        unit: if length.is_some() { Unit::Length } else { unit(name) },
    }
}

fn default(record: &str, field: &str) -> Option<&'static str> {
    DEFAULTS.iter().find(|(of, name, _)| (*of, *name) == (record, field)).map(|(_, _, default)| *default)
}

fn case(name: &str, about: &Docs, payload: Option<Ty>) -> Case {
    Case { name: name.to_owned(), docs: docs(about), payload }
}

fn call(resolve: &Resolve, function: &Function) -> Call {
    let place = match function.kind {
        FunctionKind::Method(_) => Place::Instance,
        FunctionKind::Static(_) => Place::Resource,
        _ => Place::Interface,
    };
    let params = function.params.iter().skip(usize::from(place == Place::Instance));
    let (answer, error) = match function.result {
        Some(Type::Id(id)) => match &resolve.types[id].kind {
            TypeDefKind::Result(result) => (result.ok, result.err),
            _ => (function.result, None),
        },
        plain => (plain, None),
    };
    Call {
        name: function.item_name().to_owned(),
        docs: docs(&function.docs),
        place,
        params: params.map(|param| (param.name.clone(), ty(resolve, param.ty))).collect(),
        answer: answer.map(|answer| ty(resolve, answer)),
        error: error.map(|error| ty(resolve, error)),
    }
}

fn belongs(function: &Function, resource: TypeId) -> bool {
    matches!(function.kind, FunctionKind::Method(id) | FunctionKind::Static(id) if id == resource)
}

fn ty(resolve: &Resolve, of: Type) -> Ty {
    let id = match of {
        Type::Bool => return Ty::Flag,
        Type::U16 => return Ty::U16,
        Type::U32 => return Ty::U32,
        Type::U64 => return Ty::U64,
        Type::String => return Ty::Text,
        Type::Id(id) => id,
        other => unreachable!("invariant: the WIT has no {other:?}"),
    };
    let definition = &resolve.types[id];
    match &definition.kind {
        TypeDefKind::Type(of) => ty(resolve, *of),
        TypeDefKind::List(Type::U8) => Ty::Bytes,
        TypeDefKind::List(of) => Ty::Items(Box::new(ty(resolve, *of))),
        TypeDefKind::Option(of) => Ty::Maybe(Box::new(ty(resolve, *of))),
        TypeDefKind::Resource => Ty::Resource(definition.name.clone().unwrap_or_default()),
        TypeDefKind::Handle(handle) => {
            use wit_parser::Handle;
            let (Handle::Own(id) | Handle::Borrow(id)) = handle;
            ty(resolve, Type::Id(*id))
        }
        _ => {
            use wit_parser::TypeOwner;
            let interface = match definition.owner {
                TypeOwner::Interface(id) => resolve.interfaces[id].name.clone().unwrap_or_default(),
                TypeOwner::World(_) | TypeOwner::None => String::new(),
            };
            Ty::Named { interface, name: definition.name.clone().unwrap_or_default() }
        }
    }
}

/// Everything that a type is made of.
fn reach(resolve: &Resolve, of: Type, found: &mut BTreeSet<TypeId>) {
    let Type::Id(id) = of else { return };
    if !found.insert(id) {
        return;
    }
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => record.fields.iter().for_each(|field| reach(resolve, field.ty, found)),
        TypeDefKind::Variant(variant) => {
            variant.cases.iter().filter_map(|case| case.ty).for_each(|ty| reach(resolve, ty, found))
        }
        TypeDefKind::Option(of) | TypeDefKind::List(of) | TypeDefKind::Type(of) => reach(resolve, *of, found),
        TypeDefKind::Result(result) => {
            [result.ok, result.err].into_iter().flatten().for_each(|ty| reach(resolve, ty, found))
        }
        _ => {}
    }
}

fn docs(docs: &Docs) -> String {
    docs.contents.clone().unwrap_or_default().trim().to_owned()
}

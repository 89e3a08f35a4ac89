//! `wit/leasehold.wit` offers what this crate offers, under the same names.
//!
//! `wit/mirrors.rs` lists the types of the public face, and does not compile until it knows every field and variant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "wit/mirrors.rs"]
mod mirrors;
#[path = "wit/wired.rs"]
mod wired;

use mirrors::{NOT_MIRRORED, Shape, mirrors};
use wit_parser::{Docs, Field, Function, FunctionKind, Resolve, Type, TypeDef, TypeDefKind};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Units that may follow a Rust name in its WIT counterpart.
const UNITS: [&str; 4] = ["ns", "ms", "ppm", "bytes"];

/// Cases that only the WIT has: its border takes any string and any bytes, and its error sets have room to grow.
const ADDED_CASES: [(&str, &[&str]); 8] = [
    ("config-error", &["too-few-bytes", "stores", "store", "other"]),
    ("error", &["invalid", "other"]),
    ("failure", &["other"]),
    ("input", &["set-credentials"]),
    ("lost-reason", &["other"]),
    ("output", &["http-request", "redis-commands", "statement"]),
    ("rejected", &["invalid-token"]),
    ("response", &["outcomes", "http-response", "redis-replies", "rows", "server-error"]),
];

/// Cases that the WIT lacks: a component has no session yet, so nobody tells it anything.
const LEFT_OUT: [&str; 4] = ["Op::Tell", "Applied::RenewedTold", "Applied::Told", "Wait::Watch"];

/// Types that are called otherwise.
const RENAMED_TYPES: [(&str, &str); 3] = [
    ("Bootstrap", "birth"),
    // A fault of the transport is one of the ways in which a request ends.
    ("TransportFault", "response"),
    // Something or nothing, so an option of a record instead of a variant.
    ("Holder", "lease-holder"),
];

/// Fields and parameters of a type or method that are called otherwise, or (an empty name) stand elsewhere.
const RENAMED_FIELDS: [(&str, &str, &str); 18] = [
    // A component has no session yet.
    ("Acquire", "session", ""),
    ("Config", "session", ""),
    ("Config", "observed", ""),
    ("Holding", "session", ""),
    ("Holding", "told", ""),
    // A component asks for no queue of waiters.
    ("Acquire", "in_queue", ""),
    ("Config", "queues", ""),
    ("LockOptionsBuilder", "fair", ""),
    // Nor does it watch a holder beyond the end of a wait.
    ("LockOptionsBuilder", "watch_holder", ""),
    // The same in every quorum.
    ("Quorum", "max_keep", ""),
    ("Membership", "bootstrap", "birth"),
    // Once beside the event instead of once in each.
    ("Event", "lock", ""),
    // `result` is taken by the result type, and both of its arms are one variant here.
    ("Input", "result", "response"),
    ("handle_response", "result", "response"),
    // Returned instead of appended to.
    ("step", "outputs", ""),
    ("with_high_water", "token", "high-water"),
    ("LockOptionsBuilder", "renew_every", "renewal"),
    ("LockOptionsBuilder", "no_renewal", "renewal"),
];

/// Methods that are called otherwise, or (an empty name) have no counterpart.
const RENAMED_METHODS: [(&str, &str); 11] = [
    // A component asks for no queue of waiters.
    ("reserved", ""),
    ("placed", ""),
    ("next_departure", ""),
    // The state of a lock says it.
    ("is_queued", ""),
    ("seen_before", ""),
    ("sightings", ""),
    ("new", "create"),
    ("with_high_water", "create"),
    // The host wrote the settings and knows them.
    ("config", ""),
    // A step of the component takes all of its inputs at once.
    ("handle_input", ""),
    // It is for a completion in the caller's own transaction, which a component does not have.
    ("about", ""),
];

/// Integers that are plain numbers and so have no unit.
const COUNTS: [(&str, &str); 18] = [
    ("attempt-limit", "max"),
    ("attempts", "count max"),
    ("check-in-order", "write"),
    ("control-character", "at code"),
    ("invalid-token", "token max"),
    ("limit-attempts", "max"),
    ("limits", "locks orphans observations"),
    ("http-response", "status"),
    ("node-config", "batch"),
    ("out-of-order", "write last"),
    ("run-record", "attempts"),
    ("stats", "locks held in-flight orphans observations undrained ignored-responses timed-out-requests"),
    ("redis-store", "replicas"),
    ("sql-number", "value"),
    ("take", "replies"),
    ("too-many-locks", "limit"),
    ("wrong-node-count", "count max"),
    ("wrong-store-count", "count nodes"),
];

/// The parsed file. Its type names are unique across interfaces, so a name is enough to find a type.
struct Wit {
    resolve: Resolve,
    types: BTreeMap<String, TypeDef>,
    functions: Vec<Function>,
}

impl Wit {
    fn parse() -> Self {
        let mut resolve = Resolve::default();
        resolve.push_file(Path::new(CRATE).join("../../wit/leasehold.wit")).expect("the file is valid WIT");
        let mut types = BTreeMap::new();
        for (name, id) in resolve.interfaces.iter().flat_map(|(_, interface)| &interface.types) {
            let ty = &resolve.types[*id];
            // `use` makes an alias of the same name, which is no type of its own.
            if !matches!(ty.kind, TypeDefKind::Type(Type::Id(_))) {
                assert!(types.insert(name.clone(), ty.clone()).is_none(), "{name} is defined twice");
            }
        }
        let functions = resolve.interfaces.iter().flat_map(|(_, interface)| interface.functions.values().cloned());
        Self { types, functions: functions.collect(), resolve }
    }

    /// The fields of a record, none for anything else.
    fn fields(&self, name: &str) -> Option<&[Field]> {
        let TypeDefKind::Record(record) = &self.types.get(name)?.kind else { return None };
        Some(&record.fields)
    }

    /// The cases of a variant or enum, each with its payload.
    fn cases(&self, name: &str) -> BTreeMap<&str, Option<&Type>> {
        let kind = self.types.get(name).map(|ty| &ty.kind);
        if let Some(TypeDefKind::Variant(variant)) = kind {
            variant.cases.iter().map(|case| (case.name.as_str(), case.ty.as_ref())).collect()
        } else if let Some(TypeDefKind::Enum(cases)) = kind {
            cases.cases.iter().map(|case| (case.name.as_str(), None)).collect()
        } else {
            panic!("{name} has no cases: {kind:?}");
        }
    }

    /// The methods of a resource, each with its parameters.
    fn methods(&self, resource: &str) -> BTreeMap<&str, Vec<&str>> {
        let methods = self.functions.iter().filter(|function| function.name.contains(&format!("]{resource}.")));
        methods.map(|method| (method.item_name(), method.params.iter().map(|param| &*param.name).collect())).collect()
    }

    fn name_of(&self, ty: &Type) -> Option<&str> {
        let Type::Id(id) = ty else { return None };
        self.resolve.types[*id].name.as_deref()
    }

    /// Returns the structure of an unnamed type, such as an option.
    fn unnamed(&self, ty: &Type) -> Option<&TypeDefKind> {
        let Type::Id(id) = ty else { return None };
        let ty = &self.resolve.types[*id];
        ty.name.is_none().then_some(&ty.kind)
    }

    /// Returns true if a type is an integer, or an optional one, that has no type name to say what it means.
    fn is_bare_integer(&self, ty: &Type) -> bool {
        if let Some(TypeDefKind::Option(ty) | TypeDefKind::List(ty)) = self.unnamed(ty) {
            // A list of bytes is no number.
            return !matches!(ty, Type::U8) && self.is_bare_integer(ty);
        }
        matches!(ty, Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }
}

/// Source text, for what the compiler cannot list: public types, methods, variants of a type that may grow. Formatted
/// sources begin every item on a line of its own, so no parser is needed.
struct Source(String);

impl Source {
    /// Files of the core or, below `wire`, of this crate; or all files of a folder.
    fn read(paths: &[&str]) -> Self {
        let files = paths.iter().map(|path| folder(path)).flat_map(|path| {
            let inside = fs::read_dir(&path).into_iter().flatten().map(|entry| entry.expect("a folder").path());
            if path.is_dir() { inside.collect() } else { vec![path] }
        });
        Self(files.map(|file| fs::read_to_string(file).expect("a source file")).collect())
    }

    fn public_types(&self) -> BTreeSet<&str> {
        let is_type = |line: &&str| line.starts_with("pub struct ") || line.starts_with("pub enum ");
        self.0.lines().filter(is_type).filter_map(|line| line.split(' ').nth(2)).map(leading_word).collect()
    }

    /// The lines between each line `start` and the brace that closes it.
    fn block(&self, start: &str) -> String {
        let mut inside = false;
        let mut text = String::new();
        for line in self.0.lines() {
            match (inside, line) {
                (false, line) => inside = line == start,
                (true, "}") => inside = false,
                (true, line) => text.extend([line, "\n"]),
            }
        }
        text
    }

    fn variants(&self, name: &str) -> BTreeSet<String> {
        let block = self.block(&format!("pub enum {name} {{"));
        let lines = block.lines().filter_map(|line| line.strip_prefix("    "));
        lines.filter(|line| line.starts_with(char::is_uppercase)).map(|line| leading_word(line).into()).collect()
    }

    /// Public methods with the names of their parameters.
    fn methods(&self, name: &str) -> BTreeMap<String, Vec<String>> {
        let block = self.block(&format!("impl {name} {{")).replace("pub const fn ", "pub fn ");
        let signatures = block.split("    pub fn ").skip(1).filter_map(|rest| rest.split('{').next());
        let params = |signature: &str| {
            let params = signature.split(") ->").next().unwrap_or_default().split(['(', ',', ')', '\n']);
            let name_of = |param: &str| match param.trim() {
                "self" | "&self" | "&mut self" | "mut self" => Some("self".to_string()),
                param => Some(param.split_once(": ")?.0.trim_start_matches("mut ").trim_start_matches('_').to_string()),
            };
            params.filter_map(name_of).collect()
        };
        signatures.map(|signature| (leading_word(signature).to_string(), params(signature))).collect()
    }
}

fn leading_word(line: &str) -> &str {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// `RunId` and `run_id` are both `run-id`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
    }
    kebab
}

/// The WIT name of a type of the crate.
fn type_name(name: &str) -> String {
    let renamed = RENAMED_TYPES.iter().find(|(rust, _)| *rust == name);
    renamed.map_or_else(|| kebab(name), |(_, wit)| (*wit).to_string())
}

/// Returns true if a WIT name is the kebab case of a Rust name, with a unit or without.
fn is_name_of(wit: &str, rust: &str) -> bool {
    let rest = wit.strip_prefix(&kebab(rust));
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(|unit| UNITS.contains(&unit)))
}

/// Lists what is missing on either side, given the fields or parameters of `of` here and there.
fn differences<'a>(of: &str, rust: impl IntoIterator<Item = &'a str>, wit: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut extra: BTreeSet<&str> = wit.iter().copied().collect();
    let owner = of.split("::").next();
    for name in rust {
        let renamed = RENAMED_FIELDS.iter().find(|(of, from, _)| Some(*of) == owner && *from == name);
        let counterpart = match renamed {
            Some((_, _, "")) => continue,
            Some((_, _, to)) => wit.iter().find(|wit| *wit == to),
            None => wit.iter().find(|wit| is_name_of(wit, name)),
        };
        match counterpart {
            Some(wit) => drop(extra.remove(wit)),
            None => found.push(format!("{name} of {of} has no counterpart among {wit:?}")),
        }
    }
    found.extend(extra.into_iter().map(|wit| format!("{wit} has no counterpart in {of}")));
    found
}

/// How a record differs from a struct or from the content of a variant.
fn record_differences(wit: &Wit, of: &str, shape: &Shape, record: Option<&str>) -> Vec<String> {
    let fields = record.and_then(|name| wit.fields(name));
    let same = match (shape, fields) {
        (Shape::Fields(names), Some(fields)) => return differences(of, names.iter().copied(), &names_of(fields)),
        // Either the counterpart itself, or a record around it.
        (Shape::One(one), Some(fields)) => {
            let wraps = |field: &Field| match *one {
                "Monotonic" => field.name.ends_with("-ns"),
                "Duration" => field.name.ends_with("-ms"),
                one => wit.name_of(&field.ty) == Some(&type_name(one)),
            };
            record == Some(&type_name(one)) || fields.iter().any(wraps)
        }
        (shape, _) => matches!(shape, Shape::Nothing) && record.is_none(),
    };
    if same { Vec::new() } else { vec![format!("{record:?} is no counterpart of {of}")] }
}

fn type_differences(wit: &Wit, of: &str, shape: &Shape) -> Vec<String> {
    let name = type_name(of);
    let Shape::Cases(cases) = shape else { return record_differences(wit, of, shape, Some(&name)) };
    // A record stands for a variant that has fields or nothing, and is an option where it is used.
    if let ([(_, fields), (_, Shape::Nothing)], Some(_)) = (&cases[..], wit.fields(&name)) {
        return record_differences(wit, of, fields, Some(&name));
    }
    let mut there = wit.cases(&name);
    let mut found = Vec::new();
    for (case, content) in cases {
        let variant = format!("{of}::{case}");
        match there.remove(kebab(case).as_str()) {
            Some(ty) => found.extend(record_differences(wit, &variant, content, ty.and_then(|ty| wit.name_of(ty)))),
            None if LEFT_OUT.contains(&variant.as_str()) => {}
            None => found.push(format!("{variant} has no case in {name}")),
        }
    }
    for case in ADDED_CASES.iter().filter(|(of, _)| *of == name).flat_map(|(_, added)| *added) {
        found.extend(there.remove(case).is_none().then(|| format!("{name}.{case} is gone")));
    }
    found.extend(there.keys().map(|case| format!("{name}.{case} has no variant in {of}")));
    found
}

fn names_of(fields: &[Field]) -> Vec<&str> {
    fields.iter().map(|field| field.name.as_str()).collect()
}

#[track_caller]
fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "\n  {}\n", found.join("\n  "));
}

#[test]
fn the_world_imports_nothing_and_exports_every_interface() {
    let Wit { resolve, .. } = Wit::parse();
    let [(_, package)] = resolve.packages.iter().collect::<Vec<_>>()[..] else { panic!("one package, no dependency") };
    assert_eq!(package.name.to_string(), "leasehold:protocol@0.1.0");
    let [(_, world)] = resolve.worlds.iter().collect::<Vec<_>>()[..] else { panic!("one world") };
    assert_eq!(world.name, "protocol");
    assert!(world.imports.is_empty(), "{:?}", world.imports);
    let exported = world.exports.keys().map(|key| resolve.name_world_key(key));
    let interfaces = package.interfaces.keys().map(|name| format!("leasehold:protocol/{name}@0.1.0"));
    assert_eq!(exported.collect::<BTreeSet<_>>(), interfaces.collect());
}

#[test]
fn every_type_has_its_counterpart() {
    let wit = Wit::parse();
    let found: Vec<String> = mirrors().iter().flat_map(|(name, shape)| type_differences(&wit, name, shape)).collect();
    assert_none(&found);
    assert_eq!(wit.fields("lock-event").map(names_of), Some(vec!["lock", "event"]));
    let holding = wit.fields("holding").expect("a record");
    let holder = holding.iter().find(|field| field.name == "holder").and_then(|field| wit.unnamed(&field.ty));
    let Some(TypeDefKind::Option(holder)) = holder else { panic!("{holder:?}") };
    assert_eq!(wit.name_of(holder), Some("lease-holder"));
}

#[test]
fn no_public_type_is_forgotten() {
    let mirrors = mirrors();
    let source = Source::read(&["client", "config", "event.rs", "op.rs", "op", "fence.rs", "member.rs"]);
    let listed: BTreeSet<&str> = mirrors.iter().map(|(name, _)| *name).chain(NOT_MIRRORED).collect();
    assert_eq!(listed, &source.public_types() | &["Now"].into());
    // Not exhaustive outside the crate, so the compiler cannot vouch for the list.
    let config_error = mirrors.iter().find(|(name, _)| *name == "ConfigError");
    let Some((_, Shape::Cases(cases))) = config_error else { panic!("an enum") };
    let listed: BTreeSet<String> = cases.iter().map(|(case, _)| (*case).to_string()).collect();
    assert_eq!(listed, source.variants("ConfigError"));
}

#[test]
fn every_method_has_its_counterpart() {
    let wit = Wit::parse();
    let source = Source::read(&["client", "fence.rs"]);
    let mut found = Vec::new();
    for (resource, name) in [("client", "Client"), ("guard", "Guard")] {
        let mut there = wit.methods(resource);
        there.retain(|method, _| !wired::METHODS.contains(method));
        let here = source.methods(name);
        assert!(here.len() > 4, "the source of {name} was not understood: {here:?}");
        for (method, params) in &here {
            let renamed = RENAMED_METHODS.iter().find(|(from, _)| from == method);
            let counterpart = match renamed {
                Some((_, "")) => continue,
                Some((_, to)) => Some(*to),
                None => there.keys().copied().find(|wit| is_name_of(wit, method)),
            };
            match counterpart.and_then(|wit| there.remove(wit)) {
                Some(wit) => found.extend(differences(method, params.iter().map(String::as_str), &wit)),
                None => found.push(format!("{name}::{method} has no counterpart")),
            }
        }
        found.extend(there.keys().map(|method| format!("{resource}.{method} has no counterpart in {name}")));
    }
    assert_none(&found);
}

#[test]
fn every_setting_has_its_counterpart() {
    let wit = Wit::parse();
    let source = Source::read(&["config"]);
    let getters = |name| {
        source
            .methods(name)
            .into_iter()
            .filter(|(name, params)| params == &["self"] && !name.ends_with("_mut"))
            .collect()
    };
    // A label that was checked before is an `owner`, too.
    let setters = source.methods("LockOptionsBuilder");
    let setters = setters.into_iter().filter(|(name, _)| name != "build" && name != "labelled");
    for (builder, record, settings) in [
        ("Config", "config", getters("Config")),
        ("Quorum", "quorum", getters("Quorum")),
        ("LockOptionsBuilder", "lock-options", Vec::from_iter(setters)),
    ] {
        assert!(settings.len() > 1, "the source of {builder} was not understood: {settings:?}");
        let fields = names_of(wit.fields(record).expect("a record"));
        assert_none(&differences(builder, settings.iter().map(|(name, _)| name.as_str()), &fields));
    }
}

#[test]
fn everything_is_documented() {
    let wit = Wit::parse();
    let mut found = Vec::new();
    let mut look = |owner: &str, name: &str, docs: &Docs| {
        if docs.contents.as_ref().is_none_or(|text| text.trim().is_empty()) {
            found.push(format!("{owner} {name} has no words"));
        }
    };
    wit.resolve.packages.iter().for_each(|(_, package)| look("package", &package.name.name, &package.docs));
    wit.resolve.worlds.iter().for_each(|(_, world)| look("world", &world.name, &world.docs));
    for (_, interface) in &wit.resolve.interfaces {
        look("interface", interface.name.as_deref().unwrap_or_default(), &interface.docs);
    }
    wit.functions.iter().for_each(|function| look("function", &function.name, &function.docs));
    for (name, ty) in &wit.types {
        look("type", name, &ty.docs);
        wit.fields(name).into_iter().flatten().for_each(|field| look(name, &field.name, &field.docs));
        if let TypeDefKind::Variant(variant) = &ty.kind {
            variant.cases.iter().for_each(|case| look(name, &case.name, &case.docs));
        } else if let TypeDefKind::Enum(cases) = &ty.kind {
            cases.cases.iter().for_each(|case| look(name, &case.name, &case.docs));
        }
    }
    assert_none(&found);
}

/// Some hosts (wasmtime's Python face is one) hand out the bare payload of a variant whose cases have payloads of
/// different classes, where every record is of one class and nothing is another.
#[test]
fn no_variant_loses_its_tag() {
    let wit = Wit::parse();
    let mut seen = 0;
    for (name, ty) in &wit.types {
        let TypeDefKind::Variant(variant) = &ty.kind else { continue };
        let payloads: Vec<_> = variant.cases.iter().filter_map(|case| Some((&case.name, case.ty.as_ref()?))).collect();
        for (case, ty) in &payloads {
            let record = wit.name_of(ty).and_then(|name| wit.fields(name));
            assert!(record.is_some(), "the payload of {name}.{case} is no record");
        }
        let bare = variant.cases.len() - payloads.len();
        assert!(payloads.len() > 1 || bare > 1, "{name} has too few cases to keep its tag; would an option do?");
        seen += 1;
    }
    assert!(seen > 10, "{seen} variants");
}

#[test]
fn numbers_say_their_unit() {
    let wit = Wit::parse();
    let counts = COUNTS.iter().flat_map(|(owner, names)| names.split(' ').map(move |name| format!("{owner}.{name}")));
    let mut unused: BTreeSet<String> = counts.collect();
    let mut found = Vec::new();
    let mut look = |owner: &str, name: &str, ty: &Type| {
        let path = format!("{owner}.{name}");
        let has_unit = name.rsplit('-').next().is_some_and(|last| UNITS.contains(&last));
        if wit.is_bare_integer(ty) && !has_unit && !unused.remove(&path) {
            found.push(format!("{path} has no unit"));
        }
    };
    for name in wit.types.keys() {
        wit.fields(name).into_iter().flatten().for_each(|field| look(name, &field.name, &field.ty));
    }
    for function in &wit.functions {
        function.params.iter().for_each(|param| look(function.item_name(), &param.name, &param.ty));
        function.result.iter().for_each(|ty| look("the result of", function.item_name(), ty));
    }
    assert_none(&found);
    assert!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
}

#[test]
fn only_create_makes_a_resource_and_it_can_refuse() {
    let wit = Wit::parse();
    for function in wit.functions.iter().filter(|function| matches!(function.kind, FunctionKind::Static(_))) {
        assert!(matches!(function.item_name(), "create" | "create-wired"), "{}", function.name);
        // Without an argument there is nothing to refuse, and a replacement takes every one.
        if function.params.is_empty() || function.name == "[static]replacement.create" {
            continue;
        }
        let result = function.result.as_ref().and_then(|ty| wit.unnamed(ty));
        let Some(TypeDefKind::Result(result)) = result else { panic!("{} cannot refuse", function.name) };
        assert!(result.ok.is_some() && result.err.is_some(), "{}", function.name);
    }
}

#[test]
fn bytes_are_lists_of_bytes() {
    let wit = Wit::parse();
    for name in ["nonce", "version", "payload", "seed", "entropy", "quorum-id", "stamp"] {
        assert!(matches!(wit.types[name].kind, TypeDefKind::List(Type::U8)), "{name}: {:?}", wit.types[name].kind);
    }
}

fn folder(path: &str) -> PathBuf {
    match path.strip_prefix("wire/") {
        Some(path) => Path::new(CRATE).join("src").join(path),
        None => Path::new(CRATE).join("../src").join(path),
    }
}

//! The core module with plain names for what it imports and exports.
#![expect(clippy::wildcard_enum_match_arm, reason = "sections and kinds of another crate, of which two matter here")]

use std::ops::Range;

use wasm_encoder::{EntityType, ExportKind, ExportSection, ImportSection, Module, RawSection};
use wasmparser::{ExternalKind, Imports, Parser, Payload, TypeRef};

use super::names;
use crate::Result;
use crate::values::Model;

/// The module from which everything is imported.
const HOST: &str = "host";

/// The module, without custom sections and with other names, and the names of what it exports. Fails where it lacks a call of the
/// WIT, or wants anything else than to make and drop its own resources.
pub(super) fn rename(module: &[u8], model: &Model) -> Result<(Vec<u8>, Vec<String>)> {
    let failed = |error| format!("the module cannot be read: {error}");
    let wanted = wanted(model);
    let mut renamed = Module::new();
    let mut exported = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(failed)? {
            Payload::CustomSection(_) => {}
            Payload::ImportSection(section) => {
                let mut imports = ImportSection::new();
                for group in section {
                    let Imports::Single(_, import) = group.map_err(failed)? else {
                        return Err("the module imports by groups, which is new".to_owned());
                    };
                    let name = names::import(import.name);
                    let (Some(name), TypeRef::Func(index)) = (name, import.ty) else {
                        return Err(format!("the module imports `{}` of `{}`", import.name, import.module));
                    };
                    imports.import(HOST, &name, EntityType::Function(index));
                }
                renamed.section(&imports);
            }
            Payload::ExportSection(section) => {
                let mut exports = ExportSection::new();
                for export in section {
                    let export = export.map_err(failed)?;
                    let kind = match export.kind {
                        ExternalKind::Func => ExportKind::Func,
                        ExternalKind::Memory => ExportKind::Memory,
                        // Of no use to a host.
                        _ => continue,
                    };
                    let name = names::export(export.name);
                    if !wanted.contains(&name) && !names::is_post(&name) {
                        continue;
                    }
                    exports.export(&name, kind, export.index);
                    exported.push(name);
                }
                renamed.section(&exports);
            }
            other => {
                if let Some((id, range)) = other.as_section() {
                    renamed.section(&RawSection { id, data: part(module, range)? });
                }
            }
        }
    }
    match wanted.into_iter().find(|name| !exported.contains(name)) {
        Some(missing) => Err(format!("the module does not export {missing}")),
        None => Ok((renamed.finish(), exported)),
    }
}

fn part(module: &[u8], range: Range<u64>) -> Result<&[u8]> {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    module.get(start..end).ok_or_else(|| "the module ends within a section".to_owned())
}

/// Everything that generated code calls.
fn wanted(model: &Model) -> Vec<String> {
    let mut wanted = vec!["memory".to_owned(), "cabi_realloc".to_owned()];
    for interface in &model.interfaces {
        let name = &interface.name;
        wanted.extend(interface.calls.iter().map(|call| names::method(name, None, call)));
        for resource in &interface.resources {
            wanted.push(names::drop(name, &resource.name));
            wanted.extend(resource.calls.iter().map(|call| names::method(name, Some(&resource.name), call)));
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wasm_encoder::{CodeSection, CustomSection, Function, FunctionSection, TypeSection};

    use super::*;

    /// A module with a function of each name, that imports `import`.
    fn module(import: &str, exports: &[&str]) -> Vec<u8> {
        let mut module = Module::new();
        let mut types = TypeSection::new();
        types.ty().function([], []);
        module.section(&types);
        let mut imports = ImportSection::new();
        imports.import("[export]leasehold:protocol/client@0.1.0", import, EntityType::Function(0));
        module.section(&imports);
        let mut functions = FunctionSection::new();
        functions.function(0);
        module.section(&functions);
        let mut section = ExportSection::new();
        for name in exports {
            section.export(name, ExportKind::Func, 1);
        }
        module.section(&section);
        let mut code = CodeSection::new();
        let mut empty = Function::new([]);
        empty.instructions().end();
        code.function(&empty);
        module.section(&code);
        module.section(&CustomSection { name: "producers".into(), data: b"somebody".into() });
        module.finish()
    }

    fn empty() -> Model {
        Model { interfaces: Vec::new() }
    }

    #[test]
    fn names_are_plain_and_nobody_is_named() {
        let before = module("[resource-new]client", &["memory", "cabi_realloc", "cabi_post_a:b/c@1#d-e", "_start"]);
        let (renamed, exported) = rename(&before, &empty()).unwrap();
        assert_eq!(exported, ["memory", "cabi_realloc", "post_c_d_e"]);
        wasmparser::validate(&renamed).unwrap();
        let has = |text: &[u8]| renamed.windows(text.len()).any(|found| found == text);
        assert!(has(b"new_client") && has(b"host") && !has(b"[resource-new]") && !has(b"producers"));
    }

    #[test]
    fn a_module_that_wants_more_or_has_less_is_refused() {
        let wants = module("random", &["memory", "cabi_realloc"]);
        let refused = rename(&wants, &empty()).unwrap_err();
        assert!(refused.contains("imports `random`"), "{refused}");
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/leasehold.wit");
        let lacks = module("[resource-new]client", &["memory", "cabi_realloc"]);
        let refused = rename(&lacks, &Model::of(&wit).unwrap()).unwrap_err();
        assert!(refused.contains("does not export"), "{refused}");
    }
}

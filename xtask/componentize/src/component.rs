//! A module becomes a component, and is shown to reach nothing of its host but what it is meant to.

use std::collections::BTreeSet;
use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::Result;

/// A component that imports what it is meant to.
pub(crate) struct Component {
    pub(crate) bytes: Vec<u8>,
    gzipped: usize,
}

impl Component {
    /// How large it is, for people.
    pub(crate) fn sizes(&self) -> String {
        format!("{} bytes, {} gzipped", self.bytes.len(), self.gzipped)
    }
}

/// Wraps a module whose custom section tells its WIT. It has to import each of the interfaces, such as
/// `wasi:http/types@0.2.0`, and nothing else.
pub(crate) fn make(module: &[u8], interfaces: &[&str]) -> Result<Component> {
    let encode = || ComponentEncoder::default().validate(true).module(module)?.encode();
    let bytes = encode().map_err(|error| format!("the module makes no component: {error:#}"))?;
    check(&imports(&bytes)?, interfaces)?;
    let gzipped = gzipped(&bytes).map_err(|error| format!("cannot compress: {error}"))?;
    Ok(Component { bytes, gzipped })
}

fn check(imports: &[String], interfaces: &[&str]) -> Result {
    let expected: BTreeSet<_> = interfaces.iter().copied().collect();
    if imports.iter().map(String::as_str).collect::<BTreeSet<_>>() == expected {
        return Ok(());
    }
    let may = if interfaces.is_empty() { "nothing".to_owned() } else { format!("all of {}", interfaces.join(", ")) };
    let list = imports.join("\n  ");
    Err(format!("the component must import {may}, so that it can reach nothing else; it imports\n  {list}"))
}

/// The imports of a component, and of the modules from outside in it.
///
/// Modules inside a component may import what other parts of it export, so only those at the top count for a component.
fn imports(bytes: &[u8]) -> Result<Vec<String>> {
    let failed = |error| format!("the component cannot be read: {error}");
    let mut found = Vec::new();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(failed)?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth -= 1;
        } else if let (0, Payload::ComponentImportSection(section)) = (depth, payload) {
            for import in section {
                found.push(import.map_err(failed)?.name.name.to_owned());
            }
        }
    }
    Ok(found)
}

fn gzipped(bytes: &[u8]) -> std::io::Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_encoder::{Component as Encoded, ComponentImportSection, ComponentTypeRef, NestedComponentSection};

    fn importing(name: &str) -> Encoded {
        let mut section = ComponentImportSection::new();
        section.import(name, ComponentTypeRef::Func(0));
        let mut component = Encoded::new();
        component.section(&section);
        component
    }

    #[test]
    fn an_import_is_seen() {
        let component = importing("wasi:clocks/monotonic-clock@0.2.0");
        assert_eq!(imports(component.as_slice()), Ok(vec!["wasi:clocks/monotonic-clock@0.2.0".to_owned()]));
    }

    #[test]
    fn what_a_part_imports_comes_from_another_part() {
        let mut component = Encoded::new();
        component.section(&NestedComponentSection(&importing("inner")));
        assert_eq!(imports(component.as_slice()), Ok(Vec::new()));
        component.section(&{
            let mut section = ComponentImportSection::new();
            section.import("outer", ComponentTypeRef::Func(0));
            section
        });
        assert_eq!(imports(component.as_slice()), Ok(vec!["outer".to_owned()]));
    }

    #[test]
    fn imports_are_all_that_are_named_and_no_others() {
        let imports = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let named @ [types, random] = ["wasi:http/types@0.2.0", "wasi:random/random@0.2.0"];
        assert_eq!(check(&[], &[]), Ok(()));
        assert_eq!(check(&imports(&[random, types]), &named), Ok(()));
        for (found, named) in [
            (&[types][..], &[][..]),
            (&[types], &named),
            (&[types, random, "wasi:sockets/tcp@0.2.0"], &named),
            (&[types, random, "wasi:random/insecure@0.2.0"], &named),
            (&[types, "wasi:random/insecure@0.2.0"], &named),
            (&[types, "wasi:random/random@0.2.1"], &named),
            (&[types, random, "log"], &named),
        ] {
            let error = check(&imports(found), named).unwrap_err();
            assert!(found.iter().all(|name| error.contains(name)), "{error}");
        }
    }

    #[test]
    fn what_is_no_module_makes_no_component() {
        assert!(make(b"\0asm", &[]).is_err());
    }
}

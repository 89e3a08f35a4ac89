//! A module becomes a component, and is shown to reach nothing of its host.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::Result;

/// A component that imports nothing.
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

/// Wraps a module whose custom section tells its WIT.
pub(crate) fn make(module: &[u8]) -> Result<Component> {
    let encode = || ComponentEncoder::default().validate(true).module(module)?.encode();
    let bytes = encode().map_err(|error| format!("the module makes no component: {error:#}"))?;
    let imports = imports(&bytes)?;
    if !imports.is_empty() {
        let list = imports.join("\n  ");
        return Err(format!("the component must import nothing, so that it can reach nothing; it imports\n  {list}"));
    }
    let gzipped = gzipped(&bytes).map_err(|error| format!("cannot compress: {error}"))?;
    Ok(Component { bytes, gzipped })
}

/// What a component, and the modules from outside in it, ask of their host.
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
    fn what_is_no_module_makes_no_component() {
        assert!(make(b"\0asm").is_err());
    }
}

//! The calls of an interface, by their names.

use super::super::model::{Call, Interface, Place, Resource, unit};
use super::super::words::{camel, snake};
use super::values::written;
use super::{HEAD, braced, docs, import, line, rust};

pub(super) fn write(interface: &Interface) -> String {
    let mut out = format!("{HEAD}\n");
    import(interface, interface.names_in_calls(), &mut out);
    line(&mut out, "use crate::face::*;");
    calls(interface, &mut out);
    out
}

/// The part of them in the module of an interface.
pub(super) fn export(interface: &Interface, out: &mut String) {
    let resources = || interface.resources.iter().map(|resource| camel(&resource.name));
    let function = (!interface.calls.is_empty()).then(|| "call".to_owned());
    let shown = resources().chain(function).collect();
    line(out, &format!("pub use calls::{};", braced(&shown)));
    let inside = resources().map(|name| format!("Guest{name}")).chain(["Guest".to_owned()]).collect();
    line(out, &format!("pub(crate) use calls::{};", braced(&inside)));
}

fn calls(interface: &Interface, out: &mut String) {
    line(out, "");
    line(out, "/// What there is beside values.");
    line(out, "pub(crate) trait Guest {");
    for resource in &interface.resources {
        let name = camel(&resource.name);
        line(out, &format!("    /// See [`Guest{name}`].\n    #[allow(dead_code)]\n    type {name}: Guest{name};"));
    }
    for call in &interface.calls {
        signature(call, out);
    }
    line(out, "}");
    if !interface.calls.is_empty() {
        line(out, "");
        line(out, "/// Calls a function of the interface by its name.");
        line(out, "///\n/// # Errors\n/// Whatever the function refuses, and arguments that it does not take.");
        line(out, "pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {");
        dispatch("crate::Component", &interface.calls, "    ", out);
        line(out, "}");
    }
    for resource in &interface.resources {
        self::resource(interface, resource, out);
    }
}

fn resource(interface: &Interface, resource: &Resource, out: &mut String) {
    let (module, name) = (snake(&interface.name), camel(&resource.name));
    line(out, "");
    line(out, "/// Its calls.");
    line(out, &format!("pub(crate) trait Guest{name}: Sized {{"));
    for call in &resource.calls {
        signature(call, out);
    }
    line(out, "}");
    line(out, "");
    docs(out, 0, &resource.docs);
    line(out, &format!("pub struct {name}(pub(crate) crate::{module}::{name});"));
    line(out, "");
    line(out, &format!("impl {name} {{"));
    line(out, &format!("    pub(crate) fn new(made: crate::{module}::{name}) -> Self {{\n        Self(made)\n    }}"));
    line(out, "");
    line(out, "    /// Makes one by the name of a static function.");
    line(out, "    ///\n    /// # Errors\n    /// Whatever the function refuses, and arguments that it does not take.");
    line(out, "    pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {");
    let (makers, methods): (Vec<_>, Vec<_>) = resource.calls.iter().partition(|call| call.place == Place::Resource);
    line(out, "        match name {");
    for call in makers {
        arguments(call, "        ", out);
        let names: Vec<_> = call.params.iter().map(|(name, _)| snake(name)).collect();
        let fails = call.error.is_some();
        let call = format!("<crate::{module}::{name} as Guest{name}>::{}({})", snake(&call.name), names.join(", "));
        let question = if fails { "?" } else { "" };
        line(out, &format!("                Ok({call}{question})\n            }}"));
    }
    line(out, "            _ => Err(Problem::no_call(name)),\n        }\n    }");
    line(out, "");
    line(out, "    /// Calls a method by its name.");
    line(out, "    ///\n    /// # Errors\n    /// Whatever the method refuses, and arguments that it does not take.");
    line(
        out,
        "    pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {",
    );
    dispatch("self.0", methods, "        ", out);
    line(out, "    }");
    line(out, "}");
}

fn signature(call: &Call, out: &mut String) {
    let on = (call.place == Place::Instance).then(|| "&self".to_owned());
    let params = call.params.iter().map(|(name, ty)| format!("{}: {}", snake(name), rust(ty)));
    let params: Vec<_> = on.into_iter().chain(params).collect();
    let answer = call.answer.as_ref().map_or("()".to_owned(), rust);
    let answer = match &call.error {
        Some(error) => format!("Result<{answer}, {}>", rust(error)),
        None => answer,
    };
    docs(out, 4, &call.docs);
    line(out, &format!("    fn {}({}) -> {answer};", snake(&call.name), params.join(", ")));
}

fn arguments(call: &Call, lead: &str, out: &mut String) {
    line(out, &format!("{lead}    {:?} => {{", call.name));
    let names: Vec<_> = call.params.iter().map(|(name, _)| snake(name)).collect();
    line(out, &format!("{lead}        let [{}] = arguments(args)?;", names.join(", ")));
    for (name, _) in &call.params {
        line(out, &format!("{lead}        let {} = argument({}, {name:?})?;", snake(name), snake(name)));
    }
}

fn dispatch<'a>(on: &str, calls: impl IntoIterator<Item = &'a Call>, lead: &str, out: &mut String) {
    line(out, &format!("{lead}match name {{"));
    for call in calls {
        arguments(call, lead, out);
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
                line(out, &format!("{lead}        let made = {made};\n{lead}        Ok({written})"));
            }
            None => line(out, &format!("{lead}        {made};\n{lead}        Ok(to.nothing())")),
        }
        line(out, &format!("{lead}    }}"));
    }
    line(out, &format!("{lead}    _ => Err(Problem::no_call(name)),\n{lead}}}"));
}

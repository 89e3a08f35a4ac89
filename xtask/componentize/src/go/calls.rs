//! The calls: functions of Go that lower their arguments, call the module, and lift what it answers.

use super::layout::{self, Flat, MOST_FLAT};
use super::memory::{flat, load, place, store};
use super::types::{self, Space, doc};
use super::{line, names};
use crate::values::{Call, Interface, Model, Place, Ty};

/// Writes the calls of an interface; `exported` are the functions of the module.
pub(super) fn write(model: &Model, interface: &Interface, exported: &[String], out: &mut String) {
    for call in &interface.calls {
        self::call(model, interface, None, exported, call, out);
    }
    for resource in &interface.resources {
        let name = names::public(&resource.name);
        doc(model, &format!("{name}: {}", resource.docs), 0, out, Space::Before);
        line(out, &format!("type {name} struct {{\n\tc   *Core\n\trep uint32\n}}"));
        line(out, "\n// Drop frees it in the memory of its instance. It must not be used again.");
        let drop = names::drop(&interface.name, &resource.name);
        line(out, &format!("func (r *{name}) Drop() {{ r.c.wasm.X{drop}(int32(r.rep)) }}"));
        for call in &resource.calls {
            self::call(model, interface, Some(&resource.name), exported, call, out);
        }
    }
}

fn call(
    model: &Model,
    interface: &Interface,
    resource: Option<&str>,
    exported: &[String],
    call: &Call,
    out: &mut String,
) {
    let on_instance = call.place == Place::Instance;
    let name = match call.place {
        Place::Instance => names::public(&call.name),
        Place::Resource => names::public(resource.unwrap_or_default()) + &names::public(&call.name),
        Place::Interface => names::public(&interface.name) + &names::public(&call.name),
    };
    let receiver = match resource.filter(|_| on_instance) {
        Some(resource) => format!("r *{}", names::public(resource)),
        None => "c *Core".to_owned(),
    };
    let params: Vec<_> =
        call.params.iter().map(|(name, ty)| format!("{} {}", names::local(name), types::of(ty))).collect();
    let answers = match (&call.answer, &call.error) {
        (Some(answer), Some(_)) => format!(" ({}, error)", types::of(answer)),
        (Some(answer), None) => format!(" {}", types::of(answer)),
        (None, Some(_)) => " error".to_owned(),
        (None, None) => String::new(),
    };
    doc(model, &format!("{name}: {}", call.docs), 0, out, Space::Before);
    line(out, &format!("func ({receiver}) {name}({}){answers} {{", params.join(", ")));
    if on_instance {
        line(out, "\tc := r.c");
    }
    let method = names::method(&interface.name, resource, call);
    let arguments = lower(model, call, on_instance, out);
    let made = format!("c.wasm.X{method}({arguments})");
    // Answers without texts and lists lie where nothing has to be freed.
    let post = names::post(&method);
    let freed = if exported.contains(&post) { format!("\tc.wasm.X{post}(int32(p))\n") } else { String::new() };
    lift(model, call, &freed, &made, out);
    line(out, "}");
}

/// Writes what lowers the arguments, and answers those of the call.
fn lower(model: &Model, call: &Call, on_instance: bool, out: &mut String) -> String {
    let own = Ty::Resource(String::new());
    let types = on_instance.then_some(&own).into_iter().chain(call.params.iter().map(|(_, ty)| ty));
    let types: Vec<_> = types.collect();
    let flats: Vec<_> = types.iter().flat_map(|ty| layout::flat(model, ty)).collect();
    if flats.is_empty() {
        return String::new();
    }
    if flats.len() > MOST_FLAT {
        let layout::Layout { size, align } = layout::of_fields(model, types.iter().copied());
        let offsets = layout::offsets(model, types.iter().copied());
        line(out, &format!("\tp := c.allocate({size}, {align})"));
        let mut offsets = offsets.iter();
        if on_instance {
            line(out, &format!("\tc.storeU32({}, r.rep)", place(*offsets.next().unwrap_or(&0))));
        }
        for ((name, ty), at) in call.params.iter().zip(offsets) {
            line(out, &format!("\t{}", store(model, ty, &place(*at), &names::local(name))));
        }
        return "int32(p)".to_owned();
    }
    line(out, "\tto := new(flat)");
    if on_instance {
        line(out, "\tto.add(uint64(r.rep))");
    }
    for (name, ty) in &call.params {
        line(out, &format!("\t{}", flat(model, ty, &names::local(name))));
    }
    let parameter = |(n, flat): (usize, &Flat)| match flat {
        Flat::I32 => format!("int32(to.v[{n}])"),
        Flat::I64 => format!("int64(to.v[{n}])"),
    };
    flats.iter().enumerate().map(parameter).collect::<Vec<_>>().join(", ")
}

/// Writes the call, and what lifts its result: `lifted`, since parameters have the names of the interface.
fn lift(model: &Model, call: &Call, freed: &str, made: &str, out: &mut String) {
    match (&call.answer, &call.error) {
        (None, None) => line(out, &format!("\t{made}")),
        (Some(Ty::Resource(name)), None) => {
            line(out, &format!("\treturn &{}{{c, uint32({made})}}", names::public(name)));
        }
        (Some(Ty::Flag), None) => line(out, &format!("\treturn {made} != 0")),
        (Some(answer), None) if layout::flat(model, answer).len() == 1 => {
            line(out, &format!("\treturn {}({made})", types::of(answer)));
        }
        (Some(answer), None) => {
            result(made, out);
            line(out, &format!("\tlifted := {}\n{freed}\treturn lifted", load(model, answer, "p")));
        }
        (answer, Some(error)) => {
            result(made, out);
            let at = place(layout::payload(model, [answer.as_ref(), Some(error)]));
            if let Some(answer) = answer {
                line(out, &format!("\tvar lifted {}", types::of(answer)));
            }
            line(out, "\tvar err error");
            line(out, "\tif c.getU8(p) != 0 {");
            line(out, &format!("\t\terr = &Refused[{}]{{{}}}", types::of(error), load(model, error, &at)));
            if let Some(answer) = answer {
                line(out, &format!("\t}} else {{\n\t\tlifted = {}", load(model, answer, &at)));
            }
            let answers = if answer.is_some() { "lifted, err" } else { "err" };
            line(out, &format!("\t}}\n{freed}\treturn {answers}"));
        }
    }
}

/// The imports of the module: its own resources are made handles, and dropped.
pub(super) fn host(model: &Model) -> String {
    let mut out = String::new();
    for resource in model.interfaces.iter().flat_map(|interface| &interface.resources) {
        let [new, drop] = names::handles(&resource.name);
        line(&mut out, &format!("func (host) X{new}(rep int32) int32 {{ return rep }}"));
        line(&mut out, &format!("func (host) X{drop}(int32)          {{}}"));
    }
    out + "\n"
}

fn result(made: &str, out: &mut String) {
    let sign = if made.contains("int32(p)") { "p = " } else { "p := " };
    line(out, &format!("\t{sign}uint32({made})"));
}

//! Names, as Go and the core module have them.

use crate::values::{Call, Place, class};

/// Words that Go writes in capitals.
const INITIALS: [&str; 10] = ["id", "url", "ttl", "http", "aws", "ppm", "gcs", "xml", "s3", "sql"];
/// Stands before the name of a call that frees the answer of another.
const POST: &str = "post_";
/// The functions of the canonical ABI for resources that the module itself implements.
const RESOURCES: [(&str, &str); 2] = [("[resource-new]", "new"), ("[resource-drop]", "drop")];

/// A name of a type, a call or a case, that others see.
pub(super) fn public(name: &str) -> String {
    // Types of errors have other names in every language.
    if name.ends_with("error") { class(name) } else { member(name) }
}

/// A name of a field.
pub(super) fn member(name: &str) -> String {
    name.split('-').map(word).collect()
}

/// A name of a parameter.
pub(super) fn local(name: &str) -> String {
    let mut words = name.split('-');
    words.next().unwrap_or_default().to_owned() + &words.map(word).collect::<String>()
}

fn word(word: &str) -> String {
    if INITIALS.contains(&word) {
        return word.to_ascii_uppercase();
    }
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// The case of a variant, or one of an enumeration.
pub(super) fn case(of: &str, name: &str) -> String {
    public(of) + &public(name)
}

/// A call of the module, as wasm2go names it.
pub(super) fn method(interface: &str, resource: Option<&str>, call: &Call) -> String {
    let resource = resource.filter(|_| call.place != Place::Interface).map(|name| format!("{name}_"));
    plain(&format!("{interface}_{}{}", resource.unwrap_or_default(), call.name))
}

pub(super) fn post(method: &str) -> String {
    POST.to_owned() + method
}

pub(super) fn is_post(method: &str) -> bool {
    method.starts_with(POST)
}

/// The call that destroys a resource.
pub(super) fn drop(interface: &str, resource: &str) -> String {
    plain(&format!("{interface}_drop_{resource}"))
}

/// The plain name of an export; those of the canonical ABI itself keep theirs.
pub(super) fn export(name: &str) -> String {
    let (post, name) = name.strip_prefix("cabi_post_").map_or(("", name), |rest| (POST, rest));
    let Some((interface, function)) = name.split_once('#') else { return name.to_owned() };
    let interface = short(interface);
    let function = match function.split_once(']') {
        None => format!("{interface}_{function}"),
        Some(("[dtor", resource)) => return drop(interface, resource),
        Some((_, method)) => format!("{interface}_{}", method.replace('.', "_")),
    };
    post.to_owned() + &plain(&function)
}

/// The plain name of an import, or none where it is unknown.
pub(super) fn import(name: &str) -> Option<String> {
    RESOURCES.iter().find_map(|(prefix, what)| Some(plain(&format!("{what}_{}", name.strip_prefix(prefix)?))))
}

/// The imports that make a handle of a resource, and drop it.
pub(super) fn handles(resource: &str) -> [String; 2] {
    RESOURCES.map(|(_, what)| plain(&format!("{what}_{resource}")))
}

/// `client` of `leasehold:protocol/client@0.1.0`.
fn short(interface: &str) -> &str {
    let name = interface.rsplit('/').next().unwrap_or(interface);
    name.split('@').next().unwrap_or(name)
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_module_are_plain_and_tell_calls_apart() {
        let named = |name: &str| export(&format!("leasehold:protocol/{name}"));
        assert_eq!(named("client@0.1.0#[method]client.poll-output"), "client_client_poll_output");
        assert_eq!(named("client@0.1.0#[static]client.create"), "client_client_create");
        assert_eq!(named("client@0.1.0#[dtor]client"), "client_drop_client");
        assert_eq!(named("runs@0.1.0#run-resource"), "runs_run_resource");
        assert_eq!(export("cabi_post_leasehold:protocol/runs@0.1.0#run-resource"), "post_runs_run_resource");
        assert_eq!(export("memory"), "memory");
        assert_eq!(import("[resource-drop]client").as_deref(), Some("drop_client"));
        assert_eq!(import("now"), None);
    }

    #[test]
    fn names_are_those_of_go() {
        assert_eq!((public("lock-id").as_str(), local("lock-id").as_str()), ("LockID", "lockID"));
        assert_eq!((public("http-request").as_str(), public("config-error").as_str()), ("HTTPRequest", "SettingError"));
        assert_eq!(member("error"), "Error");
        assert_eq!(case("output", "http-request"), "OutputHTTPRequest");
    }
}

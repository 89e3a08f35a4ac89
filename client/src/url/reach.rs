//! The way to a server: its host, and everybody who can read requests there.

use leasehold_core::member::Durability;
use url::{Host, Url};

use super::parameters::Plaintext;

/// The exposure of requests on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Exposure {
    /// Only the server can read requests.
    Tls,
    /// Only this machine can read requests.
    Loopback,
    /// Everybody on the way can read requests.
    Plaintext,
}

impl Exposure {
    /// The exposure of requests to a host, by HTTP or HTTPS.
    pub(super) fn of(scheme: &str, host: &Host<&str>) -> Self {
        match scheme {
            "https" => Self::Tls,
            _ if is_loopback(host) => Self::Loopback,
            _ => Self::Plaintext,
        }
    }

    /// The durability of a cloud's service that nobody declares: emulators run on this machine, and lose everything in a
    /// restart.
    pub(super) const fn usual_durability(self) -> Durability {
        match self {
            Self::Tls | Self::Plaintext => Durability::Declared,
            Self::Loopback => Durability::NotDeclared,
        }
    }

    /// # Errors
    /// A parameter for one way is given for another.
    pub(super) fn check(self, has_certificates: bool, plaintext: Plaintext) -> Result<(), String> {
        if has_certificates && self != Self::Tls {
            return Err("certificates are used with https only".to_owned());
        }
        if self == Self::Tls && plaintext == Plaintext::Allowed {
            return Err("plaintext=allow is for http only; leave it out".to_owned());
        }
        Ok(())
    }
}

/// Reads an endpoint that somebody wrote at `place`: scheme, host and port, and a path where the service has one.
/// `no_keys` tells where keys belong instead.
///
/// # Errors
/// It is something else, or everybody could read requests.
pub(super) fn endpoint(
    text: &str,
    place: &str,
    may_have_path: bool,
    plaintext: Plaintext,
    no_keys: &str,
) -> Result<(Url, Exposure), String> {
    let example = "write it like https://locks.example.com or http://127.0.0.1:8000";
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return Err(format!("{place} must begin with https:// or http://; {example}"));
    }
    let url = Url::parse(text).map_err(|error| format!("{place} is not a url: {error}; {example}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{place} has a user or password; {no_keys}"));
    }
    let has_path = !url.path().trim_end_matches('/').is_empty();
    if has_path && !may_have_path || url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{place} has more than a host and a port; {example}"));
    }
    let host = url.host().ok_or_else(|| format!("{place} has no host; {example}"))?;
    let reach = Exposure::of(url.scheme(), &host);
    if reach == Exposure::Plaintext && plaintext == Plaintext::ToLoopback {
        return Err(format!(
            "over http everybody on the network path could read requests; give {place} https://, or add \
             plaintext=allow where the network is trusted"
        ));
    }
    Ok((url, reach))
}

/// The host of an address with a scheme.
pub(super) fn host_of(address: &str) -> Option<String> {
    Url::parse(address).ok()?.host_str().map(str::to_owned)
}

/// Tells if nothing that is sent to the host leaves this machine.
pub(super) fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// The name of a host, read.
pub(super) fn parsed(host: &str) -> Option<Host> {
    let bare = host.trim_matches(['[', ']']);
    let parsed = if bare.contains(':') { Host::parse(&format!("[{bare}]")) } else { Host::parse(bare) };
    parsed.ok()
}

/// Tells the same of a host as it is written.
pub(super) fn is_here(host: &str) -> bool {
    parsed(host).is_some_and(|host| match &host {
        Host::Domain(name) => is_loopback(&Host::Domain(name.as_str())),
        Host::Ipv4(address) => is_loopback(&Host::Ipv4(*address)),
        Host::Ipv6(address) => is_loopback(&Host::Ipv6(*address)),
    })
}

/// The machine of a host: the same for all spellings of its name.
pub(crate) fn machine(host: &str) -> String {
    match parsed(host) {
        _ if is_here(host) => super::HERE.to_owned(),
        Some(host) => host.to_string(),
        None => host.to_ascii_lowercase(),
    }
}

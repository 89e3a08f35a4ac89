//! The right to use a container of Azure Blob Storage: the key of its account, or a shared access signature.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::requests::decoded;
use super::{Request, Response};

/// The headers that a signature names by their place, between those of the length and of ranges.
const PLACES: [&str; 6] = ["content-md5", "content-type", "date", "if-modified-since", "if-match", "if-none-match"];

/// The value of the header `authorization` with the key of an account; `None` for a key that is none. The request has
/// its date already, see [`set_date`](super::set_date).
pub fn with_account_key(request: &Request, account: &str, key: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).ok()?).ok()?;
    mac.update(to_sign(request, account)?.as_bytes());
    Some(format!("SharedKey {account}:{}", STANDARD.encode(mac.finalize().into_bytes())))
}

fn to_sign(request: &Request, account: &str) -> Option<String> {
    let header = |name: &str| request.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let length = if request.body.is_empty() { String::new() } else { format!("{}", request.body.len()) };
    let mut text = format!("{}\n\n\n{length}\n", request.method.name());
    for name in PLACES {
        text.push_str(header(name).unwrap_or_default());
        text.push('\n');
    }
    // If-Unmodified-Since and Range.
    text.push_str("\n\n");
    let mut own: Vec<_> = request.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
    own.sort_unstable();
    for (name, value) in own {
        text.push_str(&format!("{name}:{}\n", value.trim()));
    }
    text.push_str(&format!("/{account}{}", request.path));
    for pair in request.query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        text.push_str(&format!("\n{name}:{}", decoded(value)?));
    }
    Some(text)
}

/// The query of a request with a shared access signature, which may begin with a question mark.
pub fn with_signature(request: &Request, signature: &str) -> String {
    let signature = signature.trim().trim_start_matches('?');
    if request.query.is_empty() { signature.into() } else { format!("{}&{signature}", request.query) }
}

/// Tells if a signature was refused for its date alone.
pub(super) fn is_time_wrong(response: &Response) -> bool {
    core::str::from_utf8(&response.body).is_ok_and(|said| said.contains("Request date header"))
}

#[cfg(test)]
mod tests {
    use super::super::{Service, Session, set_date};
    use super::*;

    /// Made apart from this code, from the rules that Microsoft documents; Azurite checks others.
    #[test]
    fn signatures_are_those_of_azure() {
        let session = Session::new(Service::AzureBlob, "/locks", "leasehold/");
        let mut request = session.read("leasehold/lock/invoice%2F42.json");
        set_date(&mut request, 1_700_000_000_000);
        let signed = with_account_key(&request, "acme", "QWNjb3VudEtleU9mVGVzdHM=").unwrap();
        assert_eq!(signed, "SharedKey acme:8StMpyLw7t83zBq8tWQ6YBdTACUzxApZVwFVmKCV3Mc=");
        assert_eq!(with_account_key(&request, "acme", "no base64!"), None);
        let list = to_sign(&session.list("a b", b""), "acme").unwrap();
        assert!(
            list.ends_with("/acme/locks\ncomp:list\nmaxresults:250\nprefix:leasehold/lock/a%20b\nrestype:container")
        );
    }

    #[test]
    fn a_shared_access_signature_follows_the_query() {
        let session = Session::new(Service::AzureBlob, "/locks", "");
        assert_eq!(with_signature(&session.look(), "?sv=1&sig=2"), "sv=1&sig=2");
        assert!(with_signature(&session.list("", b""), "sv=1&sig=2").ends_with("&restype=container&sv=1&sig=2"));
    }
}

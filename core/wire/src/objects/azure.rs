//! The right to use a container of Azure Blob Storage: the key of its account, or a shared access signature.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::errors::tag;
use super::requests::decoded;
use super::{HttpResponse, Request};

/// The headers that a signature names by their place, between those of the length and of ranges.
const PLACES: [&str; 6] = ["content-md5", "content-type", "date", "if-modified-since", "if-match", "if-none-match"];

/// The reasons of refusals: the service's code, a part of its words where these tell reasons of one code apart, and what to do.
const HINTS: [(&str, &str, &str); 14] = [
    (
        "AuthorizationPermissionMismatch",
        "",
        "the identity needs the role `Storage Blob Data Contributor` on the container, which counts some minutes after \
         it was given; a shared access signature needs the rights rcwl",
    ),
    (
        "AuthorizationFailure",
        "",
        "most likely the network rules of the account do not let this machine in: allow its address or network, or use \
         a private endpoint",
    ),
    (
        "AuthorizationSourceIPMismatch",
        "",
        "the shared access signature is for other addresses than that of this machine",
    ),
    ("AuthorizationProtocolMismatch", "", "the shared access signature is for https alone"),
    ("AuthorizationServiceMismatch", "", "the shared access signature is not for blobs: it needs ss=b"),
    (
        "AuthorizationResourceTypeMismatch",
        "",
        "the shared access signature is not for containers and objects: it needs srt=co",
    ),
    (
        "KeyBasedAuthenticationNotPermitted",
        "",
        "the account takes no keys, nor signatures that were made with them: use an identity of Entra, or allow shared \
         keys",
    ),
    ("InsufficientAccountPermissions", "", "this is the read-only copy of the account: name its primary address"),
    ("AccountIsDisabled", "", "the account is disabled: look at its subscription"),
    ("AuthenticationFailed", "specified time frame", EXPIRED),
    ("AuthenticationFailed", "Issuer", OTHER_TENANT),
    (
        "AuthenticationFailed",
        "ignature",
        "the key does not belong to the account, or the signature was made with another one: copy it again",
    ),
    ("InvalidAuthenticationInfo", "Issuer", OTHER_TENANT),
    (
        "InvalidAuthenticationInfo",
        "Audience",
        "the token is not for storage: ask for one for https://storage.azure.com/",
    ),
];
const EXPIRED: &str = "the shared access signature has expired, or is not valid yet: make a new one, or correct the \
                       clock of the machine that makes them";
const OTHER_TENANT: &str =
    "the identity is of another tenant than the account: set AZURE_TENANT_ID, or log in to that tenant";

/// The advice for a refusal with this code.
pub(super) fn hint(code: &str, response: &HttpResponse) -> Option<&'static str> {
    let detail = tag(&response.body, "AuthenticationErrorDetail").unwrap_or_default();
    let fits = |(known, part, _): &&(&str, &str, &str)| *known == code && detail.contains(part);
    HINTS.iter().find(fits).map(|(_, _, advice)| *advice)
}

/// The value of the header `authorization` with the key of an account; `None` for a key that is none. The request has
/// its date already, see `set_date`.
pub(super) fn with_account_key(request: &Request, account: &str, key: &str) -> Option<String> {
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
pub(super) fn with_signature(request: &Request, signature: &str) -> String {
    let signature = signature.trim().trim_start_matches('?');
    if request.query.is_empty() { signature.into() } else { format!("{}&{signature}", request.query) }
}

/// Tells if a signature was refused for its date alone.
pub(super) fn is_time_wrong(response: &HttpResponse) -> bool {
    core::str::from_utf8(&response.body).is_ok_and(|said| said.contains("Request date header"))
}

#[cfg(test)]
mod tests {
    use super::super::cosmos::set_date;
    use super::super::{Codec, Service};
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_for_its_reason() {
        let codec = Codec::new(Service::AzureBlob, "/locks", "");
        for (code, detail, advice) in [
            ("AuthorizationPermissionMismatch", "", "Storage Blob Data Contributor"),
            ("AuthorizationFailure", "", "network rules"),
            ("KeyBasedAuthenticationNotPermitted", "", "an identity of Entra"),
            (
                "AuthenticationFailed",
                "Signature not valid in the specified time frame: Expiry [hunter2]",
                "has expired",
            ),
            (
                "AuthenticationFailed",
                "Signature did not match. String to sign used was hunter2",
                "made with another one",
            ),
            ("AuthenticationFailed", "se is mandatory. Cannot be empty", "the credentials are refused"),
            ("AuthenticationFailed", "Request date header too old: 'hunter2'", "the clock of this machine"),
            ("InvalidAuthenticationInfo", "Issuer validation failed. Issuer did not match.", "AZURE_TENANT_ID"),
            ("InvalidAuthenticationInfo", "Lifetime validation failed. The token is expired.", "have expired"),
            ("SomethingNew", "", "Storage Blob Data Contributor"),
        ] {
            let body = format!("<Error><AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>");
            let headers = [("x-ms-error-code".into(), code.into())].into();
            let outcome = codec.classify(&HttpResponse { status: 403, headers, body: body.into_bytes() });
            let told = format!("{outcome:?}");
            assert!(told.contains(advice) && told.contains(code) && !told.contains("hunter2"), "{told}");
        }
    }

    /// Made apart from this code, from the rules that Microsoft documents; Azurite checks others.
    #[test]
    fn signatures_are_those_of_azure() {
        let codec = Codec::new(Service::AzureBlob, "/locks", "leasehold/");
        let mut request = codec.read("leasehold/lock/invoice%2F42.json");
        set_date(&mut request, 1_700_000_000_000);
        let signed = with_account_key(&request, "acme", "QWNjb3VudEtleU9mVGVzdHM=").unwrap();
        assert_eq!(signed, "SharedKey acme:8StMpyLw7t83zBq8tWQ6YBdTACUzxApZVwFVmKCV3Mc=");
        assert_eq!(with_account_key(&request, "acme", "no base64!"), None);
        let list = to_sign(&codec.list("a b", b""), "acme").unwrap();
        assert!(
            list.ends_with("/acme/locks\ncomp:list\nmaxresults:250\nprefix:leasehold/lock/a%20b\nrestype:container")
        );
    }

    #[test]
    fn a_shared_access_signature_follows_the_query() {
        let codec = Codec::new(Service::AzureBlob, "/locks", "");
        assert_eq!(with_signature(&codec.look(), "?sv=1&sig=2"), "sv=1&sig=2");
        assert!(with_signature(&codec.list("", b""), "sv=1&sig=2").ends_with("&restype=container&sv=1&sig=2"));
    }
}

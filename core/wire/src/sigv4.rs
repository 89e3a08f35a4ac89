//! Signatures of requests to AWS (Signature Version 4), as far as DynamoDB and S3 need them, and those of Google's HMAC
//! keys, which are made alike.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::dynamodb::Request;
use super::objects;

mod date;
#[cfg(test)]
mod tests;

pub use date::{http_date, write_http_date};

/// Credentials to sign requests. `Debug` shows the access key's id only; the secrets are overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Names the key, and is no secret.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// Comes with keys that expire.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

impl Drop for Credentials {
    fn drop(&mut self) {
        self.secret_access_key.zeroize();
        self.session_token.zeroize();
    }
}

/// The headers of a signed request, but for `Host`. `Debug` shows their names only; the values are overwritten when
/// dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Headers(Vec<(&'static str, String)>);

impl Headers {
    pub(super) const fn new(headers: Vec<(&'static str, String)>) -> Self {
        Self(headers)
    }

    /// Names in lowercase, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Drop for Headers {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|(_, value)| value.zeroize());
    }
}

/// Signs requests, and remembers the key that it has derived for the day: one suffices for a client.
#[derive(Clone, Default)]
pub struct Signer {
    derived: Option<Derived>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

/// The words of a kind of signature.
struct Scheme {
    /// Begins the name of the algorithm, and the first key.
    name: &'static str,
    /// Ends the scope.
    end: &'static str,
    /// The header of the time.
    date: &'static str,
    /// The header of the body's digest.
    digest: &'static str,
}

const AWS: Scheme = Scheme { name: "AWS4", end: "aws4_request", date: "x-amz-date", digest: "x-amz-content-sha256" };
const GOOGLE: Scheme =
    Scheme { name: "GOOG4", end: "goog4_request", date: "x-goog-date", digest: "x-goog-content-sha256" };

/// The parameters that a key was derived for, the secret as its digest.
#[derive(Clone, PartialEq, Eq)]
struct For {
    day: String,
    region: String,
    service: &'static str,
    secret: [u8; 32],
}

#[derive(Clone)]
struct Derived {
    what_for: For,
    key: [u8; 32],
}

impl Drop for Derived {
    fn drop(&mut self) {
        self.key.zeroize();
        self.what_for.secret.zeroize();
    }
}

impl Signer {
    /// One that has derived nothing yet.
    pub const fn new() -> Self {
        Self { derived: None }
    }

    /// The headers for `POST /` with the body of a request. `host` is sent in the header `Host` exactly as it is given
    /// here, with the port unless that is the scheme's own; `unix_ms`, milliseconds since 1970, has to be right to within
    /// five minutes.
    pub fn sign(
        &mut self,
        request: &Request,
        host: &str,
        region: &str,
        credentials: &Credentials,
        unix_ms: u64,
    ) -> Headers {
        let time = date::amz_date(unix_ms);
        let mut headers =
            alloc::vec![("content-type", String::from("application/x-amz-json-1.0")), ("x-amz-date", time.clone()),];
        headers.extend(credentials.session_token.clone().map(|token| ("x-amz-security-token", token)));
        headers.push(("x-amz-target", String::from(request.target.header())));
        let host = ("host", String::from(host));
        let mut signed: Vec<&(&'static str, String)> = headers.iter().chain([&host]).collect();
        signed.sort_unstable();
        let scope = Scope { scheme: &AWS, region, service: "dynamodb" };
        let target = Target { method: "POST", path: "/", query: "", digest: &hex(&Sha256::digest(&request.body)) };
        let authorization = self.authorize(&target, &signed, &scope, credentials, &time);
        headers.push(("authorization", authorization));
        Headers(headers)
    }

    /// The headers of a request to S3, those that it has itself among them. `host` and `unix_ms` are as for
    /// [`Signer::sign`].
    pub fn sign_object(
        &mut self,
        request: &objects::Request,
        host: &str,
        region: &str,
        credentials: &Credentials,
        unix_ms: u64,
    ) -> Headers {
        self.sign_by(&AWS, "s3", request, host, region, credentials, unix_ms)
    }

    /// The headers of a request to Google's XML API with an HMAC key, as [`Signer::sign_object`] otherwise.
    pub fn sign_google_object(
        &mut self,
        request: &objects::Request,
        host: &str,
        region: &str,
        credentials: &Credentials,
        unix_ms: u64,
    ) -> Headers {
        self.sign_by(&GOOGLE, "storage", request, host, region, credentials, unix_ms)
    }

    #[expect(clippy::too_many_arguments, reason = "what a signature names")]
    fn sign_by(
        &mut self,
        scheme: &'static Scheme,
        service: &'static str,
        request: &objects::Request,
        host: &str,
        region: &str,
        credentials: &Credentials,
        unix_ms: u64,
    ) -> Headers {
        let (time, digest) = (date::amz_date(unix_ms), hex(&Sha256::digest(&request.body)));
        let mut headers = request.headers.clone();
        headers.extend([(scheme.digest, digest.clone()), (scheme.date, time.clone())]);
        headers.extend(credentials.session_token.clone().map(|token| ("x-amz-security-token", token)));
        let host = ("host", String::from(host));
        let mut signed: Vec<&(&'static str, String)> = headers.iter().chain([&host]).collect();
        signed.sort_unstable();
        let target =
            Target { method: request.method.name(), path: &request.path, query: &request.query, digest: &digest };
        let scope = Scope { scheme, region, service };
        let authorization = self.authorize(&target, &signed, &scope, credentials, &time);
        headers.push(("authorization", authorization));
        Headers(headers)
    }

    /// `headers` in the order of their names.
    fn authorize(
        &mut self,
        target: &Target<'_>,
        headers: &[&(&'static str, String)],
        scope: &Scope<'_>,
        credentials: &Credentials,
        time: &str,
    ) -> String {
        let day = time.get(..8).unwrap_or(time);
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        // At its full length from the start: what grows leaves its secrets behind in memory.
        let length: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        let Target { method, path, query, digest } = target;
        let mut canonical = String::with_capacity(method.len() + path.len() + query.len() + length + names.len() + 80);
        let _ = write!(canonical, "{method}\n{path}\n{query}\n");
        for (name, value) in headers {
            // Writing to a string cannot fail.
            let _ = writeln!(canonical, "{name}:{}", value.trim());
        }
        let _ = write!(canonical, "\n{names}\n{digest}");
        let within = alloc::format!("{day}/{}/{}/{}", scope.region, scope.service, scope.scheme.end);
        let whole = hex(&Sha256::digest(canonical.as_bytes()));
        canonical.zeroize();
        let to_sign = alloc::format!("{}-HMAC-SHA256\n{time}\n{within}\n{whole}", scope.scheme.name);
        let key = self.key(day, scope, &credentials.secret_access_key);
        let signature = hex(&mac(key, to_sign.as_bytes()));
        let (name, id) = (scope.scheme.name, &credentials.access_key_id);
        alloc::format!("{name}-HMAC-SHA256 Credential={id}/{within}, SignedHeaders={names}, Signature={signature}")
    }

    fn key(&mut self, day: &str, scope: &Scope<'_>, secret: &str) -> &[u8; 32] {
        let what_for = For {
            day: day.into(),
            region: scope.region.into(),
            service: scope.service,
            secret: Sha256::digest(secret.as_bytes()).into(),
        };
        let known = self.derived.take().filter(|known| known.what_for == what_for);
        let derived = known.unwrap_or_else(|| {
            let mut first = String::with_capacity(4 + secret.len());
            first.push_str(scope.scheme.name);
            first.push_str(secret);
            let mut key = mac(first.as_bytes(), day.as_bytes());
            first.zeroize();
            for part in [scope.region, scope.service, scope.scheme.end] {
                key = mac(&key, part.as_bytes());
            }
            Derived { what_for, key }
        });
        &self.derived.insert(derived).key
    }
}

/// The request line of a signature, and the digest of the body in hexadecimal.
struct Target<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    digest: &'a str,
}

/// The scope of a signature, without the day.
struct Scope<'a> {
    scheme: &'static Scheme,
    region: &'a str,
    service: &'static str,
}

fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' - 10 + value });
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

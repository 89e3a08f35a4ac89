//! The meaning of an answer without success: certainly not applied, and why, or unknown.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value as Json;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

use super::HttpResponse;
use crate::dynamodb::json::object;
use crate::errors::{Known, Means, known};
use crate::redis::said;

/// The gRPC codes that the gateway shows, and their names in words.
const NAMES: [(u64, &str); 6] = [
    (3, "InvalidArgument"),
    (7, "PermissionDenied"),
    (8, "ResourceExhausted"),
    (9, "FailedPrecondition"),
    (12, "Unimplemented"),
    (16, "Unauthenticated"),
];

/// The errors that are known, by their code and words in their text. What is not listed may have been carried out.
const KNOWN: [(u64, Known); 10] = [
    (16, known("", Means::Expired, "the token has expired")),
    (3, known("revision of auth store", Means::Expired, "users or roles have changed")),
    (
        3,
        known(
            "user name is empty",
            Means::Final(DenialKind::Permission),
            "etcd requires a login: write user and password into the url",
        ),
    ),
    (3, known("authentication failed", Means::Login, "user or password are wrong")),
    (3, known("", Means::Final(DenialKind::Other), "etcd does not accept the request")),
    (7, known("", Means::Final(DenialKind::Permission), ROLE)),
    (
        8,
        known(
            "space",
            Means::Mended(FaultKind::Server),
            "etcd is full and takes no writes: compact it, defragment it, then `etcdctl alarm disarm`",
        ),
    ),
    (8, known("", Means::TooMany, "etcd has too many requests")),
    (
        9,
        known(
            "not enabled",
            Means::Final(DenialKind::Permission),
            "etcd has no users: write the url without user and password",
        ),
    ),
    (12, known("", Means::Final(DenialKind::Other), "this server is not etcd 3.4 or newer")),
];

const ROLE: &str = "the user needs a role with readwrite on the prefix of the locks: `etcdctl role grant-permission \
                    ROLE readwrite --prefix=true leasehold/`";

const FAILED: Known = known("any other", Means::Unfinished, "etcd has failed, or has no leader");

/// The table, for people.
pub(crate) fn table() -> impl Iterator<Item = (String, Known)> {
    let named = |code: u64| NAMES.iter().find(|(known, _)| *known == code).map_or("", |(_, name)| *name);
    let listed = KNOWN.iter().map(move |(code, known)| match known.answer {
        "" => (named(*code).to_string(), *known),
        words => (format!("{} with `{words}`", named(*code)), *known),
    });
    listed.chain([(FAILED.answer.to_string(), FAILED)])
}

/// Judges a response whose status is not 200. Credentials that are refused may be asked for again.
pub fn classify(response: &HttpResponse) -> Outcome {
    let fields = object(&response.body).unwrap_or_default();
    let text = |name| fields.get(name).and_then(Json::as_str);
    let message = text("message").or_else(|| text("error")).unwrap_or_default();
    match fields.get("code").and_then(Json::as_u64) {
        Some(code) => of_code(code, message),
        None if contains(&response.body, b"CommonName of client") => Outcome::NotApplied(Refusal::Denied(Denial::new(
            DenialKind::Permission,
            "an etcd with users takes client certificates over its gateway only without a CommonName: issue one \
             without, and write user and password into the url",
        ))),
        // Never the body: a page of a proxy may show what was sent.
        None if response.status == 404 || (300..400).contains(&response.status) => {
            let detail = format!("there is no etcd of version 3.4 or newer here (HTTP status {})", response.status);
            Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Other, &detail)))
        }
        None => {
            let detail = format!("the answer does not come from etcd (HTTP status {})", response.status);
            Outcome::Unknown(Fault::new(FaultKind::Server, &detail))
        }
    }
}

fn contains(body: &[u8], words: &[u8]) -> bool {
    body.windows(words.len()).any(|part| part == words)
}

/// Judges an error that names its gRPC code: `rpc error: code = PermissionDenied desc = ...`.
pub(super) fn of_reason(reason: &str) -> Outcome {
    let named = reason.split_once("code = ").map_or("", |(_, rest)| rest.split(' ').next().unwrap_or_default());
    let code = NAMES.iter().find(|(_, name)| *name == named).map_or(0, |(code, _)| *code);
    of_code(code, reason)
}

/// Judges an error by its gRPC code.
pub(super) fn of_code(code: u64, message: &str) -> Outcome {
    let known = KNOWN.iter().find(|(known, entry)| *known == code && message.contains(entry.answer));
    let known = known.map_or(&FAILED, |(_, known)| known);
    known.means.outcome(&format!("{} (etcd said: {})", known.advice, said(message)))
}

//! The meaning of a response without success: certainly not applied, and why, or unknown.
//!
//! DynamoDB names the error in `__type`, after a `#`, and says more in `message` or `Message`. The status alone decides
//! only where a body names no error: that of a proxy, for the most part.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::{Map, Value as Json};

use super::json::object;
use super::{HttpResponse, Settings};
use crate::errors::{Known, Means, find, known};
use crate::exchange::Repeat;
use crate::sigv4::http_date;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

pub(super) use crate::redis::said;

/// The meaning of a response without success for the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// A condition did not hold, so nothing was written: an answer, not a failure.
    ConditionFailed,
    /// Certainly not applied. Once it is worth sending again; if that helps nothing, this is the refusal.
    Repeat(Repeat, Refusal),
    /// Certainly not applied.
    Refused(Refusal),
    /// May have been applied.
    Unknown(Fault),
}

impl ErrorClass {
    /// The outcome where nothing is sent again; a failed condition, for an operation that set none, is unknown.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::ConditionFailed => Outcome::Unknown(Fault::new(
                FaultKind::Protocol,
                "DynamoDB reported a failed condition, but the request had none",
            )),
            Self::Repeat(_, refusal) | Self::Refused(refusal) => Outcome::NotApplied(refusal),
            Self::Unknown(fault) => Outcome::Unknown(fault),
        }
    }
}

/// Judges a response whose status is not 200.
pub fn classify(settings: &Settings, response: &HttpResponse) -> ErrorClass {
    let fields = object(&response.body).unwrap_or_default();
    let message = message_of(&fields);
    match code_of(&fields) {
        Some(code) => by_code(settings, response, code, message),
        None => by_status(response.status, message),
    }
}

/// The name of the error, without the service's in front and the address behind.
pub(super) fn code_of(fields: &Map<String, Json>) -> Option<&str> {
    let name = fields.get("__type").or_else(|| fields.get("code"))?.as_str()?;
    let name = name.rsplit('#').next().unwrap_or(name);
    let name = name.split(':').next().unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

fn message_of(fields: &Map<String, Json>) -> &str {
    fields.get("message").or_else(|| fields.get("Message")).and_then(Json::as_str).unwrap_or("")
}

/// The errors that are known by name. A failed condition is none.
pub(crate) const KNOWN: [Known; 40] = [
    known("ProvisionedThroughputExceededException", Means::TooMany, LIMIT),
    known("ThrottlingException", Means::TooMany, LIMIT),
    known("Throttling", Means::TooMany, LIMIT),
    known("RequestLimitExceeded", Means::TooMany, LIMIT),
    known("TooManyRequestsException", Means::TooMany, LIMIT),
    known("SlowDown", Means::TooMany, LIMIT),
    known("TransactionConflictException", Means::Passes(FaultKind::Busy), OTHERS),
    known("ReplicatedWriteConflictException", Means::Passes(FaultKind::Busy), OTHERS),
    known("TransactionInProgressException", Means::Passes(FaultKind::Busy), OTHERS),
    known(
        "ResourceInUseException",
        Means::Passes(FaultKind::Busy),
        "the table exists, or is being changed: look at it again in a while",
    ),
    known("ResourceNotFoundException", Means::Final(DenialKind::Other), NO_TABLE),
    known("TableNotFoundException", Means::Final(DenialKind::Other), NO_TABLE),
    known("ValidationException", Means::Final(DenialKind::Schema), NO_FIT),
    known(
        "ItemCollectionSizeLimitExceededException",
        Means::Final(DenialKind::StorageFull),
        "a local index of the table has no room: use a table without one",
    ),
    known(
        "LimitExceededException",
        Means::Final(DenialKind::Other),
        "too many tables, or too many changes of tables at once: try again later",
    ),
    known("AccessDeniedException", Means::Final(DenialKind::Permission), ACCESS),
    known("AccessDenied", Means::Final(DenialKind::Permission), ACCESS),
    known("NotAuthorized", Means::Final(DenialKind::Permission), ACCESS),
    known("UnauthorizedOperation", Means::Final(DenialKind::Permission), ACCESS),
    known("MissingAuthenticationToken*", Means::Final(DenialKind::Permission), NOT_WHOLE),
    known("IncompleteSignature*", Means::Final(DenialKind::Permission), NOT_WHOLE),
    known("OptInRequired", Means::Final(DenialKind::Permission), SWITCHED_OFF),
    known("SubscriptionRequiredException", Means::Final(DenialKind::Permission), SWITCHED_OFF),
    known("UnrecognizedClientException", Means::Expired, EXPIRED),
    known("InvalidClientTokenId", Means::Expired, EXPIRED),
    known("ExpiredTokenException", Means::Expired, EXPIRED),
    known("ExpiredToken", Means::Expired, EXPIRED),
    known("TokenRefreshRequired", Means::Expired, EXPIRED),
    known("InvalidSignatureException", Means::Final(DenialKind::Permission), WRONG_SIGNATURE),
    known("SignatureDoesNotMatch", Means::Final(DenialKind::Permission), WRONG_SIGNATURE),
    known("RequestExpired", Means::Final(DenialKind::Permission), WRONG_CLOCK),
    known("RequestTimeTooSkewed", Means::Final(DenialKind::Permission), WRONG_CLOCK),
    known("UnknownOperationException", Means::Final(DenialKind::Other), NO_DYNAMODB),
    known("SerializationException", Means::Final(DenialKind::Other), NO_DYNAMODB),
    known("InvalidAction", Means::Final(DenialKind::Other), NO_DYNAMODB),
    known("KMS*", Means::Final(DenialKind::Permission), NO_KEY),
    known("InaccessibleEncryption*", Means::Final(DenialKind::Permission), NO_KEY),
    known("InternalServerError", Means::Unfinished, FAILED),
    known("InternalFailure", Means::Unfinished, FAILED),
    known("ServiceUnavailable*", Means::Unfinished, FAILED),
];

const LIMIT: &str = "the table or account is at its limit of requests: raise it, or bill the table by request";
const OTHERS: &str = "another write of the same row is in progress: this is temporary";
const NO_TABLE: &str = "there is no such table in this Region and account";
const NO_FIT: &str = "the request does not fit the keys of the table";
const NOT_WHOLE: &str = "the signature did not arrive whole: a proxy between here and DynamoDB drops headers, or the \
                         endpoint is another service's";
const SWITCHED_OFF: &str = "this Region or service is not enabled for the account";
const EXPIRED: &str = "the credentials are unknown or have expired: get new ones, for this partition and account";
const WRONG_SIGNATURE: &str = "the signature is wrong: check that the secret belongs to the access key and is whole, \
                               that the Region is the endpoint's, and that no proxy changes requests or their host";
const WRONG_CLOCK: &str = "this machine's clock is too far off for signed requests: correct it to within 5 minutes";
const NO_DYNAMODB: &str = "the endpoint does not understand the request: check that it is DynamoDB's";
const NO_KEY: &str = "the key that encrypts the table cannot be used: see its state and its policy in KMS";
const FAILED: &str = "DynamoDB has failed";

fn by_code(settings: &Settings, response: &HttpResponse, code: &str, message: &str) -> ErrorClass {
    if code == "ConditionalCheckFailedException" {
        return ErrorClass::ConditionFailed;
    }
    let Some(known) = find(&KNOWN, code) else { return by_status_of(response.status, Some((code, message))) };
    let words = match known.advice {
        NO_TABLE => explained(&no_table(settings), code, message),
        // What else they say may repeat the request's headers, and those hold a session token.
        NOT_WHOLE => explained(NOT_WHOLE, code, ""),
        WRONG_SIGNATURE | WRONG_CLOCK => return signature(response, code, message),
        NO_FIT => explained(&wrong_schema(settings), code, message),
        advice => explained(advice, code, message),
    };
    match known.means.refusal(&words) {
        Some(refusal @ Refusal::NeedsCredentials(_)) => ErrorClass::Repeat(Repeat::FreshCredentials, refusal),
        Some(refusal) => ErrorClass::Refused(refusal),
        None => ErrorClass::Unknown(Fault::new(FaultKind::Server, &words)),
    }
}

/// A wrong clock says so; else it is the secret that is wrong. The message may hold the whole request, so none of it is
/// repeated.
fn signature(response: &HttpResponse, code: &str, message: &str) -> ErrorClass {
    let is_clock = message.contains("expired") || message.contains("not yet current") || code.starts_with("Request");
    let wrong = |advice| denied(DenialKind::Permission, &explained(advice, code, ""));
    if !is_clock {
        return ErrorClass::Refused(wrong(WRONG_SIGNATURE));
    }
    let refusal = wrong(WRONG_CLOCK);
    match response.header("date").and_then(http_date) {
        Some(unix_ms) => ErrorClass::Repeat(Repeat::ServerTime(unix_ms), refusal),
        None => ErrorClass::Refused(refusal),
    }
}

fn by_status(status: u16, message: &str) -> ErrorClass {
    by_status_of(status, (!message.is_empty()).then_some(("no code", message)))
}

fn by_status_of(status: u16, words: Option<(&str, &str)>) -> ErrorClass {
    let explain = |advice: &str| match words {
        Some((code, message)) => explained(&format!("{advice} (status {status})"), code, message),
        // Never the body: a page of a proxy may show what was sent.
        None => format!("{advice} (HTTP status {status})"),
    };
    let refused = |kind, advice: &str| ErrorClass::Refused(denied(kind, &explain(advice)));
    match status {
        300..=399 => {
            let advice = "the endpoint redirects, but a signed request is valid for one host only: put the final \
                          address into the settings";
            refused(DenialKind::Other, advice)
        }
        401 | 403 => refused(DenialKind::Permission, ACCESS),
        404 | 405 => refused(DenialKind::Other, "there is no DynamoDB here: check the endpoint"),
        407 => refused(DenialKind::Permission, "the proxy requires its own credentials"),
        413 => refused(DenialKind::Other, "the request is too large for the endpoint, or for a proxy before it"),
        429 => ErrorClass::Refused(Refusal::Throttled(Fault::new(FaultKind::Busy, &explain("too many requests")))),
        200 => ErrorClass::Unknown(Fault::new(FaultKind::Protocol, "the answer does not come from DynamoDB")),
        _ => ErrorClass::Unknown(Fault::new(FaultKind::Server, &explain("no success"))),
    }
}

const ACCESS: &str = "access is denied: check which identity this is (`aws sts get-caller-identity`; the trust policy \
                      if it is a role), that it may use dynamodb:GetItem and UpdateItem on the table's ARN, the \
                      Region, and policies of the organisation, endpoint and table";

fn no_table(settings: &Settings) -> String {
    let table = short(settings.table());
    format!(
        "there is no table {table:?} in this Region and account: check its name, the Region and the account, or create \
         it with `leasehold table create`"
    )
}

fn wrong_schema(settings: &Settings) -> String {
    let key = short(settings.key_name());
    let table = short(settings.table_name());
    match settings.sort() {
        Some(sort) => {
            let sort = short(&sort.name);
            format!(
                "the request does not fit the table {table:?}: this client uses the partition key {key:?} and the sort \
                 key {sort:?}, both texts; see `aws dynamodb describe-table`"
            )
        }
        None => format!(
            "the request does not fit the table {table:?}: this client uses the partition key {key:?}, a text, and no \
             sort key; see `aws dynamodb describe-table`"
        ),
    }
}

fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(80)]
}

fn denied(kind: DenialKind, detail: &str) -> Refusal {
    Refusal::Denied(Denial::new(kind, detail))
}

fn explained(advice: &str, code: &str, message: &str) -> String {
    let code = said(code);
    match said(message) {
        message if message.is_empty() => format!("{advice} (DynamoDB said: {code})"),
        message => format!("{advice} (DynamoDB said: {code}, {message})"),
    }
    .to_string()
}

//! The meaning of an answer: an object, a write, a lost race, or why not.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value as Json;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

use super::memory::Row;
use super::refusals::{self, Meaning};
use super::requests::Version;
use super::{Codec, HttpResponse, Service, azure, cosmos};
use crate::dynamodb::json::object;
use crate::errors::Means;
use crate::exchange::Repeat;
use crate::redis::said;
use crate::sigv4::http_date;

/// An answer by its kind.
pub(super) enum Heard {
    /// The object, or that there is none.
    Read(Row),
    /// It was written, and has this version now.
    Written(Version),
    /// The condition did not hold: somebody has written since. Nothing was written.
    Raced,
    /// No answer of the object.
    Failed(Outcome),
}

/// Why a request may succeed once it is sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    Credentials,
    Clock,
}

impl Codec {
    pub(super) fn heard_read(&self, answer: Result<&HttpResponse, Outcome>) -> Heard {
        let response = match answer {
            Ok(response) => response,
            Err(outcome) => return Heard::Failed(unanswered(outcome)),
        };
        match response.status {
            200 => match self.version(response) {
                Some(version) => Heard::Read(Row { version: Some(version), body: Some(self.body(response)) }),
                None => Heard::Failed(misfit()),
            },
            404 if self.is_object_missing(response) => Heard::Read(Row::default()),
            _ => Heard::Failed(self.classify(response)),
        }
    }

    pub(super) fn heard_write(&self, answer: Result<&HttpResponse, Outcome>) -> Heard {
        let response = match answer {
            Ok(response) => response,
            Err(outcome) => return Heard::Failed(unanswered(outcome)),
        };
        match response.status {
            200 | 201 => self.version(response).map_or_else(|| Heard::Failed(misfit()), Heard::Written),
            404 if [Service::S3, Service::CosmosDb].contains(&self.service) && self.is_object_missing(response) => {
                Heard::Raced
            }
            _ if self.meaning(response) == Meaning::Raced => Heard::Raced,
            _ => Heard::Failed(self.classify(response)),
        }
    }

    fn meaning(&self, response: &HttpResponse) -> Meaning {
        match self.service {
            Service::CosmosDb => {
                let number = response.header("x-ms-substatus").unwrap_or_default();
                refusals::meaning(self.service, response.status, number)
            }
            Service::S3 | Service::AzureBlob | Service::Gcs => {
                refusals::meaning(self.service, response.status, &self.code(response))
            }
        }
    }

    fn body(&self, response: &HttpResponse) -> Vec<u8> {
        match self.service {
            Service::S3 | Service::AzureBlob | Service::Gcs => response.body.clone(),
            Service::CosmosDb => cosmos::written(&response.body),
        }
    }

    fn version(&self, response: &HttpResponse) -> Option<Version> {
        let text = match self.service {
            Service::S3 | Service::AzureBlob | Service::CosmosDb => response.header("etag").map(ToString::to_string),
            // The answer to an upload tells it in its body.
            Service::Gcs => response.header("x-goog-generation").map(ToString::to_string).or_else(|| {
                object(&response.body).ok()?.get("generation").and_then(Json::as_str).map(ToString::to_string)
            }),
        };
        text.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).map(Version)
    }

    /// Tells an object that is missing from a bucket that is.
    fn is_object_missing(&self, response: &HttpResponse) -> bool {
        match self.service {
            Service::S3 => self.code(response) == "NoSuchKey",
            Service::AzureBlob => self.code(response) == "BlobNotFound",
            Service::Gcs => {
                let said = core::str::from_utf8(&response.body).unwrap_or_default();
                said.contains("No such object") || said.trim_end() == "Not Found" || self.code(response) == "NoSuchKey"
            }
            Service::CosmosDb => !["1002", "1003"].contains(&response.header("x-ms-substatus").unwrap_or_default()),
        }
    }

    /// The service's own name of an error; for Google its reason.
    pub(super) fn code(&self, response: &HttpResponse) -> String {
        let code = match self.service {
            Service::S3 => tag(&response.body, "Code").map(ToString::to_string),
            Service::Gcs if self.is_xml => tag(&response.body, "Code").map(ToString::to_string),
            Service::AzureBlob => response.header("x-ms-error-code").map(ToString::to_string),
            Service::Gcs => object(&response.body).ok().and_then(|fields| {
                let first = fields.get("error")?.get("errors")?.get(0)?.get("reason")?.as_str()?.to_string();
                Some(first)
            }),
            Service::CosmosDb => object(&response.body)
                .ok()
                .and_then(|fields| fields.get("code").and_then(Json::as_str).map(ToString::to_string)),
        };
        code.map(|code| said(&code)).unwrap_or_default()
    }

    /// Judges a response that is neither success nor a lost race.
    pub(super) fn classify(&self, response: &HttpResponse) -> Outcome {
        let code = self.code(response);
        let told = match code.as_str() {
            "" => format!("HTTP status {}", response.status),
            code => format!("HTTP status {}, {code}", response.status),
        };
        let denied =
            |kind, advice: &str| Outcome::NotApplied(Refusal::Denied(Denial::new(kind, &format!("{advice} ({told})"))));
        let fault = |kind, what: &str| Fault::new(kind, &format!("{what} ({told})"));
        let hint = (self.service == Service::AzureBlob).then(|| azure::hint(&code, response)).flatten();
        if let Some(passing) = self.passing(response) {
            return Outcome::NotApplied(Refusal::NeedsCredentials(match passing {
                Passing::Credentials => fault(FaultKind::Server, hint.unwrap_or(NO_LONGER_VALID)),
                Passing::Clock => fault(FaultKind::Server, "the clock of this machine is wrong by many minutes"),
            }));
        }
        if matches!(response.status, 301 | 307 | 308) {
            return denied(DenialKind::Other, &Self::elsewhere(response));
        }
        if (300..400).contains(&response.status) {
            return denied(DenialKind::Other, "a redirect, which no storage service sends here");
        }
        if self.service == Service::S3 && response.status == 400 && is_about_object_lock(response) {
            return denied(DenialKind::Other, Meaning::Retained.advice());
        }
        let meaning = self.meaning(response);
        let advice = if meaning == Meaning::NoContainer {
            self.no_container()
        } else if meaning == Meaning::NoRight {
            hint.unwrap_or(self.no_right())
        } else {
            meaning.advice()
        };
        let means = meaning.means().unwrap_or(Means::Final(DenialKind::Other));
        means.outcome(&format!("{advice} ({told})"))
    }

    /// Something to do before a request that got this response is sent once more; `None` where that would not help.
    pub fn repeat(&self, response: &HttpResponse) -> Option<Repeat> {
        match self.passing(response)? {
            Passing::Credentials => Some(Repeat::FreshCredentials),
            Passing::Clock => response.header("date").and_then(http_date).map(Repeat::ServerTime),
        }
    }

    fn passing(&self, response: &HttpResponse) -> Option<Passing> {
        if !(400..=403).contains(&response.status) {
            return None;
        }
        match (self.service, response.status, self.code(response).as_str()) {
            (Service::S3 | Service::Gcs, _, "RequestTimeTooSkewed") => Some(Passing::Clock),
            (Service::AzureBlob, _, "AuthenticationFailed") if azure::is_time_wrong(response) => Some(Passing::Clock),
            (Service::S3, _, "ExpiredToken" | "InvalidToken" | "InvalidAccessKeyId" | "TokenRefreshRequired")
            | (Service::AzureBlob, _, "InvalidAuthenticationInfo" | "AuthenticationFailed")
            | (Service::Gcs | Service::CosmosDb, 401, _) => Some(Passing::Credentials),
            (Service::CosmosDb, 403, _) if cosmos::is_time_wrong(response) => Some(Passing::Clock),
            (Service::S3 | Service::AzureBlob | Service::Gcs | Service::CosmosDb, _, _) => None,
        }
    }

    const fn no_container(&self) -> &'static str {
        match self.service {
            Service::S3 => "there is no such bucket here: create it, or correct its name, region or endpoint",
            Service::AzureBlob => "there is no such container: create it, or correct its name or the account",
            Service::Gcs => "there is no such bucket: create it, or correct its name",
            Service::CosmosDb => {
                "there is no such database or container: create it with the partition key /id, or correct its name or \
                 the account"
            }
        }
    }

    const fn no_right(&self) -> &'static str {
        match self.service {
            Service::S3 => {
                "the credentials need s3:GetObject and s3:PutObject on the prefix, and s3:ListBucket on the bucket, \
                 without which S3 does not report that an object is missing"
            }
            Service::AzureBlob => "the identity needs the role `Storage Blob Data Contributor` on the container",
            Service::Gcs => "the identity needs the role `roles/storage.objectUser` on the bucket",
            Service::CosmosDb => {
                "the key is not one of the account's, or the identity needs the role `Cosmos DB Built-in Data \
                 Contributor`, or the account's firewall does not let this machine in"
            }
        }
    }

    fn elsewhere(response: &HttpResponse) -> String {
        match response.header("x-amz-bucket-region") {
            Some(region) => format!("the bucket is in another region: write ?region={} into the url", said(region)),
            None => "the bucket is elsewhere: write its region or endpoint into the url".into(),
        }
    }
}

const NO_LONGER_VALID: &str = "the credentials are refused, or have expired";
fn is_about_object_lock(response: &HttpResponse) -> bool {
    tag(&response.body, "Message").is_some_and(|said| said.contains("Object Lock"))
}

/// Only the service can say that something was applied or refused.
fn unanswered(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Applied(_)
        | Outcome::NotApplied(Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. }) => misfit(),
        outcome @ (Outcome::NotApplied(_) | Outcome::Unknown(_)) => outcome,
    }
}

pub(super) fn misfit() -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, "the answer does not come from the storage service"))
}

/// The content of the first element of this name, without a parser: those that are looked for hold plain text.
pub(super) fn tag<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    tags(core::str::from_utf8(body).ok()?, name).next()
}

/// The contents of all elements of this name.
pub(super) fn tags<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    core::iter::from_fn(move || {
        let (_, after) = rest.split_once(open.as_str())?;
        let (content, behind) = after.split_once(close.as_str())?;
        rest = behind;
        Some(content)
    })
}

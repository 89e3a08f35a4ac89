//! The answers without success that services document, as data: which of them pass, and what the others mean.
//!
//! | service | its list |
//! |---|---|
//! | S3 | <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html> |
//! | Azure Blob Storage | <https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes>, and <https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes> |
//! | Cloud Storage | <https://cloud.google.com/storage/docs/json_api/v1/status-codes>, and <https://cloud.google.com/storage/docs/xml-api/reference-status> |
//! | Cosmos DB | <https://learn.microsoft.com/rest/api/cosmos-db/http-status-codes-for-cosmosdb> |
//!
//! Errors of the network's own, such as a proxy's 502, are in none. What is not listed here is judged by its status alone: a status
//! below 500 says that the request was not accepted, and others may come after the write.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use leasehold_core::op::{DenialKind, FaultKind};

use super::Service;
use crate::errors::{Known, Means, known};

/// The meaning of an answer to a read or a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The condition of the write did not hold.
    Raced,
    /// Turned away for being one of too many: nothing was done, and later it may be.
    TooMany,
    /// Turned away for something that others do to the same object, or to the bucket: it passes soon.
    Busy,
    /// The service did not get to an end, perhaps after the write.
    Unfinished,
    /// There is no such bucket, container or database.
    NoContainer,
    /// The identity lacks a right.
    NoRight,
    /// The account or the container is closed by somebody.
    Closed,
    /// The service keeps the object from being written over.
    Retained,
    /// A rule has put the object away.
    Archived,
    /// Another program has marked the object as its own.
    Leased,
    /// The object is of a kind that cannot be written so.
    OtherKind,
    /// The service or the bucket has no room, or no paid quota, left.
    Full,
    /// The service has no conditional writes.
    NoConditions,
    /// The request is not one that the service knows: it never will be accepted.
    NotAccepted,
}

impl Meaning {
    /// Its place in the tables of errors; `None` for a lost race, which is no error.
    pub(super) const fn means(self) -> Option<Means> {
        Some(match self {
            Self::Raced => return None,
            Self::TooMany => Means::TooMany,
            Self::Busy => Means::Passes(FaultKind::Busy),
            Self::Unfinished => Means::Unfinished,
            Self::Full => Means::Mended(FaultKind::Server),
            Self::NoRight => Means::Final(DenialKind::Permission),
            Self::NoContainer
            | Self::Closed
            | Self::Retained
            | Self::Archived
            | Self::Leased
            | Self::OtherKind
            | Self::NoConditions
            | Self::NotAccepted => Means::Final(DenialKind::Other),
        })
    }

    /// The words for it, and for what to do, wherever they are the same for all services.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Self::TooMany => "too many requests",
            Self::Busy => "the service is at work on the same object, or moves to another region",
            Self::Unfinished => "the service has failed, or took too long",
            Self::NoContainer => "there is no such bucket or container",
            Self::NoRight => "the identity lacks a right",
            Self::Closed => "the account, the bucket or container, or its key is disabled or being deleted",
            Self::Retained => {
                "the bucket or container does not let objects be overwritten, because of a retention policy, object \
                 lock or hold: use one without"
            }
            Self::Archived => {
                "a rule has archived the object of this lock: restore it, and leave the objects of locks out of the \
                 rule"
            }
            Self::Leased => {
                "another program has a lease on the blob of this lock: break that, and let nothing but leasehold write \
                 there"
            }
            Self::OtherKind => {
                "the blob in the place of this lock is not a block blob: delete it by hand, if nobody needs it"
            }
            Self::Full => "the service has no room left for the object of this lock",
            Self::NoConditions => "the service does not support conditional writes: use another one",
            // A read has no condition.
            Self::Raced | Self::NotAccepted => "the service does not accept the request",
        }
    }
}

/// The tables of all services, for people: what is listed, and what else their statuses mean.
pub(crate) fn tables() -> impl Iterator<Item = (&'static str, Vec<(String, Known)>)> {
    const SERVICES: [(&str, Service); 4] = [
        ("S3", S3),
        ("Azure Blob Storage", AzureBlob),
        ("Google Cloud Storage", Gcs),
        ("Cosmos DB, by status and second number", CosmosDb),
    ];
    const STATUSES: [u16; 12] = [400, 401, 403, 404, 405, 408, 410, 412, 429, 500, 501, 503];
    SERVICES
        .map(|(name, service)| {
            let listed = KNOWN
                .iter()
                .filter(move |(of, ..)| *of == service)
                .map(|(_, status, code, meaning)| (*status, *code, *meaning));
            let others = STATUSES.into_iter().filter(move |status| {
                !KNOWN.iter().any(|(of, known, code, _)| (*of, known, *code) == (service, status, ""))
            });
            let others = others.map(move |status| (status, "", meaning(service, status, "")));
            let shown = listed.chain(others).filter_map(|(status, code, meaning)| {
                let answer = if code.is_empty() { format!("{status}") } else { format!("{status} {code}") };
                Some((answer, known("", meaning.means()?, meaning.advice())))
            });
            (name, shown.collect())
        })
        .into_iter()
}

/// An answer: its service, its status, its code, and its meaning. The code is empty where any will do.
type Listed = (Service, u16, &'static str, Meaning);

use Meaning::{
    Archived, Busy, Closed, Full, Leased, NoConditions, NoContainer, NoRight, NotAccepted, OtherKind, Raced, Retained,
    TooMany, Unfinished,
};
use Service::{AzureBlob, CosmosDb, Gcs, S3};

/// Those that mean something else than their status alone, or that must not be mistaken for another. Credentials and
/// clocks that are refused are in [`repeat`](super::repeat).
pub(super) const KNOWN: &[Listed] = &[
    (S3, 400, "RequestTimeout", Unfinished),
    (S3, 400, "IncompleteBody", Unfinished),
    (S3, 400, "BadDigest", Unfinished),
    (S3, 400, "XAmzContentSHA256Mismatch", Unfinished),
    (S3, 400, "KMS.DisabledException", Closed),
    (S3, 403, "AccountProblem", Closed),
    (S3, 403, "AllAccessDisabled", Closed),
    (S3, 403, "InvalidObjectState", Archived),
    (S3, 404, "NoSuchBucket", NoContainer),
    (S3, 409, "ConditionalRequestConflict", Raced),
    (S3, 409, "OperationAborted", Busy),
    (S3, 412, "PreconditionFailed", Raced),
    (S3, 429, "", TooMany),
    (S3, 500, "InternalError", Unfinished),
    (S3, 501, "NotImplemented", NoConditions),
    (S3, 503, "Busy", TooMany),
    (S3, 503, "ServiceUnavailable", Unfinished),
    (S3, 503, "SlowDown", TooMany),
    (S3, 507, "", Full),
    (AzureBlob, 400, "Md5Mismatch", Unfinished),
    (AzureBlob, 403, "AccountIsDisabled", Closed),
    (AzureBlob, 404, "ContainerNotFound", NoContainer),
    (AzureBlob, 404, "ResourceNotFound", NoContainer),
    (AzureBlob, 409, "AccountBeingCreated", Busy),
    (AzureBlob, 409, "BlobAlreadyExists", Raced),
    (AzureBlob, 409, "BlobArchived", Archived),
    (AzureBlob, 409, "BlobBeingRehydrated", Archived),
    (AzureBlob, 409, "BlobImmutableDueToLegalHold", Retained),
    (AzureBlob, 409, "BlobImmutableDueToPolicy", Retained),
    (AzureBlob, 409, "ContainerBeingDeleted", Closed),
    (AzureBlob, 409, "ContainerDisabled", Closed),
    (AzureBlob, 409, "InvalidBlobType", OtherKind),
    (AzureBlob, 409, "PendingCopyOperation", Busy),
    (AzureBlob, 412, "ConditionNotMet", Raced),
    (AzureBlob, 412, "LeaseIdMissing", Leased),
    (AzureBlob, 412, "TargetConditionNotMet", Raced),
    (AzureBlob, 500, "InternalError", Unfinished),
    (AzureBlob, 500, "OperationTimedOut", Unfinished),
    (AzureBlob, 503, "ServerBusy", TooMany),
    // Google's JSON has reasons, and its XML has codes.
    (Gcs, 400, "IncompleteBody", Unfinished),
    (Gcs, 400, "RequestTimeout", Unfinished),
    (Gcs, 403, "accountDisabled", Closed),
    (Gcs, 403, "AccountProblem", Closed),
    (Gcs, 403, "BucketAccountProblem", Closed),
    (Gcs, 403, "UserAccountProblem", Closed),
    (Gcs, 403, "objectUnderActiveHold", Retained),
    (Gcs, 403, "ObjectUnderActiveHold", Retained),
    (Gcs, 403, "retentionPolicyNotMet", Retained),
    (Gcs, 403, "RetentionPolicyNotMet", Retained),
    (Gcs, 403, "quotaExceeded", TooMany),
    (Gcs, 403, "rateLimitExceeded", TooMany),
    (Gcs, 403, "userRateLimitExceeded", TooMany),
    (Gcs, 404, "NoSuchBucket", NoContainer),
    (Gcs, 408, "", Unfinished),
    (Gcs, 409, "OperationAborted", Busy),
    (Gcs, 412, "conditionNotMet", Raced),
    (Gcs, 412, "PreconditionFailed", Raced),
    (Gcs, 412, "orgPolicyConstraintFailed", Closed),
    (Gcs, 412, "OrgPolicyConstraintFailed", Closed),
    (Gcs, 429, "", TooMany),
    (Gcs, 500, "", Unfinished),
    (Gcs, 503, "SlowDown", TooMany),
    (Gcs, 503, "", Unfinished),
    (CosmosDb, 404, "1003", NoContainer),
    // The replica that was asked has not come as far as this client has seen.
    (CosmosDb, 404, "1002", Busy),
    (CosmosDb, 403, "3", Busy),
    (CosmosDb, 403, "1014", Full),
    (CosmosDb, 408, "", Unfinished),
    (CosmosDb, 409, "", Raced),
    (CosmosDb, 410, "", Unfinished),
    (CosmosDb, 412, "", Raced),
    (CosmosDb, 423, "", Busy),
    (CosmosDb, 429, "", TooMany),
    (CosmosDb, 449, "", Busy),
    (CosmosDb, 503, "", Unfinished),
];

/// The meaning of an answer of this status, with this code: for Cosmos DB the second number of its status.
pub(super) fn meaning(service: Service, status: u16, code: &str) -> Meaning {
    let of = |(known, number, _, _): &&Listed| *known == service && *number == status;
    let exact = KNOWN.iter().filter(of).find(|(_, _, known, _)| *known == code);
    let any = || KNOWN.iter().filter(of).find(|(_, _, known, _)| known.is_empty());
    match (exact.or_else(any), status) {
        (Some((_, _, _, meaning)), _) => *meaning,
        (None, 401 | 403) => NoRight,
        (None, 404) => NoContainer,
        (None, 405 | 501) => NoConditions,
        (None, 408 | 410) => Unfinished,
        (None, 412) => Raced,
        (None, 429) => TooMany,
        (None, 500..) => Unfinished,
        (None, _) => NotAccepted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_listed_twice() {
        for (at, (service, status, code, _)) in KNOWN.iter().enumerate() {
            let is_same = |known: &&Listed| (known.0, known.1, known.2) == (*service, *status, *code);
            assert_eq!(KNOWN.iter().filter(is_same).count(), 1, "{at}: {service:?} {status} {code}");
        }
    }

    #[test]
    fn what_is_listed_is_found_and_what_is_not_is_judged_by_its_status() {
        for (service, status, code, means) in KNOWN {
            assert_eq!(meaning(*service, *status, code), *means, "{service:?} {status} {code}");
        }
        for service in [S3, AzureBlob, Gcs, CosmosDb] {
            for (status, means) in [
                (400, NotAccepted),
                (401, NoRight),
                (405, NoConditions),
                (412, Raced),
                (413, NotAccepted),
                (429, TooMany),
                (502, Unfinished),
                (504, Unfinished),
                (599, Unfinished),
            ] {
                assert_eq!(meaning(service, status, "SomethingNew"), means, "{service:?} {status}");
            }
        }
    }
}

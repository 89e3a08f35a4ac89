//! Settings of a bucket or container that harm its locks: versions that are kept, retention, rules that delete.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value as Json;

use leasehold_core::op::Outcome;

use super::errors::{misfit, tags};
use super::{Codec, END, HttpResponse, Method, Request, Service};
use crate::dynamodb::json::object;
use crate::redis::said;

/// Objects of this size or more are never ours, in bytes.
const TOO_LARGE: u64 = 1 << 16;
/// Of Google's bucket, without the rest of it.
const GOOGLE_FIELDS: &str = "versioning%2CsoftDeletePolicy%2CretentionPolicy%2CdefaultEventBasedHold%2Clifecycle";

/// A setting of a bucket or container that locks depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Old versions of objects are kept.
    Versions,
    /// Objects must not be written over for a time.
    Retention,
    /// Rules move or delete objects after a time.
    Lifecycle,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Versions, Self::Retention, Self::Lifecycle];
}

/// A setting that harms locks, or makes them cost more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Harm {
    /// Each write leaves an old version, which is paid for.
    KeepsVersions,
    /// The same for so many seconds.
    KeepsDeleted(u64),
    /// Objects cannot be written over, so that no lock can be renewed or released; or only with headers that are not sent
    /// here. The name of the setting.
    Retains(&'static str),
    /// This rule deletes objects, and their tokens begin again.
    Deletes(String),
    /// This rule moves objects to where they cannot be read at once.
    Archives(String),
    /// This rule moves objects to where they are paid for a month or longer, however soon they are written over.
    Moves(String),
}

impl Harm {
    /// The setting that it comes from.
    pub const fn setting(&self) -> Setting {
        match self {
            Self::KeepsVersions | Self::KeepsDeleted(_) => Setting::Versions,
            Self::Retains(_) => Setting::Retention,
            Self::Deletes(_) | Self::Archives(_) | Self::Moves(_) => Setting::Lifecycle,
        }
    }

    /// Tells if locks fail with it. Otherwise they cost more.
    pub const fn breaks_locks(&self) -> bool {
        match self {
            Self::Retains(_) | Self::Deletes(_) | Self::Archives(_) => true,
            Self::KeepsVersions | Self::KeepsDeleted(_) | Self::Moves(_) => false,
        }
    }
}

/// One request about the settings of a bucket or container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The request.
    pub request: Request,
    /// The settings that the answer tells.
    pub settings: &'static [Setting],
    /// The right that it needs.
    pub right: &'static str,
}

impl Codec {
    /// The requests that tell the settings of the bucket; [`Codec::harms`] reads each answer. Those of Cosmos DB are
    /// looked at otherwise ([`Codec::check_container`]), and those that a write tells
    /// ([`Codec::harms_of_write`]) are not asked for.
    pub fn questions(&self) -> Vec<Question> {
        let root = if self.root.is_empty() { "/" } else { &*self.root };
        let ask = |path: &str, query: &str, settings, right| Question {
            request: Request {
                method: Method::Get,
                path: path.to_string(),
                query: query.to_string(),
                headers: self.headers(),
                body: Vec::new(),
            },
            settings,
            right,
        };
        match self.service {
            Service::S3 => vec![
                ask(root, "object-lock=", &[Setting::Retention], "s3:GetBucketObjectLockConfiguration"),
                ask(root, "lifecycle=", &[Setting::Lifecycle], "s3:GetLifecycleConfiguration"),
            ],
            Service::AzureBlob => {
                let (account, _) = root.rsplit_once('/').unwrap_or_default();
                let of_account = "Microsoft.Storage/storageAccounts/blobServices/read";
                vec![
                    ask(root, "restype=container", &[Setting::Retention], "to read the container"),
                    ask(&format!("{account}/"), "comp=properties&restype=service", &[Setting::Versions], of_account),
                ]
            }
            Service::Gcs if self.is_xml => Vec::new(),
            Service::Gcs => {
                let path = format!("/storage/v1/b/{}", self.root);
                vec![ask(&path, &format!("fields={GOOGLE_FIELDS}"), &Setting::ALL, "storage.buckets.get")]
            }
            Service::CosmosDb => Vec::new(),
        }
    }

    /// Reads the answer to a question.
    ///
    /// # Errors
    /// It could not be read.
    pub fn harms(&self, question: &Question, response: &HttpResponse) -> Result<Vec<Harm>, Outcome> {
        let is_unset = self.service == Service::S3 && response.status == 404;
        if is_unset
            && ["ObjectLockConfigurationNotFoundError", "NoSuchLifecycleConfiguration"].contains(&&*self.code(response))
        {
            return Ok(Vec::new());
        }
        if response.status != 200 {
            return Err(self.classify(response));
        }
        match (self.service, question.settings) {
            (Service::S3, [Setting::Lifecycle]) => {
                let text = self.xml(response, "<LifecycleConfiguration")?;
                Ok(tags(text, "Rule").flat_map(|rule| s3_rule(rule, &self.prefix)).collect())
            }
            (Service::S3, _) => {
                let text = self.xml(response, "<ObjectLockConfiguration")?;
                let retains = text.contains("<DefaultRetention>");
                Ok(retains.then_some(Harm::Retains("object lock with a default retention")).into_iter().collect())
            }
            (Service::AzureBlob, [Setting::Retention]) => {
                let is_set = |name| response.header(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
                let held = [
                    ("x-ms-has-immutability-policy", "an immutability policy"),
                    ("x-ms-has-legal-hold", "a legal hold"),
                ];
                Ok(held.iter().filter(|(header, _)| is_set(header)).map(|&(_, name)| Harm::Retains(name)).collect())
            }
            (Service::AzureBlob, _) => {
                let text = self.xml(response, "<StorageServiceProperties")?;
                let policy = tags(text, "DeleteRetentionPolicy").next().unwrap_or_default();
                let days = tags(policy, "Days").next().and_then(|days| days.parse::<u64>().ok()).unwrap_or_default();
                let is_on = tags(policy, "Enabled").next() == Some("true");
                Ok(is_on.then_some(Harm::KeepsDeleted(days.saturating_mul(86_400))).into_iter().collect())
            }
            (Service::Gcs, _) => Ok(google(&object(&response.body).map_err(|_| misfit())?, &self.prefix)),
            (Service::CosmosDb, _) => Err(misfit()),
        }
    }

    /// Reads what the answer to a write tells of the settings, which needs no right but that to write.
    pub fn harms_of_write(&self, response: &HttpResponse) -> Vec<Harm> {
        let version = |name| response.header(name).filter(|version| *version != "null");
        let mut harms = Vec::new();
        match self.service {
            Service::S3 => {
                harms.extend(version("x-amz-version-id").map(|_| Harm::KeepsVersions));
                let rule = response.header("x-amz-expiration");
                let name =
                    |told: &str| told.split("rule-id=\"").nth(1).and_then(|rest| rest.split('"').next()).map(said);
                harms.extend(rule.map(|told| Harm::Deletes(name(told).unwrap_or_default())));
            }
            Service::AzureBlob => harms.extend(version("x-ms-version-id").map(|_| Harm::KeepsVersions)),
            Service::Gcs => {
                let fields = object(&response.body).unwrap_or_default();
                let is_held = fields.get("eventBasedHold").and_then(Json::as_bool) == Some(true);
                harms.extend(fields.get("retentionExpirationTime").map(|_| Harm::Retains(RETENTION_POLICY)));
                harms.extend(is_held.then_some(Harm::Retains(HOLD)));
            }
            Service::CosmosDb => {}
        }
        harms
    }
}

const RETENTION_POLICY: &str = "a retention policy";
const HOLD: &str = "an event-based hold by default";

/// Rules for a part of the bucket that our objects are in, or that is in ours.
fn overlaps(rule: &str, ours: &str) -> bool {
    rule.starts_with(ours) || ours.starts_with(rule)
}

/// The harm that a rule does to objects as they are written here: small, and without tags.
fn s3_rule(rule: &str, ours: &str) -> Vec<Harm> {
    let first = |name| tags(rule, name).next();
    let least = first("ObjectSizeGreaterThan").and_then(|size| size.parse::<u64>().ok()).unwrap_or_default();
    let is_of_others =
        rule.contains("<Tag>") || least >= TOO_LARGE || !overlaps(first("Prefix").unwrap_or_default(), ours);
    if first("Status") != Some("Enabled") || is_of_others {
        return Vec::new();
    }
    let name = said(first("ID").unwrap_or_default());
    let expires = tags(rule, "Expiration").any(|after| after.contains("<Days>") || after.contains("<Date>"));
    let moves = tags(rule, "Transition").filter_map(|to| tags(to, "StorageClass").next()).map(|class| match class {
        "GLACIER" | "DEEP_ARCHIVE" => Harm::Archives(name.clone()),
        _ => Harm::Moves(name.clone()),
    });
    expires.then(|| Harm::Deletes(name.clone())).into_iter().chain(moves).collect()
}

fn google(bucket: &serde_json::Map<String, Json>, ours: &str) -> Vec<Harm> {
    let number = |value: &Json| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let within = |name: &str, field: &str| bucket.get(name).and_then(|policy| policy.get(field));
    let mut harms = Vec::new();
    if within("versioning", "enabled").and_then(Json::as_bool) == Some(true) {
        harms.push(Harm::KeepsVersions);
    }
    let kept = within("softDeletePolicy", "retentionDurationSeconds").and_then(number).filter(|seconds| *seconds > 0);
    harms.extend(kept.map(Harm::KeepsDeleted));
    harms.extend(
        bucket.get("retentionPolicy").filter(|policy| !policy.is_null()).map(|_| Harm::Retains(RETENTION_POLICY)),
    );
    if bucket.get("defaultEventBasedHold").and_then(Json::as_bool) == Some(true) {
        harms.push(Harm::Retains(HOLD));
    }
    let rules = within("lifecycle", "rule").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    harms.extend(rules.iter().filter_map(|rule| google_rule(rule, ours)));
    harms
}

/// Google's rules have no names, so they are told by what they do.
fn google_rule(rule: &Json, ours: &str) -> Option<Harm> {
    let (action, condition) = (rule.get("action")?, rule.get("condition")?);
    let texts =
        |name: &str| condition.get(name).and_then(Json::as_array).map(|all| all.iter().filter_map(Json::as_str));
    let is_ours = texts("matchesPrefix").is_none_or(|mut all| all.any(|prefix| overlaps(prefix, ours)))
        && texts("matchesSuffix").is_none_or(|mut all| {
            all.any(|suffix| suffix.is_empty() || suffix.ends_with(END) || END.ends_with(suffix))
        });
    // These are true of old versions only.
    let is_of_old = condition.get("isLive").and_then(Json::as_bool) == Some(false)
        || ["numNewerVersions", "daysSinceNoncurrentTime", "noncurrentTimeBefore"]
            .iter()
            .any(|name| condition.get(*name).is_some());
    if !is_ours || is_of_old {
        return None;
    }
    match action.get("type").and_then(Json::as_str)? {
        "Delete" => Some(Harm::Deletes(String::new())),
        "SetStorageClass" => Some(Harm::Moves(String::new())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::op::{DenialKind, Refusal};

    fn codec(service: Service) -> Codec {
        let root = match service {
            Service::S3 => "/locks",
            Service::AzureBlob => "/acme/locks",
            Service::Gcs => "locks",
            Service::CosmosDb => "/dbs/a/colls/locks",
        };
        Codec::new(service, root, "leasehold/")
    }

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        HttpResponse { status, headers, body: body.into() }
    }

    fn harms(service: Service, setting: Setting, answer: &HttpResponse) -> Vec<Harm> {
        let codec = codec(service);
        let questions = codec.questions();
        let question = questions.iter().find(|question| question.settings.contains(&setting)).unwrap();
        codec.harms(question, answer).unwrap()
    }

    fn by_s3(rules: &str) -> Vec<Harm> {
        let body = format!("<LifecycleConfiguration xmlns=\"x\">{rules}</LifecycleConfiguration>");
        harms(Service::S3, Setting::Lifecycle, &response(200, &[], &body))
    }

    fn by_google(body: &str) -> Vec<Harm> {
        harms(Service::Gcs, Setting::Lifecycle, &response(200, &[], body))
    }

    #[test]
    fn questions_are_those_of_each_service() {
        let asked = |codec: &Codec| -> Vec<String> {
            let shown = |question: Question| format!("{}?{}", question.request.path, question.request.query);
            codec.questions().into_iter().map(shown).collect()
        };
        assert_eq!(asked(&codec(Service::S3)), ["/locks?object-lock=", "/locks?lifecycle="]);
        assert_eq!(asked(&Codec::new(Service::S3, "", "p/")), ["/?object-lock=", "/?lifecycle="]);
        let of_azure = ["/acme/locks?restype=container", "/acme/?comp=properties&restype=service"];
        assert_eq!(asked(&codec(Service::AzureBlob)), of_azure);
        assert_eq!(asked(&Codec::new(Service::AzureBlob, "/locks", "p/"))[1], "/?comp=properties&restype=service");
        assert_eq!(asked(&codec(Service::Gcs)).len(), 1);
        assert!(codec(Service::CosmosDb).questions().is_empty());
    }

    #[test]
    fn rules_of_s3_count_where_they_touch_our_objects() {
        let rule =
            |filter: &str, action: &str| format!("<Rule><ID>old</ID>{filter}<Status>Enabled</Status>{action}</Rule>");
        let expires = "<Expiration><Days>7</Days></Expiration>";
        let deletes = [Harm::Deletes("old".into())];
        for filter in [
            "",
            "<Prefix></Prefix>",
            "<Filter/>",
            "<Filter><Prefix>lease</Prefix></Filter>",
            "<Filter><Prefix>leasehold/lock/a</Prefix></Filter>",
            "<Filter><ObjectSizeGreaterThan>10</ObjectSizeGreaterThan></Filter>",
        ] {
            assert_eq!(by_s3(&rule(filter, expires)), deletes, "{filter}");
        }
        for filter in [
            "<Filter><Prefix>logs/</Prefix></Filter>",
            "<Filter><And><Prefix></Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>",
            "<Filter><ObjectSizeGreaterThan>131072</ObjectSizeGreaterThan></Filter>",
        ] {
            assert_eq!(by_s3(&rule(filter, expires)), [], "{filter}");
        }
        assert_eq!(by_s3(&rule("", expires).replace("Enabled", "Disabled")), []);
        let of_old = "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>\
                      <Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>\
                      <AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>";
        assert_eq!(by_s3(&rule("", of_old)), []);
        let moves = "<Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition>\
                     <Transition><Days>90</Days><StorageClass>GLACIER</StorageClass></Transition>";
        assert_eq!(by_s3(&rule("", moves)), [Harm::Moves("old".into()), Harm::Archives("old".into())]);
        let unset = |code: &str| response(404, &[], &format!("<Error><Code>{code}</Code></Error>"));
        assert_eq!(harms(Service::S3, Setting::Lifecycle, &unset("NoSuchLifecycleConfiguration")), []);
        assert_eq!(harms(Service::S3, Setting::Retention, &unset("ObjectLockConfigurationNotFoundError")), []);
    }

    #[test]
    fn retention_is_found_on_every_service() {
        let lock = |rule: &str| {
            let body = format!(
                "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}</ObjectLockConfiguration>"
            );
            harms(Service::S3, Setting::Retention, &response(200, &[], &body))
        };
        let default = "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule>";
        assert!(matches!(lock(default)[..], [Harm::Retains(_)]) && lock("").is_empty());
        let azure = |policy: &str, hold: &str| {
            let headers = [("x-ms-has-immutability-policy", policy), ("x-ms-has-legal-hold", hold)];
            harms(Service::AzureBlob, Setting::Retention, &response(200, &headers, "")).len()
        };
        assert_eq!((azure("false", "false"), azure("true", "false"), azure("true", "true")), (0, 1, 2));
        let google = by_google(r#"{"retentionPolicy":{"retentionPeriod":"60"},"defaultEventBasedHold":true}"#);
        assert_eq!(google, [Harm::Retains(RETENTION_POLICY), Harm::Retains(HOLD)]);
        assert!(google.iter().all(|harm| harm.breaks_locks() && harm.setting() == Setting::Retention));
        let written = response(200, &[], r#"{"generation":"1","retentionExpirationTime":"2026-11-26T10:00:00Z"}"#);
        assert_eq!(codec(Service::Gcs).harms_of_write(&written), [Harm::Retains(RETENTION_POLICY)]);
    }

    #[test]
    fn old_versions_and_soft_delete_are_found() {
        for (service, header) in [(Service::S3, "x-amz-version-id"), (Service::AzureBlob, "x-ms-version-id")] {
            let told = |version| codec(service).harms_of_write(&response(200, &[(header, version)], ""));
            assert_eq!((told("3HL4kqtJ"), told("null")), (vec![Harm::KeepsVersions], vec![]));
        }
        let expires = r#"expiry-date="Fri, 27 Nov 2026 00:00:00 GMT", rule-id="old ones""#;
        let written = response(200, &[("x-amz-expiration", expires)], "");
        assert_eq!(codec(Service::S3).harms_of_write(&written), [Harm::Deletes("old ones".into())]);
        let azure = |enabled: &str| {
            let policy =
                format!("<DeleteRetentionPolicy><Enabled>{enabled}</Enabled><Days>7</Days></DeleteRetentionPolicy>");
            let body = format!("<StorageServiceProperties>{policy}</StorageServiceProperties>");
            harms(Service::AzureBlob, Setting::Versions, &response(200, &[], &body))
        };
        assert_eq!((azure("true"), azure("false")), (vec![Harm::KeepsDeleted(604_800)], vec![]));
        let google =
            by_google(r#"{"versioning":{"enabled":true},"softDeletePolicy":{"retentionDurationSeconds":"604800"}}"#);
        assert_eq!(google, [Harm::KeepsVersions, Harm::KeepsDeleted(604_800)]);
        assert_eq!(
            by_google(r#"{"versioning":{"enabled":false},"softDeletePolicy":{"retentionDurationSeconds":"0"}}"#),
            []
        );
    }

    #[test]
    fn rules_of_google_count_where_they_touch_our_objects() {
        let rule = |action: &str, condition: &str| {
            by_google(&format!(
                r#"{{"lifecycle":{{"rule":[{{"action":{{"type":"{action}"}},"condition":{{{condition}}}}}]}}}}"#
            ))
        };
        for condition in [r#""age":30"#, r#""matchesPrefix":["logs/","lease"]"#, r#""matchesSuffix":[".json"]"#] {
            assert_eq!(rule("Delete", condition), [Harm::Deletes(String::new())], "{condition}");
        }
        for condition in [
            r#""matchesPrefix":["logs/"]"#,
            r#""matchesSuffix":[".log"]"#,
            r#""isLive":false"#,
            r#""daysSinceNoncurrentTime":3"#,
            r#""numNewerVersions":2"#,
        ] {
            assert_eq!(rule("Delete", condition), [], "{condition}");
        }
        assert_eq!(rule("SetStorageClass", r#""age":30"#), [Harm::Moves(String::new())]);
        assert_eq!(rule("AbortIncompleteMultipartUpload", r#""age":1"#), []);
    }

    #[test]
    fn what_is_not_shown_is_no_answer() {
        for service in [Service::S3, Service::AzureBlob, Service::Gcs] {
            let codec = codec(service);
            for question in codec.questions() {
                for answer in [response(403, &[], ""), response(501, &[], ""), response(404, &[], "<html>")] {
                    assert!(codec.harms(&question, &answer).is_err(), "{service:?}: {answer:?}");
                }
            }
        }
    }

    #[test]
    fn a_write_that_retention_prevents_is_told_as_such() {
        let object_lock = "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required \
                           for Put Object requests with Object Lock parameters</Message></Error>";
        let google = |reason: &str| format!(r#"{{"error":{{"errors":[{{"reason":"{reason}"}}]}}}}"#);
        for (service, answer) in [
            (Service::S3, response(400, &[], object_lock)),
            (Service::AzureBlob, response(409, &[("x-ms-error-code", "BlobImmutableDueToPolicy")], "")),
            (Service::Gcs, response(403, &[], &google("retentionPolicyNotMet"))),
            (Service::Gcs, response(403, &[], &google("objectUnderActiveHold"))),
        ] {
            let Outcome::NotApplied(Refusal::Denied(denial)) = codec(service).classify(&answer) else {
                panic!("{service:?}: {answer:?}")
            };
            assert!(denial.kind == DenialKind::Other && denial.detail.contains("use one without"), "{denial:?}");
        }
    }
}

//! Checks of the settings of a bucket or container.

use leasehold_wire::objects::{Harm, Service, Setting};

use super::Objects;
use crate::admin::checks::objects as check;
use crate::admin::doctor::{Check, Finding};

/// Checks each setting once. `harms` are those that writes have told.
pub(super) fn examine(store: &Objects, mut harms: Vec<Harm>) -> Vec<Finding> {
    let questions = store.codec.questions();
    if questions.is_empty() {
        return Vec::new();
    }
    let mut unknown = Vec::new();
    for question in &questions {
        let answer = store.ask(question.request.clone());
        match answer.and_then(|response| store.codec.harms(question, &response)) {
            Ok(found) => harms.extend(found),
            Err(_) => unknown.extend(question.settings.iter().map(|setting| (*setting, question.right))),
        }
    }
    let mut findings = Vec::new();
    for setting in Setting::ALL {
        // A write and the settings may tell the same.
        let mut found: Vec<&Harm> = Vec::new();
        for harm in harms.iter().filter(|harm| harm.setting() == setting) {
            if !found.contains(&harm) {
                found.push(harm);
            }
        }
        let right = unknown.iter().find(|(of, _)| *of == setting).map(|(_, right)| *right);
        match (found.is_empty(), right) {
            (false, _) => findings.extend(found.into_iter().map(|harm| told(harm, store.url.service))),
            (true, Some(right)) => findings.push(
                check_of(setting).passes(format!("not known: these credentials may not read it, which takes {right}")),
            ),
            (true, None) => findings.push(sound(setting, store.url.service)),
        }
    }
    findings
}

const fn check_of(setting: Setting) -> Check {
    match setting {
        Setting::Versions => check::VERSIONS,
        Setting::Retention => check::RETENTION,
        Setting::Lifecycle => check::LIFECYCLE,
    }
}

fn sound(setting: Setting, service: Service) -> Finding {
    check_of(setting).passes(match (setting, service) {
        (Setting::Versions, _) => "overwritten objects are not kept",
        (Setting::Retention, _) => "objects may be overwritten at any time",
        // Such a policy belongs to the account, and is not shown to those who use its blobs.
        (Setting::Lifecycle, Service::AzureBlob) => {
            "not known: look for a lifecycle policy of the account that deletes or archives blobs of this container"
        }
        (Setting::Lifecycle, _) => "no rule moves or deletes the objects of locks",
    })
}

fn told(harm: &Harm, service: Service) -> Finding {
    let named = |rule: &str| {
        if rule.is_empty() { "a lifecycle rule".to_owned() } else { format!("the lifecycle rule {rule:?}") }
    };
    let mend = "leave the objects of locks out of the rule by its prefix, or use another bucket for locks";
    let (what, advice) = match harm {
        Harm::KeepsVersions => (
            "old versions are kept, and each renewal leaves one: about 9,000 billed versions a day for each lock"
                .to_owned(),
            "use a bucket without versioning for locks, or a rule that deletes old versions after a day",
        ),
        Harm::KeepsDeleted(seconds) => (
            format!(
                "overwritten objects are kept for {} days (soft delete) and billed, and each renewal overwrites one",
                seconds.div_ceil(86_400)
            ),
            "turn soft delete off for the bucket or account of locks",
        ),
        Harm::Retains(what) => (
            format!("{what} does not let objects be overwritten: leases cannot be renewed or released"),
            match service {
                Service::S3 => "use a bucket without object lock for locks; a default retention can be removed",
                Service::AzureBlob => "use a container without policies and legal holds for locks",
                Service::Gcs | Service::CosmosDb => "use a bucket without retention policy and holds for locks",
            },
        ),
        Harm::Deletes(rule) => (
            format!(
                "{} deletes the objects of locks: a lock becomes free while it is held, and tokens may decrease",
                named(rule)
            ),
            mend,
        ),
        Harm::Archives(rule) => (
            format!(
                "{} archives the objects of locks, which then cannot be read: unused locks can no longer be acquired",
                named(rule)
            ),
            mend,
        ),
        Harm::Moves(rule) => (
            format!(
                "{} moves the objects of locks to a storage class that bills at least a month for each write",
                named(rule)
            ),
            mend,
        ),
    };
    match harm.breaks_locks() {
        true => check_of(harm.setting()).fails(what, advice),
        false => check_of(harm.setting()).warns(what, advice),
    }
}

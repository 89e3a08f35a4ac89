//! Judges the eviction and persistence of a Redis by its answers, over a socket or HTTP. It sends nothing.

use leasehold_core::member::Durability;

use super::info::{Fields, printable};
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;

/// The answers of the server. An `Err` has the server's words of refusal.
pub(super) struct ServerSettings {
    pub(super) info: Result<Fields, String>,
    pub(super) save: Result<String, String>,
    pub(super) appendfsync: Result<String, String>,
}

impl ServerSettings {
    /// A line of `INFO`.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.info.as_ref().ok()?.get(name)
    }

    /// The reason why a field cannot be seen, in the server's words.
    pub(super) fn unseen(&self) -> &str {
        self.info.as_ref().err().map_or("INFO does not show it", String::as_str)
    }

    /// The number of connected replicas.
    pub(super) fn replicas(&self) -> Option<u64> {
        self.info.as_ref().ok()?.number("connected_slaves")
    }

    /// Checks for ways to lose locks.
    pub(super) fn losses(&self) -> Vec<Finding> {
        vec![self.eviction(), self.persistence()]
    }

    fn eviction(&self) -> Finding {
        let Ok(info) = &self.info else {
            return check::EVICTION.warns(
                format!("cannot be seen: {}", self.unseen()),
                "check that maxmemory is 0 or maxmemory-policy is noeviction; with +info this user can see it",
            );
        };
        let policy = info.get("maxmemory_policy").map(printable);
        match (info.number("maxmemory"), policy.as_deref()) {
            (Some(0), _) => check::EVICTION.passes("nothing is evicted: maxmemory is 0"),
            (Some(bytes), Some("noeviction")) => check::EVICTION.passes(format!(
                "nothing is evicted: past {} KiB writes are refused (noeviction)",
                bytes.div_ceil(1024)
            )),
            (Some(bytes), Some(policy)) if policy.starts_with("allkeys-") || policy.starts_with("volatile-") => {
                check::EVICTION.fails(
                    format!(
                        "past {} KiB the policy {policy} may evict locks, because they expire, and then two clients \
                         may hold one",
                        bytes.div_ceil(1024)
                    ),
                    "set maxmemory-policy noeviction, or use a separate server for locks",
                )
            }
            (_, Some(policy)) => check::EVICTION.warns(
                format!("the policy is {policy}, and its effect on locks is unknown"),
                "check that the server never removes keys before they expire",
            ),
            (_, None) => check::EVICTION.warns(
                "cannot be seen: INFO shows no maxmemory_policy",
                "check that the server never removes keys before they expire",
            ),
        }
    }

    fn persistence(&self) -> Finding {
        const WAIT: &str = "after a crash leave the server down for the longest ttl before it starts again";
        let tokens = "tokens keep growing, because they start at the server's clock, unless that was ahead";
        match self.field("aof_enabled") {
            Some("0") => match self.save() {
                Some("") => check::PERSISTENCE.fails(
                    format!(
                        "nothing is written to disk: a restart forgets all locks, and those held can be granted again \
                         while their holders still work; {tokens}"
                    ),
                    format!("set appendonly yes and appendfsync always, or {WAIT}"),
                ),
                Some(save) => check::PERSISTENCE.fails(
                    format!(
                        "snapshots only (save {}): a restart forgets the locks since the last one, and those can be \
                         granted again while their holders still work; {tokens}",
                        printable(save)
                    ),
                    format!("set appendonly yes and appendfsync always, or {WAIT}"),
                ),
                None => check::PERSISTENCE.fails(
                    format!(
                        "no append-only file; snapshots cannot be seen: {}. A restart forgets some locks or all, and \
                         those can be granted again while their holders still work; {tokens}",
                        self.save.as_ref().err().map_or("CONFIG does not show it", String::as_str)
                    ),
                    format!("set appendonly yes and appendfsync always, or {WAIT}"),
                ),
            },
            Some(_) => match self.appendfsync.as_deref() {
                Ok("always") => {
                    check::PERSISTENCE.passes("every write reaches the disk before it is answered (appendfsync always)")
                }
                Ok("everysec") => check::PERSISTENCE.fails(
                    format!(
                        "appendfsync everysec: when the server is killed or loses power, locks of up to the last two \
                         seconds are lost, and can be granted again while their holders still work; {tokens}"
                    ),
                    format!("set appendfsync always, or {WAIT}"),
                ),
                Ok(other) => check::PERSISTENCE.fails(
                    format!(
                        "appendfsync {}: after a power cut locks of the last half minute or more are lost, and can be \
                         granted again while their holders still work; {tokens}",
                        printable(other)
                    ),
                    format!("set appendfsync always, or {WAIT}"),
                ),
                Err(why) => check::PERSISTENCE.fails(
                    format!("there is an append-only file, but appendfsync cannot be seen: {why}"),
                    format!("check that appendfsync is always, or {WAIT}"),
                ),
            },
            None => check::PERSISTENCE.fails(
                format!("cannot be seen: {}", self.unseen()),
                format!("check that appendonly is yes and appendfsync is always, or {WAIT}"),
            ),
        }
    }

    /// Checks the url's claim of durability against the server.
    pub(super) fn durable(&self, durability: Durability) -> Option<Finding> {
        const ADVICE: &str = "set appendonly yes and appendfsync always, or remove durable=yes from the url";
        if durability == Durability::NotDeclared {
            return None;
        }
        let wrong = |what: &str| {
            let harm = "after a restart this node of a quorum would vote as if it had forgotten nothing, and two could \
                        hold one lock";
            Some(check::DURABLE.fails(format!("the url says durable=yes, but {what}: {harm}"), ADVICE))
        };
        if let Some(connected) = self.replicas().filter(|connected| *connected > 0) {
            return Some(check::DURABLE.fails(
                format!(
                    "the url says durable=yes, but {connected} replicas are connected: one that is promoted votes at \
                     once, without the last locks of its master, and two could hold one lock"
                ),
                "remove durable=yes from the url, or give this node of a quorum no replicas",
            ));
        }
        match (self.field("aof_enabled"), self.appendfsync.as_deref()) {
            (Some("0"), _) => wrong("nothing is written to disk before it is answered"),
            (Some(_), Ok("always")) => {
                Some(check::DURABLE.passes("as the url says: no restart loses what was answered"))
            }
            (Some(_), Ok(other)) => wrong(&format!("appendfsync is {}", printable(other))),
            (Some(_), Err(why)) => Some(check::DURABLE.warns(format!("cannot be seen: {why}"), ADVICE)),
            (None, _) => Some(check::DURABLE.warns(format!("cannot be seen: {}", self.unseen()), ADVICE)),
        }
    }

    fn save(&self) -> Option<&str> {
        self.save.as_deref().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::doctor::Severity;

    fn settings(info: &str, save: &str, fsync: &str) -> ServerSettings {
        ServerSettings { info: Ok(Fields::of_text(info)), save: Ok(save.into()), appendfsync: Ok(fsync.into()) }
    }

    #[test]
    fn snapshots_and_slow_files_lose_something() {
        let with = |aof: &str, save: &str, fsync: &str| {
            let finding = settings(&format!("aof_enabled:{aof}"), save, fsync).persistence();
            (finding.severity, finding.what)
        };
        for (aof, save, fsync, severity, says) in [
            ("0", "", "everysec", Severity::Warning, "nothing is written"),
            ("0", "3600 1 300 100", "everysec", Severity::Warning, "save 3600 1 300 100"),
            ("1", "", "everysec", Severity::Warning, "two seconds"),
            ("1", "", "no", Severity::Warning, "half minute"),
            ("1", "", "always", Severity::Good, "before it is answered"),
        ] {
            let (found, what) = with(aof, save, fsync);
            assert!(found == severity && what.contains(says), "{found:?} {what}");
        }
        let blind = ServerSettings { info: Err("NOPERM no info".into()), ..settings("", "", "") }.persistence();
        assert!(blind.severity == Severity::Warning && blind.what.contains("NOPERM no info"), "{blind:?}");
    }

    #[test]
    fn durability_in_the_url_is_checked_against_the_server() {
        let judged = |settings: &ServerSettings| settings.durable(Durability::Declared).unwrap();
        for (info, fsync, severity, says) in [
            ("aof_enabled:1", "always", Severity::Good, "as the url says"),
            ("aof_enabled:1\nconnected_slaves:1", "always", Severity::Problem, "1 replicas are connected"),
            ("aof_enabled:1", "everysec", Severity::Problem, "appendfsync is everysec"),
            ("aof_enabled:0", "always", Severity::Problem, "nothing is written to disk"),
            ("", "always", Severity::Warning, "cannot be seen"),
        ] {
            let settings = settings(info, "", fsync);
            let found = judged(&settings);
            assert!(found.severity == severity && found.what.contains(says), "{info}: {found:?}");
            assert_eq!(settings.durable(Durability::NotDeclared), None);
        }
        let blind = judged(&ServerSettings {
            appendfsync: Err("NOPERM no config".into()),
            ..settings("aof_enabled:1", "", "")
        });
        assert!(blind.severity == Severity::Warning && blind.what.contains("NOPERM no config"), "{blind:?}");
    }
}

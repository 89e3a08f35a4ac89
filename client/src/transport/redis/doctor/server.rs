//! Judges the settings of a server for locks. It sends nothing; it reads answers.

use std::net::IpAddr;

use super::Part;
use super::version::Version;
use crate::admin::checks::redis as check;
use crate::admin::doctor::Finding;
use crate::transport::durability::ServerSettings;
use crate::transport::info::{Fields, printable};
use crate::url::redis::{RedisPlace, RedisUrl};

/// NTP keeps offsets between clocks far below this.
const LARGE_OFFSET_MS: u64 = 60_000;
const OLDEST: u64 = 5;

/// The answers of the server. An `Err` has the server's words of refusal.
pub(super) struct ServerAnswers {
    pub(super) durability: ServerSettings,
    pub(super) hello: Option<Fields>,
    pub(super) min_replicas: Result<String, String>,
    pub(super) max_lag: Result<String, String>,
    pub(super) protected_mode: Result<String, String>,
    pub(super) bind: Result<String, String>,
}

/// The properties of the server that other checks depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Master,
    Replica,
    ClusterNode,
    Sentinel,
    Unknown,
}

impl ServerAnswers {
    fn hello(&self, name: &str) -> Option<&str> {
        self.hello.as_ref()?.get(name)
    }

    fn info(&self, name: &str) -> Option<&str> {
        self.durability.field(name)
    }

    pub(super) fn role(&self) -> Role {
        let mode = self.info("redis_mode").or_else(|| self.hello("mode"));
        let role = self.info("role").or_else(|| self.hello("role"));
        match (mode, role) {
            (Some("sentinel"), _) => Role::Sentinel,
            (_, Some("slave" | "replica")) => Role::Replica,
            (Some("cluster"), _) => Role::ClusterNode,
            (_, Some("master")) => Role::Master,
            (_, _) => Role::Unknown,
        }
    }

    pub(super) fn judge(&self, url: &RedisUrl, part: Part) -> Vec<Finding> {
        let mut findings = vec![self.version(), self.judge_role(url)];
        if self.role() != Role::Sentinel {
            findings.extend(self.durability.losses());
            findings.extend(self.durability.durable(url.durability));
        }
        if matches!(self.role(), Role::Master | Role::ClusterNode | Role::Unknown) {
            findings.push(self.replicas(url.replicas, part));
        }
        findings.extend([plaintext(url), self.password(url)].into_iter().flatten());
        findings
    }

    /// Checks if a master that was replaced goes on granting locks.
    pub(super) fn cut_off(&self) -> Finding {
        let advice =
            "set min-replicas-to-write 1 and min-replicas-max-lag to a few seconds, if there are enough replicas";
        match self.min_replicas.as_deref() {
            Ok("0") => check::MIN_REPLICAS.fails(
                "min-replicas-to-write is 0: a master that has lost contact to its replicas goes on granting locks, \
                 which the next master lacks",
                advice,
            ),
            Ok(count) => check::MIN_REPLICAS.passes(format!(
                "min-replicas-to-write is {}: a master that has lost contact to its replicas stops granting locks",
                printable(count)
            )),
            Err(why) => check::MIN_REPLICAS.fails(format!("min-replicas-to-write cannot be seen: {why}"), advice),
        }
    }

    fn version(&self) -> Finding {
        match Version::of(self.durability.info.as_ref().ok(), self.hello.as_ref()) {
            Some(Version { shown, major: Some(major) }) if major < OLDEST => {
                check::VERSION.fails(shown, "use Redis 5 or newer, or Valkey: older ones cannot run the scripts")
            }
            Some(Version { shown, major: Some(_) }) => check::VERSION.passes(shown),
            Some(Version { shown, major: None }) => check::VERSION
                .warns(shown, "check that it supports all of Redis 5; redis.trial shows whether locks work"),
            None => check::VERSION.warns(
                format!("cannot be seen: {}", self.durability.unseen()),
                "check that it is Redis 5 or newer, or Valkey; with +info this user can see it",
            ),
        }
    }

    fn judge_role(&self, url: &RedisUrl) -> Finding {
        match self.role() {
            Role::Master => check::ROLE.passes("a master, no cluster"),
            Role::Sentinel => check::ROLE.fails(
                "a Sentinel, which keeps no data",
                "write redis+sentinel://host:26379/master-name: that finds the master, also after a failover",
            ),
            Role::Replica => {
                let master = match (self.info("master_host"), self.info("master_port")) {
                    (Some(host), Some(port)) => format!(", {}:{}", printable(host), printable(port)),
                    (_, _) => String::new(),
                };
                let (what, advice) = if self.info("slave_read_only") == Some("0") {
                    ("a writable replica, whose writes its master never sees and which it loses", "")
                } else {
                    ("a read-only replica", ": no lock can be taken here")
                };
                check::ROLE.fails(what, format!("name the master in the store url{master}{advice}"))
            }
            Role::ClusterNode if matches!(url.place, RedisPlace::Cluster { .. }) => {
                check::ROLE.passes("a master of the cluster")
            }
            Role::ClusterNode => check::ROLE.warns(
                "a node of a Redis Cluster; redis:// uses this node alone, which refuses names in slots of other nodes",
                "write redis+cluster:// instead of redis://",
            ),
            Role::Unknown => check::ROLE.warns(
                format!("cannot be seen: {}", self.durability.unseen()),
                "check that it is a master; redis.trial shows whether it takes writes",
            ),
        }
    }

    /// Checks if clients can log in without a password.
    fn password(&self, url: &RedisUrl) -> Option<Finding> {
        let advice = "set a password (requirepass, or ACL users): anybody who logs in can free locks and fake tokens";
        if url.password.is_some() {
            return None;
        }
        if !is_local(url) {
            if url.is_encrypted() && url.tls.cert.is_some() {
                return None;
            }
            return Some(check::PASSWORD.fails("the server accepts anybody who reaches it over the network", advice));
        }
        let open = self.protected_mode.as_deref() == Ok("no");
        let listens = self.bind.as_deref().is_ok_and(listens_beyond_loopback);
        (open && listens).then(|| {
            let what = "no password and protected-mode no: the server accepts anybody who reaches this host";
            check::PASSWORD.fails(what, advice)
        })
    }
}

/// Tells if the url leads to this host.
fn is_local(url: &RedisUrl) -> bool {
    url.hosts().iter().all(|host| is_loopback(host))
}

fn listens_beyond_loopback(bind: &str) -> bool {
    let mut addresses = bind.split_whitespace().map(|address| address.trim_start_matches('-')).peekable();
    addresses.peek().is_none() || addresses.any(|address| !is_loopback(address))
}

fn plaintext(url: &RedisUrl) -> Option<Finding> {
    let advice = "use rediss:// (TLS), or a tunnel, unless nobody else is on this network";
    if url.is_encrypted() {
        return Some(check::PLAINTEXT.passes("the connection is encrypted"));
    }
    if is_local(url) {
        return None;
    }
    let what = if url.password.is_some() {
        "the password goes over the network in clear text: anybody who listens can read it, and then break every lock"
    } else {
        "the connection is not encrypted: others can read and change it"
    };
    Some(check::PLAINTEXT.fails(what, advice))
}

fn is_loopback(host: &str) -> bool {
    let by_name = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    by_name || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares the server's clock with ours: it was `server_ms` between `sent_ms` and `got_ms` of ours.
pub(super) fn clock(sent_ms: u64, server_ms: u64, got_ms: u64) -> Finding {
    // The server's time was read between our two.
    let (ahead, behind) = (server_ms.saturating_sub(got_ms), sent_ms.saturating_sub(server_ms));
    if ahead.max(behind) <= LARGE_OFFSET_MS {
        return check::CLOCK.passes(format!("within {} ms of this host's", ahead.max(behind)));
    }
    let which = if ahead > 0 { "ahead of" } else { "behind" };
    check::CLOCK.fails(
        format!(
            "the server's clock is {} s {which} this host's. Leases are not affected; but tokens start at the clock, \
             and a clock that is set back while counters are lost gives them twice",
            ahead.max(behind) / 1000
        ),
        "let NTP slew both clocks: a step of the server's clock ends leases early or late",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::doctor::Severity;

    fn refused() -> Result<String, String> {
        Err("NOPERM".to_owned())
    }

    fn answers(info: &str) -> ServerAnswers {
        ServerAnswers {
            durability: ServerSettings { info: Ok(Fields::of_text(info)), save: refused(), appendfsync: refused() },
            hello: None,
            min_replicas: refused(),
            max_lag: refused(),
            protected_mode: refused(),
            bind: refused(),
        }
    }

    fn url(text: &str) -> RedisUrl {
        RedisUrl::parse(text).unwrap()
    }

    #[test]
    fn old_servers_are_a_problem_and_unknown_versions_a_warning() {
        for (version, severity) in [
            ("4.0.14", Severity::Problem),
            ("2.8.0", Severity::Problem),
            ("5.0.0", Severity::Good),
            ("7.2.4", Severity::Good),
            ("10.0.0", Severity::Good),
            ("unstable", Severity::Warning),
        ] {
            assert_eq!(answers(&format!("redis_version:{version}")).version().severity, severity, "{version}");
        }
        assert_eq!(answers("").version().severity, Severity::Warning);
    }

    #[test]
    fn every_role_is_reported() {
        for (info, role) in [
            ("redis_mode:standalone\nrole:master", Role::Master),
            ("redis_mode:standalone\nrole:slave", Role::Replica),
            ("redis_mode:cluster\nrole:master", Role::ClusterNode),
            ("redis_mode:cluster\nrole:slave", Role::Replica),
            ("redis_mode:sentinel", Role::Sentinel),
            ("", Role::Unknown),
        ] {
            assert_eq!(answers(info).role(), role, "{info}");
        }
    }

    #[test]
    fn an_offset_counts_only_beyond_the_round_trip() {
        for (sent, server, got, severity) in [
            (1_000_000, 1_000_000, 1_000_001, Severity::Good),
            (1_000_000, 1_060_001, 1_000_001, Severity::Good),
            (1_000_000, 1_060_002, 1_000_001, Severity::Warning),
            (1_000_000, 939_999, 1_000_001, Severity::Warning),
            (1_000_000, 1_100_000, 1_200_000, Severity::Good),
        ] {
            assert_eq!(clock(sent, server, got).severity, severity, "{sent} {server} {got}");
        }
    }

    #[test]
    fn only_connections_to_other_hosts_must_be_encrypted() {
        for url in ["redis://localhost", "redis://127.0.0.2:1", "redis://[::1]", "redis+unix:///s"].map(url) {
            assert_eq!(plaintext(&url), None, "{url}");
            assert_eq!(answers("").password(&url), None, "{url}");
        }
        let severity = |text: &str| plaintext(&url(text)).map(|finding| (finding.severity, finding.what));
        assert!(matches!(severity("rediss://10.0.0.1"), Some((Severity::Good, _))));
        assert!(matches!(severity("redis://10.0.0.1"), Some((Severity::Warning, what)) if !what.contains("password")));
        assert!(matches!(severity("redis://:p@db"), Some((Severity::Warning, what)) if what.contains("password")));
        assert!(answers("").password(&url("redis://db")).is_some());
        assert!(answers("").password(&url("rediss://db")).is_some());
        assert_eq!(answers("").password(&url("redis://:p@db")), None);
        assert_eq!(answers("").password(&url("rediss://db?cert=c&key=k")), None);
    }

    #[test]
    fn an_open_server_is_found_from_its_own_host_too() {
        for (protected, bind, is_open) in [
            ("no", "", true),
            ("no", "* -::*", true),
            ("no", "127.0.0.1 10.0.0.1", true),
            ("no", "127.0.0.1 -::1", false),
            ("yes", "", false),
        ] {
            let answers = ServerAnswers { protected_mode: Ok(protected.into()), bind: Ok(bind.into()), ..answers("") };
            assert_eq!(answers.password(&url("redis://localhost")).is_some(), is_open, "{protected} {bind}");
        }
    }
}

//! All checks of the doctor: the name of each, and the worst that it can find.
//!
//! Names are stable, since scripts wait for them. When each finds something is said once, in the tables of `docs/doctor.md` and of the
//! pages of stores, whose rows a test compares with these. How a store is asked, and what its answers mean, is with the store.

use super::doctor::{Check, Severity};

/// A module of constants for each store, and in tests a list of them all.
macro_rules! checks {
    ($($store:ident { $($id:ident $name:literal $worst:ident)* })*) => {
        $(
            #[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the checks of stores that are left out"))]
            pub(crate) mod $store {
                use super::{Check, Severity};

                $(pub(crate) const $id: Check = Check::new($name, Severity::$worst);)*
            }
        )*

        #[cfg(test)]
        const ALL: &[Check] = &[$($($store::$id),*),*];
    };
}

checks! {
    store {
        OPEN "store.open" Problem
    }
    host {
        CLOCK_RATE "host.clock_rate" Problem
    }
    memory {
        SCOPE "memory.scope" Warning
    }
    sqlite {
        FILE "sqlite.file" Problem
        SCHEMA "sqlite.schema" Good
        JOURNAL "sqlite.journal" Problem
        SYNCHRONOUS "sqlite.synchronous" Problem
        INTEGRITY "sqlite.integrity" Problem
        RECORDS "sqlite.records" Problem
        CLOCK "sqlite.clock" Problem
        FILESYSTEM "sqlite.filesystem" Problem
        SPACE "sqlite.space" Warning
    }
    http {
        WAY "http.way" Warning
        LOGIN "http.login" Warning
        SERVER "http.server" Problem
        SCRIPTS "http.scripts" Problem
        LIMITS "http.limits" Good
    }
    quorum {
        SIZE "quorum.size" Warning
        VOTES "quorum.votes" Problem
        RUNS "quorum.runs" Warning
        NODE "quorum.node" Problem
        INDEPENDENCE "quorum.independence" Problem
        DURABILITY "quorum.durability" Warning
        CLOCK "quorum.clock" Warning
    }
    redis {
        REACHABLE "redis.reachable" Problem
        CLOCK "redis.clock" Warning
        VERSION "redis.version" Problem
        ROLE "redis.role" Problem
        TOPOLOGY "redis.topology" Problem
        COVERAGE "redis.coverage" Problem
        SENTINELS "redis.sentinels" Problem
        FAILOVER "redis.failover" Warning
        MIN_REPLICAS "redis.min_replicas" Warning
        RIGHTS "redis.rights" Problem
        TRIAL "redis.trial" Problem
        WAKEUPS "redis.wakeups" Warning
        ITEMS "redis.items" Good
        QUEUE "redis.queue" Warning
        EVICTION "redis.eviction" Problem
        PERSISTENCE "redis.persistence" Warning
        REPLICAS "redis.replicas" Problem
        DURABLE "redis.durable" Problem
        PASSWORD "redis.password" Warning
        PLAINTEXT "redis.plaintext" Warning
    }
    dynamodb {
        WAY "dynamodb.way" Warning
        KEYS "dynamodb.keys" Problem
        IDENTITY "dynamodb.identity" Warning
        TABLE "dynamodb.table" Problem
        BILLING "dynamodb.billing" Warning
        REPLICAS "dynamodb.replicas" Problem
        EXPIRY "dynamodb.expiry" Problem
        RIGHTS "dynamodb.rights" Problem
        COMPLETIONS "dynamodb.completions" Warning
        THROTTLING "dynamodb.throttling" Warning
        CLOCK "dynamodb.clock" Problem
    }
    etcd {
        WAY "etcd.way" Warning
        SERVER "etcd.server" Problem
        LATENCY "etcd.latency" Warning
        AUTH "etcd.auth" Warning
        REACH "etcd.reach" Warning
        VERSION "etcd.version" Problem
        CLUSTER "etcd.cluster" Problem
        LEADER "etcd.leader" Warning
        CLOCK "etcd.clock" Warning
        MEMBERS "etcd.members" Warning
        ALARMS "etcd.alarms" Problem
        SPACE "etcd.space" Warning
    }
    objects {
        WAY "objects.way" Warning
        SERVER "objects.server" Problem
        ACCOUNT "objects.account" Good
        LATENCY "objects.latency" Warning
        CONDITIONS "objects.conditions" Problem
        VERSIONS "objects.versions" Warning
        RETENTION "objects.retention" Problem
        LIFECYCLE "objects.lifecycle" Problem
        LIST "objects.list" Warning
    }
    postgres {
        ENCRYPTION "postgres.encryption" Warning
        SERVER "postgres.server" Problem
        PRIMARY "postgres.primary" Problem
        DURABILITY "postgres.durability" Problem
        REPLICATION "postgres.replication" Problem
        POOLER "postgres.pooler" Warning
        LISTEN "postgres.listen" Warning
        TABLE "postgres.table" Problem
        QUEUE "postgres.queue" Problem
        RESULTS "postgres.results" Problem
        ITEMS "postgres.items" Good
        CLOCK "postgres.clock" Warning
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// The pages that have a table of checks, and the stores of each.
    const PAGES: [(&str, &[&str]); 6] = [
        ("doctor", &["store", "host", "memory", "sqlite", "http", "quorum"]),
        ("redis", &["redis"]),
        ("dynamodb", &["dynamodb"]),
        ("etcd", &["etcd"]),
        ("objects", &["objects"]),
        ("postgres", &["postgres"]),
    ];

    fn store_of(check: Check) -> &'static str {
        check.name().split('.').next().unwrap_or_default()
    }

    #[test]
    fn the_guide_has_the_rows_of_the_table_and_no_other() {
        for (page, stores) in PAGES {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{page}.md"));
            let text = std::fs::read_to_string(path).unwrap();
            let is_row = |line: &&str| {
                let name = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()).unwrap_or_default();
                name.split_once('.').is_some_and(|(store, of)| stores.contains(&store) && !of.starts_with('.'))
            };
            let written: Vec<&str> = text.lines().filter(is_row).collect();
            let of_page = ALL.iter().filter(|check| stores.contains(&store_of(**check)));
            let declared: Vec<String> =
                of_page.map(|check| format!("| `{}` | {} | ", check.name(), check.worst().name())).collect();
            let are_same = written.len() == declared.len()
                && written
                    .iter()
                    .zip(&declared)
                    .all(|(row, begin)| row.starts_with(begin) && row.len() > begin.len() + 2);
            assert!(are_same, "docs/{page}.md should have these rows:\n{}", declared.join("\n"));
        }
        let stores: usize = PAGES.iter().map(|(_, stores)| stores.len()).sum();
        let mut declared: Vec<&str> = ALL.iter().map(|check| store_of(*check)).collect();
        declared.dedup();
        assert_eq!(declared.len(), stores, "each store is on one page: {declared:?}");
    }

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { sources(&path, found) } else { found.push(path) }
        }
    }

    #[test]
    fn only_a_check_that_can_find_a_problem_warns_of_less() {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let mut seen = 0;
        for path in files {
            let source = std::fs::read_to_string(&path).unwrap();
            let Some((_, of)) = source.split_once("use crate::admin::checks::") else { continue };
            let Some(store) = of.split(" as check").next().and_then(|of| of.rsplit(':').next()) else {
                continue;
            };
            for (at, kind, least) in [(".warns(", "warns", Severity::Problem), (".fails(", "fails", Severity::Warning)]
                .into_iter()
                .flat_map(|(call, kind, least)| source.match_indices(call).map(move |(at, _)| (at, kind, least)))
            {
                let Some(id) = source[..at].trim_end().rsplit("check::").next().filter(|id| is_constant(id)) else {
                    continue;
                };
                let name = format!("{store}.{}", id.to_ascii_lowercase());
                let check = ALL.iter().find(|check| check.name() == name).unwrap();
                assert!(
                    check.worst() >= least,
                    "{name} {kind} in {}, and is declared {}",
                    path.display(),
                    check.worst().name()
                );
                seen += 1;
            }
        }
        assert!(seen > 100, "{seen}");
    }

    fn is_constant(id: &str) -> bool {
        id.bytes().all(|c| c.is_ascii_uppercase() || c == b'_')
    }
}

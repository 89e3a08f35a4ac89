//! The findings of the doctor.

use leasehold::{Finding, Severity};
use leasehold_servers::postgres::{Pooler, Server};

use crate::common::on_postgres::{bare_table, table_of};
use crate::{Rig, client};

#[track_caller]
fn found(url: &str, check: &str) -> Finding {
    let findings = client(url).doctor().unwrap();
    let finding = findings.iter().find(|finding| finding.check == check);
    finding.unwrap_or_else(|| panic!("no {check} in {findings:?}")).clone()
}

#[test]
fn a_good_server_has_no_findings_but_its_disk() {
    let server = Server::with(&["fsync=on", "synchronous_commit=on"]);
    let url = bare_table(&server, server.port());
    let findings = client(&url).doctor().unwrap();
    let bad: Vec<_> = findings.iter().filter(|finding| finding.severity != Severity::Good).collect();
    assert!(bad.is_empty() && findings.len() >= 8, "{findings:?}");
}

#[test]
fn a_server_that_answers_early_is_no_fault() {
    let server = Server::with(&["fsync=on"]);
    let durability = found(&bare_table(&server, server.port()), "postgres.durability");
    assert!(durability.severity == Severity::Good && durability.what.contains("switches it on"), "{durability:?}");
}

#[test]
fn servers_that_can_lose_locks_are_told() {
    let rig = Rig::bare();
    assert_eq!(found(&rig.url, "postgres.durability").severity, Severity::Problem, "fsync is off");
    assert_eq!(found(&format!("{}&durable=yes", rig.url), "postgres.replication").severity, Severity::Problem);
    let server = Server::start();
    let url = bare_table(&server, server.port());
    let standby = server.standby();
    let replication = found(&url, "postgres.replication");
    assert!(replication.severity == Severity::Warning && replication.advice.contains("synchronous_standby_names"));
    let primary = found(&url.replace(&server.port().to_string(), &standby.port().to_string()), "postgres.primary");
    assert_eq!(primary.severity, Severity::Problem);
}

#[test]
fn tables_that_cannot_keep_locks_are_told() {
    let rig = Rig::bare();
    let table = table_of(&rig.url);
    for (change, back) in [("SET UNLOGGED", "SET LOGGED"), ("ENABLE ROW LEVEL SECURITY", "DISABLE ROW LEVEL SECURITY")]
    {
        rig.server.run(&format!("ALTER TABLE {table} {change}"));
        assert_eq!(found(&rig.url, "postgres.table").severity, Severity::Problem, "{change}");
        rig.server.run(&format!("ALTER TABLE {table} {back}"));
    }
    assert_eq!(found(&rig.url, "postgres.table").severity, Severity::Good);
}

#[test]
fn notifications_through_a_pooler_are_told() {
    let server = Server::shared();
    let pooler = Pooler::start(&server);
    let url = bare_table(&server, pooler.port());
    assert_eq!(found(&url, "postgres.pooler").severity, Severity::Good);
    assert_eq!(found(&format!("{url}&listen=yes"), "postgres.pooler").severity, Severity::Warning);
    let past = format!("{url}&listen=127.0.0.1:{}", server.port());
    assert_eq!(found(&past, "postgres.pooler").severity, Severity::Good);
}

#[test]
fn an_address_that_sends_no_notifications_is_told() {
    let rig = Rig::new();
    let listening = |to: &str| found(&format!("{}&listen={to}", rig.url), "postgres.listen");
    assert_eq!(listening("yes").severity, Severity::Good);
    let nobody = listening("127.0.0.1:1");
    assert!(nobody.severity == Severity::Warning && nobody.advice.contains("listen=HOST:PORT"), "{nobody:?}");
    let findings = client(&rig.url).doctor().unwrap();
    assert!(findings.iter().all(|finding| finding.check != "postgres.listen"), "{findings:?}");
}

#[test]
fn a_user_that_cannot_delete_is_told_what_follows() {
    let rig = Rig::bare();
    rig.server.run("CREATE ROLE keeper LOGIN PASSWORD 'hunter2'");
    let url = rig.url.replace("postgres@", "keeper:hunter2@");
    for grant in leasehold::schema::sql(&url).unwrap().split(";\n").filter(|statement| statement.starts_with("GRANT")) {
        rig.server.run(grant);
    }
    assert_eq!(found(&url, "postgres.table").severity, Severity::Good);
    rig.server.run(&format!("REVOKE DELETE ON {} FROM keeper", table_of(&rig.url)));
    let table = found(&url, "postgres.table");
    assert!(table.severity == Severity::Warning && table.what.contains("never removed"), "{table:?}");
    assert!(table.advice.contains("store show"), "{table:?}");
}

#[test]
fn a_table_of_items_that_is_missing_is_told_and_no_fault() {
    let rig = Rig::bare();
    let items = || found(&rig.url, "postgres.items");
    assert!(items().severity == Severity::Good && items().what.contains("is there"), "{:?}", items());
    rig.server.run("CREATE ROLE locker LOGIN PASSWORD 'hunter2'");
    let url = rig.url.replace("postgres@", "locker:hunter2@");
    let of_locks = |grant: &&str| grant.starts_with("GRANT") && !grant.contains("leasehold_items");
    for grant in leasehold::schema::sql(&url).unwrap().split(";\n").filter(of_locks) {
        rig.server.run(grant);
    }
    let found_by_locker = found(&url, "postgres.items");
    assert!(found_by_locker.what.contains("lacks SELECT, INSERT or UPDATE"), "{found_by_locker:?}");
    rig.server.run(&format!("DROP TABLE {}_items", table_of(&rig.url)));
    assert!(items().severity == Severity::Good && items().what.contains("store create"), "{:?}", items());
}

//! A server that answers commits before they are on disk, as `synchronous_commit = off` has it, loses nothing of ours.
//!
//! [`new_table`](crate::common::on_postgres::new_table) has each commit of all these tests checked; here is what they leave out.

use leasehold::cas::Items;
use leasehold::fence::{PostgresGuard, PostgresRowGuard};
use leasehold_servers::postgres::Server;

use crate::common::on_postgres::{bare_table, schema_of, table_of};
use crate::{Rig, client};

/// A crash takes what the server writes only every ten seconds.
#[test]
fn what_was_answered_outlives_a_crash() {
    let server = Server::with(&["wal_writer_delay=10s"]);
    let url = bare_table(&server, server.port());
    let (items, locks) = (Items::connect(&url).unwrap(), client(&url));
    for round in 1..=5 {
        let token = locks.lock("a").acquire().unwrap().token();
        let written = items.update("counter", |_| Some(format!("{round}").into_bytes())).unwrap().unwrap();
        server.kill();
        server.restart();
        let found = items.read("counter").unwrap().unwrap();
        assert_eq!((found.version, found.value), (written.version, written.value), "round {round}");
        let counter: i64 = server.value(&format!("SELECT counter FROM {}", table_of(&url)));
        assert_eq!(u64::try_from(counter).unwrap(), token, "round {round}");
        locks.break_lock("a").unwrap();
    }
}

#[test]
fn tables_are_on_disk_before_they_are_there() {
    let server = Server::start();
    server.run(
        "CREATE FUNCTION insist() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF current_setting('synchronous_commit') = 'off' THEN RAISE '% would be lost', tg_tag; END IF; END $$; \
         CREATE EVENT TRIGGER insist ON ddl_command_end EXECUTE FUNCTION insist()",
    );
    let url = bare_table(&server, server.port());
    // And those of an earlier version, which lack this.
    let schema = schema_of(&url);
    server.run(&format!("ALTER TABLE {schema}.leasehold DROP COLUMN line"));
    leasehold::schema::create(&url).unwrap();
    let columns = format!("SELECT count(line) FROM {schema}.leasehold");
    assert_eq!(server.value::<i64>(&columns), 0);
}

/// A check is lost only with the write that it let through.
#[test]
fn claims_are_on_disk_before_they_are_answered() {
    let rig = Rig::new();
    let schema = rig.schema();
    let table = PostgresGuard::in_schema(&schema, "marks").unwrap();
    rig.server.run(table.create_sql());
    rig.server.run(&format!("SET search_path = {schema}; CREATE TABLE c (c bigint PRIMARY KEY, leasehold bigint)"));
    rig.server.run(&format!("INSERT INTO {schema}.c VALUES (7, NULL)"));
    // A table with the shortest name, which a part of a statement might have as well.
    let row = PostgresRowGuard::new("c", "c", "leasehold").unwrap();
    rig.server.insist_on_durability(&schema);
    let mut db = rig.server.connect();
    db.batch_execute(&format!("SET synchronous_commit = off; SET search_path = {schema}")).unwrap();
    for token in [33, 34] {
        let (item, number) = PostgresGuard::parameters("bills", token).unwrap();
        let mark = db.query_one(table.claim_sql(), &[&item, &number]).unwrap();
        PostgresGuard::outcome(item, token, Some(mark.get(0))).unwrap();
        let mark = db.query_one(row.claim_sql(), &[&7_i64, &number]).unwrap();
        PostgresRowGuard::claim_outcome(token, &[mark.get(0)]).unwrap();
    }
    let setting: String = db.query_one("SELECT current_setting('synchronous_commit')", &[]).unwrap().get(0);
    assert_eq!(setting, "off", "it is as it was behind the transaction of the claim");
}

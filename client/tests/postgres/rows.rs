//! Rows that somebody changed by hand.

use leasehold::ErrorKind;

use crate::common::{PATIENCE, eventually, ms};
use crate::{Rig, lease};

#[test]
fn the_table_refuses_what_no_client_writes() {
    let rig = Rig::new();
    lease(&rig.client(), "a").release().unwrap();
    let mut by_hand = rig.server.connect();
    for change in [
        "counter = -1",
        "counter = 9007199254740992",
        "nonce = 'short'",
        "seq = -1",
        "released = NULL",
        "expires_at = NULL",
        "expires_at = 'infinity'",
        "since = '-infinity'",
        "done_until = 'infinity'",
        "resource = ''",
    ] {
        let error = by_hand.execute(&format!("UPDATE {} SET {change}", rig.table()), &[]).unwrap_err();
        assert!(error.as_db_error().is_some_and(|error| error.code().code().starts_with("23")), "{change}: {error}");
    }
}

#[test]
fn a_row_without_those_checks_is_never_free() {
    let rig = Rig::new();
    let client = rig.client();
    lease(&client, "a").release().unwrap();
    for (change, kind, words) in [
        ("expires_at = now() + interval '100 years', released = false", ErrorKind::StoreRefused, "by hand"),
        ("expires_at = 'infinity', released = false", ErrorKind::StoreRefused, "by hand"),
        ("expires_at = NULL, released = NULL", ErrorKind::StoreRefused, "by hand"),
        ("owner = E'\\n', released = false, expires_at = now() + interval '1 hour'", ErrorKind::StoreRefused, "owner"),
        (
            "counter = 9007199254740991, owner = '', released = true, expires_at = now()",
            ErrorKind::StoreRefused,
            "2^53",
        ),
    ] {
        rig.server.run(&format!(
            "DO $$ DECLARE c text; BEGIN FOR c IN SELECT conname FROM pg_constraint WHERE conrelid = '{table}'::regclass \
             AND contype = 'c' LOOP EXECUTE 'ALTER TABLE {table} DROP CONSTRAINT ' || c; END LOOP; END $$; \
             ALTER TABLE {table} ALTER expires_at DROP NOT NULL, ALTER released DROP NOT NULL; \
             UPDATE {table} SET {change}",
            table = rig.table()
        ));
        let error = client.lock("a").wait(ms(500)).acquire().unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(words), "{change}: {error}");
    }
}

#[test]
fn a_deleted_row_is_a_loss_and_the_next_token_is_higher() {
    let rig = Rig::new();
    let (one, two) = (rig.client(), rig.client());
    let held = lease(&one, "a");
    rig.server.run(&format!("DELETE FROM {}", rig.table()));
    eventually("the loss is noticed", || held.is_lost());
    assert!(lease(&two, "a").token() > held.token());
}

#[test]
fn rows_that_nobody_used_for_a_week_are_forgotten_beside_new_ones() {
    let rig = Rig::new();
    let client = rig.client();
    for at in 1..=9 {
        lease(&client, &format!("job {at}")).release().unwrap();
    }
    let held = lease(&client, "job 3");
    let marked = client.once("job 4").key("monday").wait(PATIENCE).begin().unwrap();
    let leasehold::blocking::Once::Run(run) = marked else { panic!("it is new") };
    run.finish().unwrap();
    rig.server.run(&format!(
        "UPDATE {} SET expires_at = expires_at - interval '8 days' WHERE released AND resource <> 'job 9'",
        rig.table()
    ));
    lease(&client, "job 0").release().unwrap();
    let left = || -> Vec<String> {
        let rows = rig.server.connect().query(&format!("SELECT resource FROM {} ORDER BY 1", rig.table()), &[]);
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    };
    // Of the four that follow the new one, two are not in use. A request whose reply comes late is sent again, and forgets some more.
    eventually("two are forgotten", || !left().iter().any(|name| ["job 1", "job 2"].contains(&&**name)));
    let left = left();
    for in_use in ["job 0", "job 3", "job 4@monday", "job 9"] {
        assert!(left.iter().any(|name| name == in_use), "{in_use} is gone: {left:?}");
    }
    held.release().unwrap();
}

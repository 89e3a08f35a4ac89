//! Checks if this server and its table can keep locks.

use leasehold_core::member::Durability;
use leasehold_wire::postgres::schema::{self, ITEMS, TABLE, WAITERS};
use leasehold_wire::postgres::{Field, Param, Statement};

use super::{Postgres, no_rows};
use crate::admin::checks::postgres as check;
use crate::admin::doctor::Finding;
use crate::transport::Transport;
use crate::url::postgres::{PostgresPlace, Tls};

/// The oldest version that has what the statements use.
const OLDEST: i64 = 120_000;
/// A larger offset of the server's clock is told, in milliseconds.
const OFFSET: i64 = 1_000;
const RIGHTS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];

const SERVER: &str = "SELECT current_setting('server_version_num')::bigint, pg_is_in_recovery(), \
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), \
    current_setting('synchronous_standby_names'), inet_server_port()::bigint, \
    (SELECT count(*) FROM pg_stat_replication)";

const LOCKS: &str = "SELECT c.relkind::text, c.relpersistence::text, c.relhastriggers OR c.relhasrules, \
    c.relrowsecurity, has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'), \
    has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE') \
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";

pub(super) fn diagnose(store: &Postgres) -> Vec<Finding> {
    let mut findings = vec![encryption(store)];
    let server = match store.ask_row(SERVER) {
        Ok(row) => row,
        Err(error) => {
            let advice = "check that the server runs at this address and lets this user in, then run this check again";
            findings.push(check::SERVER.fails(error.to_string(), advice));
            return findings;
        }
    };
    findings.extend(about_server(store, &server));
    findings.extend(listening(store));
    findings.push(table(store));
    findings.push(queue(store));
    findings.push(results(store));
    findings.push(items(store));
    findings.push(clock(store));
    findings
}

fn encryption(store: &Postgres) -> Finding {
    match (&store.url.tls, store.url.place.is_here()) {
        (Tls::On { .. }, _) => check::ENCRYPTION.passes("TLS, with a verified certificate"),
        (Tls::Off, true) => check::ENCRYPTION.passes("the server is on this machine"),
        (Tls::Off, false) => check::ENCRYPTION.fails(
            "nothing is encrypted: everybody on the network path can read requests, and break locks with what they see",
            "leave sslmode=disable out, or keep to a network that you trust",
        ),
    }
}

fn about_server(store: &Postgres, row: &[Field]) -> Vec<Finding> {
    let [Field::Int(version), Field::Bool(recovers), settings @ ..] = row else {
        return vec![check::SERVER.fails("it does not answer as PostgreSQL does", "check host and port")];
    };
    let mut findings = vec![version_of(*version), role(*recovers)];
    if let [Field::Text(fsync), Field::Text(pages), Field::Text(commit), Field::Text(names), port, replicas] = settings
    {
        findings.push(disk(fsync, pages, commit));
        let replicas = if let Field::Int(replicas) = replicas { *replicas } else { 0 };
        findings.push(replication(commit, names, replicas, store.url.durability));
        findings.push(pooler(store, port));
    }
    findings
}

fn version_of(number: i64) -> Finding {
    let version = format!("PostgreSQL {}.{}", number / 10_000, number % 10_000);
    if number < OLDEST {
        return check::SERVER.fails(version, "use PostgreSQL 12 or newer");
    }
    check::SERVER.passes(version)
}

fn role(recovers: bool) -> Finding {
    if recovers {
        let what = "this server is a standby, which takes no writes";
        return check::PRIMARY.fails(what, "name the primary, or an address that leads to it");
    }
    check::PRIMARY.passes("this server takes writes")
}

fn disk(fsync: &str, pages: &str, commit: &str) -> Finding {
    if fsync != "on" || pages != "on" {
        return check::DURABILITY.fails(
            format!("fsync is {fsync}, full_page_writes is {pages}: a crash of the machine can lose locks and tokens"),
            "set both to on",
        );
    }
    let what = match commit {
        "off" => "synchronous_commit is off; leasehold switches it on for its own transactions",
        _ => "commits reach the disk before they are answered",
    };
    check::DURABILITY.passes(what)
}

fn replication(commit: &str, names: &str, replicas: i64, durability: Durability) -> Finding {
    let waits = !names.is_empty() && !matches!(commit, "local" | "off");
    match (waits, durability) {
        (true, _) => check::REPLICATION.passes("commits wait for a synchronous replica"),
        (false, Durability::Declared) => check::REPLICATION.fails(
            "the url says durable=yes, but commits wait for no replica: a failover can lose locks, unseen",
            "set synchronous_standby_names and leave synchronous_commit on, or leave durable=yes out",
        ),
        (false, Durability::NotDeclared) if replicas > 0 => check::REPLICATION.warns(
            "there are replicas, and commits do not wait for them: a failover can lose the last locks and tokens",
            "set synchronous_standby_names, or use fencing tokens, or a quorum of servers, which notices a failover",
        ),
        (false, Durability::NotDeclared) => check::REPLICATION.passes("no replica is seen to which it could fail over"),
    }
}

/// A server that is reached under another port than its own has something in front of it.
fn pooler(store: &Postgres, port: &Field) -> Finding {
    let named = match store.url.place {
        PostgresPlace::Tcp { port, .. } | PostgresPlace::Unix { port, .. } => i64::from(port),
    };
    let has_one = match (port, &store.url.place) {
        (Field::Int(port), _) => *port != named,
        (_, PostgresPlace::Tcp { .. }) => true,
        (_, PostgresPlace::Unix { .. }) => false,
    };
    match (has_one, &store.url.listen) {
        (true, Some(place)) if *place == store.url.place => check::POOLER.fails(
            "a pooler or proxy is in front of the server, and listen=yes goes through it: notifications may get lost",
            "name the server itself in listen=HOST:PORT",
        ),
        (true, _) => check::POOLER.passes("a pooler or proxy is in front of the server; any mode will do"),
        (false, _) => check::POOLER.passes("none is seen"),
    }
}

/// Notifications come over a connection of their own, which nothing else shows to be missing.
fn listening(store: &Postgres) -> Option<Finding> {
    let place = store.url.listen.as_ref()?;
    Some(match store.try_to_listen(place.clone()) {
        Ok(()) => check::LISTEN.passes("notifications of releases arrive"),
        Err(error) => check::LISTEN.fails(
            format!("the address in the parameter listen cannot be reached, so waiters poll: {error}"),
            "correct it in the url: listen=HOST:PORT, the server's own address past its pooler",
        ),
    })
}

fn table(store: &Postgres) -> Finding {
    let texts = [store.url.schema.as_str(), TABLE].map(|name| Param::Text(Some(name.to_owned())));
    let rows = store.ask(Statement { sql: LOCKS.to_owned(), params: texts.to_vec() });
    let rows = match rows {
        Ok(rows) => rows,
        Err(outcome) => return check::TABLE.fails(no_rows(outcome).to_string(), "check the rights of this user"),
    };
    let make = "create it with `leasehold store create`, or run the SQL of `leasehold store show`";
    let Some([Field::Text(kind), Field::Text(persistence), Field::Bool(acts), Field::Bool(hides), rights @ ..]) =
        rows.first().map(Vec::as_slice)
    else {
        return check::TABLE.fails(format!("there is no table {}.{TABLE}", store.url.schema), make);
    };
    if kind != "r" || persistence != "p" {
        let what = "the table of locks is unlogged, temporary, partitioned or foreign: it can lose locks";
        return check::TABLE.fails(what, make);
    }
    if *acts || *hides {
        let what =
            "the table of locks has triggers, rules or row security, which can change what is written or hide it";
        return check::TABLE.fails(what, "remove them");
    }
    let missing: Vec<_> =
        RIGHTS.iter().zip(rights).filter(|(_, has)| **has != Field::Bool(true)).map(|(it, _)| *it).collect();
    if missing == ["DELETE"] {
        let what = "this user lacks DELETE on the table of locks: rows that nobody uses are never removed";
        return check::TABLE.warns(what, "run the GRANT statements of `leasehold store show` as its owner");
    }
    if !missing.is_empty() {
        let what = format!("this user lacks {} on the table of locks", missing.join(", "));
        return check::TABLE.fails(what, "run the GRANT statements of `leasehold store show` as its owner");
    }
    match store.look() {
        Ok(_) => check::TABLE.passes(format!("{}.{TABLE} is there, with all rights", store.url.schema)),
        Err(error) => check::TABLE.fails(error.to_string(), make),
    }
}

/// Checks if those who wait stand in the queue, which they do where the tables are of this version.
fn queue(store: &Postgres) -> Finding {
    match store.marker() {
        Err(error) => return check::QUEUE.fails(error.to_string(), "check the rights of this user"),
        Ok(found) if !found.has_queues => {
            return check::QUEUE.warns(
                format!(
                    "{TABLE} has no column `line`, or this user may not use {WAITERS}: waiters are served in any order"
                ),
                "run `leasehold store create`, or the SQL of `leasehold store show`, and restart the clients",
            );
        }
        Ok(_) => {}
    }
    let waiters = Param::Text(Some(schema::waiters(&store.url.schema)));
    let sql = "SELECT has_table_privilege(to_regclass($1::text), 'DELETE')".to_owned();
    let may_delete = store.ask(Statement { sql, params: vec![waiters] });
    if may_delete.is_ok_and(|rows| rows.first().and_then(|row| row.first()) == Some(&Field::Bool(true))) {
        return check::QUEUE.passes("waiters stand in the queue");
    }
    let what = format!("this user lacks DELETE on {WAITERS}: clients that are gone are never removed from it");
    check::QUEUE.warns(what, "run the GRANT statements of `leasehold store show` as its owner")
}

/// Checks if what runs leave can be kept, which it is where the table is of this version.
fn results(store: &Postgres) -> Finding {
    match store.marker() {
        Err(error) => check::RESULTS.fails(error.to_string(), "check the rights of this user"),
        Ok(found) if !found.has_results => check::RESULTS.warns(
            format!(
                "{TABLE} has no column `about`: the results of runs are not kept, and a run that leaves one reports it"
            ),
            "run `leasehold store create`, or the SQL of `leasehold store show`",
        ),
        Ok(_) => check::RESULTS.passes("the results of runs are kept"),
    }
}

/// Tells if items of compare-and-set can be kept. Locks do not need their table, so a missing one is no fault.
fn items(store: &Postgres) -> Finding {
    let name = Param::Text(Some(schema::items(&store.url.schema)));
    let sql = "SELECT to_regclass($1::text) IS NOT NULL, coalesce(has_table_privilege(to_regclass($1::text), 'SELECT') AND \
               has_table_privilege(to_regclass($1::text), 'INSERT') AND has_table_privilege(to_regclass($1::text), 'UPDATE'), \
               false)";
    let rows = store.ask(Statement { sql: sql.to_owned(), params: vec![name] });
    let row = rows.ok().and_then(|rows| rows.into_iter().next()).unwrap_or_default();
    check::ITEMS.passes(match row.as_slice() {
            [Field::Bool(true), Field::Bool(true)] => format!("{ITEMS} is there, for items of compare-and-set"),
            [Field::Bool(true), _] => {
                format!(
                    "this user lacks SELECT, INSERT or UPDATE on {ITEMS}, for items of compare-and-set; locks do not need it"
                )
            }
            _ => format!(
                "there is no table {ITEMS} for items of compare-and-set; `leasehold store create` makes it, and locks do not \
                 need it"
            ),
        },
    )
}

fn clock(store: &Postgres) -> Finding {
    match store.clock_offset() {
        Some((offset, error)) if offset.abs() > OFFSET + i64::try_from(error).unwrap_or(i64::MAX) => check::CLOCK.fails(format!(
                "the server's clock is {offset} ms off this machine's: after a failover to a host with another clock \
                 leases end too early or too late"
            ),
            "keep the clocks of all hosts of the database together, with NTP or the like",
        ),
        Some((offset, _)) => check::CLOCK.passes(format!("{offset} ms off this machine's")),
        None => check::CLOCK.fails("the server's clock could not be read", "run this check again"),
    }
}

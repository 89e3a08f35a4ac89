//! Rows of other lock libraries: those of the AWS lock client for Java are shared, all others are never free.

use std::time::Duration;

use crate::common::on_dynamodb::{attribute, counter, is_held, put, row, table_of};
use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use crate::{new_table, server};
use leasehold::blocking::{Client, Once};
use leasehold::{Error, ErrorKind, RevokeOutcome};
use leasehold_servers::dynamodb::Server;
use serde_json::{Value, json};

/// Requests of Java's client to a table, word for word.
struct Java<'a> {
    server: &'a Server,
    table: &'a str,
}

/// True if a condition held.
type Holds = bool;

impl Java<'_> {
    fn request(&self, operation: &str, rest: Value) -> Holds {
        let mut body = json!({"TableName": self.table});
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let response = self.server.request(operation, &body);
        let failed = response.text().contains("ConditionalCheckFailedException");
        assert!(response.status == 200 || failed, "{operation} {body}: {}", response.text());
        !failed
    }

    fn row(name: &str, version: &str, duration_ms: u64) -> Value {
        json!({
            "key": {"S": name}, "ownerName": {"S": "java-1"}, "leaseDuration": {"S": duration_ms.to_string()},
            "recordVersionNumber": {"S": version},
        })
    }

    fn acquire_new(&self, name: &str, version: &str, duration_ms: u64) -> Holds {
        self.request(
            "PutItem",
            json!({
                "Item": Self::row(name, version, duration_ms), "ConditionExpression": "attribute_not_exists(#pk)",
                "ExpressionAttributeNames": {"#pk": "key"},
            }),
        )
    }

    fn acquire_released(&self, name: &str, version: &str) -> Holds {
        self.request(
            "PutItem",
            json!({
                "Item": Self::row(name, version, 1_500),
                "ConditionExpression": "attribute_exists(#pk) AND #ir = :ir",
                "ExpressionAttributeNames": {"#pk": "key", "#ir": "isReleased"},
                "ExpressionAttributeValues": {":ir": {"S": "1"}},
            }),
        )
    }

    fn acquire_expired(&self, name: &str, seen: &str, version: &str) -> Holds {
        self.request(
            "PutItem",
            json!({
                "Item": Self::row(name, version, 60_000),
                "ConditionExpression": "attribute_exists(#pk) AND #rvn = :rvn",
                "ExpressionAttributeNames": {"#pk": "key", "#rvn": "recordVersionNumber"},
                "ExpressionAttributeValues": {":rvn": {"S": seen}},
            }),
        )
    }

    /// All writes of a holder have the same condition.
    fn as_holder(&self, operation: &str, name: &str, version: &str, update: &str, more: (Value, Value)) -> Holds {
        let mut names = json!({"#pk": "key", "#rvn": "recordVersionNumber", "#on": "ownerName"});
        names.as_object_mut().unwrap().extend(more.0.as_object().unwrap().clone());
        let mut values = json!({":rvn": {"S": version}, ":on": {"S": "java-1"}});
        values.as_object_mut().unwrap().extend(more.1.as_object().unwrap().clone());
        let mut body = json!({
            "Key": {"key": {"S": name}},
            "ConditionExpression": "attribute_exists(#pk) AND #rvn = :rvn AND #on = :on",
            "ExpressionAttributeNames": names, "ExpressionAttributeValues": values,
        });
        if !update.is_empty() {
            body["UpdateExpression"] = update.into();
        }
        self.request(operation, body)
    }

    fn heartbeat(&self, name: &str, version: &str, next: &str) -> Holds {
        let more = (json!({"#ld": "leaseDuration"}), json!({":next": {"S": next}, ":ld": {"S": "5000"}}));
        self.as_holder("UpdateItem", name, version, "SET #ld = :ld, #rvn = :next", more)
    }

    fn release_by_deleting(&self, name: &str, version: &str) -> Holds {
        self.as_holder("DeleteItem", name, version, "", (json!({}), json!({})))
    }

    fn release_and_keep(&self, name: &str, version: &str) -> Holds {
        let more = (json!({"#ir": "isReleased"}), json!({":ir": {"S": "1"}}));
        self.as_holder("UpdateItem", name, version, "SET #ir = :ir", more)
    }
}

const UUID: [&str; 3] = [
    "3b0f5c5e-0b6a-4c26-a8f2-6a1de5a9f9c1",
    "3b0f5c5e-0b6a-4c26-a8f2-6a1de5a9f9c2",
    "3b0f5c5e-0b6a-4c26-a8f2-6a1de5a9f9c3",
];

#[test]
fn a_row_of_ours_is_one_of_javas_and_something_more() {
    let server = server();
    let url = new_table(&server);
    let client = Client::connect(&url).unwrap();
    let lease = client.lock("invoice/42").owner("worker 7").ttl(ms(20_000)).data(b"step 3").acquire().unwrap();
    let held = row(&server, &url, "invoice/42");
    let version = attribute(&held, "recordVersionNumber").to_owned();
    let (nonce, seq) = version.split_once(':').unwrap();
    assert!(nonce.len() == 32 && nonce.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{version}");
    assert!(seq.len() == 10 && seq.bytes().all(|b| b.is_ascii_digit()), "{version}");
    let granted_at: u64 = attribute(&held, "grantedAt").parse().unwrap();
    assert!(granted_at > 1_700_000_000_000);
    let mut wanted = json!({
        "key": {"S": "invoice/42"},
        "ownerName": {"S": "worker 7"},
        "leaseDuration": {"S": "20000"},
        "recordVersionNumber": {"S": version},
        "data": {"B": "c3RlcCAz"},
        "dataNonce": {"S": format!("{nonce}:")},
        "fencingToken": {"N": lease.token().to_string()},
        "grantedAt": {"N": granted_at.to_string()},
    });
    assert_eq!(held, wanted);
    lease.release().unwrap();
    let free = row(&server, &url, "invoice/42");
    let freed_at: u64 = attribute(&free, "freedAt").parse().unwrap();
    assert!(freed_at >= granted_at);
    wanted["isReleased"] = json!({"S": "1"});
    wanted["freedAt"] = json!({"N": freed_at.to_string()});
    assert_eq!(free, wanted, "a release keeps the version, as Java's does");
}

#[test]
fn data_that_java_left_stays_unless_ours_brings_its_own() {
    let server = server();
    let url = new_table(&server);
    let client = Client::connect(&url).unwrap();
    let mut left = Java::row("job", UUID[0], 1_500);
    left["data"] = json!({"B": "amF2YQ=="});
    left["isReleased"] = json!({"S": "1"});
    put(&server, &url, &left);
    let data_of_row = || attribute(&row(&server, &url, "job"), "data").to_owned();
    let data_shown = || client.inspect("job").unwrap().unwrap().data;

    let lease = client.lock("job").acquire().unwrap();
    assert_eq!((data_of_row().as_str(), data_shown()), ("amF2YQ==", None), "it is not the holder's");
    lease.release().unwrap();
    assert_eq!(data_of_row(), "amF2YQ==");

    let lease = client.lock("job").data(b"ours").acquire().unwrap();
    assert_eq!((data_of_row().as_str(), data_shown()), ("b3Vycw==", Some(b"ours".to_vec())));
    lease.release().unwrap();
    let lease = client.lock("job").acquire().unwrap();
    assert_eq!(data_shown(), None, "nor is that of a lease before");
    lease.release().unwrap();
}

#[test]
fn java_takes_turns_with_us() {
    let server = server();
    let url = new_table(&server);
    let java = Java { server: &server, table: table_of(&url) };
    let client = Client::connect(&url).unwrap();
    let lease = client.lock("job").acquire().unwrap();
    assert!(!java.acquire_new("job", UUID[0], 1_500) && !java.acquire_released("job", UUID[0]), "it is ours");
    let ours = attribute(&row(&server, &url, "job"), "recordVersionNumber").to_owned();
    lease.release().unwrap();
    assert!(java.acquire_released("job", UUID[0]));
    assert_eq!(row(&server, &url, "job"), Java::row("job", UUID[0], 1_500), "a PutItem drops whatever is ours");
    let error = client.lock("job").wait(Duration::ZERO).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let holder = error.holder().unwrap();
    assert!(holder.foreign && holder.owner.as_deref() == Some("java-1") && holder.token.is_none(), "{holder:?}");
    assert!(java.heartbeat("job", UUID[0], UUID[1]));
    assert!(java.release_and_keep("job", UUID[1]));
    assert_eq!(client.inspect("job").unwrap(), None);
    let next = client.lock("job").try_acquire().unwrap().expect("Java has released it");
    assert!(next.token() > lease.token(), "although Java dropped the counter");
    assert!(is_held(&row(&server, &url, "job")));
    assert!(!java.heartbeat("job", UUID[1], UUID[2]) && !java.release_by_deleting("job", UUID[1]), "it is ours now");
    next.release().unwrap();
    assert!(java.acquire_released("job", UUID[2]) && java.release_by_deleting("job", UUID[2]));
    assert_eq!(row(&server, &url, "job"), Value::Null);
    let last = client.lock("job").try_acquire().unwrap().expect("Java has removed it");
    assert!(last.token() > next.token(), "although the row was gone");
    // A client that has watched ours for long enough names its version.
    let seen = attribute(&row(&server, &url, "job"), "recordVersionNumber").to_owned();
    assert!(!java.acquire_expired("job", &ours, UUID[0]), "not with an older one");
    assert!(java.acquire_expired("job", &seen, UUID[0]));
    assert_eq!(last.release().unwrap_err().kind(), ErrorKind::Lost, "what stands there is another's");
    assert_eq!(row(&server, &url, "job"), Java::row("job", UUID[0], 60_000), "and it has touched nothing");
}

#[test]
fn java_waits_until_a_revoked_lease_is_given_back_or_stands_still() {
    let server = server();
    let url = new_table(&server);
    let (client, java) = (Client::connect(&url).unwrap(), Java { server: &server, table: table_of(&url) });
    let version = || attribute(&row(&server, &url, "job"), "recordVersionNumber").to_owned();
    let revoke = || {
        let lease = client.lock("job").ttl(ms(600_000)).renew_every(ms(200)).acquire().unwrap();
        let seen = version();
        let outcome = Client::connect(&url).unwrap().revoke("job", lease.token()).unwrap();
        assert!(matches!(outcome, RevokeOutcome::Revoked(_)), "{outcome:?}");
        (lease, seen)
    };
    let (lease, seen) = revoke();
    let revoked = version();
    assert!(!java.acquire_new("job", UUID[0], 1_500) && !java.acquire_released("job", UUID[0]), "it is held");
    assert!(!java.acquire_expired("job", &seen, UUID[0]), "a revoke moves the row, as a renewal does");
    assert_eq!(lease.lost().lost_reason(), Some("revoked"));
    assert_eq!(version(), revoked, "nobody renews it");
    assert_eq!(lease.release().unwrap_err().lost_reason(), Some("revoked"));
    eventually("the release", || java.acquire_released("job", UUID[0]));
    assert!(java.release_and_keep("job", UUID[0]));

    let (lease, _) = revoke();
    assert!(java.acquire_expired("job", &version(), UUID[1]), "Java has watched it for its whole duration");
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(row(&server, &url, "job"), Java::row("job", UUID[1], 60_000), "and what is Java's stays Java's");
}

#[test]
fn a_silent_java_client_is_succeeded_and_one_that_goes_on_is_not() {
    let server = server();
    let url = new_table(&server);
    let java = Java { server: &server, table: table_of(&url) };
    let client = Client::connect(&url).unwrap();
    assert!(java.acquire_new("silent", UUID[0], 1_000) && java.acquire_new("alive", UUID[0], 5_000));
    let before = client.lock("other").acquire().unwrap().token();
    std::thread::scope(|scope| {
        let silent = scope.spawn(|| client.lock("silent").wait(PATIENCE).acquire().unwrap().token());
        let alive = scope.spawn(|| client.lock("alive").wait(ms(9_000)).acquire());
        // A version that came back would be one that stood still, as far as anybody sees.
        let mut version = UUID[0].to_owned();
        let mut beats = (0_u32..).map(|n| format!("{n:08x}-0000-4000-8000-000000000000"));
        while !alive.is_finished() {
            let next = beats.next().unwrap();
            assert!(java.heartbeat("alive", &version, &next), "nobody has taken it");
            version = next;
            std::thread::sleep(ms(200));
        }
        let error = alive.join().unwrap().unwrap_err();
        assert!(error.kind() == ErrorKind::TimedOut && error.holder().is_some_and(|holder| holder.foreign), "{error}");
        assert!(silent.join().unwrap() > before);
    });
}

#[test]
fn the_counter_survives_a_row_that_was_removed_by_hand() {
    let server = server();
    let url = new_table(&server);
    let client = Client::connect(&url).unwrap();
    let lease = client.lock("job").acquire().unwrap();
    lease.release().unwrap();
    server.command("DeleteItem", &json!({"TableName": table_of(&url), "Key": {"key": {"S": "job"}}}));
    let next = client.lock("job").acquire().unwrap();
    assert!(next.token() > lease.token());
    assert_eq!(counter(&row(&server, &url, "job")), next.token());
}

/// Rows that no lock of ours may replace, and words of what is said about each.
fn unreadable() -> Vec<(&'static str, Value, &'static [&'static str])> {
    let version = json!({"S": UUID[0]});
    let java = |with: (&str, Value)| {
        let mut row = Java::row("job", UUID[0], 1_000);
        row[with.0] = with.1;
        row
    };
    let without = |name: &str| {
        let mut row = Java::row("job", UUID[0], 1_000);
        row.as_object_mut().unwrap().remove(name).unwrap();
        row
    };
    vec![
        ("nothing but a key", json!({"key": {"S": "job"}}), &["recordVersionNumber is missing"]),
        ("no version", without("recordVersionNumber"), &["recordVersionNumber is missing"]),
        ("no duration", without("leaseDuration"), &["leaseDuration is missing"]),
        ("a duration of Go", java(("leaseDuration", json!({"S": "20s"}))), &["\"20s\"", "dynamolock"]),
        ("an epoch of Rust", java(("leaseDuration", json!({"N": "1763000000"}))), &["1763000000", "dynamodb_lock"]),
        ("a negative duration", java(("leaseDuration", json!({"S": "-1"}))), &["\"-1\""]),
        ("an endless duration", java(("leaseDuration", json!({"S": "99999999999999999999"}))), &["leaseDuration"]),
        ("a boolean isReleased", java(("isReleased", json!({"BOOL": true}))), &["isReleased", "boolean true"]),
        ("another isReleased", java(("isReleased", json!({"S": "0"}))), &["isReleased", "\"0\""]),
        (
            "a released row of Go",
            {
                let mut row = java(("leaseDuration", json!({"S": "20s"})));
                row["isReleased"] = json!({"S": "1"});
                row
            },
            &["\"20s\"", "dynamolock"],
        ),
        ("a counter that is no number", java(("fencingToken", json!({"S": "7"}))), &["fencingToken"]),
        ("a counter with a fraction", java(("fencingToken", json!({"N": "7.5"}))), &["fencingToken"]),
        (
            "python_dynamodb_lock",
            json!({
                "key": {"S": "job"}, "sort_key": {"S": "-"}, "owner_name": {"S": "py"}, "lease_duration": {"N": "30"},
                "record_version_number": version, "expiry_time": {"N": "1763000000"},
            }),
            &["python_dynamodb_lock"],
        ),
        ("Terraform", json!({"key": {"S": "job"}, "LockID": {"S": "job"}, "Info": {"S": "{}"}}), &["Terraform"]),
        ("Kinesis", json!({"key": {"S": "job"}, "leaseOwner": {"S": "w"}, "leaseCounter": {"N": "3"}}), &["Kinesis"]),
    ]
}

#[track_caller]
fn is_told(error: &Error, what: &str, words: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{what}: {error}");
    for word in words {
        assert!(error.to_string().contains(word), "{what}: no {word:?} in {error}");
    }
}

#[test]
fn rows_that_cannot_be_read_are_never_free_and_say_why() {
    let server = server();
    let url = new_table(&server);
    let client = connect_patiently(&url);
    for (what, foreign, words) in unreadable() {
        put(&server, &url, &foreign);
        is_told(&client.lock("job").wait(ms(4_000)).acquire().unwrap_err(), what, words);
        is_told(&client.inspect("job").unwrap_err(), what, words);
        is_told(&client.break_lock("job").unwrap_err(), what, words);
        assert_eq!(row(&server, &url, "job"), foreign, "{what}: it stays as it is");
    }
}

#[test]
fn a_table_of_terraforms_own_is_refused_lock_by_lock() {
    let server = server();
    let url = format!("{}&key=LockID", crate::new_url(&server));
    leasehold::table::create(&url, &leasehold::table::NewTable::default()).unwrap();
    let theirs = json!({"LockID": {"S": "state"}, "Info": {"S": "{\"ID\":\"x\"}"}});
    put(&server, &url, &theirs);
    let digest = json!({"LockID": {"S": "state-md5"}, "Digest": {"S": "d41d8cd9"}});
    put(&server, &url, &digest);
    let client = Client::connect(&url).unwrap();
    for name in ["state", "state-md5"] {
        is_told(&client.lock(name).try_acquire().unwrap_err(), name, &["Terraform", "a table of its own"]);
    }
    client.lock("other").acquire().unwrap().release().unwrap();
}

#[test]
fn javas_locks_are_listed_and_other_rows_are_not() {
    let server = server();
    let url = new_table(&server);
    let (client, java) = (Client::connect(&url).unwrap(), Java { server: &server, table: table_of(&url) });
    let _lease = client.lock("jobs/ours").ttl(ms(600_000)).acquire().unwrap();
    assert!(java.acquire_new("jobs/java", UUID[0], 20_000));
    put(&server, &url, &json!({"key": {"S": "jobs/state"}, "Info": {"S": "{}"}}));
    put(&server, &url, &json!({"key": {"S": "jobs/bad"}, "recordVersionNumber": {"N": "7"}, "ownerName": {"S": "x"}}));
    put(
        &server,
        &url,
        &json!({"key": {"S": "jobs/\n"}, "recordVersionNumber": {"S": "7"}, "leaseDuration": {"S": "1"}}),
    );
    let listed = client.list("jobs/").map(Result::unwrap).map(|lock| (lock.resource, lock.foreign));
    let mut listed: Vec<_> = listed.collect();
    listed.sort();
    assert_eq!(listed, [("jobs/java".to_owned(), true), ("jobs/ours".to_owned(), false)]);
}

#[test]
fn a_mark_stands_in_the_row_until_java_puts_it_anew() {
    let server = server();
    let url = new_table(&server);
    let (client, java) = (Client::connect(&url).unwrap(), Java { server: &server, table: table_of(&url) });
    let begin = || match client.once("job").key("monday").owner("worker 7").ttl(ms(20_000)).begin().unwrap() {
        Once::Run(run) => Some(run),
        Once::Done(_) | Once::Running(_) | _ => None,
    };
    let run = begin().expect("nobody has done it");
    run.finish().unwrap();
    let marked = row(&server, &url, "job@monday");
    assert_eq!(attribute(&marked, "doneToken"), run.token().to_string());
    assert_eq!(attribute(&marked, "doneOwner"), "worker 7");
    let [at, until] = ["doneAt", "doneUntil"].map(|name| attribute(&marked, name).parse::<u64>().unwrap());
    assert_eq!(until - at, 7 * 86_400_000 + 60_000, "the errors of clocks are added");
    assert!(begin().is_none() && !is_held(&marked));
    // What Java changes in place leaves it alone.
    let version = attribute(&marked, "recordVersionNumber").to_owned();
    assert!(!java.heartbeat("job@monday", &version, UUID[1]), "it is not Java's");
    assert!(begin().is_none());
    assert!(java.acquire_released("job@monday", UUID[0]));
    assert!(row(&server, &url, "job@monday").get("doneUntil").is_none());
    assert!(java.release_and_keep("job@monday", UUID[0]));
    let again = begin().expect("the completion is gone");
    assert!(again.token() > run.token());
}

//! Compare-and-set on a real table: no update is lost, and none is applied twice.

use std::thread;

use leasehold::ErrorKind;
use leasehold::cas::{self, Fate, Items};
use leasehold::table::{self, NewTable};
use leasehold_servers::dynamodb::{REGION, Server, table_name};
use leasehold_servers::proxy::{Proxy, Request};
use serde_json::{Value, json};

use crate::{new_table, on_one_server};

fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(value).unwrap().parse().unwrap())
}

fn one_more(value: Option<&[u8]>) -> Option<Vec<u8>> {
    Some((number(value) + 1).to_string().into_bytes())
}

fn count(items: &Items, name: &str) -> u64 {
    number(items.read(name).unwrap().as_ref().map(|item| item.value.as_slice()))
}

/// Items behind a proxy, and the same directly.
fn behind(proxy: &Proxy, server: &Server) -> (Items, Items) {
    let table = table_name();
    let url = |port: u16| format!("dynamodb://{table}?region={REGION}&endpoint=http://127.0.0.1:{port}");
    table::create(&url(server.port()), &NewTable::default()).unwrap();
    (Items::connect(url(proxy.port())).unwrap(), Items::connect(url(server.port())).unwrap())
}

#[test]
fn what_compare_and_set_promises() {
    on_one_server(&[
        ("a_value_is_made_changed_left_and_read", a_value_is_made_changed_left_and_read),
        ("no_update_of_many_threads_is_lost", no_update_of_many_threads_is_lost),
        ("a_write_whose_answer_is_lost_is_applied_once", a_write_whose_answer_is_lost_is_applied_once),
        ("a_write_whose_answer_is_lost_is_recognised", a_write_whose_answer_is_lost_is_recognised),
        (
            "it_says_how_often_it_was_tried_and_whether_it_may_have_been_written",
            it_says_how_often_it_was_tried_and_whether_it_may_have_been_written,
        ),
        (
            "a_server_that_does_not_answer_the_greeting_has_written_nothing",
            a_server_that_does_not_answer_the_greeting_has_written_nothing,
        ),
        ("rows_of_locks_are_not_touched", rows_of_locks_are_not_touched),
    ]);
}

fn a_value_is_made_changed_left_and_read(server: &Server) {
    let url = new_table(server);
    let items = Items::connect(&url).unwrap();
    assert_eq!(items.read("counter").unwrap(), None);
    assert_eq!(items.update("counter", |_| None).unwrap(), None);
    assert_eq!(items.read("counter").unwrap(), None, "left alone");
    let first = items.update("counter", |old| old.is_none().then(|| b"\0\xff".to_vec())).unwrap().unwrap();
    assert_eq!((first.version, first.value.as_slice()), (1, b"\0\xff".as_slice()));
    let second = cas::update(&url, "counter", |old| old.map(|old| [old, b"!"].concat())).unwrap().unwrap();
    assert_eq!((second.version, second.value.as_slice()), (2, b"\0\xff!".as_slice()));
    assert_eq!(items.read("counter").unwrap(), Some(second));
    assert_eq!(count(&items, "another"), 0);
    let again = block_on(items.update_async("counter", |_| Some(Vec::new()))).unwrap().unwrap();
    assert_eq!((again.version, again.value.len()), (3, 0));
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn no_update_of_many_threads_is_lost(server: &Server) {
    const THREADS: u64 = 6;
    const EACH: u64 = 10;
    let items = Items::connect(new_table(server)).unwrap().tries(1_000);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let items = items.clone();
            scope.spawn(move || (0..EACH).for_each(|_| drop(items.update("counter", one_more).unwrap().unwrap())));
        }
    });
    assert_eq!(count(&items, "counter"), THREADS * EACH);
    assert_eq!(items.read("counter").unwrap().unwrap().version, THREADS * EACH);
}

fn a_write_whose_answer_is_lost_is_applied_once(server: &Server) {
    let proxy = Proxy::to(server.address());
    let (items, direct) = behind(&proxy, server);
    items.update("counter", one_more).unwrap();
    let lost = proxy.reset_after_forwarding(Request::containing("UpdateItem"));
    let (mut asked, before) = (0, proxy.requests());
    let update = |old: Option<&[u8]>| {
        asked += 1;
        one_more(old)
    };
    let item = items.update("counter", update).unwrap().unwrap();
    assert_eq!((lost.hits(), item.version, count(&direct, "counter"), asked), (1, 2, 2, 1));
    // A read, the write, the greeting of a server that was doubted, the write.
    assert_eq!(proxy.requests() - before, 4);
}

fn a_write_whose_answer_is_lost_is_recognised(server: &Server) {
    let proxy = Proxy::to(server.address());
    let (items, direct) = behind(&proxy, server);
    for applied in [true, false] {
        let name = if applied { "applied" } else { "forestalled" };
        items.update(name, one_more).unwrap();
        let writes = Request::containing("UpdateItem");
        // Until it has been sent again, others write: after it, or before it.
        let fault = if applied { proxy.reset_after_forwarding(writes) } else { proxy.reset_before_forwarding(writes) };
        proxy.delay(std::time::Duration::from_millis(50));
        let others = || {
            fault.wait_for_hits(1);
            for _ in 0..3 {
                direct.update(name, one_more).unwrap();
            }
        };
        thread::scope(|scope| {
            scope.spawn(others);
            items.update(name, one_more).unwrap().unwrap();
        });
        assert_eq!(count(&direct, name), 5, "{name}");
        proxy.pass();
    }
}

fn it_says_how_often_it_was_tried_and_whether_it_may_have_been_written(server: &Server) {
    let proxy = Proxy::to(server.address());
    let (items, direct) = behind(&proxy, server);
    let items = items.tries(3);
    let interfere = |old: Option<&[u8]>| {
        direct.update("counter", one_more).unwrap();
        one_more(old)
    };
    let error = items.update("counter", interfere).unwrap_err();
    assert!(error.is_contended() && error.to_string().contains("tried 3 times"), "{error}");
    assert_eq!((error.tries(), error.fate(), count(&direct, "counter")), (3, Fate::NotWritten, 3));

    proxy.reset_after_forwarding(Request::containing("UpdateItem").always());
    let error = items.update("counter", one_more).unwrap_err();
    assert_eq!((error.tries(), error.fate(), error.is_contended()), (3, Fate::Unknown, false), "{error}");
    assert_eq!((error.trouble().kind(), count(&direct, "counter")), (ErrorKind::StoreUnavailable, 4));
    proxy.pass();
    assert_eq!(items.update("counter", one_more).unwrap().unwrap().version, 5);
}

fn a_server_that_does_not_answer_the_greeting_has_written_nothing(server: &Server) {
    let proxy = Proxy::to(server.address());
    let (items, direct) = behind(&proxy, server);
    let items = items.tries(1);
    items.update("counter", one_more).unwrap();
    let writes = proxy.reset_before_forwarding(Request::containing("UpdateItem").always());
    let meanwhile = |old: Option<&[u8]>| {
        proxy.refuse();
        proxy.cut_all();
        // Which finds out, so that the write meets the server again.
        assert_eq!(items.read("counter").unwrap_err().kind(), ErrorKind::StoreUnavailable);
        one_more(old)
    };
    let error = items.update("counter", meanwhile).unwrap_err();
    assert_eq!((error.fate(), error.tries(), writes.hits()), (Fate::NotWritten, 1, 0), "{error}");
    assert_eq!((error.trouble().kind(), count(&direct, "counter")), (ErrorKind::StoreUnavailable, 1));
    proxy.pass();
    assert_eq!(items.tries(10).update("counter", one_more).unwrap().unwrap().version, 2);
}

fn rows_of_locks_are_not_touched(server: &Server) {
    let url = new_table(server);
    let client = leasehold::blocking::Client::connect(&url).unwrap();
    let items = Items::connect(&url).unwrap();
    // The same name is another row.
    let lease = client.lock("invoice/42").acquire().unwrap();
    items.update("invoice/42", one_more).unwrap();
    lease.check(std::time::Duration::ZERO).unwrap();
    lease.release().unwrap();
    client.lock("invoice/42").acquire().unwrap().release().unwrap();
    assert_eq!(count(&items, "invoice/42"), 1);
    // And a row that a lock got into all the same is left alone.
    let table = url.trim_start_matches("dynamodb://").split('?').next().unwrap();
    let key = json!({ "S": "cas\u{1f}odd" });
    let row = json!({ "key": key, "ownerName": { "S": "java" }, "recordVersionNumber": { "S": "x" } });
    server.command("PutItem", &json!({ "TableName": table, "Item": row }));
    let error = items.update("odd", one_more).unwrap_err();
    assert!(error.trouble().kind() == ErrorKind::StoreRefused && error.to_string().contains("lock"), "{error}");
    assert_eq!(items.read("odd").unwrap_err().kind(), ErrorKind::StoreRefused);
    let kept: Value = server.command("GetItem", &json!({ "TableName": table, "Key": { "key": key } }));
    assert_eq!(kept["Item"], row);

    for bad in ["", "a\nb"] {
        assert_eq!(items.update(bad, one_more).unwrap_err().trouble().kind(), ErrorKind::Config);
    }
    let error = items.update("large", |_| Some(vec![0; (380 << 10) + 1])).unwrap_err();
    assert_eq!((error.trouble().kind(), error.fate()), (ErrorKind::Config, Fate::NotWritten));
    items.update("large", |_| Some(vec![7; 380 << 10])).unwrap();
    assert_eq!(items.read("large").unwrap().unwrap().value.len(), 380 << 10);
    assert_eq!(Items::connect("memory:a memory:b").unwrap_err().kind(), ErrorKind::Config);
}

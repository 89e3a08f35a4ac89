//! The guards of docs/fencing.md for objects and for Cosmos DB: a late writer is refused, whatever it believes.

use std::io::{Read, Write};
use std::net::TcpStream;

use leasehold::ErrorKind;
use leasehold::cas::{Error, Items};
use leasehold::fence::{CosmosGuard, ObjectGuard, Shown};
use leasehold_servers::http;
use leasehold_servers::objects::{Account, Api, COSMOS_KEY, Server};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_wire::objects::{Method, with_key};
use serde_json::{Value, json};

use crate::common::PATIENCE;
use crate::{APIS, server};

const GUIDE: &str = include_str!("../../../docs/fencing.md");

/// As the guide has it.
fn write(items: &Items, name: &str, token: u64, data: &str) -> Result<bool, Error> {
    let written = items.update(name, |old| {
        let mark: u64 = old.map_or(Some(0), |old| std::str::from_utf8(old).ok()?.split_once(' ')?.0.parse().ok())?;
        (mark <= token).then(|| format!("{token} {data}").into_bytes())
    })?;
    Ok(written.is_some())
}

fn shown(items: &Items) -> String {
    String::from_utf8(items.read("invoice/42").unwrap().unwrap().value).unwrap()
}

#[test]
fn a_mark_in_front_of_the_data_refuses_late_writers_of_objects() {
    let lines =
        ["let mark: u64 = old.map_or(Some(0),", "(mark <= token).then(|| format!(\"{token} {data}\").into_bytes())"];
    assert!(lines.iter().all(|line| GUIDE.contains(line)), "the guide has another function than this test");
    for api in APIS {
        let server = server(api);
        let proxy = Proxy::to(server.address());
        let items = Items::connect(server.url_at(proxy.address(), "p")).unwrap();
        let others = Items::connect(server.url("p")).unwrap();
        let write = |items: &Items, token, data| write(items, "invoice/42", token, data).unwrap();
        assert!(write(&items, 34, "a"), "there was no object");
        assert!(write(&items, 34, "b"), "the same token writes again");
        assert!(!write(&others, 33, "late"), "{api:?}");
        assert_eq!(shown(&others), "34 b");
        assert!(write(&others, 35, "c"), "a later one wins");
        assert!(!write(&items, 34, "late"), "{api:?}");
        // A later holder claims between the read and the write of an earlier one.
        let mut asked = 0;
        let overtaken = items.update("invoice/42", |old| {
            asked += 1;
            if asked == 1 {
                assert!(write(&others, 37, "d"));
            }
            (old.unwrap() < b"37".as_slice()).then(|| b"36 late".to_vec())
        });
        assert_eq!((overtaken.unwrap(), asked), (None, 2), "{api:?}");
        // The answer to a write is lost.
        let writes = Request::matching(|bytes| {
            let starts = [&b"PUT "[..], b"POST /upload", b"POST /dbs/"];
            starts.iter().any(|start| bytes.starts_with(start))
        });
        let lost = proxy.reset_after_forwarding(writes);
        assert!(write(&items, 38, "e"));
        assert_eq!((lost.hits(), shown(&others).as_str()), (1, "38 e"), "{api:?}");
    }
}

#[test]
fn bodies_of_the_guard_refuse_late_writers_in_every_cloud() {
    for api in APIS {
        let server = server(api);
        let items = Items::connect(server.url("p")).unwrap();
        let name = "invoice/42";
        let claim = |token: u64| {
            let claimed = items.update(name, |seen| ObjectGuard::claim(name, token, seen).ok());
            claimed.unwrap().is_some()
        };
        let write = |token: u64, data: &[u8]| {
            let written = items.update(name, |seen| ObjectGuard::write(name, token, seen, data).ok());
            written.unwrap().is_some()
        };
        assert!(!write(34, b"never claimed"), "{api:?}");
        assert!(claim(34) && write(34, b"a") && write(34, b"b"), "{api:?}");
        assert!(!claim(33) && !write(33, b"late"), "{api:?}");
        assert!(claim(35) && !write(34, b"late"), "{api:?}");
        let body = items.read(name).unwrap().unwrap().value;
        assert_eq!((body.as_slice(), ObjectGuard::data(&body)), (&b"35 b"[..], Some(&b"b"[..])), "{api:?}");
    }
}

/// The loop of the guide with a client of one's own.
#[test]
fn a_late_put_finds_another_etag_and_then_a_higher_mark() {
    let server = server(Api::S3);
    // moto does not check it, and serves nobody without.
    let signature = "AWS4-HMAC-SHA256 Credential=A/20261126/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let get = || {
        let signed = [("Authorization", signature)];
        let found = http::request(server.address(), "GET", "/locks/invoice", &signed, "").unwrap();
        (found.status == 200).then(|| (found.header("etag").unwrap().to_owned(), found.body))
    };
    let put = |condition: (&str, &str), body: &[u8]| {
        let headers = [("Authorization", signature), condition];
        http::request(server.address(), "PUT", "/locks/invoice", &headers, body).unwrap().status
    };
    assert!(get().is_none());
    assert_eq!(put(("If-None-Match", "*"), &ObjectGuard::claim("invoice", 33, None).unwrap()), 200);
    let (etag, seen) = get().unwrap();
    let late = ObjectGuard::write("invoice", 33, Some(&seen), b"late").unwrap();
    // A later holder claims between the read and the write.
    assert_eq!(put(("If-Match", &etag), &ObjectGuard::claim("invoice", 34, Some(&seen)).unwrap()), 200);
    assert_eq!(put(("If-Match", &etag), &late), 412);
    let (_, seen) = get().unwrap();
    let error = ObjectGuard::write("invoice", 33, Some(&seen), b"late").unwrap_err();
    assert!(error.kind() == ErrorKind::StaleToken && error.to_string().contains("34"), "{error}");
    assert_eq!(seen, b"34 ");
}

/// The request in the guide's section on Cosmos DB.
fn patch_of_the_guide() -> Value {
    let (_, section) = GUIDE.split_once("## Cosmos DB").unwrap();
    let (_, code) = section.split_once("```json\n").unwrap();
    serde_json::from_str(code.split("```").next().unwrap()).unwrap()
}

/// The status and the body of an answer. By HTTP/1.0, whose answers end with the connection.
fn ask(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    const DATE: &str = "Thu, 26 Nov 2026 00:00:00 GMT";
    let body = body.to_string();
    // A patch needs no signature there.
    let kind = if method == "GET" { Method::Get } else { Method::Post };
    let signature = with_key(kind, path, DATE, COSMOS_KEY).unwrap();
    let head = [
        format!("{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}", body.len()),
        format!("Authorization: {signature}\r\nx-ms-date: {DATE}"),
        "x-ms-version: 2018-12-31\r\nx-ms-documentdb-partitionkey: [\"42\"]\r\n\r\n".to_owned(),
    ];
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all([head.join("\r\n"), body].concat().as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[test]
fn a_patch_with_a_condition_refuses_late_writers_of_cosmos_db() {
    const DOCUMENTS: &str = "/dbs/locks/colls/locks/docs";
    const DOCUMENT: &str = "/dbs/locks/colls/locks/docs/42";
    let server = server(Api::Cosmos(Account::Session));
    // With another token in place of the guide's.
    let with = |patch: &Value, token: u64| -> Value {
        let text = patch.to_string().replace("<= 34", &format!("<= {token}"));
        serde_json::from_str(&text.replace(r#""value":34"#, &format!(r#""value":{token}"#))).unwrap()
    };
    let check = patch_of_the_guide();
    let condition = "FROM c WHERE NOT IS_DEFINED(c.fence) OR c.fence <= 34";
    assert!(GUIDE.contains(condition));
    let claim = json!({ "condition": condition, "operations": [check["operations"][0].clone()] });
    let patch = |patch: &Value, token| ask(&server, "PATCH", DOCUMENT, &with(patch, token)).0;
    let guard = CosmosGuard::new("fence").unwrap();
    let guarded = |token: u64, is_claim: bool, total: u64| {
        let condition = if is_claim { guard.claim_condition(token) } else { guard.check_condition(token) };
        let set: Value = serde_json::from_str(&guard.set(token).unwrap()).unwrap();
        let operations =
            if is_claim { json!([set]) } else { json!([set, { "op": "set", "path": "/total", "value": total }]) };
        let body = json!({ "condition": condition.unwrap(), "operations": operations });
        ask(&server, "PATCH", DOCUMENT, &body).0
    };
    let item = || ask(&server, "GET", DOCUMENT, &json!({})).1;

    assert_eq!(patch(&claim, 34), 404, "there is no item");
    assert_eq!(ask(&server, "POST", DOCUMENTS, &json!({ "id": "42", "total": 1 })).0, 201);
    assert_eq!(patch(&check, 34), 412, "it was never claimed");
    assert_eq!((patch(&claim, 34), item()["fence"].as_u64(), item()["total"].as_u64()), (200, Some(34), Some(1)));
    assert_eq!((patch(&check, 34), item()["total"].as_u64()), (200, Some(110)));
    assert_eq!(patch(&check, 34), 200, "the same token writes again, and so may a write whose answer was lost");
    assert_eq!((patch(&claim, 33), patch(&check, 33)), (412, 412), "a late one");
    assert_eq!((patch(&claim, 35), patch(&check, 34), patch(&check, 35)), (200, 412, 200));
    assert_eq!(item()["fence"].as_u64(), Some(35));

    assert_eq!((guarded(34, true, 0), guarded(34, false, 1)), (412, 412), "the guard refuses late ones as well");
    assert_eq!((guarded(36, true, 0), guarded(36, false, 120), guarded(35, false, 1)), (200, 200, 412));
    assert_eq!((item()["fence"].as_u64(), item()["total"].as_u64()), (Some(36), Some(120)));
    let error = CosmosGuard::refusal("42", 35, Shown::Mark(&item()["fence"].to_string())).unwrap();
    assert!(error.kind() == ErrorKind::StaleToken && error.to_string().contains("36"), "{error}");
}

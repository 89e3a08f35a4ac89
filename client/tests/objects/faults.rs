//! Answers that get lost, and hands that meddle, on servers that are real.

use leasehold::ErrorKind;
use leasehold::Severity;
use leasehold::blocking::Once;
use leasehold_servers::objects::{Api, Server, azure_signature};
use leasehold_servers::proxy::{Loss, Proxy, Request};

use crate::common::twice::whatever_is_sent_twice_counts_once;
use crate::common::{PATIENCE, eventually, ms};
use crate::{APIS, client, lease, server, within};

fn write() -> Request {
    Request::matching(is_write)
}

fn is_write(bytes: &[u8]) -> bool {
    let is_query = bytes.windows(7).any(|part| part.eq_ignore_ascii_case(b"isquery"));
    let creates = [&b"POST /upload"[..], b"POST /dbs/"].iter().any(|start| bytes.starts_with(start));
    bytes.starts_with(b"PUT ") || creates && !is_query
}

#[test]
fn operations_whose_answer_is_lost_count_once() {
    for api in APIS {
        let server = server(api);
        for loss in Loss::ALL {
            let proxy = Proxy::to(server.address());
            let client = within(&server.url_at(proxy.address(), &format!("{loss:?}")), ms(1_000));
            lease(&client, "a").release().unwrap();
            let first = lease(&client, "a");
            let fault = proxy.lose(loss, write());
            fault.wait_for_hits(1);
            let before = proxy.requests();
            eventually("it is renewed again", || proxy.requests() > before + 2);
            first.check(ms(1)).unwrap();
            let fault = proxy.lose(loss, write());
            first.release().unwrap();
            assert!(fault.hits() <= 1, "{api:?}, {loss:?}");
            proxy.pass();
            let fault = proxy.lose(loss, write());
            let second = lease(&client, "a");
            assert!(fault.hits() == 1 && second.token() > first.token(), "{api:?}, {loss:?}");
            second.release().unwrap();
            let Once::Run(run) = client.once("report").key("monday").wait(PATIENCE).begin().unwrap() else {
                panic!("it is new")
            };
            let fault = proxy.lose(loss, write());
            run.finish().unwrap();
            assert_eq!(fault.hits(), 1, "{api:?}, {loss:?}");
            assert!(matches!(client.once("report").key("monday").wait(PATIENCE).begin().unwrap(), Once::Done(_)));
        }
    }
}

#[test]
fn connections_that_fell_silent_are_left_after_one_request() {
    // The server for S3 ends each connection after an answer.
    for api in APIS.into_iter().filter(|api| *api != Api::S3) {
        let server = server(api);
        let proxy = Proxy::to(server.address());
        crate::common::silence::is_noticed_once(&proxy, &server.url_at(proxy.address(), "p"));
    }
}

#[test]
fn those_who_only_read_write_nothing() {
    for api in APIS {
        let server = server(api);
        let proxy = Proxy::to(server.address());
        let writes = proxy.reset_before_forwarding(Request::matching(is_write).always());
        let client = client(&server.url_at(proxy.address(), "p"));
        assert!(client.inspect("a").unwrap().is_none());
        assert_eq!(client.list("").count(), 0);
        assert_eq!(writes.hits(), 0, "{api:?}");
        client.lock("a").wait(ms(0)).acquire().map(drop).unwrap_err();
        assert!(writes.hits() > 0, "{api:?}");
    }
}

#[test]
fn what_a_proxy_sends_twice_counts_once() {
    for api in APIS {
        let server = server(api);
        let proxy = Proxy::to(server.address());
        whatever_is_sent_twice_counts_once(&proxy, &server.url_at(proxy.address(), "p"), write());
    }
}

#[test]
fn an_object_edited_by_hand_is_never_free() {
    let server = server(Api::Gcs);
    let client = client(&server.url("p"));
    for body in ["{}", "[]", "held", r#"{"counter":1,"lease":{}}"#, r#"{"counter":9007199254740993}"#] {
        assert_eq!(
            server.request("POST", "/upload/storage/v1/b/locks/o?uploadType=media&name=p%2Flock%2Fa.json", body).status,
            200
        );
        let error = client.lock("a").try_acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{body}: {error}");
        assert!(error.to_string().contains("by hand"), "{error}");
    }
}

#[test]
fn an_object_deleted_by_hand_is_a_loss() {
    let server = server(Api::Gcs);
    let client = client(&server.url("p"));
    let held = lease(&client, "a");
    let deleted = server.request("DELETE", "/storage/v1/b/locks/o/p%2Flock%2Fa.json", "");
    assert!([200, 204].contains(&deleted.status), "{}", deleted.text());
    eventually("the loss is told", || held.is_lost());
    assert_eq!(held.lost().kind(), ErrorKind::Lost);
    assert!(lease(&client, "a").token() > held.token(), "by this client's own memory");
}

#[test]
fn a_server_that_stands_still_is_down_and_not_busy() {
    let server = server(Api::Gcs);
    let client = within(&server.url("p"), ms(500));
    lease(&client, "a").release().unwrap();
    server.stop_process();
    let error = client.lock("a").try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    server.kill();
    let error = client.lock("a").wait(ms(300)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
}

#[test]
fn keys_that_are_wrong_are_refused_at_once_and_not_repeated() {
    let server = server(Api::AzureBlob);
    // The account's key is not that of this account.
    let url = server.url("p").replace("azblob://devstoreaccount1/", "azblob://other/");
    let error = leasehold::blocking::Client::connect(&url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(!error.to_string().contains(leasehold_servers::objects::AZURE_KEY), "{error}");
}

/// Without a key of the account: this process has none.
#[test]
fn a_shared_access_signature_is_enough_if_it_may_read_and_write() {
    let server = Server::start(Api::AzureBlob);
    let sign = |permissions: &str| {
        // SAFETY: this process has one test, and its client reads the environment later.
        unsafe { std::env::set_var("AZURE_STORAGE_SAS_TOKEN", azure_signature(permissions)) };
    };
    sign("rwlc");
    let client = within(&server.url("p"), ms(10_000));
    lease(&client, "a").release().unwrap();
    assert_eq!(client.list("").count(), 0);
    sign("rl");
    let reader = leasehold::blocking::Client::connect(server.url("q")).unwrap();
    assert!(reader.inspect("a").unwrap().is_none());
    let error = reader.lock("a").wait(PATIENCE).acquire().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(!error.to_string().contains("sig="), "{error}");
}

#[test]
fn the_doctor_tries_conditions_and_lists() {
    for api in APIS {
        let server = server(api);
        let client = client(&server.url("p"));
        let findings = client.doctor().unwrap();
        for check in ["objects.way", "objects.server", "objects.latency", "objects.conditions", "objects.list"] {
            assert!(findings.iter().any(|finding| finding.check == check), "{api:?}: {check}: {findings:?}");
        }
        assert!(
            findings.iter().all(|finding| finding.check == "objects.latency" || finding.severity == Severity::Good),
            "{findings:?}"
        );
    }
}

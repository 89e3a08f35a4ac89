//! Troubles that come while locks are held: throttling, keys that expire, clocks that differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::log::Log;
use crate::common::on_dynamodb::{attribute, counter, is_held, row, through};
use crate::common::{PATIENCE, Role, eventually, ms, role_args, say};
use crate::gateway::{Gateway, body, error, is_of_a_row, operation};
use crate::{new_table, server};
use leasehold::blocking::Client;
use leasehold::{Client as AsyncClient, ErrorKind};
use leasehold_servers::answers::{Reply, Request};
use leasehold_servers::dynamodb::Server;
use serde_json::Value;

struct Rig {
    server: Arc<Server>,
    gateway: Gateway,
    /// Past the gateway.
    direct: String,
    /// Through it.
    url: String,
}

impl Rig {
    fn new() -> Self {
        let server = Arc::new(server());
        let direct = new_table(&server);
        let gateway = Gateway::before(&server);
        let url = through(&direct, gateway.address());
        Self { server, gateway, direct, url }
    }

    fn row(&self, name: &str) -> Value {
        row(&self.server, &self.direct, name)
    }

    fn wait_for_renewals(&self, name: &str, times: u32) {
        let version = || attribute(&self.row(name), "recordVersionNumber").to_owned();
        for _ in 0..times {
            let before = version();
            eventually("it is renewed", || version() != before);
        }
    }
}

fn is_for(request: &Request, name: &str) -> bool {
    is_of_a_row(request) && body(request)["Key"]["key"]["S"] == name
}

#[test]
fn throttling_for_a_whole_lease_is_reported_and_not_made_worse() {
    const WAITERS: usize = 8;
    let log = Log::default();
    // No other test of this program has one for all threads. Before the first server, which would bring its own.
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let rig = Rig::new();
    let client = Client::connect(&rig.url).unwrap();
    let lease = client.lock("job").ttl(ms(8_000)).owner("stormy").acquire().unwrap();
    let kept = client.lock("short storm").ttl(ms(8_000)).renew_every(ms(200)).acquire().unwrap();
    rig.wait_for_renewals("short storm", 1);
    let throttled = || error(400, "ThrottlingException", "Rate of requests exceeds the allowed throughput.");
    let renewals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&renewals);
    rig.gateway.answer(move |request| {
        let is_ours = is_for(request, "short storm");
        (is_ours && counted.fetch_add(1, Ordering::SeqCst) < 2).then(throttled)
    });
    eventually("it is throttled and goes on", || renewals.load(Ordering::SeqCst) > 3);
    rig.wait_for_renewals("short storm", 1);
    kept.check(ms(1)).unwrap();
    kept.release().unwrap();

    rig.gateway.answer(move |request| is_of_a_row(request).then(throttled));
    let before = rig.gateway.asked().len();
    let told = thread::scope(|scope| {
        let waiter = |n: usize| {
            let client = Client::connect(&rig.url).unwrap();
            scope.spawn(move || client.lock(format!("waiter-{n}")).wait(ms(9_000)).acquire().unwrap_err())
        };
        let waiters: Vec<_> = (0..WAITERS).map(waiter).collect();
        let told: Vec<_> = waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect();
        let error = lease.lost();
        assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
        told
    });
    for error in told {
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(
            error.to_string().contains("throttling") && error.to_string().contains("ThrottlingException"),
            "{error}"
        );
    }
    let asked = &rig.gateway.asked()[before..];
    let by_waiters = asked.iter().filter(|asked| is_of_a_row(asked) && !is_for(asked, "job")).count();
    // At the pace of those who wait for a lock that is held it would be 100 or more.
    assert!((WAITERS..10 * WAITERS).contains(&by_waiters), "{by_waiters} requests of {WAITERS} waiters");
    eventually("the delay is told", || log.has("lock.renew_late ", &["\"job\"", "stormy", "ThrottlingException"]));
    assert_eq!(log.count("lock.renew_late WARN"), 1, "one warning a minute, whatever fails how often");
    let row = rig.row("job");
    assert!(is_held(&row) && counter(&row) == lease.token(), "nobody has had it since: {row}");
}

/// A program that gives keys, as a profile has it: those that a file has.
#[test]
#[ignore = "a role of other tests"]
fn role_with_keys_of_a_program() {
    let Some(folder) = role_args() else { return };
    let path = |name: &str| format!("{folder}/{name}");
    let config = format!("[profile rotating]\ncredential_process = /bin/cat {}\n", path("keys"));
    std::fs::write(path("config"), config).unwrap();
    let give = |id: &str| {
        let keys = format!(r#"{{"Version":1,"AccessKeyId":"{id}","SecretAccessKey":"s","SessionToken":"of-{id}"}}"#);
        std::fs::write(path("keys.new"), keys).unwrap();
        std::fs::rename(path("keys.new"), path("keys")).unwrap();
    };
    let rig = Rig::new();
    // SAFETY: nothing else in this process reads the environment yet.
    unsafe { std::env::set_var("AWS_CONFIG_FILE", path("config")) };
    give("FIRSTKEY");
    let patient = AsyncClient::builder().request_timeout(ms(10_000));
    let client = Client::connect_with(patient, format!("{}&profile=rotating", rig.url)).unwrap();
    let lease = client.lock("job").ttl(ms(60_000)).renew_every(ms(200)).acquire().unwrap();
    let (is_lost, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let lost = Arc::clone(&is_lost);
    lease.on_lost(move |_| lost.store(true, Ordering::SeqCst));
    rig.wait_for_renewals("job", 2);
    for (old, new) in [("FIRSTKEY", "SECONDKEY"), ("SECONDKEY", "THIRDKEY")] {
        give(new);
        told.store(0, Ordering::SeqCst);
        let counted = Arc::clone(&told);
        rig.gateway.answer(move |request| {
            // A greeting is not signed.
            operation(request)?;
            let credential = format!("Credential={old}/");
            let is_old = request.header("authorization").is_some_and(|signed| signed.contains(&credential));
            assert_eq!(request.header("x-amz-security-token").map(|token| token == format!("of-{old}")), Some(is_old));
            counted.fetch_add(usize::from(is_old), Ordering::SeqCst);
            is_old.then(|| error(400, "ExpiredTokenException", "The security token included in the request is expired"))
        });
        eventually("the old keys are refused", || told.load(Ordering::SeqCst) > 0);
        rig.wait_for_renewals("job", 3);
        lease.check(ms(1)).unwrap();
        assert_eq!(told.load(Ordering::SeqCst), 1, "a client that has been refused asks once more, with others");
    }
    assert!(!is_lost.load(Ordering::SeqCst) && is_held(&rig.row("job")));
    lease.release().unwrap();
    say("kept");
}

#[test]
fn keys_that_expire_meanwhile_cost_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let role = Role::start("troubles::role_with_keys_of_a_program", folder.path().to_str().unwrap());
    assert_eq!(role.says_within(3 * PATIENCE), "kept");
}

/// A server whose clock shows midnight of New Year's Day of this year, and which counts the signatures that it refuses.
fn clock_shows(gateway: &Gateway, year: u32) -> Arc<AtomicUsize> {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let weekday = if year == 2032 { "Thu" } else { "Sun" };
    gateway.answer(move |request| {
        let signed_at = request.header("x-amz-date")?;
        if signed_at.starts_with(&format!("{year}0101T00")) {
            return None;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        let message = format!("Signature not yet current: {signed_at} is still later than {year}0101T000000Z");
        let Reply::Answer { status, body, .. } = error(400, "InvalidSignatureException", &message) else { return None };
        let date = ("Date".to_owned(), format!("{weekday}, 01 Jan {year} 00:00:00 GMT"));
        Some(Reply::Answer { status, headers: vec![date], body })
    });
    refused
}

#[test]
fn a_clock_that_is_wrong_costs_one_request_and_no_lease() {
    let rig = Rig::new();
    let refused = clock_shows(&rig.gateway, 2032);
    let client = Client::connect(&rig.url).unwrap();
    let lease = client.lock("job").ttl(ms(6_000)).renew_every(ms(200)).acquire().unwrap();
    rig.wait_for_renewals("job", 2);
    assert_eq!(refused.load(Ordering::SeqCst), 1, "then the server's time is known");
    let refused = clock_shows(&rig.gateway, 2040);
    rig.wait_for_renewals("job", 3);
    assert_eq!(refused.load(Ordering::SeqCst), 1);
    lease.check(ms(1)).unwrap();
    let token = lease.token();
    lease.release().unwrap();
    assert!(client.lock("job").acquire().unwrap().token() > token);
}

#[test]
fn a_clock_that_stays_wrong_is_reported_after_one_more_request() {
    let rig = Rig::new();
    let client = Client::connect(&rig.url).unwrap();
    let counted = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&counted);
    rig.gateway.answer(move |request| {
        counting.fetch_add(usize::from(is_of_a_row(request)), Ordering::SeqCst);
        let refused = error(400, "InvalidSignatureException", "Signature expired: 20200101T000000Z");
        let Reply::Answer { status, body, .. } = refused else { return None };
        let date = ("Date".to_owned(), "Thu, 01 Jan 2032 00:00:00 GMT".to_owned());
        Some(Reply::Answer { status, headers: vec![date], body })
    });
    let error = client.lock("job").try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains("clock") && error.to_string().contains("5 minutes"), "{error}");
    assert_eq!(counted.load(Ordering::SeqCst), 2);
}

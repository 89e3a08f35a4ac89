//! Logins, rights and TLS.

use leasehold::ErrorKind;
use leasehold::blocking::{Client, Once};
use leasehold_servers::etcd::Server;

use crate::common::{PATIENCE, eventually, ms};
use crate::{client, expect_renewal, lease};

/// Switches users on; root may do everything.
pub(crate) fn make_root(server: &Server) {
    server.etcdctl(&["user", "add", "root:hunter2"]);
    server.etcdctl(&["auth", "enable"]);
}

/// Runs the commands of the guide that give the least rights.
fn make_app(server: &Server) {
    let guide = include_str!("../../../docs/etcd.md");
    let (_, section) = guide.split_once("## Least rights").unwrap();
    let block = section.split("```").nth(1).unwrap();
    let commands = block.lines().filter_map(|line| line.trim().strip_prefix("$ etcdctl "));
    let commands: Vec<Vec<&str>> = commands.map(|command| command.split_whitespace().collect()).collect();
    assert!(commands.len() >= 5, "{block}");
    for command in commands {
        // The guide's commands ask for passwords.
        let command: Vec<String> = command
            .iter()
            .enumerate()
            .map(|(at, word)| match command[..2] {
                ["user", "add"] if at == 2 => format!("{word}:hunter2"),
                _ => (*word).to_owned(),
            })
            .collect();
        server.etcdctl(&command.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

fn all(url: &str) -> Result<(), leasehold::Error> {
    let client = Client::connect(url)?;
    client.lock("a").ttl(ms(10_000)).wait(ms(500)).acquire()?.release()?;
    if let Once::Run(run) = client.once("report").key("monday").wait(ms(500)).begin()? {
        run.finish()?;
    }
    client.inspect("a").map(drop)
}

#[test]
fn the_rights_of_the_guide_suffice_and_are_needed() {
    let server = Server::start();
    make_app(&server);
    let url = format!("etcd://app:hunter2@{}", server.address());
    all(&url).unwrap();
    let held = lease(&client(&url), "a");
    let other = client(&url);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lease(&other, "a").release());
        eventually("it may watch", || server.watchers() == 1);
        held.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
    let error = all(&format!("{url}?prefix=elsewhere/")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains("etcdctl role grant-permission"), "{error}");
    let root = "--user=root:hunter2";
    for right in ["read", "write"] {
        server.etcdctl(&[root, "role", "revoke-permission", "--prefix", "locks", "leasehold/"]);
        server.etcdctl(&[root, "role", "grant-permission", "--prefix=true", "locks", right, "leasehold/"]);
        let error = all(&url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "only {right}: {error}");
    }
}

#[test]
fn wrong_logins_are_refused_and_not_repeated() {
    let server = Server::start();
    let error = Client::connect(format!("etcd://root:hunter2@{}", server.address())).unwrap_err();
    assert!(error.to_string().contains("without user and password"), "{error}");
    make_root(&server);
    for login in ["", "root:hunter3@", "nobody:hunter2@"] {
        let error = Client::connect(format!("etcd://{login}{}", server.address())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
}

#[test]
fn rights_that_are_taken_away_are_told_and_come_back() {
    let server = Server::start();
    make_app(&server);
    let client = client(&format!("etcd://app:hunter2@{}", server.address()));
    let held = client.lock("a").ttl(2 * PATIENCE).renew_every(ms(300)).acquire().unwrap();
    let root = "--user=root:hunter2";
    server.etcdctl(&[root, "user", "revoke-role", "app", "locks"]);
    let error = client.lock("b").wait(ms(500)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    server.etcdctl(&[root, "user", "grant-role", "app", "locks"]);
    lease(&client, "b").release().unwrap();
    assert!(!held.is_lost());
    held.release().unwrap();
}

#[test]
fn files_for_tls_may_be_replaced_while_a_lease_is_held() {
    let (server, tls) = Server::with_tls();
    let (ca, cert, key) = (tls.authority.display(), tls.certificate.display(), tls.key.display());
    let one = client(&format!("{}?ca={ca}&cert={cert}&key={key}", tls.url));
    let held = one.lock("a").ttl(2 * PATIENCE).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap();
    tls.rotate();
    server.restart();
    expect_renewal(&server, "a");
    held.check(ms(1)).unwrap();
    held.release().unwrap();
}

#[test]
fn tls_shows_a_certificate_and_trusts_only_the_authority_that_is_named() {
    let (server, tls) = Server::with_tls();
    let shown = format!("cert={}&key={}", tls.certificate.display(), tls.key.display());
    let trusted = format!("ca={}", tls.authority.display());
    let one = client(&format!("{}?{trusted}&{shown}", tls.url));
    let held = lease(&one, "a");
    assert!(client(&server.url()).lock("a").try_acquire().unwrap().is_none(), "it is the same etcd");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| lease(&one, "a").release());
        held.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
    for (parameters, what) in [(trusted.as_str(), "no certificate"), (shown.as_str(), "another authority")] {
        let error = Client::connect(format!("{}?{parameters}", tls.url)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{what}: {error}");
    }
    // A certificate opens the connection, and users have passwords all the same.
    make_root(&server);
    let error = Client::connect(format!("{}?{trusted}&{shown}", tls.url)).unwrap_err();
    assert!(error.to_string().contains("write user and password"), "{error}");
    let login = tls.url.replace("://", "://root:hunter2@");
    lease(&client(&format!("{login}?{trusted}&{shown}")), "b").release().unwrap();
}

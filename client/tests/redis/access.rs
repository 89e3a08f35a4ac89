//! Ways to a Redis: TLS, users, databases, sockets, and what is said when one of them is wrong.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::redis::{Data, Server};

use crate::common::{PATIENCE, eventually, ms};

/// Takes a lock and gives it back.
fn works(url: &str) {
    let client = Client::connect(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    let lease = client.lock("a").wait(Duration::ZERO).acquire().unwrap();
    assert_eq!(client.inspect("a").unwrap().unwrap().token, Some(lease.token()));
    lease.release().unwrap();
    client.close().unwrap();
}

fn refused(url: &str) -> (ErrorKind, String) {
    let error = Client::connect(url).map(drop).unwrap_err();
    (error.kind(), error.to_string())
}

#[test]
fn over_tls_with_a_private_authority() {
    let server = Server::builder().tls().start();
    let ca = server.authority_file().display().to_string();
    works(&format!("{}?ca={ca}", server.tls_url()));

    let (kind, said) = refused(&server.tls_url());
    assert_eq!(kind, ErrorKind::StoreUnavailable, "an authority that nobody knows: {said}");
    assert!(said.to_lowercase().contains("certificate"), "{said}");

    let other = Server::builder().tls().start();
    let (kind, said) = refused(&format!("{}?ca={}", server.tls_url(), other.authority_file().display()));
    assert_eq!(kind, ErrorKind::StoreUnavailable, "another authority: {said}");

    let (kind, said) = refused(&format!("{}?ca=/nowhere/ca.pem", server.tls_url()));
    assert_eq!(kind, ErrorKind::Config);
    assert!(said.contains("/nowhere/ca.pem"), "{said}");

    let (kind, said) = refused(&format!("rediss://127.0.0.1:{}?ca={ca}", server.port()));
    assert_eq!(kind, ErrorKind::StoreUnavailable, "no TLS on the plain port: {said}");
}

#[test]
fn files_for_tls_may_be_replaced_while_a_lease_is_held() {
    let server = Server::builder().appendonly().tls().start();
    let client = Client::connect(format!("{}?ca={}", server.tls_url(), server.authority_file().display())).unwrap();
    let held = client.lock("a").ttl(2 * PATIENCE).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap();
    let renewals = || server.commands_processed("pexpire") + server.commands_processed("evalsha");
    server.rotate_tls();
    server.restart(Data::Kept);
    eventually("it is renewed", || renewals() > 0);
    held.check(ms(1)).unwrap();
    held.release().unwrap();
}

#[test]
fn as_a_user_with_a_password() {
    let secret = "p@ss/hunter2:rd";
    let server =
        Server::builder().acl_file(&format!("user default off\nuser worker on >{secret} ~* &* +@all\n")).start();
    let at = format!("127.0.0.1:{}", server.port());
    works(&format!("redis://worker:p%40ss%2Fhunter2%3Ard@{at}"));
    works(&format!("redis://{at}?username=worker&password=p%40ss%2Fhunter2%3Ard"));
    for wrong in [
        format!("redis://worker:hunter2-guess@{at}"),
        format!("redis://nobody:hunter2-guess@{at}"),
        format!("redis://{at}"),
    ] {
        let (kind, said) = refused(&wrong);
        assert_eq!(kind, ErrorKind::StoreRefused, "{said}");
        assert!(said.contains("password") && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn with_the_password_of_an_old_server() {
    let server = Server::builder().password("hunter2").start();
    works(&format!("redis://:hunter2@127.0.0.1:{}", server.port()));
    let (kind, said) = refused(&format!("redis://:hunter3@127.0.0.1:{}", server.port()));
    assert_eq!(kind, ErrorKind::StoreRefused);
    assert!(said.contains("password") && !said.contains("hunter"), "{said}");
}

#[test]
fn a_password_that_was_changed_is_told_and_a_new_client_has_the_new_one() {
    let server = Server::builder().password("hunter2").start();
    let at = format!("127.0.0.1:{}", server.port());
    let client = Client::connect(format!("redis://:hunter2@{at}")).unwrap();
    client.lock("a").acquire().unwrap().release().unwrap();
    let mut admin = server.connect();
    for command in
        [&["CONFIG", "SET", "requirepass", "hunter3"][..], &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]]
    {
        admin.command(command).unwrap();
    }
    eventually("the new password is asked for", || {
        let error = client.lock("a").wait(Duration::ZERO).acquire().map(drop).err();
        // Shown where the wait fails.
        eprintln!("{error:?}");
        error.is_some_and(|error| error.to_string().contains("worked before"))
    });
    works(&format!("redis://:hunter3@{at}"));
}

#[test]
fn databases_keep_their_locks_apart() {
    let server = Server::start();
    let clients = [0, 3].map(|db| Client::connect(format!("{}/{db}", server.url().trim_end_matches('/'))).unwrap());
    let leases = clients.each_ref().map(|client| client.lock("a").wait(Duration::ZERO).acquire().unwrap());
    assert_eq!(server.command(&["DBSIZE"]).integer(), 2, "a lock and its counter");
    drop(leases);
    let (kind, said) = refused(&format!("{}/99", server.url().trim_end_matches('/')));
    assert_eq!(kind, ErrorKind::StoreRefused);
    assert!(said.contains("database"), "{said}");
}

#[test]
fn over_a_unix_socket() {
    let server = Server::builder().unix_socket().start();
    let path = server.socket_path().display().to_string();
    works(&format!("redis+unix://{path}"));
    works(&format!("redis+unix://{path}?db=2"));
    let (kind, said) = refused("redis+unix:///nowhere/redis.sock");
    assert_eq!(kind, ErrorKind::StoreUnavailable);
    assert!(said.contains("/nowhere/redis.sock"), "{said}");
}

#[test]
fn a_missing_server_is_named() {
    let (kind, said) = refused("redis://127.0.0.1:1");
    assert_eq!(kind, ErrorKind::StoreUnavailable);
    assert!(said.contains("127.0.0.1:1") && said.contains("refused"), "{said}");
    let (kind, said) = refused("redis://no-such-host.invalid");
    assert_eq!(kind, ErrorKind::StoreUnavailable);
    assert!(said.contains("no-such-host.invalid"), "{said}");
}

#[test]
fn many_threads_share_a_client() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let client = &client;
            scope.spawn(move || {
                for _ in 0..20 {
                    client.lock(format!("thread/{thread}")).acquire().unwrap().release().unwrap();
                    client.lock("all").acquire().unwrap().release().unwrap();
                }
            });
        }
    });
    // Locks are free; a counter stays behind for each name.
    assert_eq!(server.command(&["DBSIZE"]).integer(), 17);
}

#[test]
fn a_refused_login_says_what_the_server_says() {
    let open = Server::start();
    let (kind, said) = refused(&format!("redis://:hunter2@127.0.0.1:{}", open.port()));
    assert_eq!(kind, ErrorKind::StoreRefused, "{said}");
    assert!(said.contains("another password, or none") && !said.contains("hunter2"), "{said}");
    let closed = Server::builder().acl_file("user worker off >hunter2 ~* &* +@all\n").start();
    let (kind, said) = refused(&format!("redis://worker:hunter2@127.0.0.1:{}", closed.port()));
    assert_eq!(kind, ErrorKind::StoreRefused, "{said}");
    assert!(said.contains("the user is disabled (the server said"), "{said}");
}

/// Servers, or what stands for them, do not get to write to a terminal.
#[test]
fn words_of_a_server_bring_no_control_characters() {
    for words in ["-WRONGPASS \x1b[2Jred\u{9b}\r\n", "-ERR \x1b[2J\x07\r\n", "+\x1b]0;title\r\n"] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let impostor = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(words.repeat(5).as_bytes());
        });
        let (_, said) = refused(&format!("redis://:hunter2@{address}"));
        assert!(!said.chars().any(char::is_control), "{said:?}");
        impostor.join().unwrap();
    }
}

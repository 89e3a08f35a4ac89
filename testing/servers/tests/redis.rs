//! The rig's own Redis servers do what their methods say.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::thread;

use leasehold_servers::redis::{Data, Server};
use leasehold_servers::resp::{Connection, Reply};
use leasehold_servers::wait_until;

/// True if a server listens there.
fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap()
}

#[test]
fn redis_answers_and_stops_when_dropped() {
    let server = Server::start();
    assert_eq!(server.command(&["SET", "key", "value"]), Reply::Status("OK".to_owned()));
    assert_eq!(server.command(&["GET", "key"]).text(), "value");
    assert!(server.command(&["NONSENSE"]).is_error());
    assert_eq!(server.info("process_id").unwrap(), server.pid().to_string());
    let port = server.port();
    assert!(listens(port));
    drop(server);
    assert!(!listens(port));
}

#[test]
fn paused_redis_stops_when_dropped() {
    let server = Server::start();
    server.stop_process();
    let port = server.port();
    drop(server);
    assert!(!listens(port));
}

#[test]
fn redis_stops_when_the_test_panics() {
    let mut port = 0;
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let server = Server::start();
        port = server.port();
        panic!("the test failed");
    }));
    assert!(panic.is_err());
    assert!(!listens(port));
}

/// Runs in two roles: the test, and the owner of a server that it kills.
#[test]
#[cfg(target_os = "linux")]
fn redis_is_killed_with_its_owner() {
    const PLACE: &str = "LEASEHOLD_RIG_TEST_PLACE";
    if let Some(place) = std::env::var_os(PLACE) {
        // On a thread that ends: the server is to live as long as the process.
        let server = thread::spawn(Server::start).join().unwrap();
        assert_eq!(server.command(&["PING"]).text(), "PONG");
        fs::write(place, format!("{}\n", server.port())).unwrap();
        loop {
            thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("port");
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--exact", "redis_is_killed_with_its_owner"]).env(PLACE, &place);
    // Killed, it leaves its files behind; they go with ours.
    owner.env("TMPDIR", folder.path());
    let mut owner = owner.spawn().unwrap();
    let read = || fs::read_to_string(&place).unwrap_or_default();
    wait_until("the owner has a server", || read().ends_with('\n'));
    let port = read().trim().parse().unwrap();
    assert!(listens(port));
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the server is gone", || !listens(port));
}

#[test]
fn foreign_server_on_the_port_is_recognised() {
    let first = Server::start();
    first.command(&["SET", "whose", "mine"]);
    let port = first.port().to_string();
    let panic = catch_unwind(|| Server::builder().arg("--port", &port).start()).unwrap_err();
    assert!(message(&*panic).contains("was taken"), "{}", message(&*panic));
    assert_eq!(first.command(&["GET", "whose"]).text(), "mine");
}

#[test]
fn failed_start_shows_the_output() {
    let panic = catch_unwind(|| Server::builder().arg("--maxmemory-policy", "nonsense").start()).unwrap_err();
    let message = message(&*panic);
    assert!(message.contains("`redis-server` ended"), "{message}");
    assert!(message.contains("maxmemory-policy"), "{message}");
}

#[test]
fn restart_keeps_port_and_data() {
    let server = Server::builder().appendonly().start();
    let (port, pid) = (server.port(), server.pid());
    server.command(&["SET", "key", "value"]);
    server.kill();
    assert!(!server.is_running());
    assert!(!listens(port));
    server.restart(Data::Kept);
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.command(&["GET", "key"]).text(), "value");
    server.restart(Data::Lost);
    assert_eq!(server.command(&["GET", "key"]), Reply::Nil);
}

#[test]
fn restart_waits_for_a_busy_port() {
    let server = Server::start();
    server.kill();
    let listener = TcpListener::bind(server.address()).unwrap();
    thread::scope(|scope| {
        let restart = scope.spawn(|| server.restart(Data::Kept));
        // The connection comes from the builder, which checks whether the server is up.
        let (mut stranger, _) = listener.accept().unwrap();
        stranger.read_exact(&mut [0; 1]).unwrap();
        drop((stranger, listener));
        restart.join().unwrap();
    });
    assert_eq!(server.command(&["PING"]).text(), "PONG");
}

#[test]
fn commands_to_a_dead_server_fail() {
    let server = Server::start();
    server.kill();
    let panic = catch_unwind(AssertUnwindSafe(|| server.command(&["PING"]))).unwrap_err();
    assert!(message(&*panic).contains("redis-server does not run"), "{}", message(&*panic));
}

#[test]
fn paused_redis_answers_after_resuming() {
    let server = Server::start();
    let mut connection = server.connect();
    server.stop_process();
    #[cfg(target_os = "linux")]
    {
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
        assert!(stat.contains(") T "), "{stat}");
    }
    connection.send(&["PING"]).unwrap();
    server.continue_process();
    assert_eq!(connection.receive().unwrap().text(), "PONG");
}

#[test]
fn password_is_required_and_in_the_url() {
    let server = Server::builder().password("hunter2").start();
    let mut stranger = Connection::open(server.address()).unwrap();
    assert!(stranger.command(&["GET", "key"]).unwrap().text().starts_with("NOAUTH"));
    assert_eq!(server.url(), format!("redis://:hunter2@127.0.0.1:{}/", server.port()));
    assert_eq!(server.command(&["PING"]).text(), "PONG");
}

#[test]
fn acl_file_limits_users() {
    let server = Server::builder().acl_file("user default off\nuser reader on >pw ~* &* +get").start();
    let mut reader = Connection::open(server.address()).unwrap();
    assert_eq!(reader.command(&["AUTH", "reader", "pw"]).unwrap().text(), "OK");
    assert_eq!(reader.command(&["GET", "key"]).unwrap(), Reply::Nil);
    assert!(reader.command(&["SET", "key", "value"]).unwrap().text().starts_with("NOPERM"));
    assert_eq!(server.command(&["SET", "key", "value"]).text(), "OK");
}

#[test]
fn replicas_follow_and_can_be_promoted() {
    let primary = Server::builder().password("hunter2").start();
    let replica = Server::builder().password("hunter2").replica_of(&primary).start();
    primary.command(&["SET", "key", "1"]);
    primary.wait_replicas_in_sync(1);
    assert_eq!(replica.command(&["GET", "key"]).text(), "1");
    assert!(replica.command(&["SET", "key", "2"]).text().starts_with("READONLY"));

    // One that lags does not have what the primary answered.
    replica.stop_process();
    assert_eq!(primary.command(&["SET", "key", "2"]).text(), "OK");
    primary.kill();
    replica.continue_process();
    wait_until("the primary is missed", || replica.info("master_link_status").as_deref() == Some("down"));
    replica.promote();
    assert_eq!(replica.info("role").unwrap(), "master");
    assert_eq!(replica.command(&["SET", "key", "3"]).text(), "OK");
}

#[test]
fn maxmemory_limits_writes() {
    let server = Server::builder().maxmemory(1).start();
    assert!(server.command(&["SET", "key", "value"]).text().starts_with("OOM"));
}

#[test]
fn unix_socket_answers() {
    use std::io::Write;
    let server = Server::builder().unix_socket().start();
    let mut stream = UnixStream::connect(server.socket_path()).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn commands_are_counted_by_name() {
    let server = Server::start();
    assert_eq!(server.commands_processed("set"), 0);
    server.command(&["SET", "key", "1"]);
    server.command(&["EVAL", "return redis.call('SET', KEYS[1], '2')", "1", "key"]);
    assert_eq!(server.commands_processed("set"), 2);
    assert_eq!(server.commands_processed("eval"), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_moved_clock_is_seen_in_time_and_lets_keys_expire() {
    let server = Server::builder().with_clock_offset().start();
    let ahead = |server: &Server| {
        let seconds = server.command(&["TIME"]).array()[0].integer();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        seconds - i64::try_from(now.as_secs()).unwrap()
    };
    // Generous, for machines on which a reply takes a while; the jumps are far larger.
    let is_about = |seen: i64, expected: i64| (expected - 60..=expected + 60).contains(&seen);
    assert!(is_about(ahead(&server), 0));
    server.command(&["SET", "key", "value", "PX", "1800000"]);
    server.set_clock_ms(3_600_000);
    assert!(is_about(ahead(&server), 3_600));
    assert_eq!(server.command(&["GET", "key"]), Reply::Nil);
    server.set_clock_ms(-3_600_500);
    assert!(is_about(ahead(&server), -3_600));
    // The offset outlives the process.
    server.restart(Data::Lost);
    assert!(is_about(ahead(&server), -3_600));
    server.set_clock_ms(0);
    assert!(is_about(ahead(&server), 0));
}

#[test]
fn tls_certificate_is_signed_by_the_authority() {
    let server = Server::builder().tls().start();
    assert!(server.tls_url().starts_with("rediss://127.0.0.1:"));
    assert_eq!(fs::read_to_string(server.authority_file()).unwrap(), server.authority_pem());
    let port = server.tls_url().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    // The client that comes with the server: it checks the chain.
    let ask = |authority: &str| {
        let mut cli = Command::new("redis-cli");
        cli.args(["-h", "127.0.0.1", "-p", &port, "--tls", "--cacert", authority, "PING"]);
        let output = cli.output().expect("redis-cli, of the Debian package redis-tools");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(server.authority_file().to_str().unwrap()), "PONG\n");
    let another = Server::builder().tls().start();
    assert_eq!(ask(another.authority_file().to_str().unwrap()), "");
}

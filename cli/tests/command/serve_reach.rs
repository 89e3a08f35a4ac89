//! Ways to the daemon: tokens, TLS, a unix socket, a browser, and as the samples start it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::common::Place;
use crate::common::daemon::{Daemon, answer, posted};
use leasehold_servers::Tls;
use rustix::process::Signal;
use serde_json::json;

#[test]
fn tokens_tell_clients_apart_and_keep_others_out() {
    let place = Place::new();
    fs::write(place.path("tokens"), "# name token\nalice 0123456789abcdef\nbob fedcba9876543210\n").unwrap();
    let daemon = Daemon::start(&place, &["--tokens", "tokens"]);
    let body = r#"{"resource":"job"}"#;
    let with = |path: &str, token: &str| {
        let body = if path == "/v1/acquire" { body } else { "{}" };
        answer(daemon.send(&posted(path, body, &format!("Authorization: Bearer {token}\r\n"))))
    };
    assert_eq!(daemon.post("/v1/acquire", &json!({ "resource": "job" })).expect(401)["error"]["kind"], "unauthorized");
    for wrong in ["", "0123456789abcdeX", "0123456789abcde", "0123456789abcdef0"] {
        assert_eq!(with("/v1/acquire", wrong).status, 401, "{wrong}");
    }
    let lease = with("/v1/acquire", "0123456789abcdef").expect(200);
    assert_eq!(lease["owner"], "serve:alice");
    let release = format!("/v1/leases/{}/release", lease["id"].as_str().unwrap());
    assert_eq!(with(&release, "fedcba9876543210").status, 404, "bob does not have alice's leases");
    with(&release, "0123456789abcdef").expect(200);
    for owner in ["serve:alice", "SERVE:bob", " serve:bob"] {
        let body = json!({ "resource": "other", "owner": owner }).to_string();
        for path in ["/v1/acquire", "/v1/hold", "/v1/once"] {
            let body = if path == "/v1/once" {
                json!({ "name": "other", "key": "x", "owner": owner }).to_string()
            } else {
                body.clone()
            };
            let refused =
                answer(daemon.send(&posted(path, &body, "Authorization: Bearer fedcba9876543210\r\n"))).expect(400);
            assert!(refused["error"]["message"].as_str().unwrap().contains("label of another client"), "{refused}");
        }
    }
    let own = json!({ "resource": "own", "owner": "serve:bob" }).to_string();
    let own =
        answer(daemon.send(&posted("/v1/acquire", &own, "Authorization: Bearer fedcba9876543210\r\n"))).expect(200);
    assert_eq!(own["owner"], "serve:bob");
    let page = daemon.get("/");
    assert!(page.status == 401 && page.head.to_lowercase().contains("www-authenticate: basic"), "{page:?}");
}

#[test]
fn keys_belong_to_the_client_that_sent_them() {
    let place = Place::new();
    fs::write(place.path("tokens"), "alice 0123456789abcdef\nbob fedcba9876543210\n").unwrap();
    let daemon = Daemon::start(&place, &["--tokens", "tokens"]);
    let ask = |token: &str, body: &str| {
        let more = format!("Authorization: Bearer {token}\r\nIdempotency-Key: 1\r\n");
        answer(daemon.send(&posted("/v1/acquire", body, &more)))
    };
    let alices = ask("0123456789abcdef", r#"{"resource":"job"}"#).expect(200);
    let bobs = ask("fedcba9876543210", r#"{"resource":"other"}"#).expect(200);
    assert_eq!(bobs["repeated"], false);
    assert_eq!(ask("0123456789abcdef", r#"{"resource":"job"}"#).expect(200)["id"], alices["id"]);
    assert_eq!(ask("fedcba9876543210", r#"{"resource":"other"}"#).expect(200)["id"], bobs["id"]);
}

#[test]
fn its_health_is_told_without_a_token_and_nothing_else_is() {
    let place = Place::new();
    fs::write(place.path("tokens"), "alice 0123456789abcdef\n").unwrap();
    let daemon = Daemon::start(&place, &["--tokens", "tokens"]);
    let health = daemon.get("/healthz");
    assert_eq!(health.body, r#"{"ok":true}"#);
    health.expect(200);
    for path in ["/healthz/", "/healthz/../v1/list", "//healthz", "/v1/list", "/nothing", "/openapi.json", "/metrics"] {
        assert_eq!(daemon.get(path).status, 401, "{path}");
    }
    assert_eq!(daemon.post("/healthz", &json!({})).status, 405);
}

#[test]
fn secrets_that_others_can_read_are_told() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let tls = Tls::new(&place.path(""));
    let (cert, key) = (tls.certificate.to_str().unwrap(), tls.key.to_str().unwrap());
    fs::write(place.path("tokens"), "alice 0123456789abcdef\n").unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let options = ["serve", "--listen", &taken, "--tokens", "tokens", "--tls-cert", cert, "--tls-key", key];
    for (mode, is_told) in [(0o644, true), (0o604, true), (0o660, true), (0o600, false), (0o640, false), (0o400, false)]
    {
        for secret in [place.path("tokens"), tls.key.clone()] {
            fs::set_permissions(secret, fs::Permissions::from_mode(mode)).unwrap();
        }
        let ran = place.run(&options).expect(71);
        for secret in ["tokens", key] {
            assert_eq!(ran.stderr.contains(&format!("chmod 600 {secret}")), is_told, "{mode:o}: {}", ran.stderr);
        }
    }
}

#[test]
fn beyond_this_machine_it_wants_tls_and_tokens() {
    let place = Place::new();
    fs::write(place.path("tokens"), "alice 0123456789abcdef\n").unwrap();
    for options in [&["--listen", "0.0.0.0:0"][..], &["--listen", "0.0.0.0:0", "--tokens", "tokens"]] {
        place.run(&[&["serve"], options].concat()).expect(64).says("open to other machines");
    }
    for (text, says) in [
        ("", "no token"),
        ("alice\n", "NAME TOKEN"),
        ("alice short\n", "16 characters"),
        ("a\u{7}b 0123456789abcdef\n", "control"),
    ] {
        fs::write(place.path("bad"), text).unwrap();
        place.run(&["serve", "--tokens", "bad"]).expect(64).says(says);
    }
    place.run(&["serve", "--tls-cert", "x"]).expect(64).says("belong together");
}

#[test]
fn an_address_that_cannot_be_had_says_what_to_do() {
    let place = Place::new();
    place.run(&["serve", "--listen", "localhost:7070"]).expect(64).says("such as 127.0.0.1:7070");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    place.run(&["serve", "--listen", &taken]).expect(71).says("another program listens there; choose another one");
}

#[test]
fn a_unix_socket_is_for_its_owner_and_replaces_one_that_was_left() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let mut first = Daemon::start(&place, &["--socket", "serve.sock"]);
    let socket = place.path("serve.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    place.run(&["serve", "--socket", "serve.sock"]).expect(71).says("in use");
    first.signal(Signal::KILL);
    first.wait();
    let _second = Daemon::start(&place, &["--socket", "serve.sock"]);
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(posted("/v1/acquire", r#"{"resource":"job"}"#, "").as_bytes()).unwrap();
    assert_eq!(answer(stream).expect(200)["resource"], "job");
}

#[test]
fn the_samples_start_it() {
    let place = Place::new();
    let unit = include_str!("../../../docs/infra/leasehold-serve.service");
    let (_, start) = unit.split_once("\nExecStart=/usr/local/bin/leasehold ").unwrap();
    assert_eq!(start.lines().next(), Some("serve"));
    let file = place.path("leasehold-serve.service");
    fs::write(&file, unit.replace("/usr/local/bin/leasehold", env!("CARGO_BIN_EXE_leasehold"))).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() {
        Ok(verified) => {
            let verified = crate::common::Ran::from(verified).expect(0);
            assert_eq!(verified.stderr, "");
        }
        Err(error) => eprintln!("the unit is not verified, since there is no systemd here: {error}"),
    }
    let container = include_str!("../../../docs/infra/Containerfile");
    let words = |instruction: &str| -> Vec<String> {
        let line = container.lines().find_map(|line| line.strip_prefix(instruction)).unwrap();
        serde_json::from_str(line).unwrap()
    };
    assert_eq!(words("ENTRYPOINT "), ["/usr/local/bin/leasehold"]);
    let words = words("CMD ");
    place
        .run(&words.iter().map(String::as_str).collect::<Vec<_>>())
        .expect(64)
        .says("/etc/leasehold/tokens: cannot be read");
}

#[test]
fn it_serves_over_tls_those_who_have_a_token() {
    let place = Place::new();
    fs::write(place.path("tokens"), "alice 0123456789abcdef\n").unwrap();
    let tls = Tls::new(&place.path(""));
    let (cert, key) = (tls.certificate.to_str().unwrap(), tls.key.to_str().unwrap());
    let daemon = Daemon::start(&place, &["--tls-cert", cert, "--tls-key", key, "--tokens", "tokens"]);
    let curl = |options: &[&str]| {
        let url = format!("https://{}/v1/acquire", daemon.address);
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--noproxy", "*", "-w", "\n%{http_code}", "-H", "Content-Type: application/json"]);
        let run = curl.args(["-d", r#"{"resource": "job"}"#, &url]).args(options).output().unwrap();
        (run.status.success(), String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap())
    };
    let authority = ["--cacert", tls.authority.to_str().unwrap()];
    let granted = curl(&[&authority[..], &["-H", "Authorization: Bearer 0123456789abcdef"]].concat());
    assert!(granted.1.contains("\"owner\":\"serve:alice\"") && granted.1.ends_with("200"), "{granted:?}");
    let refused = curl(&authority);
    assert!(refused.1.ends_with("401"), "{refused:?}");
    assert!(!curl(&[]).0, "a certificate that nobody vouches for");
    // Who speaks no TLS gets no answer, and holds up nobody.
    let mut plain = daemon.send(&posted("/v1/acquire", "{}", ""));
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("HTTP/"), "{rest:?}");
    let again = curl(&[&authority[..], &["-u", "any:0123456789abcdef"]].concat());
    assert!(again.1.ends_with("409"), "{again:?}");
}

#[test]
fn tls_that_cannot_be_read_is_told() {
    let place = Place::new();
    let tls = Tls::new(&place.path(""));
    fs::write(place.path("empty"), "").unwrap();
    let (cert, key) = (tls.certificate.to_str().unwrap(), tls.key.to_str().unwrap());
    for (cert, key, says) in
        [("missing", key, "missing: "), (cert, "empty", "empty: "), ("empty", key, "no certificate")]
    {
        place.run(&["serve", "--tls-cert", cert, "--tls-key", key]).expect(64).says(says);
    }
}

#[test]
fn a_browser_shows_names_as_text() {
    let program = std::env::var_os("LEASEHOLD_BROWSER").unwrap_or_else(|| "chromium-headless-shell".into());
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let name = "<img src=x onerror=\"document.title='run'\">&amp;</td>";
    let lock = json!({ "resource": name, "owner": "<script>document.title='run'</script>" });
    let lease = daemon.post("/v1/acquire", &lock).expect(200);
    let profile = place.path("profile");
    let page = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://{}/", daemon.address))
        .output()
        .expect("a browser: install chromium-headless-shell, or set LEASEHOLD_BROWSER");
    let page = String::from_utf8_lossy(&page.stdout);
    // As the browser writes the text of the cells that it has read.
    let shown = "<td>&lt;img src=x onerror=\"document.title='run'\"&gt;&amp;amp;&lt;/td&gt;</td>";
    assert!(page.contains(shown), "{page}");
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.contains("<title>leasehold</title>"), "{page}");
    assert!(page.contains(&format!("<td class=\"number\">{}</td>", lease["token"])), "{page}");
}

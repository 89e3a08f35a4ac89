//! The REST server follows the published protocol, and breaks it where a test says so.

use std::io::{self, ErrorKind};

use leasehold_servers::http::{self, Connection, Response};
use leasehold_servers::redis;
use leasehold_servers::rest::{Misbehave, Server};

fn pair() -> (redis::Server, Server) {
    let redis = redis::Server::start();
    let server = Server::start(&redis);
    (redis, server)
}

fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Response> {
    let bearer = format!("Bearer {}", server.token());
    let mut all = vec![("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    all.extend_from_slice(headers);
    http::request(server.address(), "POST", path, &all, body)
}

/// Requests in this order on one server, and what they are answered.
#[test]
fn rest_server_answers_as_documented() {
    let base64: &[(&str, &str)] = &[("Upstash-Encoding", "base64")];
    let none: &[(&str, &str)] = &[];
    let table = [
        ("/", none, r#"["SET","key","value"]"#, 200, r#"{"result":"OK"}"#),
        ("/", none, r#"["GET","key"]"#, 200, r#"{"result":"value"}"#),
        ("/", none, r#"["get","nothing"]"#, 200, r#"{"result":null}"#),
        ("/", none, r#"["SET","number",12,"PX",60000]"#, 200, r#"{"result":"OK"}"#),
        ("/", none, r#"["INCRBY","number",9007199254740000]"#, 200, r#"{"result":9007199254740012}"#),
        ("/", none, r#"["SET","bool",true]"#, 200, r#"{"result":"OK"}"#),
        ("/", none, r#"["GET","bool"]"#, 200, r#"{"result":"true"}"#),
        (
            "/",
            none,
            r#"["EVAL","return {1,{ARGV[1],false},redis.status_reply('OK')}",0,"é"]"#,
            200,
            r#"{"result":[1,["é",null],"OK"]}"#,
        ),
        ("/", base64, r#"["GET","key"]"#, 200, r#"{"result":"dmFsdWU="}"#),
        ("/", base64, r#"["SET","key","value"]"#, 200, r#"{"result":"OK"}"#),
        ("/", base64, r#"["PING"]"#, 200, r#"{"result":"UE9ORw=="}"#),
        ("/", base64, r#"["EVAL","return {1,'a',{ok='OK'}}",0]"#, 200, r#"{"result":[1,"YQ==","T0s="]}"#),
        ("/", none, r#"["INCR","key"]"#, 400, r#"{"error":"ERR value is not an integer or out of range"}"#),
        (
            "/",
            base64,
            r#"["EVALSHA","0000000000000000000000000000000000000000",0]"#,
            400,
            r#"{"error":"NOSCRIPT No matching script. Please use EVAL."}"#,
        ),
        ("/", none, "[]", 400, r#"{"error":"ERR empty command"}"#),
        ("/", none, r#"{"GET":"key"}"#, 400, r#"{"error":"ERR failed to parse command: not an array"}"#),
        ("/", none, r#"["SUBSCRIBE","x"]"#, 400, r#"{"error":"ERR Command is not available: 'SUBSCRIBE'"}"#),
        (
            "/pipeline",
            none,
            r#"[["SET","a",1],["INCR","key"],["GET","a"]]"#,
            200,
            r#"[{"result":"OK"},{"error":"ERR value is not an integer or out of range"},{"result":"1"}]"#,
        ),
        ("/pipeline", none, "[]", 400, r#"{"error":"ERR failed to parse pipeline: not an array of commands"}"#),
        (
            "/multi-exec",
            none,
            r#"[["INCR","a"],["INCR","key"],["GET","a"]]"#,
            200,
            r#"[{"result":2},{"error":"ERR value is not an integer or out of range"},{"result":"2"}]"#,
        ),
        (
            "/multi-exec",
            none,
            r#"[["INCR","a"],["NONSENSE"]]"#,
            400,
            r#"{"error":"EXECABORT Transaction discarded because of previous errors."}"#,
        ),
        ("/", none, r#"["GET","a"]"#, 200, r#"{"result":"2"}"#),
        ("/get/a", none, "", 400, r#"{"error":"ERR Command is not available: '/get/a'"}"#),
    ];
    let (_redis, server) = pair();
    for (path, headers, body, status, answer) in table {
        let response = post(&server, path, headers, body).unwrap();
        assert_eq!((response.status, response.text().as_str()), (status, answer), "{path} {body}");
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
    let garbage = post(&server, "/", &[], "[").unwrap();
    assert_eq!(garbage.status, 400);
    assert!(garbage.text().starts_with(r#"{"error":"ERR failed to parse command"#), "{}", garbage.text());
}

#[test]
fn rest_server_checks_the_token_first() {
    let (redis, server) = pair();
    let wrong = "Bearer somebody-elses";
    let right = format!("Bearer {}", server.token());
    let table = [
        ("POST", ("X-Other", wrong), 401),
        ("POST", ("Authorization", wrong), 401),
        ("GET", ("Authorization", wrong), 401),
        ("GET", ("Authorization", &right), 405),
        ("DELETE", ("authorization", &right), 405),
    ];
    for (method, header, status) in table {
        let response = http::request(server.address(), method, "/", &[header], r#"["SET","key","value"]"#).unwrap();
        assert_eq!(response.status, status);
        if status == 401 {
            assert_eq!(response.text(), r#"{"error":"WRONGPASS invalid or missing auth token"}"#);
        }
    }
    assert_eq!(server.requests(), 5);
    assert_eq!(redis.commands_processed("set"), 0);
}

#[test]
fn connections_are_kept() {
    let (_redis, server) = pair();
    let bearer = format!("Bearer {}", server.token());
    let mut connection = Connection::open(server.address()).unwrap();
    for result in 1..=3 {
        let response = connection.request("POST", "/", &[("Authorization", &bearer)], r#"["INCR","n"]"#).unwrap();
        assert_eq!(response.text(), format!(r#"{{"result":{result}}}"#));
    }
    assert_eq!((server.connections(), server.requests()), (1, 3));
    let last = [("Authorization", bearer.as_str()), ("Connection", "close")];
    assert_eq!(connection.request("POST", "/", &last, r#"["INCR","n"]"#).unwrap().text(), r#"{"result":4}"#);
    assert!(connection.request("POST", "/", &last, r#"["INCR","n"]"#).is_err());
}

#[test]
fn oversized_and_chunked_requests_are_rejected() {
    let (_redis, server) = pair();
    let mut connection = Connection::open(server.address()).unwrap();
    let response = connection.request("POST", "/", &[("Transfer-Encoding", "chunked")], "").unwrap();
    assert_eq!(response.status, 411);
    let long = "x".repeat(20_000);
    assert_eq!(http::request(server.address(), "POST", "/", &[("X", &long)], "").unwrap().status, 400);
    // Refused for what it announces: nothing of it is read.
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    io::Write::write_all(&mut stream, b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").unwrap();
    let mut answer = String::new();
    io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn a_database_that_is_down_is_500_and_found_again() {
    let (redis, server) = pair();
    let bearer = format!("Bearer {}", server.token());
    let mut connection = Connection::open(server.address()).unwrap();
    let mut ping = || connection.request("POST", "/", &[("Authorization", &bearer)], r#"["PING"]"#).unwrap().status;
    assert_eq!(ping(), 200);
    redis.kill();
    assert_eq!(ping(), 500);
    redis.restart(redis::Data::Lost);
    assert_eq!(ping(), 200);
}

#[test]
fn misbehaviours_work_as_documented() {
    let (redis, server) = pair();
    let incr = || post(&server, "/", &[], r#"["INCR","n"]"#);
    let count = || redis.commands_processed("incr");
    let next = |misbehave| {
        server.misbehave(misbehave);
        incr()
    };

    let status = next(Misbehave::Status(503, r#"{"error":"later"}"#.to_owned())).unwrap();
    assert_eq!((status.status, status.text().as_str()), (503, r#"{"error":"later"}"#));

    let html = next(Misbehave::Html).unwrap();
    assert_eq!((html.status, html.header("content-type")), (200, Some("text/html")));
    assert!(html.text().starts_with("<!DOCTYPE html>"));

    let large = next(Misbehave::Large(2 << 20)).unwrap();
    assert_eq!((large.status, large.body.len()), (200, (2 << 20) + r#"{"result":""}"#.len()));

    let away = next(Misbehave::Redirect("http://127.0.0.1:1/".to_owned())).unwrap();
    assert_eq!((away.status, away.header("location")), (307, Some("http://127.0.0.1:1/")));

    assert_eq!(next(Misbehave::CloseBeforeAnswer).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(count(), 0);

    assert_eq!(next(Misbehave::CloseAfterApplying).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(count(), 1);
    assert_eq!(next(Misbehave::HalfBody).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(count(), 2);

    assert_eq!(incr().unwrap().text(), r#"{"result":3}"#);
    assert_eq!((server.misbehaviours_left(), server.requests()), (0, 8));
}

#[test]
fn hanging_request_ends_with_the_server() {
    let (redis, server) = pair();
    server.misbehave_on("INCR", Misbehave::Hang);
    assert_eq!(post(&server, "/", &[], r#"["PING"]"#).unwrap().status, 200);
    std::thread::scope(|scope| {
        let hangs = scope.spawn(|| post(&server, "/", &[], r#"["INCR","n"]"#));
        leasehold_servers::wait_until("the request came", || server.requests() == 2);
        leasehold_servers::wait_until("it hangs", || server.misbehaviours_left() == 0);
        server.cut_all();
        assert!(hangs.join().unwrap().is_err());
    });
    assert_eq!(redis.commands_processed("incr"), 0);
}

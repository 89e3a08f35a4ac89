//! Answers that no emulator gives, made up.

use std::sync::Mutex;

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::answers::{Reply, Request, Server};

use crate::common::ms;
use crate::common::on_objects;
use crate::within;

fn s3(server: &Server) -> String {
    format!("s3://locks?region=eu-west-1&endpoint={}", server.url())
}

fn with(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Reply::Answer { status, headers, body: body.into() }
}

fn error(code: &str) -> String {
    format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>hunter2</Message></Error>")
}

fn missing() -> Reply {
    Reply::new(404, error("NoSuchKey"))
}

#[test]
fn a_service_that_ignores_conditions_is_refused() {
    on_objects::set_keys();
    // It keeps one object, whatever is asked of it.
    let kept = Mutex::new(Vec::new());
    let server = Server::start(move |request: &Request| {
        let mut kept = kept.lock().unwrap();
        if request.method == "PUT" {
            kept.push(request.body.clone());
            return with(200, &[("ETag", &format!("\"{}\"", kept.len()))], "");
        }
        match kept.last() {
            Some(body) => with(200, &[("ETag", &format!("\"{}\"", kept.len()))], &String::from_utf8_lossy(body)),
            None => missing(),
        }
    });
    let error = Client::connect(s3(&server)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains("ignores conditions"), "{error}");
}

#[test]
fn refusals_say_what_to_do_and_repeat_no_secret() {
    on_objects::set_keys();
    for (status, headers, code, kind, words) in [
        (404, &[][..], "NoSuchBucket", ErrorKind::StoreRefused, "no such bucket"),
        (403, &[], "AccessDenied", ErrorKind::StoreRefused, "s3:GetObject"),
        (
            301,
            &[("x-amz-bucket-region", "eu-west-3")],
            "PermanentRedirect",
            ErrorKind::StoreRefused,
            "?region=eu-west-3",
        ),
        (503, &[], "SlowDown", ErrorKind::StoreUnavailable, "too many requests"),
        (500, &[], "InternalError", ErrorKind::StoreUnavailable, "has failed"),
        (502, &[], "", ErrorKind::StoreUnavailable, "has failed"),
    ] {
        let body = error(code);
        let server = Server::start(move |_: &Request| with(status, headers, &body));
        let error = Client::connect(s3(&server)).unwrap_err();
        assert_eq!(error.kind(), kind, "{code}: {error}");
        assert!(error.to_string().contains(words), "{code}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn answers_that_are_cut_short_or_foreign_are_no_success() {
    on_objects::set_keys();
    for (reply, words) in [
        (Reply::Half(b"{\"counter\":1}".to_vec()), ""),
        (Reply::Close, ""),
        (Reply::new(200, "<html>Welcome</html>"), "none of the storage service's"),
        (Reply::new(204, ""), "HTTP status 204"),
        (with(200, &[("ETag", "\"a\nb\"")], "{}"), ""),
    ] {
        let shown = format!("{reply:?}");
        let server = Server::start(move |_: &Request| reply.clone());
        let error = Client::connect(s3(&server)).unwrap_err();
        let refused = [ErrorKind::StoreUnavailable, ErrorKind::StoreRefused];
        assert!(refused.contains(&error.kind()) && error.to_string().contains(words), "{shown}: {error}");
    }
}

#[test]
fn a_clock_that_is_wrong_is_corrected_by_the_answer() {
    on_objects::set_keys();
    let objects = Mutex::new(std::collections::HashMap::<String, (usize, Vec<u8>)>::new());
    let server = Server::start(move |request: &Request| {
        if !request.header("x-amz-date").unwrap().starts_with("20310203T") {
            let date = [("Date", "Mon, 03 Feb 2031 04:05:06 GMT")];
            return with(403, &date, &error("RequestTimeTooSkewed"));
        }
        let mut objects = objects.lock().unwrap();
        let is = objects.get(&request.path).cloned();
        if request.method != "PUT" {
            return is.map_or_else(missing, |(version, body)| {
                with(200, &[("ETag", &format!("\"{version}\""))], &String::from_utf8_lossy(&body))
            });
        }
        let wanted = request.header("if-match").map(|etag| etag.trim_matches('"').parse::<usize>().unwrap());
        if wanted != is.as_ref().map(|(version, _)| *version) {
            return Reply::new(412, error("PreconditionFailed"));
        }
        let version = is.map_or(1, |(version, _)| version + 1);
        objects.insert(request.path.clone(), (version, request.body.clone()));
        with(200, &[("ETag", &format!("\"{version}\""))], "")
    });
    let client = within(&s3(&server), ms(10_000));
    client.lock("a").acquire().unwrap().release().unwrap();
    let late =
        server.asked().iter().filter(|request| !request.header("x-amz-date").unwrap().starts_with("2031")).count();
    assert_eq!(late, 1, "later requests are signed by the service's clock");
}

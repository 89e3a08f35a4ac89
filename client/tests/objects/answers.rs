//! Answers that no emulator gives, made up.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};

use leasehold::blocking::Client;
use leasehold::{ErrorKind, Severity};
use leasehold_servers::answers::{Reply, Request, Server};

use crate::common::on_objects;
use crate::common::{PATIENCE, ms};
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
    with(404, &[("x-ms-error-code", "BlobNotFound")], &error("NoSuchKey"))
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
    let error = Client::connect(s3(&server)).unwrap().lock("a").wait(PATIENCE).acquire().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains("ignores conditions"), "{error}");
}

#[test]
fn a_service_that_looks_and_writes_later_is_found_by_the_doctor() {
    on_objects::set_keys();
    for has_gap in [false, true] {
        let (objects, between) =
            (Mutex::new(HashMap::<String, (usize, Vec<u8>)>::new()), (Mutex::new(0), Condvar::new()));
        let server = Server::start(move |request: &Request| {
            let etag = |version: &usize| format!("\"{version}\"");
            let mut kept = objects.lock().unwrap();
            let found = kept.get(&request.path).cloned();
            if request.method != "PUT" {
                return match found {
                    Some((version, body)) => with(200, &[("ETag", &etag(&version))], &String::from_utf8_lossy(&body)),
                    None => missing(),
                };
            }
            let holds = match (request.header("if-match"), &found) {
                (Some(wanted), Some((version, _))) => wanted == etag(version),
                (None, found) => found.is_none(),
                (Some(_), None) => false,
            };
            if !holds {
                return with(412, &[], &error("PreconditionFailed"));
            }
            if has_gap {
                drop(kept);
                // Until another is here too, if one comes.
                let mut here = between.0.lock().unwrap();
                *here += 1;
                between.1.notify_all();
                let wait = between.1.wait_timeout_while(here, ms(100), |here| *here < 2).unwrap();
                drop(wait);
                kept = objects.lock().unwrap();
                *between.0.lock().unwrap() = 0;
            }
            let version = kept.get(&request.path).map_or(1, |(version, _)| version + 1);
            kept.insert(request.path.clone(), (version, request.body.clone()));
            with(200, &[("ETag", &etag(&version))], "")
        });
        let findings = Client::connect(s3(&server)).unwrap().doctor().unwrap();
        let found = findings.iter().find(|finding| finding.check == "objects.conditions").unwrap();
        let expected = if has_gap { Severity::Problem } else { Severity::Good };
        assert_eq!(found.severity, expected, "{found:?}");
        assert_eq!(found.what.contains("simultaneous writes"), has_gap, "{found:?}");
    }
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
        (Reply::new(200, "<html>Welcome</html>"), "does not come from the storage service"),
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

/// A service of 2031 that keeps objects. `is_on_time` judges the date of a request, and `skewed` says that it is wrong.
fn of_2031(is_on_time: impl Fn(&Request) -> bool + Send + Sync + 'static, skewed: &'static str) -> Server {
    let objects = Mutex::new(std::collections::HashMap::<String, (usize, Vec<u8>)>::new());
    Server::start(move |request: &Request| {
        if !is_on_time(request) {
            let date = ("Date", "Mon, 03 Feb 2031 04:05:06 GMT");
            // Azure says it there as well.
            return with(403, &[date, ("x-ms-error-code", "AuthenticationFailed")], skewed);
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
            return with(412, &[("x-ms-error-code", "ConditionNotMet")], &error("PreconditionFailed"));
        }
        let is_new = is.is_none();
        let version = is.map_or(1, |(version, _)| version + 1);
        objects.insert(request.path.clone(), (version, request.body.clone()));
        with(if is_new { 201 } else { 200 }, &[("ETag", &format!("\"{version}\""))], "")
    })
}

#[test]
fn a_clock_that_is_wrong_is_corrected_by_the_answer() {
    on_objects::set_keys();
    let by_aws = |request: &Request| request.header("x-amz-date").unwrap().starts_with("20310203T");
    let by_azure = |request: &Request| request.header("x-ms-date").unwrap().starts_with("Mon, 03 Feb 2031");
    let of_aws = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
    let of_azure = "<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>Request date header too old: 'Tue, 24 Nov \
                    2026 00:00:00 GMT'</AuthenticationErrorDetail></Error>";
    let aws = of_2031(by_aws, of_aws);
    let azure = of_2031(by_azure, of_azure);
    let azure_url = format!("azblob://acme/locks?endpoint={}", azure.url());
    for (server, url, is_on_time) in
        [(&aws, s3(&aws), &by_aws as &dyn Fn(&Request) -> bool), (&azure, azure_url, &by_azure)]
    {
        let client = within(&url, ms(10_000));
        client.lock("a").acquire().unwrap().release().unwrap();
        let late = server.asked().iter().filter(|request| !is_on_time(request)).count();
        assert_eq!(late, 1, "later requests are signed by the service's clock: {url}");
    }
}

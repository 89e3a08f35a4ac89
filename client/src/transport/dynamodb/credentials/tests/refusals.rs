//! Errors name the cause, and no other source is asked instead of the one that was named.

use super::*;

#[test]
fn without_keys_the_error_names_all_sources() {
    let said = World::empty().refused();
    for part in [
        "environment: AWS_ACCESS_KEY_ID is not set",
        "profile \"default\": it is not in",
        ".aws/config or ",
        "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is not set",
        "container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set",
        "EC2 instance metadata: instance metadata not found",
        "?profile=NAME or AWS_PROFILE",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let world = World::empty();
    world.set("AWS_EC2_METADATA_DISABLED", "TRUE");
    assert!(world.refused().contains("AWS_EC2_METADATA_DISABLED is set") && world.asked().is_empty());
}

#[test]
fn a_missing_server_is_named() {
    let world = World::empty();
    let address = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap() };
    world.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", &format!("http://{address}"));
    let said = world.refused();
    assert!(said.contains(&format!("{address}: ")) && said.contains("refused"), "{said}");
}

#[test]
fn a_named_source_without_keys_ends_the_search() {
    // Every case has a machine that would give keys.
    let working = |request: &Request| match request.path.as_str() {
        "/latest/api/token" => Reply::new(200, "t"),
        "/latest/meta-data/iam/security-credentials/" => Reply::new(200, "r"),
        path if path.ends_with("/r") => metadata("ASIAMACHINE", &time(3600)),
        _ => Reply::new(
            403,
            "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>",
        ),
    };
    let role = "role_arn = arn:aws:iam::123456789012:role/locks\n";
    let keys = "aws_access_key_id = A\naws_secret_access_key = hunter2\n";
    type Case<'a> = (&'a [(&'a str, &'a str)], String, &'a str);
    let cases: [Case<'_>; 20] = [
        (&[("AWS_ACCESS_KEY_ID", "A")], String::new(), "AWS_SECRET_ACCESS_KEY is not; set both or none"),
        (&[("AWS_SECRET_ACCESS_KEY", "hunter2")], String::new(), "AWS_ACCESS_KEY_ID is not; set both or none"),
        (
            &[("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "hunter2 hunter2")],
            String::new(),
            "the secret access key is empty, or has characters",
        ),
        (&[("AWS_PROFILE", "gone")], "[profile here]\n".into(), "which has here"),
        (&[], "[default]\naws_access_key_id = A\n".into(), "belong together"),
        (&[], "[default\n".into(), "config: line 1: a ] is missing"),
        (&[], format!("[default]\n{role}"), "add source_profile"),
        (&[], format!("[default]\n{role}source_profile = gone\n"), "there is no profile \"gone\""),
        (&[], format!("[default]\n{role}source_profile = b\n[profile b]\nx = y\n"), "no keys to take its role with"),
        (&[], format!("[default]\n{role}credential_source = Moon\n"), "there are Environment, EcsContainer"),
        (&[], format!("[default]\n{role}source_profile = default\n{keys}"), "not you"),
        (&[], format!("[default]\n{role}source_profile = default\nmfa_serial = x\n{keys}"), "mfa_serial"),
        (&[], format!("[default]\n{role}source_profile = default\nduration_seconds = 5\n{keys}"), "900 to 43200"),
        (
            &[],
            format!("[default]\n{role}source_profile = b\n[profile b]\n{role}source_profile = default\n"),
            "is circular",
        ),
        (&[], "[default]\nsso_session = gone\n".into(), "\"gone\" is not in"),
        (&[], "[default]\nsso_start_url = x\n".into(), "sso_region is missing; run aws configure sso"),
        (&[], "[default]\nsso_start_url = x\nsso_region = a.example/\n".into(), "which is not a region"),
        (&[("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/gone")], String::new(), "AWS_ROLE_ARN is not; set both"),
        (
            &[("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/gone"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/a")],
            String::new(),
            "failed to read web identity token file",
        ),
        (&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil")], String::new(), "does not begin with /"),
    ];
    for (variables, config, words) in cases {
        let world = World::new(working);
        world.config(&config);
        for (name, value) in variables {
            world.set(name, value);
        }
        let said = world.refused();
        assert!(said.contains(words), "{words} in {said}");
        let asked = world.asked();
        assert!(asked.iter().all(|asked| asked.contains("sts.")), "{words}: {asked:?}");
    }
}

/// A refusal of keys is not an unavailable store.
#[test]
fn a_refusal_of_any_source_is_reported() {
    const ROLE: &str = "arn:aws:iam::123456789012:role/locks";
    let token = format!(r#"{{"accessToken":"hunter2","expiresAt":"{}"}}"#, time(3600));
    let by_role = format!(
        "[default]\nrole_arn = {ROLE}\nsource_profile = base\n[profile base]\naws_access_key_id = A\n\
         aws_secret_access_key = hunter2\n"
    );
    let by_sso =
        "[default]\nsso_session=corp\nsso_account_id=1\nsso_role_name=r\n[sso-session corp]\nsso_region=eu-west-1";
    type Setting<'a> = (&'a str, &'a dyn Fn(&World));
    let settings: [Setting<'_>; 5] = [
        ("its role cannot be taken", &|world| {
            world.config(&by_role);
        }),
        ("does not give the role", &|world| {
            world.set("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token").set("AWS_ROLE_ARN", ROLE).write("token", "hunter2");
        }),
        ("SSO", &|world| {
            world.write(".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json", &token).config(by_sso);
        }),
        ("container", &|world| {
            world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
        }),
        ("EC2 instance metadata", &|_| {}),
    ];
    for (place, set) in settings {
        for status in [403, 401, 400, 404, 500] {
            let world = World::new(move |_| Reply::new(status, "hunter2"));
            set(&world);
            let credentials = world.credentials();
            // Also a moment later, when nobody is asked again.
            for _ in 0..2 {
                let why = block_on(credentials.keys()).expect_err("there are keys");
                let said = why.to_string();
                assert!(said.contains(place), "{place} in {said}");
                match why.refusal() {
                    Refusal::Denied(denial) => {
                        assert!(matches!(status, 401 | 403), "{status}: {said}");
                        assert_eq!(denial.kind, DenialKind::Permission);
                        assert!(denial.detail.contains("waiting does not help"), "{denial}");
                    }
                    Refusal::NeedsCredentials(_) => assert!(matches!(status, 400 | 404), "{status}: {said}"),
                    Refusal::Unavailable(_) => assert_eq!(status, 500, "{said}"),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    // What was refused before says nothing of the next search.
    let world = World::new(|_| Reply::new(403, ""));
    let credentials = world.credentials();
    let before = clock::monotonic();
    assert!(matches!(block_on(credentials.keys_at(before)).unwrap_err().refusal(), Refusal::Denied(_)));
    world.set("AWS_EC2_METADATA_DISABLED", "true");
    let later = before.plus(Duration::from_secs(3600));
    assert!(matches!(block_on(credentials.keys_at(later)).unwrap_err().refusal(), Refusal::NeedsCredentials(_)));
}

#[test]
fn a_named_source_that_is_late_is_asked_again_soon() {
    let world = World::empty();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    for (name, value) in [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("http://{nobody}/keys")),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{nobody}")),
    ] {
        world.set(name, &value);
        let credentials = world.credentials();
        let before = clock::monotonic();
        let why = block_on(credentials.keys_at(before)).unwrap_err();
        assert!(matches!(why.refusal(), Refusal::Unavailable(_)), "{name}: {why}");
        world.set("AWS_ACCESS_KEY_ID", "A").set("AWS_SECRET_ACCESS_KEY", "hunter2");
        block_on(credentials.keys_at(before.plus(Duration::from_secs(4)))).unwrap();
        world.set("AWS_ACCESS_KEY_ID", "").set("AWS_SECRET_ACCESS_KEY", "").set(name, "");
    }
    // Where nobody has named a source, nobody comes later.
    let why = block_on(World::empty().credentials().keys_at(clock::monotonic())).unwrap_err();
    assert!(matches!(why.refusal(), Refusal::NeedsCredentials(_)), "{why}");
}

#[test]
fn keys_are_fetched_from_nowhere_else() {
    for url in ["http://evil.example/keys", "https://evil.example/keys", "http://169.254.170.2@evil.example/"] {
        let world = World::empty();
        world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", url).set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter2");
        let said = world.refused();
        assert!(said.contains("keys are not requested from") && world.asked().is_empty(), "{said}");
    }
    let world = World::empty();
    world.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://evil.example");
    assert!(world.refused().contains("keys are not requested from") && world.asked().is_empty());
    // The library would send the token of SSO there.
    let world = World::new(|_| Reply::new(307, ""));
    world.set("AWS_SSO_ENDPOINT", "http://evil.example");
    world.config(
        "[default]\nsso_session=corp\nsso_account_id=1\nsso_role_name=r\n[sso-session corp]\nsso_region=eu-west-1",
    );
    let text = format!(r#"{{"accessToken":"hunter2","expiresAt":"{}"}}"#, time(3600));
    world.write(".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json", &text);
    assert!(world.refused().contains("307"), "{}", world.refused());
    assert!(world.asked().iter().all(|asked| asked.contains("portal.sso.eu-west-1.amazonaws.com")));
}

#[test]
fn no_redirect_is_followed() {
    let elsewhere = Server::start(|_| metadata("EVIL", &time(3600)));
    let away = vec![("Location".to_owned(), elsewhere.url())];
    let world = World::new(move |_| Reply::Answer { status: 307, headers: away.clone(), body: Vec::new() });
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
    assert!(world.refused().contains("307"), "{}", world.refused());
    assert!(elsewhere.asked().is_empty());
}

#[test]
fn invalid_answers_are_errors_that_repeat_nothing() {
    let expiration = time(3600);
    let part = |name: &str, value: &str| {
        let text = format!(
            r#"{{"AccessKeyId":"A","SecretAccessKey":"hunter2","Token":"hunter2","Expiration":"{expiration}","Code":"Success"}}"#
        );
        let from = text.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
        let to = from + text[from..].find([',', '}']).unwrap();
        format!("{}{value}{}", &text[..from], &text[to..])
    };
    let wrong = [
        "".to_owned(),
        "hunter2".to_owned(),
        "<html>hunter2</html>".to_owned(),
        "[]".to_owned(),
        "{\"SecretAccessKey\":\"hunter2\"}".to_owned(),
        part("AccessKeyId", "7"),
        part("AccessKeyId", "\"\""),
        part("AccessKeyId", r#""a\nb: hunter2""#),
        part("SecretAccessKey", "\"\""),
        part("SecretAccessKey", r#"{"hunter2":1}"#),
        part("Token", r#""a\r\nx-evil: hunter2""#),
        part("Expiration", "\"tomorrow\""),
        part("Expiration", "\"hunter2\""),
        "[".repeat(100_000),
        format!("{{\"x\":\"{}\"}}", "x".repeat(1 << 20)),
    ];
    let count = wrong.len();
    for (at, body) in wrong.into_iter().enumerate() {
        let answer = body.clone();
        let world = World::new(move |_| Reply::new(200, answer.clone()));
        world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
        let said = world.refused();
        assert!(said.contains("container: "), "{at} of {count}: {said}");
        let answer = body.clone();
        let world = World::new(move |request| match request.path.as_str() {
            "/latest/api/token" => Reply::new(200, "t"),
            path if path.ends_with("/security-credentials/") => Reply::new(200, "r"),
            _ => Reply::new(200, answer.clone()),
        });
        assert!(world.refused().contains("EC2 instance metadata: "), "{at} of {count}");
        let token = World::new(move |_| Reply::new(200, body.clone()));
        token.write("token", "hunter2").set("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token");
        token.set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/a");
        assert!(token.refused().contains("web identity: "), "{at} of {count}");
    }
    for reply in [Reply::Close, Reply::Half(b"{\"AccessKeyId\":\"hunter2\"}".to_vec()), Reply::new(500, "oops")] {
        let world = World::new(move |_| reply.clone());
        world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
        assert!(world.refused().contains("container: "));
    }
}

#[test]
fn programs_that_fail_are_named() {
    for (line, words) in [
        ("/nowhere/at-all", "cannot be started"),
        ("/bin/sh -c 'echo not-found >&2; exit 4'", "status 4: not-found"),
        ("/bin/sh -c 'echo hunter2'", "failed to parse credential process output"),
        ("/bin/sh -c 'echo {\\\"Version\\\":\\\"hunter2\\\"}'", "failed to parse credential process output"),
        ("/bin/sh 'a", "a ' is missing"),
    ] {
        let world = World::empty();
        world.config(&format!("[default]\ncredential_process = {line}\n"));
        let said = world.refused();
        assert!(said.contains(words) && said.contains("credential_process"), "{line}: {said}");
        assert!(world.asked().is_empty());
    }
}

#[test]
fn a_hanging_source_is_named_and_given_up() {
    let patience = Duration::from_millis(300);
    let world = World::new(|_| Reply::Hang);
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
    let credentials = CredentialCache::new(world.environment().with_patience(patience));
    let said = block_on(credentials.keys()).unwrap_err().to_string();
    assert!(said.contains("169.254.170.2 gave none within 300ms"), "{said}");

    let world = World::empty();
    world.config("[default]\ncredential_process = /bin/sh -c 'sleep 600'\n");
    let credentials = CredentialCache::new(world.environment().with_patience(patience));
    let said = block_on(credentials.keys()).unwrap_err().to_string();
    assert!(said.contains("300ms"), "{said}");
}

#[test]
fn nothing_shows_keys() {
    let world = World::empty();
    world.set("AWS_ACCESS_KEY_ID", "AKIAhunter2").set("AWS_SECRET_ACCESS_KEY", "hunter2");
    world.set("AWS_SESSION_TOKEN", "hunter2");
    let credentials = world.credentials();
    let keys = block_on(credentials.keys()).unwrap();
    let shown = format!("{keys:?} {credentials:?} {:?} {:?}", world.environment().env, world.environment().sender);
    assert!(!shown.contains("hunter2"), "{shown}");
}

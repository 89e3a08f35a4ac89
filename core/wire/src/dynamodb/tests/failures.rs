//! Errors by their names, and responses that are not DynamoDB's.

use super::*;

fn kind(response: &HttpResponse) -> &'static str {
    match classify(codec().settings(), response) {
        ErrorClass::ConditionFailed => "condition",
        ErrorClass::Repeat(Repeat::FreshCredentials, Refusal::NeedsCredentials(_)) => "credentials",
        ErrorClass::Repeat(Repeat::ServerTime(_), Refusal::Denied(_)) => "clock",
        ErrorClass::Repeat(..) => "?",
        ErrorClass::Unknown(_) => "unknown",
        ErrorClass::Refused(Refusal::Throttled(_)) => "throttled",
        ErrorClass::Refused(Refusal::Unavailable(_)) => "unavailable",
        ErrorClass::Refused(Refusal::Denied(denial)) => match denial.kind {
            DenialKind::Permission => "permission",
            DenialKind::Schema => "schema",
            DenialKind::CorruptRecord => "corrupt",
            DenialKind::TokensExhausted => "exhausted",
            DenialKind::StorageFull => "full",
            DenialKind::Membership => "membership",
            DenialKind::Other => "other",
        },
        ErrorClass::Refused(
            Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. } | Refusal::NeedsCredentials(_),
        ) => "?",
    }
}

const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

fn dated(response: HttpResponse) -> HttpResponse {
    HttpResponse { headers: vec![("date".into(), DATE.into())], ..response }
}

#[test]
fn errors_are_told_apart_by_name() {
    for (status, code, expected) in [
        (400, "ConditionalCheckFailedException", "condition"),
        (400, "ProvisionedThroughputExceededException", "throttled"),
        (400, "ThrottlingException", "throttled"),
        (400, "RequestLimitExceeded", "throttled"),
        (500, "InternalServerError", "unknown"),
        (400, "InternalServerError", "unknown"),
        (503, "ServiceUnavailable", "unknown"),
        (400, "TransactionConflictException", "unavailable"),
        (409, "ReplicatedWriteConflictException", "unavailable"),
        (400, "ResourceInUseException", "unavailable"),
        (400, "ResourceNotFoundException", "other"),
        (400, "LimitExceededException", "other"),
        (400, "ValidationException", "schema"),
        (400, "ItemCollectionSizeLimitExceededException", "full"),
        (400, "AccessDeniedException", "permission"),
        (403, "AccessDeniedException", "permission"),
        (400, "MissingAuthenticationToken", "permission"),
        (403, "MissingAuthenticationTokenException", "permission"),
        (400, "IncompleteSignature", "permission"),
        (400, "IncompleteSignatureException", "permission"),
        (400, "KMSAccessDeniedException", "permission"),
        (400, "InvalidSignatureException", "permission"),
        (400, "UnrecognizedClientException", "credentials"),
        (400, "ExpiredTokenException", "credentials"),
        (400, "UnknownOperationException", "other"),
        (400, "SerializationException", "other"),
        (400, "SomethingNew", "unknown"),
        (500, "SomethingNew", "unknown"),
        (403, "SomethingNew", "permission"),
        (429, "SomethingNew", "throttled"),
    ] {
        assert_eq!(kind(&fails(status, code, "words")), expected, "{status} {code}");
        let bare = response(status, &json!({ "__type": code, "message": "words" }));
        assert_eq!(kind(&bare), expected, "without the service's name: {status} {code}");
    }
    let addressed = json!({ "__type": "x#ThrottlingException:http://internal.amazon.com/coral/" });
    assert_eq!(kind(&response(400, &addressed)), "throttled");
}

#[test]
fn responses_without_a_name_are_told_apart_by_status() {
    for (status, expected) in [
        (100, "unknown"),
        (200, "unknown"),
        (204, "unknown"),
        (301, "other"),
        (307, "other"),
        (400, "unknown"),
        (401, "permission"),
        (403, "permission"),
        (404, "other"),
        (405, "other"),
        (407, "permission"),
        (408, "unknown"),
        (413, "other"),
        (429, "throttled"),
        (500, "unknown"),
        (502, "unknown"),
        (503, "unknown"),
        (504, "unknown"),
    ] {
        for body in ["", "<html>s3cret</html>", "{}", "[]", "{\"__type\":5}", "{\"__type\":\"\"}", "\u{0}"] {
            let response = HttpResponse::new(status, body.into());
            assert_eq!(kind(&response), expected, "{status} {body}");
            let outcome = alloc::format!("{:?}", answered(acquire(), response));
            assert!(!outcome.contains("s3cret"), "{outcome}");
        }
    }
}

#[test]
fn a_success_is_dynamodbs() {
    for body in ["", "<html>", "[]", "{\"__type\":\"x#InternalServerError\"}", "{\"a\":", "null"] {
        for op in [acquire(), renew(), release(), raise(9, None), Op::Read] {
            let outcome = answered(op, HttpResponse::new(200, body.into()));
            assert!(is_protocol(&outcome), "{body}: {outcome:?}");
        }
    }
}

#[test]
fn a_signature_that_is_too_old_or_too_new_is_a_clock() {
    let words = [
        "Signature expired: 20231114T120000Z is now earlier than 20231114T215820Z",
        "Signature not yet current: 20231115T120000Z is still later than 20231114T222820Z",
    ];
    for words in words {
        let response = fails(400, "InvalidSignatureException", words);
        assert_eq!(kind(&dated(response.clone())), "clock");
        assert_eq!(kind(&response), "permission", "nobody says what time it is");
        let undated = HttpResponse { headers: vec![("date".into(), "soon".into())], ..response };
        assert_eq!(kind(&undated), "permission");
    }
}

#[test]
fn advice_says_what_to_look_at() {
    let detail = |code: &str| denial(answered(acquire(), fails(400, code, "User: arn:aws:sts::1:x is not")));
    let access = detail("AccessDeniedException").1;
    for words in ["trust policy", "get-caller-identity", "ARN", "Region", "arn:aws:sts::1:x"] {
        assert!(access.contains(words), "{access}");
    }
    let missing = detail("ResourceNotFoundException").1;
    assert!(missing.contains("\"locks\"") && missing.contains("leasehold table create"), "{missing}");
    let schema = detail("ValidationException").1;
    assert!(schema.contains("partition key \"key\"") && schema.contains("no sort key"), "{schema}");
    let codec = Codec::new(Settings::new("locks").unwrap().sort_key("sk", "-").unwrap());
    let mut exchange = codec.begin(&[on(acquire())], UNIX_MS).unwrap();
    let Progress::Done(mut outcomes) = exchange.answers(&mut (), vec![Ok(fails(400, "ValidationException", ""))])
    else {
        panic!("not done")
    };
    assert!(denial(outcomes.remove(0)).1.contains("sort key \"sk\""));
}

#[test]
fn what_dynamodb_said_is_said_again() {
    let detail = |status, body: Json| match classify(codec().settings(), &response(status, &body)) {
        ErrorClass::Unknown(fault) => fault.detail.unwrap().to_string(),
        ErrorClass::Refused(Refusal::Denied(denial)) => denial.detail.to_string(),
        other => panic!("{other:?}"),
    };
    for (status, body, said) in [
        (
            400,
            json!({ "__type": "x#OptInRequired" }),
            "this Region or service is not enabled for the account (DynamoDB said: OptInRequired)",
        ),
        (
            500,
            json!({ "__type": "x#InternalServerError", "message": "words" }),
            "DynamoDB has failed (DynamoDB said: InternalServerError, words)",
        ),
        (503, json!({ "message": "away" }), "no success (status 503) (DynamoDB said: no code, away)"),
        (503, json!({}), "no success (HTTP status 503)"),
    ] {
        assert_eq!(detail(status, body), said);
    }
    assert_eq!(detail(200, json!({ "message": "welcome" })), "the answer does not come from DynamoDB");
}

#[test]
fn no_secret_is_repeated() {
    let canonical = "The request signature we calculated does not match. The Canonical String for this request should \
                     have been 'POST\n/\n\nx-amz-security-token:IQoJb3JpZ2luX2Vj\n'";
    let header = "Authorization header requires 'Credential'. Authorization=AWS4-HMAC-SHA256 IQoJb3JpZ2luX2Vj";
    for (code, message) in [
        ("InvalidSignatureException", canonical),
        ("SignatureDoesNotMatch", canonical),
        ("IncompleteSignature", header),
        ("MissingAuthenticationToken", header),
    ] {
        let (_, detail) = denial(answered(acquire(), fails(403, code, message)));
        assert!(!detail.contains("IQoJ") && detail.contains(code), "{detail}");
    }
    for code in ["ValidationException", "AccessDeniedException"] {
        let (_, detail) = denial(answered(acquire(), fails(400, code, &alloc::format!("odd {HEX}:0000000001"))));
        assert!(!detail.contains("5a5a5a"), "{detail}");
    }
}

#[test]
fn fresh_credentials_are_asked_for_once() {
    let mut exchange = begun(acquire());
    let before = exchange.requests().to_vec();
    let expired = fails(400, "ExpiredTokenException", "The security token included in the request is expired");
    let mut repeats = Repeats::default();
    assert_eq!(codec().repeat(&expired), Some(Repeat::FreshCredentials));
    assert!(repeats.allow(Repeat::FreshCredentials));
    assert_eq!(exchange.requests(), before);
    assert!(!repeats.allow(Repeat::FreshCredentials), "a second time it is no better");
    let Progress::Done(outcomes) = exchange.answers(&mut (), vec![Ok(expired)]) else { panic!("not done") };
    assert!(matches!(&outcomes[..], [Outcome::NotApplied(Refusal::NeedsCredentials(_))]), "{outcomes:?}");
}

#[test]
fn the_clock_is_set_once_and_credentials_after_it() {
    let late = dated(fails(400, "InvalidSignatureException", "Signature expired: x is now earlier than y"));
    let expired = fails(400, "UnrecognizedClientException", "The security token is invalid");
    let ops = [acquire(), Op::Read, renew()].map(on);
    let mut exchange = codec().begin(&ops, UNIX_MS).unwrap();
    let before = exchange.requests().to_vec();
    let wanted = [&late, &expired, &refuses(None)].map(|response| codec().repeat(response));
    let shown = Repeat::ServerTime(1_700_000_000_000);
    assert_eq!(wanted, [Some(shown), Some(Repeat::FreshCredentials), None]);
    exchange.set_clock(1_700_000_000_000);
    let [first, second, _] = exchange.requests() else { panic!("not three requests") };
    assert_eq!(second, &before[1]);
    let (then, now) = (body(&before[0]), body(first));
    assert_eq!(then["ExpressionAttributeValues"][":ga"], json!({ "N": "1700000000123" }));
    assert_eq!(now["ExpressionAttributeValues"][":ga"], json!({ "N": "1700000000000" }), "it says the time again");
    assert_eq!(then["ConditionExpression"], now["ConditionExpression"]);
    let mut repeats = Repeats::default();
    assert!(repeats.allow(shown) && !repeats.allow(Repeat::ServerTime(5)), "a second time it is no better");
    assert!(repeats.allow(Repeat::FreshCredentials), "each has its turn");
    let answers = vec![Ok(late), Ok(reads(&row(RIVAL_RVN))), Ok(expired)];
    let Progress::Done(outcomes) = exchange.answers(&mut (), answers) else { panic!("not done") };
    let (kind, detail) = denial(outcomes[0].clone());
    assert!(kind == DenialKind::Permission && detail.contains("clock"), "{detail}");
    assert!(matches!(outcomes[1], Outcome::Applied(Applied::Read(_))));
    assert!(matches!(outcomes[2], Outcome::NotApplied(Refusal::NeedsCredentials(_))));
}

#[test]
fn another_number_of_answers_says_nothing() {
    for answers in [vec![], vec![lost(), lost()]] {
        let Progress::Done(outcomes) = begun(acquire()).answers(&mut (), answers) else { panic!("not done") };
        assert!(matches!(&outcomes[..], [outcome] if is_protocol(outcome)), "{outcomes:?}");
    }
}

#[test]
fn a_host_cannot_speak_for_the_table() {
    for outcome in [
        granted(5),
        Outcome::NotApplied(Refusal::Conflict(Default::default())),
        Outcome::NotApplied(Refusal::Abstains { stamp: None }),
    ] {
        assert!(is_protocol(&told(acquire(), [Err(outcome)]).0));
    }
    let wanted = Outcome::NotApplied(Refusal::NeedsCredentials(Fault::of(FaultKind::Server)));
    assert_eq!(told(acquire(), [Err(wanted.clone())]).0, wanted);
}

//! The exact requests.

use super::*;

/// The one request that the operation begins with, as it is sent.
fn written(codec: &Codec, op: Op) -> String {
    let exchange = codec.begin(&[on(op)], UNIX_MS).unwrap();
    let [request] = exchange.requests() else { panic!("not one request") };
    String::from_utf8(request.body.clone()).unwrap()
}

const FREE: &str = "(attribute_not_exists(#pk) OR (#ir = :yes AND attribute_type(#rvn, :text) AND \
                    attribute_type(#ld, :text) AND NOT contains(#ld, :unit) AND NOT begins_with(#rvn, :own))";

#[test]
fn an_acquire_is_written_so() {
    let text = written(&codec(), acquire());
    let expected = [
        r#"{"ConditionExpression":""#,
        FREE,
        r#") AND (attribute_not_exists(#ft) OR #ft < :floor)","#,
        r##""ExpressionAttributeNames":{"#ft":"fencingToken","#ga":"grantedAt","#ir":"isReleased","##,
        r##""#ld":"leaseDuration","#on":"ownerName","#pk":"key","#rvn":"recordVersionNumber","#un":"undoneVersion"},"##,
        r#""ExpressionAttributeValues":{":floor":{"N":"1700000000000"},":ga":{"N":"1700000000123"},"#,
        r#"":ld":{"S":"30000"},":on":{"S":"me"},":own":{"S":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a:"},"#,
        r#"":rvn":{"S":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a:0000000001"},":text":{"S":"S"},":unit":{"S":"s"},"#,
        r#"":yes":{"S":"1"}},"#,
        r#""Key":{"key":{"S":"invoice/42"}},"ReturnValues":"ALL_NEW","#,
        r#""ReturnValuesOnConditionCheckFailure":"ALL_OLD","TableName":"locks","#,
        r##""UpdateExpression":"SET #rvn = :rvn, #on = :on, #ld = :ld, #ga = :ga, #ft = :floor REMOVE #ir, #un"}"##,
    ];
    assert_eq!(text, expected.concat());
}

#[test]
fn the_other_form_counts_up_in_the_table() {
    let free = counting(released(row(RIVAL_RVN)), FLOOR);
    let (_, asked) = told(acquire(), [Ok(refuses(Some(&free))), lost()]);
    let body = &asked[1];
    assert_eq!(body["ConditionExpression"], alloc::format!("{FREE}) AND (#ft >= :floor AND #ft < :max)"));
    assert_eq!(
        body["UpdateExpression"],
        "SET #rvn = :rvn, #on = :on, #ld = :ld, #ga = :ga, #ft = #ft + :one REMOVE #ir, #un"
    );
    let values = &body["ExpressionAttributeValues"];
    assert_eq!((&values[":one"], &values[":max"]), (&json!({ "N": "1" }), &json!({ "N": "9007199254740991" })));
    assert_eq!(values[":floor"], json!({ "N": "1700000000000" }));
    assert_eq!(values[":rvn"], json!({ "S": alloc::format!("{HEX}:0000000001") }), "it is the same send");
}

#[test]
fn a_takeover_names_the_version_that_stood_still() {
    for (version, seen) in [
        (Version::of(&RIVAL, Seq::new(7)), RIVAL_RVN),
        (Version::new(JAVA_RVN.as_bytes()).unwrap(), JAVA_RVN),
        (Version::new(b"\0twenty-letters-long!").unwrap(), "twenty-letters-long!"),
        (Version::new(b"\0short").unwrap(), "\0short"),
        (Version::new(b"twenty-one-characters").unwrap(), "twenty-one-characters"),
    ] {
        let body: Json = serde_json::from_str(&written(&codec(), takeover(version))).unwrap();
        let condition = alloc::format!("{FREE} OR #rvn = :seen) AND (attribute_not_exists(#ft) OR #ft < :floor)");
        assert_eq!(body["ConditionExpression"], condition);
        assert_eq!(body["ExpressionAttributeValues"][":seen"], json!({ "S": seen }));
    }
    // Not even as a takeover, and what no row of a table can show is not looked for.
    for version in [Version::of(&NONCE, Seq::new(1)), Version::new(b"\xff\xfe").unwrap()] {
        assert_eq!(written(&codec(), takeover(version)), written(&codec(), acquire()));
    }
}

#[test]
fn data_a_sort_key_and_an_expiry_are_added() {
    let settings = Settings::new("arn:aws:dynamodb:eu-west-1:123456789012:table/locks").unwrap();
    let settings = settings.key("LockID").unwrap().sort_key("sk", "-").unwrap().expires("ttl").unwrap();
    let codec = Codec::new(settings);
    let data = Some(Payload::new(b"\xfb\xff").unwrap());
    let floor = Token::ZERO;
    let op = Op::Acquire(Box::new(Acquire { data, floor, ..an_acquire() }));
    let body: Json = serde_json::from_str(&written(&codec, op)).unwrap();
    assert_eq!(body["TableName"], "arn:aws:dynamodb:eu-west-1:123456789012:table/locks");
    assert_eq!(body["Key"], json!({ "LockID": { "S": "invoice/42" }, "sk": { "S": "-" } }));
    assert_eq!(
        body["UpdateExpression"],
        "SET #rvn = :rvn, #on = :on, #ld = :ld, #ga = :ga, #ft = :floor, #d = :d, #dn = :own, #ex = :ex REMOVE #ir, #un"
    );
    let values = &body["ExpressionAttributeValues"];
    assert_eq!((&values[":d"], &values[":ex"]), (&json!({ "B": "+/8=" }), &json!({ "N": "1700604800" })));
    assert_eq!(values[":floor"], json!({ "N": "1" }), "no grant has token 0");
    let names = &body["ExpressionAttributeNames"];
    assert_eq!((&names["#pk"], &names["#ex"]), (&json!("LockID"), &json!("ttl")));
    for op in [renew(), release(), raise(5, None)] {
        let body: Json = serde_json::from_str(&written(&codec, op)).unwrap();
        assert_eq!(body["Key"], json!({ "LockID": { "S": "invoice/42" }, "sk": { "S": "-" } }));
        assert_eq!(body["ExpressionAttributeValues"][":ex"], json!({ "N": "1700604800" }));
    }
}

#[test]
fn a_renewal_is_written_so() {
    let expected = [
        r##"{"ConditionExpression":"begins_with(#rvn, :own) AND #rvn < :rvn AND attribute_not_exists(#ir)","##,
        r##""ExpressionAttributeNames":{"#ir":"isReleased","#ld":"leaseDuration","#rvn":"recordVersionNumber"},"##,
        r#""ExpressionAttributeValues":{":ld":{"S":"30001"},":own":{"S":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a:"},"#,
        r#"":rvn":{"S":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a:0000000003"}},"Key":{"key":{"S":"invoice/42"}},"#,
        r#""ReturnValues":"UPDATED_NEW","ReturnValuesOnConditionCheckFailure":"ALL_OLD","TableName":"locks","#,
        r##""UpdateExpression":"SET #rvn = :rvn, #ld = :ld"}"##,
    ];
    assert_eq!(written(&codec(), renew()), expected.concat());
}

#[test]
fn a_release_is_written_so() {
    let expected = [
        r##"{"ConditionExpression":"begins_with(#rvn, :own) AND (attribute_not_exists(#ir) OR attribute_exists(#un))","##,
        r##""ExpressionAttributeNames":{"#fa":"freedAt","#ir":"isReleased","#rvn":"recordVersionNumber","#un":"undoneVersion"},"##,
        r#""ExpressionAttributeValues":{":fa":{"N":"1700000000123"},":own":{"S":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a:"},":yes":{"S":"1"}},"#,
        r#""Key":{"key":{"S":"invoice/42"}},"ReturnValues":"ALL_NEW","#,
        r#""ReturnValuesOnConditionCheckFailure":"ALL_OLD","TableName":"locks","#,
        r##""UpdateExpression":"SET #ir = :yes, #fa = :fa REMOVE #un"}"##,
    ];
    assert_eq!(written(&codec(), release()), expected.concat());
}

#[test]
fn a_raise_is_written_so() {
    let loss = LossId([2; 16]);
    let body: Json = serde_json::from_str(&written(&codec(), raise(9, Some(loss)))).unwrap();
    let ours = "begins_with(#rvn, :own) AND attribute_not_exists(#ir) AND ";
    assert_eq!(body["ConditionExpression"], alloc::format!("{ours}(attribute_not_exists(#ft) OR #ft < :ft)"));
    assert_eq!(body["UpdateExpression"], "SET #ft = :ft, #qt = :qt");
    let values = json!({
        ":ft": { "N": "9" },
        ":own": { "S": alloc::format!("{HEX}:") },
        ":qt": { "S": "02020202020202020202020202020202" },
    });
    assert_eq!(body["ExpressionAttributeValues"], values);
    let (_, asked) = told(raise(9, Some(loss)), [Ok(refuses(Some(&counting(super::ours(1), 9)))), lost()]);
    assert_eq!(asked[1]["ConditionExpression"], alloc::format!("{ours}#ft >= :ft"));
    assert_eq!(asked[1]["UpdateExpression"], "SET #qt = :qt");
    let body: Json = serde_json::from_str(&written(&codec(), raise(9, None))).unwrap();
    assert_eq!(body["UpdateExpression"], "SET #ft = :ft");
}

#[test]
fn a_read_is_consistent() {
    let exchange = begun(Op::Read);
    assert_eq!(exchange.requests()[0].target.header(), "DynamoDB_20120810.GetItem");
    let expected = r#"{"ConsistentRead":true,"Key":{"key":{"S":"invoice/42"}},"TableName":"locks"}"#;
    assert_eq!(written(&codec(), Op::Read), expected);
}

#[test]
fn every_name_and_value_is_used_and_every_word_is_named() {
    let mut bodies = vec![];
    for op in [acquire(), takeover(Version::of(&RIVAL, Seq::new(7))), renew(), release(), raise(9, None)] {
        bodies.push(body(&begun(op).requests()[0]));
    }
    bodies.push(told(acquire(), [Ok(refuses(Some(&counting(released(row(RIVAL_RVN)), FLOOR)))), lost()]).1.remove(1));
    bodies.extend(undone::bodies());
    let loss = Some(LossId([2; 16]));
    bodies.push(told(raise(9, loss), [Ok(refuses(Some(&counting(ours(1), 9)))), lost()]).1.remove(1));
    let marker = quorum::marker(Phase::Member);
    bodies.extend(["", "found"].map(|found| body(&codec().mark(found.as_bytes(), Some(&marker)))));
    for body in bodies {
        let text = [&body["ConditionExpression"], &body["UpdateExpression"]].map(|text| text.as_str().unwrap());
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '#' || c == ':';
        let words: Vec<&str> = text.iter().flat_map(|text| text.split(|c| !is_part(c))).collect();
        for (kind, sign) in [("ExpressionAttributeNames", '#'), ("ExpressionAttributeValues", ':')] {
            let known: Vec<&str> = body[kind].as_object().unwrap().keys().map(String::as_str).collect();
            assert!(known.iter().all(|name| words.contains(name)), "{body}");
            assert!(words.iter().filter(|word| word.starts_with(sign)).all(|word| known.contains(word)), "{body}");
        }
    }
}

#[test]
fn requests_are_independent_and_one_for_each_operation() {
    let ops = [acquire(), renew(), Op::Read].map(on);
    let mut exchange = codec().begin(&ops, UNIX_MS).unwrap();
    assert_eq!(exchange.requests().len(), 3);
    let free = counting(released(row(RIVAL_RVN)), FLOOR);
    let renewed = json!({ "recordVersionNumber": { "S": alloc::format!("{HEX}:0000000003") } });
    let answers = vec![Ok(refuses(Some(&free))), Ok(shows(&renewed)), lost()];
    assert_eq!(exchange.answers(&mut (), answers), Progress::Again);
    assert_eq!(exchange.requests().len(), 1, "what is answered is not asked again");
    let Progress::Done(outcomes) = exchange.answers(&mut (), vec![Ok(shows(&counting(ours(1), FLOOR + 1)))]) else {
        panic!("not done")
    };
    let timeout = Outcome::Unknown(Fault::of(FaultKind::Timeout));
    assert_eq!(outcomes, [granted(FLOOR + 1), Outcome::Applied(Applied::Renewed), timeout]);
}

#[test]
fn too_long_a_record_is_refused_before_anything_is_sent() {
    let longest = Op::Acquire(Box::new(Acquire { record_ttl: Duration::from_secs(48 * 3600), ..an_acquire() }));
    assert!(written(&codec(), longest).contains("\"172800000\""));
    let record_ttl = Duration::from_secs(48 * 3600 + 1);
    let op = Op::Acquire(Box::new(Acquire { record_ttl, ..an_acquire() }));
    assert!(codec().begin(&[on(op)], UNIX_MS).is_err());
    let Op::Renew(renewal) = renew() else { panic!("no renewal") };
    assert!(codec().begin(&[on(Op::Renew(Renew { record_ttl, ..renewal }))], UNIX_MS).is_err());
}

#[test]
fn nothing_shows_a_nonce() {
    let exchange = begun(acquire());
    let text = alloc::format!("{exchange:?} {:?} {:?}", exchange.requests(), shows(&ours(1)));
    assert!(!text.contains("5a5a"), "{text}");
    assert!(text.starts_with("Exchange { requests: [UpdateItem with ") && text.contains("status 200 with "), "{text}");
}

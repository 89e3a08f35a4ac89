use alloc::format;
use alloc::vec;

use super::*;
use leasehold_core::op::Refusal;

fn settings() -> Settings {
    Settings::new("locks").unwrap()
}

fn text_of(request: &Request) -> &str {
    core::str::from_utf8(&request.body).unwrap()
}

fn response(status: u16, body: Json) -> HttpResponse {
    HttpResponse::new(status, body.to_string().into_bytes())
}

#[test]
fn a_table_is_created_so() {
    let request = create(&settings(), Billing::OnDemand, &[]).unwrap();
    assert_eq!(request.target.header(), "DynamoDB_20120810.CreateTable");
    let expected = [
        r#"{"AttributeDefinitions":[{"AttributeName":"key","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST","#,
        r#""KeySchema":[{"AttributeName":"key","KeyType":"HASH"}],"TableName":"locks"}"#,
    ];
    assert_eq!(text_of(&request), expected.concat());
    let billing = Billing::Provisioned { read_units: 5, write_units: 0 };
    let tags = [(String::from("team"), String::from("a&b"))];
    let sorted = settings().sort_key("sk", "-").unwrap();
    let expected = [
        r#"{"AttributeDefinitions":[{"AttributeName":"key","AttributeType":"S"},"#,
        r#"{"AttributeName":"sk","AttributeType":"S"}],"BillingMode":"PROVISIONED","#,
        r#""KeySchema":[{"AttributeName":"key","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"#,
        r#""ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":1},"TableName":"locks","#,
        r#""Tags":[{"Key":"team","Value":"a&b"}]}"#,
    ];
    assert_eq!(text_of(&create(&sorted, billing, &tags).unwrap()), expected.concat());
    let by_arn = Settings::new("arn:aws:dynamodb:eu-west-1:123456789012:table/locks").unwrap();
    assert!(create(&by_arn, Billing::OnDemand, &[]).is_err());
}

#[test]
fn a_table_is_asked_for_and_its_time_to_live_set_so() {
    assert_eq!(describe(&settings()).target.header(), "DynamoDB_20120810.DescribeTable");
    assert_eq!(text_of(&describe(&settings())), r#"{"TableName":"locks"}"#);
    assert_eq!(describe_expiry(&settings()).target.header(), "DynamoDB_20120810.DescribeTimeToLive");
    assert_eq!(expire(&settings()), None);
    let request = expire(&settings().expires("ttl").unwrap()).unwrap();
    assert_eq!(request.target.header(), "DynamoDB_20120810.UpdateTimeToLive");
    let expected = r#"{"TableName":"locks","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}"#;
    assert_eq!(text_of(&request), expected);
    let told =
        |status: &str| json!({ "TimeToLiveDescription": { "AttributeName": "ttl", "TimeToLiveStatus": status } });
    for (status, name) in [("ENABLED", Some("ttl")), ("ENABLING", Some("ttl")), ("DISABLED", None), ("DISABLING", None)]
    {
        let found = expires(&settings(), &response(200, told(status))).unwrap();
        assert_eq!(found.as_deref(), name, "{status}");
    }
    assert!(expires(&settings(), &response(200, json!({}))).is_err());
    let done = json!({ "TimeToLiveSpecification": { "AttributeName": "ttl", "Enabled": true } });
    assert_eq!(expiring(&settings(), &response(200, done)), Ok(()));
    assert!(expiring(&settings(), &response(200, json!({}))).is_err());
    let already = json!({ "__type": "x#ValidationException", "message": "TimeToLive is already enabled" });
    let Err(Outcome::NotApplied(Refusal::Denied(denial))) = expiring(&settings(), &response(400, already)) else {
        panic!("not denied")
    };
    assert!(denial.detail.contains("already enabled"), "{denial}");
}

/// As DynamoDB describes a global table, without what nobody asks for.
fn global(consistency: Option<&str>) -> Json {
    let mut table = plain();
    table["Replicas"] = json!([
        { "RegionName": "eu-west-1", "ReplicaStatus": "ACTIVE" },
        { "RegionName": "eu-central-1", "ReplicaStatus": "ACTIVE" },
    ]);
    table["GlobalTableVersion"] = "2019.11.21".into();
    if let Some(consistency) = consistency {
        table["MultiRegionConsistency"] = consistency.into();
    }
    table
}

fn plain() -> Json {
    json!({
        "AttributeDefinitions": [{ "AttributeName": "key", "AttributeType": "S" }],
        "TableName": "locks",
        "KeySchema": [{ "AttributeName": "key", "KeyType": "HASH" }],
        "TableStatus": "ACTIVE",
        "CreationDateTime": 1.7e9,
        "ProvisionedThroughput": { "NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0 },
        "TableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/locks",
        "TableId": "0b1f0e9c-9f4a-4a36-8f0e-3a1a6c1d2e3f",
        "BillingModeSummary": { "BillingMode": "PAY_PER_REQUEST" },
    })
}

fn read(table: Json) -> Description {
    described(&settings(), &response(200, json!({ "Table": table }))).unwrap()
}

#[test]
fn a_table_is_described() {
    let expected = Description {
        name: "locks".into(),
        status: Status::Active,
        keys: vec![KeyAttribute { name: "key".into(), kind: "S".into() }],
        billing: Some(Billing::OnDemand),
        replicas: vec![],
        consistency: Consistency::Eventual,
        witnesses: vec![],
        arn: Some("arn:aws:dynamodb:eu-west-1:123456789012:table/locks".into()),
        id: Some("0b1f0e9c-9f4a-4a36-8f0e-3a1a6c1d2e3f".into()),
    };
    assert_eq!(read(plain()), expected);
    let created = response(200, json!({ "TableDescription": plain() }));
    assert_eq!(described(&settings(), &created), Ok(expected));
    let mut provisioned = plain();
    provisioned["ProvisionedThroughput"] = json!({ "ReadCapacityUnits": 5, "WriteCapacityUnits": 6 });
    provisioned.as_object_mut().unwrap().remove("BillingModeSummary");
    assert_eq!(read(provisioned).billing, Some(Billing::Provisioned { read_units: 5, write_units: 6 }));
    let mut strong = global(Some("STRONG"));
    strong["GlobalTableWitnesses"] = json!([{ "RegionName": "eu-north-1", "WitnessStatus": "ACTIVE" }]);
    strong["TableStatus"] = "UPDATING".into();
    let strong = read(strong);
    assert_eq!((strong.consistency, strong.status), (Consistency::Strong, Status::Updating));
    assert_eq!((strong.replicas.len(), strong.witnesses), (2, vec![String::from("eu-north-1")]));
}

#[test]
fn half_a_description_is_none() {
    for name in ["AttributeDefinitions", "TableName", "KeySchema", "TableStatus"] {
        let mut table = plain();
        table.as_object_mut().unwrap().remove(name);
        let found = described(&settings(), &response(200, json!({ "Table": table })));
        assert!(matches!(found, Err(Outcome::Unknown(_))), "{name}: {found:?}");
    }
    assert!(described(&settings(), &response(200, json!({}))).is_err());
    let missing = json!({ "__type": "x#ResourceNotFoundException", "message": "Requested resource not found" });
    let found = described(&settings(), &response(400, missing));
    assert!(matches!(found, Err(Outcome::NotApplied(Refusal::Denied(_)))), "{found:?}");
    let exists = json!({ "__type": "x#ResourceInUseException", "message": "Table already exists: locks" });
    let found = described(&settings(), &response(400, exists));
    assert!(matches!(found, Err(Outcome::NotApplied(Refusal::Unavailable(_)))), "{found:?}");
}

#[test]
fn only_an_eventually_consistent_global_table_keeps_regions_apart() {
    let reach = |table| judge(&settings(), &read(table)).unwrap();
    assert_eq!(reach(plain()), LockScope::OneRegion);
    assert_eq!(reach(global(Some("STRONG"))), LockScope::AllRegions);
    let regions = vec![String::from("eu-west-1"), String::from("eu-central-1")];
    for consistency in [None, Some("EVENTUAL"), Some("SOMETHING_NEW")] {
        assert_eq!(reach(global(consistency)), LockScope::EachRegionAlone { regions: regions.clone() });
    }
}

#[test]
fn a_table_with_other_keys_is_refused() {
    let judged = |settings: &Settings, table: &Description| match judge(settings, table) {
        Err(denial) => format!("{:?}: {denial}", denial.kind),
        Ok(reach) => panic!("{reach:?}"),
    };
    let other = settings().key("LockID").unwrap();
    let text = judged(&other, &read(plain()));
    assert!(text.starts_with("Schema") && text.contains(r#"is "key" (S)"#) && text.contains(r#"uses "LockID" (S)"#));
    judged(&settings().sort_key("sk", "-").unwrap(), &read(plain()));
    let mut sorted = plain();
    sorted["KeySchema"] = json!([
        { "AttributeName": "sk", "KeyType": "RANGE" },
        { "AttributeName": "key", "KeyType": "HASH" },
    ]);
    sorted["AttributeDefinitions"] = json!([
        { "AttributeName": "sk", "AttributeType": "S" },
        { "AttributeName": "key", "AttributeType": "S" },
    ]);
    judged(&settings(), &read(sorted.clone()));
    assert_eq!(judge(&settings().sort_key("sk", "-").unwrap(), &read(sorted)), Ok(LockScope::OneRegion));
    let mut number = plain();
    number["AttributeDefinitions"][0]["AttributeType"] = "N".into();
    assert!(judged(&settings(), &read(number)).contains(r#""key" (N)"#));
    let mut going = plain();
    going["TableStatus"] = "DELETING".into();
    assert!(judged(&settings(), &read(going)).contains("DELETING"));
}

#[test]
fn rows_tell_which_library_wrote_them() {
    let settings = Settings::new("locks").unwrap().key("pk").unwrap();
    let request = sample(&settings);
    assert_eq!(request.target.header(), "DynamoDB_20120810.Scan");
    let expected = [
        r##"{"ExpressionAttributeNames":{"#pk":"pk","#rvn":"recordVersionNumber"},"Limit":500,"##,
        r##""ProjectionExpression":"#pk, #rvn","TableName":"locks"}"##,
    ];
    assert_eq!(text_of(&request), expected.concat());

    let row = |name: &str, version: &str| json!({ "pk": { "S": name }, "recordVersionNumber": { "S": version } });
    let ours = "000102030405060708090a0b0c0d0e0f:0000000001";
    let items = json!([
        row("report@monday", ours), row("report", "a-uuid"), row("report@tuesday", "a-uuid"),
        row("leasehold\u{1f}quorum", "a-stamp"), { "pk": { "S": "no lock" } }, { "pk": { "N": "7" } }, 7,
    ]);
    let found = writers(&settings, &response(200, json!({ "Items": items }))).unwrap();
    assert_eq!(found, Writers { locks: 3, foreign: 2, foreign_runs: vec!["report@tuesday".into()] });
    for nonsense in [json!({}), json!({ "Items": {} })] {
        assert!(writers(&settings, &response(200, nonsense)).is_err());
    }
}

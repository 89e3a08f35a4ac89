//! Findings of `doctor` on tables: on a real one, and on what only AWS shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use leasehold::blocking::{Client, Once};
use leasehold::table::{self, Billing, NewTable};
use leasehold::{ErrorKind, Finding, Severity};
use leasehold_servers::answers::{self, Reply};

use crate::common::on_dynamodb::put;
use crate::{new_table, new_url, server, set_keys};

fn of<'a>(findings: &'a [Finding], check: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.check == check).collect()
}

#[track_caller]
fn one<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let all = of(findings, check);
    assert_eq!(all.len(), 1, "{check} in {findings:?}");
    all[0]
}

/// A table in AWS's own words, and whatever else a test wants otherwise.
struct Aws {
    server: answers::Server,
}

/// Differences from a table that is in order.
#[derive(Clone, Default)]
struct Oddities {
    /// Members of DescribeTable's answer beyond names, keys and billing.
    described: &'static str,
    /// Targets, and the code and message of what they fail with.
    failing: &'static [(&'static str, &'static str, &'static str)],
    /// How far the server's clock is ahead, in seconds.
    ahead_s: i64,
    region: Option<&'static str>,
    /// True while everything works, which a test can end.
    healthy: Arc<AtomicBool>,
}

impl Aws {
    fn start(odd: &Oddities) -> Self {
        set_keys();
        let odd = odd.clone();
        let server = answers::Server::start(move |request| {
            let target = request.header("x-amz-target").unwrap_or("").replace("DynamoDB_20120810.", "");
            let headers = vec![("Date".to_owned(), http_date(odd.ahead_s))];
            let answer = |status, body: String| Reply::Answer { status, headers: headers.clone(), body: body.into() };
            let error = |code: &str, message: &str| {
                answer(400, format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"{message}"}}"#))
            };
            let failing = odd.failing.iter().find(|(what, ..)| *what == target);
            if let Some((_, code, message)) = failing.filter(|_| !odd.healthy.load(Ordering::Relaxed)) {
                return error(code, message);
            }
            match target.as_str() {
                "DescribeTable" => answer(200, description(odd.region.unwrap_or("eu-west-1"), odd.described)),
                "DescribeTimeToLive" => {
                    answer(200, r#"{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}"#.to_owned())
                }
                "Scan" => answer(200, r#"{"Items":[]}"#.to_owned()),
                "GetItem" => answer(200, "{}".to_owned()),
                "UpdateItem" => error("ConditionalCheckFailedException", "The conditional request failed"),
                _ => answer(200, "healthy: dynamodb".to_owned()),
            }
        });
        Self { server }
    }

    fn url(&self) -> String {
        format!("dynamodb://locks?region=eu-west-1&endpoint={}", self.server.url())
    }

    fn doctor(&self) -> Vec<Finding> {
        Client::connect(self.url()).unwrap().doctor().unwrap()
    }
}

fn description(region: &str, more: &str) -> String {
    format!(
        r#"{{"Table":{{"TableName":"locks","TableStatus":"ACTIVE","TableId":"1",
        "TableArn":"arn:aws:dynamodb:{region}:123456789012:table/locks",
        "AttributeDefinitions":[{{"AttributeName":"key","AttributeType":"S"}}],
        "KeySchema":[{{"AttributeName":"key","KeyType":"HASH"}}],
        "BillingModeSummary":{{"BillingMode":"PAY_PER_REQUEST"}}{more}}}}}"#
    )
}

/// Now and so many seconds more, as HTTP writes it.
fn http_date(ahead_s: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = now.checked_add_signed(ahead_s).unwrap();
    let (days, second) = (now / 86_400, now % 86_400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).unwrap()];
    let (mut year, mut day) = (1970, days);
    let length = |year: u64| {
        if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) { 366 } else { 365 }
    };
    while day >= length(year) {
        day -= length(year);
        year += 1;
    }
    let february = length(year) - 337;
    let months = [
        ("Jan", 31),
        ("Feb", february),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let mut month = "Jan";
    for (name, days) in months {
        month = name;
        if day < days {
            break;
        }
        day -= days;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{weekday}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT", day + 1)
}

#[test]
fn a_real_table_in_order_gets_no_advice_and_no_row() {
    let server = server();
    let url = new_table(&server);
    let findings = Client::connect(&url).unwrap().doctor().unwrap();
    assert!(findings.iter().all(|one| one.severity == Severity::Good && one.advice.is_empty()), "{findings:?}");
    for check in ["way", "keys", "identity", "table", "billing", "replicas", "expiry", "rights", "completions", "clock"]
    {
        one(&findings, &format!("dynamodb.{check}"));
    }
    assert!(one(&findings, "dynamodb.keys").what.contains("the environment"));
    // What was tried has left nothing behind, and a marker would survive it.
    let name = table::describe(&url).unwrap().name;
    let scan = serde_json::json!({ "TableName": name });
    assert_eq!(server.command("Scan", &scan)["Count"], 0);
}

#[test]
fn units_and_a_wrong_time_to_live_are_reported() {
    let server = server();
    let url = new_url(&server);
    let mut new = NewTable::default();
    new.billing = Billing::Provisioned { read_units: 5, write_units: 4 };
    table::create(&format!("{url}&expires=forgotten"), &new).unwrap();
    let findings = |more: &str| Client::connect(format!("{url}{more}")).unwrap().doctor().unwrap();
    let right = findings("&expires=forgotten");
    assert_eq!(one(&right, "dynamodb.expiry").severity, Severity::Good);
    let billing = one(&right, "dynamodb.billing");
    assert!(billing.severity == Severity::Warning && billing.what.contains("4 write units"), "{billing:?}");
    let other = findings("&expires=another");
    let expiry = one(&other, "dynamodb.expiry");
    assert!(expiry.severity == Severity::Problem && expiry.advice.contains("expires=forgotten"), "{expiry:?}");
    assert_eq!(one(&findings(""), "dynamodb.expiry").severity, Severity::Warning);
}

#[test]
fn each_right_that_is_missing_is_named() {
    const WHO: &str = "User: arn:aws:sts::123456789012:assumed-role/worker/7 is not authorized";
    for (failing, right, done) in [
        ([("UpdateItem", "AccessDeniedException", WHO)], "dynamodb:UpdateItem", "written"),
        ([("GetItem", "AccessDeniedException", WHO)], "dynamodb:GetItem", "read"),
    ] {
        let odd = Oddities { failing: Box::leak(Box::new(failing)), ..Oddities::default() };
        let findings = Aws::start(&odd).doctor();
        let lack = one(&findings, "dynamodb.rights");
        assert_eq!(lack.severity, Severity::Problem);
        assert!(lack.what.contains(done) && lack.what.contains("assumed-role/worker"), "{lack:?}");
        for part in [right, "arn:aws:dynamodb:eu-west-1:123456789012:table/locks", "trust policy", "Region"] {
            assert!(lack.advice.contains(part), "no {part:?} in {lack:?}");
        }
    }
    const BOTH: &[(&str, &str, &str)] =
        &[("GetItem", "AccessDeniedException", WHO), ("UpdateItem", "AccessDeniedException", WHO)];
    let findings = Aws::start(&Oddities { failing: BOTH, ..Oddities::default() }).doctor();
    assert_eq!(of(&findings, "dynamodb.rights").len(), 2, "{findings:?}");
    const DESCRIBE: &[(&str, &str, &str)] =
        &[("DescribeTable", "AccessDeniedException", WHO), ("DescribeTimeToLive", "AccessDeniedException", WHO)];
    let findings = Aws::start(&Oddities { failing: DESCRIBE, ..Oddities::default() }).doctor();
    let table = one(&findings, "dynamodb.table");
    assert!(table.severity == Severity::Warning && table.advice.contains("dynamodb:DescribeTable"), "{table:?}");
    assert_eq!(one(&findings, "dynamodb.rights").severity, Severity::Good);
    assert!(of(&findings, "dynamodb.replicas").is_empty(), "nothing is made up: {findings:?}");
}

#[test]
fn a_write_that_happens_although_it_cannot_is_no_right() {
    set_keys();
    let fake = answers::Server::start(|request| match request.header("x-amz-target").unwrap_or("") {
        target if target.ends_with("DescribeTable") => Reply::new(200, description("eu-west-1", "")),
        _ => Reply::new(200, "{}"),
    });
    let url = format!("dynamodb://locks?region=eu-west-1&endpoint={}", fake.url());
    let findings = Client::connect(&url).unwrap().doctor().unwrap();
    let rights = one(&findings, "dynamodb.rights");
    assert!(rights.severity == Severity::Problem && rights.what.contains("written"), "{rights:?}");
}

#[test]
fn throttling_during_the_check_is_reported() {
    const SLOW: &[(&str, &str, &str)] = &[
        ("UpdateItem", "ProvisionedThroughputExceededException", "slow down"),
        ("GetItem", "ThrottlingException", "slow down"),
    ];
    let findings = Aws::start(&Oddities { failing: SLOW, ..Oddities::default() }).doctor();
    let throttling = one(&findings, "dynamodb.throttling");
    assert!(throttling.severity == Severity::Warning && throttling.what.contains("2 of the 5"), "{throttling:?}");
    let rights = of(&findings, "dynamodb.rights");
    assert!(rights.len() == 2 && rights.iter().all(|one| one.severity == Severity::Warning), "{rights:?}");
}

#[test]
fn replicas_that_lag_behind_are_a_problem_and_those_that_agree_are_none() {
    let lagging = Oddities {
        described: r#","GlobalTableVersion":"2019.11.21","Replicas":[{"RegionName":"us-east-1"}]"#,
        ..Oddities::default()
    };
    let aws = Aws::start(&lagging);
    let replicas = one(&aws.doctor(), "dynamodb.replicas").clone();
    assert!(replicas.severity == Severity::Problem && replicas.what.contains("us-east-1"), "{replicas:?}");
    let refused = Client::connect(format!("{}&require_strong=true", aws.url())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::StoreRefused);
    let strong = Oddities {
        described: r#","Replicas":[{"RegionName":"us-east-1"}],"MultiRegionConsistency":"STRONG",
            "GlobalTableWitnesses":[{"RegionName":"us-west-2"}]"#,
        ..Oddities::default()
    };
    let replicas = one(&Aws::start(&strong).doctor(), "dynamodb.replicas").clone();
    assert!(replicas.severity == Severity::Good && replicas.what.contains("us-west-2"), "{replicas:?}");
}

#[test]
fn clocks_that_are_off_are_reported_by_their_effects() {
    for (ahead_s, severity, part) in [
        (0, Severity::Good, "within"),
        (-125, Severity::Warning, "-12"),
        (1_800, Severity::Problem, "refuses signatures"),
        (-1_800, Severity::Problem, "refuses signatures"),
    ] {
        let findings = Aws::start(&Oddities { ahead_s, ..Oddities::default() }).doctor();
        let clock = one(&findings, "dynamodb.clock");
        assert!(clock.severity == severity && clock.what.contains(part), "{ahead_s}: {clock:?}");
    }
}

#[test]
fn the_account_is_shown_and_another_region_noticed() {
    let identity = |region| {
        let findings = Aws::start(&Oddities { region, ..Oddities::default() }).doctor();
        one(&findings, "dynamodb.identity").clone()
    };
    let right = identity(None);
    assert!(right.severity == Severity::Good && right.what.contains("123456789012"), "{right:?}");
    let other = identity(Some("us-east-1"));
    assert!(other.severity == Severity::Warning && other.what.contains("us-east-1"), "{other:?}");
}

#[test]
fn a_table_that_is_gone_or_a_server_that_is_away_is_a_problem() {
    const GONE: &[(&str, &str, &str)] = &[
        ("DescribeTable", "ResourceNotFoundException", "no table"),
        ("GetItem", "ResourceNotFoundException", "no table"),
        ("UpdateItem", "ResourceNotFoundException", "no table"),
    ];
    let healthy = Arc::new(AtomicBool::new(true));
    let aws = Aws::start(&Oddities { failing: GONE, healthy: Arc::clone(&healthy), ..Oddities::default() });
    let client = Client::connect(aws.url()).unwrap();
    healthy.store(false, Ordering::Relaxed);
    let findings = client.doctor().unwrap();
    let table = one(&findings, "dynamodb.table");
    assert!(table.severity == Severity::Problem && table.what.contains("table create"), "{table:?}");
    assert!(of(&findings, "dynamodb.rights").iter().all(|one| one.severity == Severity::Problem), "{findings:?}");
    drop(aws);
    let findings = client.doctor().unwrap();
    let table = one(&findings, "dynamodb.table");
    assert!(table.severity == Severity::Problem && table.advice.contains("endpoint"), "{table:?}");
    assert!(of(&findings, "dynamodb.rights").is_empty(), "one complaint is enough: {findings:?}");
}

#[test]
fn a_foreign_row_with_a_name_of_a_run_is_reported() {
    let server = server();
    let url = new_table(&server);
    let client = Client::connect(&url).unwrap();
    let completions = || one(&client.doctor().unwrap(), "dynamodb.completions").clone();
    let Once::Run(run) = client.once("report").key("monday").begin().unwrap() else { panic!("it is to be done") };
    run.finish().unwrap();
    client.lock("plain").acquire().unwrap().release().unwrap();
    let ours = completions();
    assert!(ours.severity == Severity::Good && ours.what.contains("of 2 rows, none"), "{ours:?}");

    let java = |name: &str| {
        put(
            &server,
            &url,
            &serde_json::json!({
                "key": {"S": name}, "ownerName": {"S": "java-1"}, "leaseDuration": {"S": "1000"},
                "recordVersionNumber": {"S": "7f3ac5f6-9d0e-4dc3-8f1e-0242ac120002"},
            }),
        );
    };
    java("others");
    let beside = completions();
    assert!(beside.severity == Severity::Good && beside.what.contains("of 3 rows, 1 were last written"), "{beside:?}");
    // As Java's client takes a released row.
    java("report@monday");
    assert!(client.inspect_run("report", Some("monday")).unwrap().done.is_none(), "the completion is gone");
    let wiped = completions();
    assert_eq!(wiped.severity, Severity::Warning);
    assert!(wiped.what.contains("\"report@monday\"") && wiped.advice.contains("NAME@KEY"), "{wiped:?}");
}

#[test]
fn rows_that_may_not_be_looked_through_are_no_finding() {
    const SCAN: &[(&str, &str, &str)] = &[("Scan", "AccessDeniedException", "User: worker is not authorized")];
    let completions =
        one(&Aws::start(&Oddities { failing: SCAN, ..Oddities::default() }).doctor(), "dynamodb.completions").clone();
    assert!(
        completions.severity == Severity::Good && completions.what.contains("dynamodb:Scan is not allowed"),
        "{completions:?}"
    );
}

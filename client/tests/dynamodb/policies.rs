//! The policies in `docs/infra`, with exactly the rights that are used: a gateway allows what they allow, and keeps what it
//! was asked for. DynamoDB Local itself lets everybody do everything.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use leasehold::blocking::{Client, Once};
use leasehold::table::{self, NewTable};
use leasehold::{Error, ErrorKind, Severity, cas};
use leasehold_servers::answers::Request;
use leasehold_servers::dynamodb::Server;
use leasehold_servers::wait_until;
use serde_json::Value;

use crate::common::on_dynamodb::{new_table, new_url, server, table_of, through};
use crate::common::{PATIENCE, ms};
use crate::gateway::{Gateway, body, error, operation};

const WORKER: &str = include_str!("../../../docs/infra/iam-worker.json");
const ADMIN: &str = include_str!("../../../docs/infra/iam-admin.json");
/// A name that could break out of an expression that it were written into.
const NAME: &str = "jobs/x = :nonce OR #key <> \"'`";
const OWNER: &str = "REMOVE #key SET :v";

fn rights(policy: &str) -> BTreeSet<String> {
    let policy: Value = serde_json::from_str(policy).unwrap();
    let statements = policy["Statement"].as_array().unwrap().iter();
    let of_statement = |statement: &Value| match &statement["Action"] {
        Value::String(one) => vec![one.clone()],
        several => several.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect(),
    };
    statements.flat_map(of_statement).map(|action| action.strip_prefix("dynamodb:").unwrap().to_owned()).collect()
}

/// A server behind a gateway that keeps to a policy.
struct Account {
    gateway: Gateway,
    url: String,
    refused: Arc<Mutex<BTreeSet<String>>>,
}

impl Account {
    fn new(server: &Arc<Server>, url: &str, rights: BTreeSet<String>) -> Self {
        let gateway = Gateway::before(server);
        let refused = Arc::new(Mutex::new(BTreeSet::new()));
        let known = Arc::clone(&refused);
        gateway.answer(move |request| {
            let needed = needed(request);
            if needed.iter().all(|right| rights.contains(right)) {
                return None;
            }
            known.lock().unwrap().extend(needed.iter().filter(|right| !rights.contains(*right)).cloned());
            let message = format!("User: worker is not authorized to perform: dynamodb:{}", needed[0]);
            Some(error(400, "AccessDeniedException", &message))
        });
        let url = through(url, gateway.address());
        Self { gateway, url, refused }
    }

    fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap().iter().cloned().collect()
    }

    /// The rights that were needed, refused or not.
    fn used(&self) -> BTreeSet<String> {
        self.gateway.asked().iter().flat_map(needed).collect()
    }

    fn bodies(&self) -> Vec<Value> {
        self.gateway.asked().iter().filter(|request| operation(request).is_some()).map(body).collect()
    }
}

/// As AWS has it: who makes a table with tags needs the right to tag as well.
fn needed(request: &Request) -> Vec<String> {
    let Some(operation) = operation(request) else { return Vec::new() };
    let tags = operation == "CreateTable" && !body(request)["Tags"].is_null();
    [operation].into_iter().chain(tags.then_some("TagResource")).map(str::to_owned).collect()
}

/// All that workers ever do.
fn work(urls: &[&str]) -> Result<(), Error> {
    let builder = leasehold::Client::builder().request_timeout(ms(10_000));
    let builder = if urls.len() > 1 { builder.create_quorum() } else { builder };
    let connect = || Client::connect_with(builder.clone(), urls);
    let (one, two) = (connect()?, connect()?);
    let lease = one.lock(NAME).owner(OWNER).data(OWNER).renew_every(ms(100)).ttl(ms(60_000)).acquire()?;
    let mut before = lease.remaining();
    let mut trouble = None;
    wait_until("it is renewed, or why not", || {
        let left = lease.remaining();
        let too_long = lease.check(ms(120_000)).unwrap_err();
        trouble = too_long.to_string().contains("(store failure").then_some(too_long);
        std::mem::replace(&mut before, left) < left || trouble.is_some()
    });
    if let Some(trouble) = trouble {
        return Err(trouble);
    }
    assert_eq!(two.inspect(NAME)?.and_then(|info| info.owner).as_deref(), Some(OWNER));
    assert!(two.lock(NAME).try_acquire()?.is_none());
    lease.release()?;
    two.lock(NAME).ttl(ms(400)).no_renewal().acquire()?.lost();
    let next = one.lock(NAME).wait(PATIENCE).acquire()?;
    assert!(two.break_lock(NAME)?.is_some_and(|broken| broken.token == Some(next.token())));
    drop(next);
    two.lock(NAME).wait(PATIENCE).acquire()?.release()?;
    let run = || one.once(NAME).key("1").ttl(ms(60_000)).begin();
    if let Once::Run(run) = run()? {
        run.finish()?;
    }
    assert!(matches!(run()?, Once::Done(_)) && one.inspect_run(NAME, Some("1"))?.done.is_some());
    Ok(())
}

#[test]
fn workers_use_the_rights_of_the_sample_and_no_others() {
    let server = Arc::new(server());
    let accounts = [(); 3].map(|()| Account::new(&server, &new_table(&server), rights(WORKER)));
    work(&[&accounts[0].url]).unwrap();
    assert_eq!(accounts[0].used(), rights(WORKER), "of one table");
    work(&accounts.each_ref().map(|account| account.url.as_str())[..]).unwrap();
    cas::update(&accounts[1].url, "jobs/visits", |_| Some(b"1".to_vec())).unwrap();
    for account in &accounts {
        assert_eq!((account.used(), account.refused()), (rights(WORKER), Vec::new()), "of a quorum");
    }
    for account in &accounts {
        for body in account.bodies() {
            assert_eq!(body["TableName"], table_of(&account.url));
            let keys = body["Key"].as_object().map(|key| key["key"]["S"].as_str().unwrap().to_owned());
            let is_expected = |key: &String| {
                key.starts_with("jobs/") || key.starts_with("cas\u{1f}jobs/") || key == "leasehold\u{1f}quorum"
            };
            assert!(keys.iter().all(is_expected), "names that begin with jobs/, values, and the marker: {body}");
            expect_only_placeholders(&body);
        }
    }
}

/// Names and values of ours stand in maps of their own, and never in an expression.
fn expect_only_placeholders(body: &Value) {
    let expressions = body.as_object().unwrap().iter().filter(|(name, _)| name.ends_with("Expression"));
    for (name, expression) in expressions {
        let text = expression.as_str().unwrap();
        assert!(!text.contains(NAME) && !text.contains(OWNER) && !text.contains(['\'', '"', '`']), "{name}: {text}");
        let words = text.split(|c: char| !(c.is_alphanumeric() || "#:_".contains(c))).filter(|word| !word.is_empty());
        let grammar = [
            "SET",
            "REMOVE",
            "AND",
            "OR",
            "NOT",
            "attribute_exists",
            "attribute_not_exists",
            "attribute_type",
            "begins_with",
            "contains",
            "size",
        ];
        for word in words {
            assert!(word.starts_with(['#', ':']) || grammar.contains(&word), "{word} in {name}: {text}");
        }
    }
}

#[test]
fn workers_without_one_right_get_an_error_or_need_it_not() {
    let server = Arc::new(server());
    for missing in rights(WORKER) {
        let mut others = rights(WORKER);
        others.remove(&missing);
        let account = Account::new(&server, &new_table(&server), others);
        match work(&[&account.url]) {
            // It only checks the table.
            Ok(()) => assert_eq!(missing, "DescribeTable"),
            Err(error) => assert!(error.to_string().contains(&missing), "{missing}: {error}"),
        }
        assert_eq!(account.refused(), [missing]);
    }
}

/// It asks for two things more, and does without.
#[test]
fn the_doctor_finds_the_rights_of_the_sample_sufficient() {
    let server = Arc::new(server());
    let account = Account::new(&server, &new_table(&server), rights(WORKER));
    let findings = Client::connect(&account.url).unwrap().doctor().unwrap();
    assert!(findings.iter().all(|finding| finding.severity < Severity::Problem), "{findings:#?}");
    assert_eq!(account.refused(), ["DescribeTimeToLive", "Scan"]);
}

#[test]
fn tables_are_made_with_the_rights_of_the_sample_and_no_others() {
    let server = Arc::new(server());
    let mut new = NewTable::default();
    new.tags = vec![("team".into(), "billing".into())];
    let url = |account: &Account| format!("{}&expires=forgotten", account.url);
    let account = Account::new(&server, &new_url(&server), rights(ADMIN));
    let made = table::create(&url(&account), &new).unwrap();
    assert_eq!(made.table.expires.as_deref(), Some("forgotten"));
    table::describe(&url(&account)).unwrap();
    assert_eq!((account.used(), account.refused()), (rights(ADMIN), Vec::new()));
    for missing in rights(ADMIN) {
        let mut others = rights(ADMIN);
        others.remove(&missing);
        let account = Account::new(&server, &new_url(&server), others);
        match table::create(&url(&account), &new) {
            // Only what a table does already is not seen then.
            Ok(_) => {
                assert_eq!(missing, "DescribeTimeToLive");
                assert_eq!(table::describe(&url(&account)).unwrap().expires, None);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::StoreRefused, "{missing}: {error}"),
        }
        assert_eq!(account.refused(), [missing]);
    }
}

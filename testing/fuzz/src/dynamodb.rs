//! Answers of DynamoDB: to operations on locks, to updates of items, to looks at markers and tables.

use arbitrary::{Result, Unstructured};
use leasehold_core::op::{LockOp, Op};
use leasehold_core::{Nonce, Resource, Token};
use leasehold_wire::cas::{Next, Update};
use leasehold_wire::dynamodb::{Codec, Exchange, Settings, cas, table};
use leasehold_wire::{Exchange as _, HttpResponse, Progress, Repeat, Repeats};
use serde_json::Value as Json;

use crate::{answers, invariants, values};

/// More rounds than any operation takes: the lock in two forms, the marker read and written, undone or kept, and each
/// of two repetitions.
const MOST_ROUNDS: usize = 16;

/// One of the conversations.
pub fn run(bytes: &[u8]) {
    let u = &mut Unstructured::new(bytes);
    // The run ends where the bytes end.
    let _ = match u.int_in_range(0..=9) {
        Ok(0) => looked_at(u),
        Ok(1 | 2) => updated(u),
        _ => locked(u),
    };
}

fn settings(u: &mut Unstructured<'_>) -> Result<Settings> {
    let mut settings = Settings::new("locks").expect("a table's name");
    if values::chance(u, 30) {
        settings = settings.sort_key("range", "-").expect("a sort key");
    }
    if values::chance(u, 30) {
        settings = settings.expires("ttl").expect("an attribute");
    }
    Ok(settings)
}

fn response(u: &mut Unstructured<'_>, of: Option<Nonce>) -> Result<HttpResponse> {
    let (status, body) = answers::dynamodb(u, of)?;
    let date = values::maybe(u, |u| Ok(*u.choose(&["Tue, 14 Nov 2023 22:13:20 GMT", "yesterday", ""])?))?;
    let headers = date.map(|date| ("date".to_owned(), date.to_owned())).into_iter().collect();
    Ok(HttpResponse { status, headers, body })
}

fn locked(u: &mut Unstructured<'_>) -> Result<()> {
    let (settings, ops, unix_ms) = (settings(u)?, values::ops(u)?, values::number(u)?);
    let codec = Codec::new(settings);
    let Ok(mut exchange) = codec.begin(&ops, unix_ms) else { return Ok(()) };
    let mut repeats = Repeats::default();
    let nonce = ops.first().and_then(|op| op.op.nonce());
    let mut heard: Vec<Json> = Vec::new();
    for round in 0.. {
        assert!(round < MOST_ROUNDS, "an exchange without end");
        let requests = exchange.requests().to_vec();
        let answers = requests.iter().map(|request| {
            assert!(serde_json::from_slice::<Json>(&request.body).is_ok_and(|body| body.is_object()));
            Ok(if values::chance(u, 20) { Err(values::outcome(u, None)?) } else { Ok(response(u, nonce)?) })
        });
        let answers = answers.collect::<Result<Vec<_>>>()?;
        heard.extend(answers.iter().flatten().filter_map(|answer| serde_json::from_slice(&answer.body).ok()));
        let repeat = answers.iter().flatten().find_map(|answer| codec.repeat(answer));
        if let Some(repeat) = repeat.filter(|repeat| repeats.allow(*repeat)) {
            if let Repeat::ServerTime(shown) = repeat {
                exchange.set_clock(shown);
            }
            assert_eq!(exchange.requests().len(), requests.len());
            continue;
        }
        if let Progress::Done(outcomes) = exchange.answers(&mut (), answers) {
            assert_eq!(outcomes.len(), ops.len());
            for (op, outcome) in ops.iter().zip(&outcomes) {
                invariants::outcome(op, outcome);
                assert!(
                    !invariants::is_grant(outcome) || is_shown(op, &heard),
                    "{outcome:?} for {op:?} after {heard:?}"
                );
            }
            break;
        }
    }
    Ok(())
}

/// True if a row was shown that names the attempt.
fn is_shown(op: &LockOp, heard: &[Json]) -> bool {
    let Some(nonce) = op.op.nonce() else { return true };
    let begin = answers::hex(&nonce);
    let names = |row: &Json| row["recordVersionNumber"]["S"].as_str().is_some_and(|text| text.starts_with(&begin));
    heard.iter().any(|body| names(&body["Attributes"]) || names(&body["Item"]))
}

fn updated(u: &mut Unstructured<'_>) -> Result<()> {
    let settings = settings(u)?;
    let Ok(name) = Resource::new(&values::text(u, 10)?) else { return Ok(()) };
    let mut update = Update::new(u.int_in_range(0..=4)?);
    let (mut version, mut wrote) = (0, false);
    for step in 0.. {
        assert!(step < 64, "an update without end");
        let Ok(_) = cas::request(&settings, &name, update.ask()) else { return Ok(()) };
        let answer = if values::chance(u, 30) {
            cas::answer(&settings, &name, update.ask(), Err(values::outcome(u, None)?))
        } else {
            cas::answer(&settings, &name, update.ask(), Ok(&item(u)?))
        };
        match update.answer(answer) {
            Next::Decide => {
                version = update.current().map_or(0, |item| item.version);
                assert!(version <= Token::MAX.get());
                if update.write(values::bytes(u, 10)?, u.arbitrary()?).is_err() {
                    return Ok(());
                }
                wrote = true;
            }
            Next::Ask | Next::Pause(..) => {}
            Next::Done(item) => {
                assert!(wrote && item.version == version + 1);
                return Ok(());
            }
            Next::Failed(_) => return Ok(()),
        }
    }
    Ok(())
}

fn item(u: &mut Unstructured<'_>) -> Result<HttpResponse> {
    if values::chance(u, 60) {
        return response(u, None);
    }
    let mut row = answers::row(u, None)?;
    row["version"] = serde_json::json!({ "N": values::number(u)?.to_string() });
    row["value"] = serde_json::json!({ "B": *u.choose(&["", "Zg==", "Zg"])? });
    row["writeIds"] = serde_json::json!({ "S": *u.choose(&["", "00000000000000000000000000000000", "x y"])? });
    let (status, name) = *u.choose(&[(200, "Item"), (200, "Attributes"), (400, "Item")])?;
    let mut body = serde_json::json!({ name: row });
    if status == 400 {
        body["__type"] = "x#ConditionalCheckFailedException".into();
    }
    Ok(HttpResponse::new(status, body.to_string().into_bytes()))
}

fn looked_at(u: &mut Unstructured<'_>) -> Result<()> {
    let settings = settings(u)?;
    let codec = Codec::new(settings.clone());
    let marker = values::marker(u)?;
    let response = if u.arbitrary()? {
        response(u, None)?
    } else {
        HttpResponse::new(*u.choose(&[200, 400])?, values::bytes(u, 4096)?)
    };
    if let Ok(found) = codec.found(&response)
        && let Some(marker) = &found.marker
    {
        assert_eq!(marker.text().as_bytes(), found.text);
    }
    if let Ok(true) = codec.marked(Some(&marker), &response) {
        let body: Json = serde_json::from_slice(&response.body).expect("only JSON is understood");
        assert_eq!(body["Attributes"]["quorumMarker"]["S"], marker.text());
    }
    let _ = codec.tried(&response);
    if let Ok(described) = table::described(&settings, &response) {
        assert!((1..=2).contains(&described.keys.len()));
        if table::judge(&settings, &described).is_ok() {
            assert_eq!(described.keys[0].name, settings.key_name());
        }
    }
    let _ = (table::expires(&settings, &response), table::expiring(&settings, &response));
    let read = [LockOp { lock: leasehold_core::LockId::new(1), resource: values::resource(u)?, op: Op::Read }];
    let mut exchange: Exchange = codec.begin(&read, 0).expect("a read has no record");
    if let Progress::Done(outcomes) = exchange.answers(&mut (), vec![Ok(response)]) {
        invariants::outcome(&read[0], &outcomes[0]);
    }
    Ok(())
}

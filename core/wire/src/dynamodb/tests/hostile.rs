//! An impostor that answers in the table's place.

use proptest::prelude::*;

use super::*;
use crate::dynamodb::table;

fn any_json() -> impl Strategy<Value = Json> {
    let words = prop::sample::select(vec![
        "S",
        "N",
        "B",
        "BOOL",
        "Item",
        "Attributes",
        "__type",
        "message",
        "key",
        "invoice/42",
        "1",
        "20s",
        "30000",
        "isReleased",
        "leaseDuration",
        "recordVersionNumber",
        "fencingToken",
        "quorumMarker",
        "quorumTrust",
        "undoneVersion",
        "Table",
        "x#ConditionalCheckFailedException",
        "x#ExpiredTokenException",
        "Zm9v",
        "leasehold\u{1f}quorum",
    ]);
    let word = move || words.clone().prop_map(String::from);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::from),
        word().prop_map(Json::String),
        ".{0,12}".prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::btree_map(word(), inner, 0..6).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// A row that is nearly one.
fn any_row() -> impl Strategy<Value = Json> {
    let attribute = prop_oneof![
        3 => Just(None),
        1 => any_json().prop_map(Some),
        1 => "[0-9]{1,20}".prop_map(|digits| Some(json!({ "N": digits }))),
        1 => prop::sample::select(vec!["1", "20s", RIVAL_RVN, JAVA_RVN, ""]).prop_map(|text| Some(json!({ "S": text }))),
    ];
    let names = [
        "key",
        "leaseDuration",
        "recordVersionNumber",
        "isReleased",
        "fencingToken",
        "quorumTrust",
        "undoneVersion",
        "quorumMarker",
    ];
    let base = prop::sample::select(vec![row(RIVAL_RVN), ours(1), ours(3), undone(ours(1)), row(JAVA_RVN)]);
    (base, prop::collection::vec(attribute, names.len())).prop_map(move |(mut row, changes)| {
        for (name, change) in names.iter().zip(changes) {
            if let Some(change) = change {
                row[*name] = change;
            }
        }
        row
    })
}

fn any_answer() -> impl Strategy<Value = Result<HttpResponse, Outcome>> {
    let status = prop_oneof![Just(200_u16), Just(400_u16), any::<u16>()];
    let body = prop_oneof![
        any_row().prop_map(|row| shows(&row).body),
        any_row().prop_map(|row| reads(&row).body),
        any_row().prop_map(|row| refuses(Some(&row)).body),
        any_json().prop_map(|json| json.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..60),
    ];
    let date = prop_oneof![Just(None), ".{0,30}".prop_map(Some)];
    prop_oneof![
        9 => (status, date, body).prop_map(|(status, date, body)| {
            let headers = date.map(|date| ("date".into(), date)).into_iter().collect();
            Ok(HttpResponse { status, headers, body })
        }),
        1 => Just(lost()),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let member = Membership {
        quorum: QuorumId([1; 16]),
        max_ttl_ms: 60_000,
        durability: Durability::NotDeclared,
        fresh: LossId([9; 16]),
        waited_out: None,
        bootstrap: Bootstrap::No,
        retention: RETENTION,
    };
    let vote = Op::Acquire(Box::new(Acquire { member: Some(member), ..an_acquire() }));
    let keep = match renew() {
        Op::Renew(renew) => Op::Renew(Renew { quorum: Some(Durability::Declared), ..renew }),
        other => other,
    };
    let over = takeover(Version::of(&RIVAL, Seq::new(7)));
    let doubtful = raise(9, Some(LossId([2; 16])));
    prop::sample::select(vec![acquire(), over, vote, renew(), keep, release(), raise(9, None), doubtful, Op::Read])
}

proptest! {
    #[test]
    fn every_exchange_ends_and_no_text_shows_a_nonce(
        op in any_op(),
        answers in prop::collection::vec(any_answer(), 20),
    ) {
        let mut exchange = begun(op);
        let mut rounds = 0;
        for answer in answers {
            rounds += 1;
            if let Progress::Done(outcomes) = exchange.answers(&mut (), vec![answer]) {
                prop_assert_eq!(outcomes.len(), 1);
                if let Outcome::NotApplied(Refusal::Denied(denial)) = &outcomes[0] {
                    prop_assert!(!denial.detail.contains("5a5a5a5a") && !denial.detail.contains("c3c3c3c3"));
                }
                return Ok(());
            }
        }
        prop_assert!(false, "{} rounds are no end", rounds);
    }

    #[test]
    fn a_grant_is_never_made_of_a_row_that_is_not_ours(row in any_row()) {
        if let Outcome::Applied(Applied::Acquired { counter }) = answered(acquire(), shows(&row)) {
            prop_assert_eq!(counter.get(), FLOOR);
            prop_assert_eq!(&row["recordVersionNumber"], &ours(1)["recordVersionNumber"]);
        }
    }

    #[test]
    fn no_body_is_too_odd_for_the_rest(
        status in prop_oneof![Just(200_u16), any::<u16>()],
        body in prop_oneof![
            any_json().prop_map(|json| json.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..60),
        ],
    ) {
        let response = HttpResponse::new(status, body);
        let codec = codec();
        let _ = codec.found(&response);
        let _ = codec.marked(Some(&quorum::marker(Phase::Member)), &response);
        let _ = table::described(codec.settings(), &response);
        let _ = table::expires(codec.settings(), &response);
        let _ = table::expiring(codec.settings(), &response);
    }
}

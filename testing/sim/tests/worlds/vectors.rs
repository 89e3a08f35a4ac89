//! The golden vectors: the core does what the files say, the files say what the core does, and no row of the lease
//! machine's table is left out.

use std::collections::BTreeMap;

use leasehold_core::config::Drift;
use leasehold_core::{Event, Input, LockId, Monotonic, Output};
use leasehold_sim::format::{Call, Fresh, Vector};
use leasehold_sim::vectors::{Files, Way, changes, folder, play, recorded, stored, untaken};

fn files() -> Files {
    stored(&folder()).expect("core/vectors can be read")
}

fn vectors() -> BTreeMap<String, Vector> {
    let parse = |(name, text): (String, String)| match Vector::parse(&text) {
        Ok(vector) => (name, vector),
        Err(error) => panic!("core/vectors/{name}: {error}"),
    };
    let vectors: BTreeMap<String, Vector> = files().into_iter().map(parse).collect();
    assert!(vectors.len() > 20, "the vectors are there");
    vectors
}

const PLAIN: &str = "granted_renewed_released";

fn one(name: &str) -> Vector {
    vectors().remove(&format!("{name}.json")).expect("a vector of this name")
}

fn play_all(way: Way) {
    let failed: Vec<String> = vectors()
        .iter()
        .filter_map(|(name, vector)| play(vector, way).err().map(|error| format!("core/vectors/{name}: {error}")))
        .collect();
    assert!(failed.is_empty(), "driven by {way:?}:\n{}", failed.join("\n"));
}

#[test]
fn core_follows_the_vectors_call_by_call() {
    play_all(Way::Calls);
}

#[test]
fn core_follows_the_vectors_step_by_step() {
    play_all(Way::Steps);
}

#[test]
fn vectors_are_up_to_date() {
    let changes = changes(&files(), &recorded());
    assert!(
        changes.is_empty(),
        "{changes:?}\nif the core was changed on purpose: cargo xtask vectors --bless, and read the difference"
    );
}

/// A component does not watch holders, and it plays all vectors. The tests of the core take this row.
const OF_NO_VECTOR: [&str; 1] = ["WaitingLives"];

#[test]
fn vectors_cover_the_lease_table() {
    for way in [Way::Calls, Way::Steps] {
        let mut rows = untaken();
        for (name, vector) in vectors() {
            for (row, count) in play(&vector, way).unwrap_or_else(|error| panic!("core/vectors/{name}: {error}")) {
                *rows.entry(row).or_default() += count;
            }
        }
        let missed = rows.iter().filter(|(_, count)| **count == 0).map(|(row, _)| *row);
        let missed: Vec<_> = missed.filter(|row| !OF_NO_VECTOR.contains(row)).collect();
        assert!(rows.len() >= 38 && missed.is_empty(), "rows that no vector takes, by {way:?}: {missed:?}");
    }
}

#[test]
fn vectors_cover_all_inputs_and_outputs() {
    let text: String = files().into_values().collect();
    let inputs = "timeout acquire release declare_lost response notified subscribed credentials_renewed \
                  reseed close answered not_sent unknown";
    let outputs = "transmit event subscribe unsubscribe need_credentials rejected acquired contended failed renewed \
                   renew_delayed shortened expiring lost released busy timed_out throttled unavailable abstains \
                   refused cancelled expired max_hold taken_over record_gone revoked duplicate_lock unknown_lock \
                   too_many_locks above_max_ttl closed";
    let ops = "renew raise read member applied not_applied acquired_in_doubt raised conflict needs_credentials denied \
               lease foreign once for forever off every";
    let words = [inputs, outputs, ops].into_iter().flat_map(str::split_whitespace);
    let missed: Vec<&str> = words.filter(|name| !text.contains(&format!("\"{name}\": {{"))).collect();
    assert!(missed.is_empty(), "in no vector: {missed:?}");
}

#[test]
fn files_are_written_as_they_were_read() {
    for (name, text) in files() {
        assert_eq!(<Vector>::parse(&text).unwrap().to_text().unwrap(), text, "{name}");
    }
}

/// Interfaces that count in milliseconds must be able to run every file.
#[test]
fn settings_and_answers_are_whole_milliseconds() {
    fn check(path: &str, value: &serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let is_whole = value.as_u64().is_none_or(|ns| ns % 1_000_000 == 0);
                    assert!(!name.ends_with("_ns") || is_whole, "{path}.{name}: {value}");
                    check(&format!("{path}.{name}"), value);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| check(path, item)),
            _ => {}
        }
    }
    for (name, vector) in vectors() {
        check(&name, &serde_json::to_value(&vector.config).unwrap());
        for (n, step) in vector.steps.iter().enumerate() {
            check(&format!("{name}, step {n}"), &serde_json::to_value(&step.input).unwrap());
        }
    }
}

#[test]
fn files_have_the_name_and_reason_of_their_vector() {
    for (name, vector) in vectors() {
        assert_eq!(name, format!("{}.json", vector.name));
        assert!(vector.why.len() > 40, "{name} says why it is there");
    }
}

/// The errors of `play`, in both ways, for a vector that was changed.
fn told(name: &str, change: impl Fn(&mut Vector)) -> [String; 2] {
    let mut vector = one(name);
    change(&mut vector);
    [Way::Calls, Way::Steps].map(|way| play(&vector, way).expect_err("the change is noticed"))
}

#[test]
fn changed_output_is_reported() {
    for told in told(PLAIN, |vector| {
        let Output::Event(Event::Acquired { token, .. }) = &mut vector.steps[1].outputs[0] else { panic!("a grant") };
        *token = token.next().unwrap();
    }) {
        assert_eq!(
            told,
            "step 1 (response at 100020000000 ns): outputs[0].event.acquired.token: expected 1700000000000001, found \
             1700000000000000"
        );
    }
}

#[test]
fn missing_or_extra_output_is_reported() {
    for told in told(PLAIN, |vector| vector.steps[0].outputs.clear()) {
        let expected = "step 0 (acquire at 100000000000 ns): outputs[0]: expected nothing, found {";
        assert!(told.starts_with(expected), "{told}");
    }
    for told in told(PLAIN, |vector| {
        let again = vector.steps[1].outputs[0].clone();
        vector.steps[1].outputs.push(again);
    }) {
        assert!(told.starts_with("step 1 ") && told.ends_with("found nothing"), "{told}");
    }
}

#[test]
fn order_of_outputs_matters() {
    for told in told("quorum_grant", |vector| vector.steps[0].outputs.swap(0, 1)) {
        assert!(told.starts_with("step 0 ") && told.contains("outputs[0].transmit"), "{told}");
    }
}

#[test]
fn changed_wake_time_is_reported() {
    for told in told(PLAIN, |vector| vector.steps[1].wake_at_ns = Monotonic::FAR) {
        assert!(told.starts_with("step 1 ") && told.contains("wake_at_ns: expected null, found 10"), "{told}");
    }
}

#[test]
fn changed_input_changes_the_outputs() {
    let differs = |at: &str, change: &dyn Fn(&mut Vector)| {
        for told in told(PLAIN, change) {
            assert!(told.contains(at), "{told}");
        }
    };
    differs("nonce", &|vector: &mut Vector| vector.seed = [0xff; 32]);
    differs("nonce", &|vector: &mut Vector| vector.steps[0].entropy = Some(Fresh([0xff; 16])));
    differs("floor", &|vector: &mut Vector| vector.start.unix_ms += 1);
    differs("deadline_ns", &|vector: &mut Vector| vector.steps[0].at_ns += 1);
    let drift = Drift::from_ppm(20_000).unwrap();
    differs("deadline_ns", &|vector: &mut Vector| vector.config = vector.config.clone().with_drift(drift));
    differs("outputs[0]", &|vector: &mut Vector| {
        vector.steps[1].input = Call(Some(Input::Release { lock: LockId::new(1) }))
    });
}

/// The error for the text of a good file with this change.
fn refused(from: &str, to: &str) -> String {
    let text = files().remove(&format!("{PLAIN}.json")).expect("a vector");
    assert!(text.contains(from), "{from:?} is in the file");
    <Vector>::parse(&text.replacen(from, to, 1)).expect_err("the change is noticed")
}

#[test]
fn files_with_errors_are_rejected_with_the_reason() {
    let begins = |from: &str, to: &str, expected: &str| {
        let told = refused(from, to);
        assert!(told.starts_with(expected), "{told}");
    };
    begins("\"format\": 1", "\"format\": 2", "format: this is version 2, and 1 is understood here");
    begins("\"seed\": \"00", "\"seed\": \"", "31 bytes where there must be 32 at line ");
    begins("\"seed\": \"00", "\"seed\": \"0G", "\"0G01");
    begins("\"ttl_ns\": 12000000000", "\"ttl_ns\": 1000", "ttl is 1 µs, but must be at least");
    begins("\"ttl_ns\": 12000000000", "\"ttl_ns\": 12000000001", "steps[0].do.acquire.options.ttl_ns: expected 120");
    begins("\"drift_ppm\": 10000", "\"drift_ppm\": 1", "drift of 1 ppm is outside");
    begins("\"at_ns\": 100000000000", "\"at_ns\": 9007199254740992", "9007199254740992 is above the largest");
    begins("\"counter\": 1700000000000000", "\"counter\": 9007199254740992", "a token of 9007199254740992");
    begins("\"entropy\"", "\"entropi\"", "steps[0].entropy: this call takes fresh bytes");
    begins("\"watch\"", "\"more\": 1, \"watch\"", "config.nodes[0].more: expected 1, found nothing");
    begins("\"name\"", "\"nome\"", "missing field `name`");
    begins("\"recovered\": false", "\"recovered\": 0", "invalid type: integer `0`, expected a boolean at line ");
    begins("{ \"release\": { \"lock\": 1 } }", "{ \"relaese\": { \"lock\": 1 } }", "unknown variant `relaese`");
}

#[test]
fn steps_without_wake_time_are_rejected() {
    let mut text = files().remove(&format!("{PLAIN}.json")).expect("a vector");
    let (from, to) = (text.find("\"wake_at_ns\"").unwrap(), text.find("\"rows\"").unwrap());
    text.replace_range(from..to, "");
    let told = <Vector>::parse(&text).expect_err("the field is missing");
    assert_eq!(told, "steps[0].wake_at_ns: expected nothing, found null");
}

#[test]
fn entropy_belongs_to_calls_that_take_it() {
    let mut vector = one(PLAIN);
    vector.steps[0].entropy = None;
    assert_eq!(vector.to_text().unwrap_err(), "steps[0].entropy: this call takes fresh bytes");
    let mut vector = one(PLAIN);
    vector.steps[1].entropy = Some(Fresh([0; 16]));
    assert_eq!(vector.to_text().unwrap_err(), "steps[1].entropy: this call takes no fresh bytes");
}

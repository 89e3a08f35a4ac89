//! The golden vectors with whole requests: the core does what the files say, and the files say what the core does.

use leasehold_sim::format::{WireInput, WireOutput, WireRequest, WireVector, Wired};
use leasehold_sim::vectors::{Way, changes, stored, wire};

fn vectors() -> Vec<WireVector> {
    let files = stored(&wire::folder()).expect("core/vectors/wire can be read");
    let parse = |(name, text): (String, String)| {
        let vector = WireVector::parse(&text).unwrap_or_else(|error| panic!("core/vectors/wire/{name}: {error}"));
        assert_eq!(name, format!("{}.json", vector.name));
        assert!(vector.why.len() > 40, "{name} says why it is there");
        vector
    };
    files.into_iter().map(parse).collect()
}

#[test]
fn core_follows_the_wire_vectors() {
    for way in [Way::Calls, Way::Steps] {
        let failed: Vec<String> = vectors()
            .iter()
            .filter_map(|vector| play(vector, way).map(|error| format!("core/vectors/wire/{}: {error}", vector.name)))
            .collect();
        assert!(failed.is_empty(), "driven by {way:?}:\n{}", failed.join("\n"));
    }
}

fn play(vector: &WireVector, way: Way) -> Option<String> {
    wire::play(vector, way).err()
}

#[test]
fn vectors_are_up_to_date() {
    let changes = changes(&stored(&wire::folder()).unwrap(), &wire::recorded());
    assert!(
        changes.is_empty(),
        "{changes:?}\nif the core was changed on purpose: cargo xtask vectors --bless, and read the difference"
    );
}

#[test]
fn wire_files_are_written_as_they_were_read() {
    for vector in vectors() {
        let text = vector.to_text().unwrap();
        assert_eq!(WireVector::parse(&text).as_ref(), Ok(&vector), "{}", vector.name);
    }
}

#[test]
fn wire_vectors_cover_all_requests_and_answers() {
    let text: String = stored(&wire::folder()).unwrap().into_values().collect();
    for name in [
        "redis",
        "redis_http",
        "dynamodb",
        "etcd",
        "objects",
        "aws",
        "token",
        "password",
        "account_key",
        "access_signature",
        "set_credentials",
        "need_credentials",
        "http_request",
        "redis_commands",
        "postgres",
        "statement",
        "rows",
        "server_error",
        "http_response",
        "redis_replies",
        "not_sent",
        "unknown",
    ] {
        assert!(text.contains(&format!("\"{name}\": {{")), "in no vector: {name}");
    }
    for error in
        ["NOSCRIPT", "ExpiredTokenException", "Signature expired", "ConditionalCheckFailedException", "429", "<html>"]
    {
        assert!(text.contains(error), "in no vector: {error}");
    }
}

#[test]
fn changed_byte_is_reported() {
    let mut vectors = vectors();
    let vector = vectors.iter_mut().find(|vector| vector.name == "dynamodb_requests").unwrap();
    let request = vector.steps.iter_mut().flat_map(|step| &mut step.outputs).find_map(|output| match output {
        WireOutput::Request(WireRequest::HttpRequest { body, .. }) => Some(body),
        WireOutput::Request(WireRequest::RedisCommands { .. } | WireRequest::Statement { .. })
        | WireOutput::Core(_) => None,
    });
    request.unwrap().push(' ');
    for way in [Way::Calls, Way::Steps] {
        let told = play(vector, way).expect("it is another request");
        assert!(told.starts_with("step 1 at 100000000000 ns: outputs[0].http_request.body: expected"), "{told}");
    }
}

#[test]
fn changed_answer_changes_the_outputs() {
    let mut vectors = vectors();
    let vector = vectors.iter_mut().find(|vector| vector.name == "redis_connection").unwrap();
    let reply = vector.steps.iter_mut().find_map(|step| match &mut step.input {
        WireInput::Wired(Wired::RedisReplies { replies, .. }) if replies.contains("granted") => Some(replies),
        WireInput::Wired(_) | WireInput::Core(_) => None,
    });
    let reply = reply.unwrap();
    *reply = reply.replace("1700000000000000", "1700000000000001");
    assert!(play(vector, Way::Calls).is_some());
}

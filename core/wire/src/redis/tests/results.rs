//! Results of runs.

use leasehold_core::{About, RunResult};

use super::*;

#[test]
fn a_result_is_that_of_the_completion_that_it_stands_beside() {
    let result = RunResult::json("[1]").unwrap();
    let written = |about: &About| {
        let mut out = Vec::new();
        value::write_about(Some(about), &mut out);
        String::from_utf8(out).unwrap()
    };
    let (ours, theirs) = (About::new(&NONCE, 1, 0, Some(&result)), About::new(&RIVAL, 1, 0, Some(&result)));
    let (own, other) = (written(&ours), written(&theirs));
    let completion = format!("{HEX}@me;1700000000000;9");
    for (about, expected) in [(&*own, Some(&ours)), (&other, None), ("", None), ("no record", None), (&own[1..], None)]
    {
        let told = list([bulk("done"), bulk(&completion), Value::Integer(5_000), bulk(about)]);
        let Outcome::NotApplied(Refusal::Done(shown)) = answered(run(), told) else { panic!("done") };
        assert_eq!(shown.about.as_ref(), expected, "{about}");
        let seen = [bulk("marked"), bulk(&completion), Value::Integer(5_000), bulk(about), bulk("free"), bulk("")];
        let Outcome::Applied(Applied::Read(seen)) = answered(Op::Read, list(seen)) else { panic!("a read") };
        assert_eq!(seen.done.unwrap().about.as_ref(), expected, "{about}");
    }
    let Op::Finish(finish) = finish() else { panic!("a finish") };
    let with = Op::Finish(Box::new(Finish { about: Some(ours), ..*finish }));
    let exchange = codec().begin(ID, &[on("a", with)], LEFT, UNIX_MS).unwrap();
    let (_, args) = super::written(&exchange.commands()[0]);
    assert_eq!(args[11], own);
}

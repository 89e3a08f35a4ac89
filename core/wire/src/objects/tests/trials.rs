//! Trials of conditions.

use super::*;

#[test]
fn a_trial_finds_services_that_ignore_conditions() {
    for service in ALL {
        let mut bucket = Bucket::new(service);
        for _ in 0..2 {
            let (mut trial, mut request) = Trial::begin(&bucket.codec(), nonce(7));
            let verdict = loop {
                match trial.answer(Ok(&bucket.answer(&request))) {
                    Verdict::Ask(next) => request = next,
                    verdict => break verdict,
                }
            };
            assert_eq!(verdict, Verdict::Sound, "{service:?}");
        }
        // The answers of one that writes whatever the condition is.
        let written = |etag: &str| HttpResponse {
            headers: vec![("etag".into(), etag.into()), ("x-goog-generation".into(), etag.into())],
            ..response(200, "{}")
        };
        let (mut trial, _) = Trial::begin(&bucket.codec(), nonce(7));
        assert!(matches!(trial.answer(Ok(&written("1"))), Verdict::Ask(_)));
        assert!(matches!(trial.answer(Ok(&written("2"))), Verdict::Ask(_)));
        assert!(matches!(trial.answer(Ok(&written("3"))), Verdict::Ignored(_)));
        let (mut trial, _) = Trial::begin(&bucket.codec(), nonce(7));
        for answer in [written("1"), written("2"), response(412, ""), written("4")] {
            assert!(matches!(trial.answer(Ok(&answer)), Verdict::Ask(_)));
        }
        assert!(matches!(trial.answer(Ok(&written("5"))), Verdict::Ignored(_)));
    }
}

#[test]
fn a_trial_knows_its_own_writes_where_each_is_made_twice() {
    for service in ALL {
        let mut bucket = Bucket::new(service);
        for round in 1..=2 {
            let (mut trial, mut request) = Trial::begin(&bucket.codec(), nonce(round));
            let verdict = loop {
                if request.writes() {
                    bucket.answer(&request);
                }
                match trial.answer(Ok(&bucket.answer(&request))) {
                    Verdict::Ask(next) => request = next,
                    verdict => break verdict,
                }
            };
            assert_eq!(verdict, Verdict::Sound, "{service:?}");
        }
        // The write of another trial is none of its own.
        let (mut trial, look) = Trial::begin(&bucket.codec(), nonce(3));
        let Verdict::Ask(begin) = trial.answer(Ok(&bucket.answer(&look))) else { panic!("{service:?}") };
        let (mut rival, _) = Trial::begin(&bucket.codec(), nonce(4));
        let Verdict::Ask(theirs) = rival.answer(Ok(&bucket.answer(&look))) else { panic!("{service:?}") };
        bucket.answer(&theirs);
        let Verdict::Ask(read) = trial.answer(Ok(&bucket.answer(&begin))) else { panic!("{service:?}") };
        assert_eq!(trial.answer(Ok(&bucket.answer(&read))), Verdict::Disturbed, "{service:?}");
    }
}

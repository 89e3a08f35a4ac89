//! Holders claim an item while another thread forgets it.

use std::sync::Arc;

use leasehold_concurrency::fence::Guards;
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, seen};

use super::Count;

#[test]
fn a_claim_that_meets_a_forgotten_mark_is_refused_or_seen_by_all() {
    explore(Time::Stands, &["claimed again", "refused"], || {
        let guards = Arc::new(Guards::new(1));
        guards.claim("a", 9).unwrap();
        let forgetting = Arc::clone(&guards);
        let forgetting = thread::spawn(move || forgetting.forget("a"));
        let claims: Vec<_> = [7, 8]
            .map(|token| (token, Arc::clone(&guards)))
            .map(|(token, guards)| thread::spawn(move || guards.claim("a", token).is_ok().then_some(token)))
            .into_iter()
            .collect();
        let claimed: Vec<_> = claims.into_iter().filter_map(|claim| claim.join().unwrap()).collect();
        forgetting.join().unwrap();
        match claimed.into_iter().max() {
            // It was claimed after the mark was forgotten, so that nothing can have forgotten it since.
            Some(highest) => {
                seen("claimed again");
                assert_eq!(guards.high_water("a"), Some(highest), "a mark was raised that no reader sees");
                guards.check("a", highest).unwrap();
                guards.check("a", highest - 1).unwrap_err();
            }
            None => {
                seen("refused");
                assert_eq!(guards.high_water("a"), None, "it was forgotten last of all");
            }
        }
    });
}

#[test]
fn a_mark_is_not_forgotten_during_a_write() {
    explore(Time::Stands, &["written", "refused"], || {
        let guards = Arc::new(Guards::new(1));
        guards.claim("a", 7).unwrap();
        let (forgetting, forgotten) = (Arc::clone(&guards), Count::default());
        let is_forgotten = forgotten.clone();
        let forgetting = thread::spawn(move || {
            forgetting.forget("a");
            is_forgotten.up();
        });
        let written = guards.with("a", 7, || {
            let before = forgotten.get();
            for _ in 0..3 {
                thread::yield_now();
                assert_eq!(forgotten.get(), before, "forgotten while it is written");
            }
        });
        seen(if written.is_ok() { "written" } else { "refused" });
        forgetting.join().unwrap();
        assert_eq!(guards.high_water("a"), None);
    });
}

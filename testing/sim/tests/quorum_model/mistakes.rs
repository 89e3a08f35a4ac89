//! Searches that must find something: a check that finds no mistake on purpose finds none by chance.

use crate::bounds::{CALM, setting};
use crate::search::search;
use crate::state::Budget;
use crate::stories::{
    births_and_losses, delayed_repair, loss_after_a_grant, loss_before_a_grant, read_before_a_grant, second_loss,
    second_loss_and_a_stray, two_losses_of_five,
};
use crate::world::{Bug, Deadlines, RepairTrust, Setting};

const A_LOSS: Budget = Budget { losses: 1, ..CALM };

/// The number of states that it took to find the mistake.
fn finds<const N: usize, const C: usize>(name: &str, setting: Setting) -> usize {
    let found = search::<N, C>(name, setting);
    assert!(found.broken.is_some(), "{name}: nothing found");
    found.states
}

/// Few clients and attempts, counters that differ, and one mistake.
fn with_bug(bug: Bug, counters: &[u8], attempts: u8, budget: Budget) -> Setting {
    Setting { bug: Some(bug), counters: counters.to_vec(), ..setting(counters.len(), 2, attempts, budget) }
}

fn any_age(setting: Setting) -> Setting {
    Setting { deadlines: Deadlines::Ignored, ..setting }
}

#[test]
fn no_write_back() {
    finds::<3, 2>("no write-back", any_age(with_bug(Bug::NoWriteBack, &[0, 1, 2], 1, CALM)));
}

#[test]
fn write_back_whoever_holds_the_record() {
    finds::<3, 2>("unconditional write-back", any_age(with_bug(Bug::RaisesAnybody, &[0, 1, 2], 1, CALM)));
}

#[test]
fn acks_that_do_not_start_again() {
    finds::<3, 2>("no restart", any_age(with_bug(Bug::NoRestart, &[0, 1, 2], 1, CALM)));
}

#[test]
fn a_counter_deleted_on_release() {
    finds::<3, 2>("counter deleted", with_bug(Bug::CounterDeleted, &[0, 0, 0], 1, CALM));
}

#[test]
fn a_node_that_votes_at_once() {
    finds::<3, 2>("votes at once", with_bug(Bug::VotesAtOnce, &[0, 0, 0], 1, A_LOSS));
}

/// The same story without the rule and with it, for at least as many states. Were the rule broken in the core, the
/// second search would find that.
fn tells<const N: usize>(name: &str, story: Setting, mistaken: impl Fn(&mut Setting)) {
    let mut setting = story.clone();
    mistaken(&mut setting);
    let states = finds::<N, 2>(&format!("{name}, mistaken"), setting);
    let limit = (2 * states).max(500_000);
    let sound = search::<N, 2>(&format!("{name}, sound"), Setting { limit, ..story });
    assert_eq!(sound.broken, None, "{name}: even with the rule");
}

fn without<const N: usize>(story: Setting, bug: Bug) {
    tells::<N>(&format!("{bug:?}"), story, |setting| setting.bug = Some(bug));
}

#[test]
fn an_abstention_that_is_too_short() {
    without::<3>(loss_after_a_grant(), Bug::WaitsTooShort);
}

#[test]
fn a_doubtful_vote_without_witnesses() {
    without::<3>(loss_after_a_grant(), Bug::DoubtfulCounted);
}

#[test]
fn acks_of_nodes_that_no_longer_vouch() {
    without::<3>(loss_before_a_grant(), Bug::AcksOutlive);
}

#[test]
#[ignore = "a minute: cargo xtask prove"]
fn witnesses_from_before_the_node_rejoined() {
    without::<3>(read_before_a_grant(), Bug::StaleWitnesses);
}

#[test]
fn trust_by_a_delayed_repair() {
    tells::<3>("trust by repair", delayed_repair(), |setting| setting.repair_trust = RepairTrust::Always);
}

#[test]
fn a_birth_by_hearsay() {
    without::<3>(births_and_losses(), Bug::BirthByHearsay);
}

#[test]
fn a_stamp_used_twice() {
    without::<3>(second_loss_and_a_stray(), Bug::StampReused);
}

#[test]
fn an_abstention_under_another_stamp() {
    without::<3>(second_loss(), Bug::AnyStamp);
}

#[test]
#[ignore = "a minute: cargo xtask prove"]
fn doubtful_witnesses() {
    without::<5>(two_losses_of_five(), Bug::DoubtfulWitnesses);
}

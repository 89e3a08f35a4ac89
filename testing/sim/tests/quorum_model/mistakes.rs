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
fn search_finds_missing_write_back() {
    finds::<3, 2>("no write-back", any_age(with_bug(Bug::NoWriteBack, &[0, 1, 2], 1, CALM)));
}

#[test]
fn search_finds_write_back_to_foreign_records() {
    finds::<3, 2>("unconditional write-back", any_age(with_bug(Bug::RaisesAnybody, &[0, 1, 2], 1, CALM)));
}

#[test]
fn search_finds_acks_kept_after_a_raise() {
    finds::<3, 2>("no restart", any_age(with_bug(Bug::NoRestart, &[0, 1, 2], 1, CALM)));
}

#[test]
fn search_finds_counter_deleted_on_release() {
    finds::<3, 2>("counter deleted", with_bug(Bug::CounterDeleted, &[0, 0, 0], 1, CALM));
}

#[test]
fn search_finds_vote_without_abstention() {
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
fn search_finds_short_abstention() {
    without::<3>(loss_after_a_grant(), Bug::WaitsTooShort);
}

#[test]
fn search_finds_doubtful_vote_without_witnesses() {
    without::<3>(loss_after_a_grant(), Bug::DoubtfulCounted);
}

#[test]
fn search_finds_acks_of_nodes_that_lost_the_record() {
    without::<3>(loss_before_a_grant(), Bug::AcksOutlive);
}

#[test]
#[ignore = "a minute: cargo xtask prove"]
fn witnesses_from_before_the_node_rejoined() {
    without::<3>(read_before_a_grant(), Bug::StaleWitnesses);
}

#[test]
fn search_finds_trust_by_delayed_repair() {
    tells::<3>("trust by repair", delayed_repair(), |setting| setting.repair_trust = RepairTrust::Always);
}

#[test]
fn search_finds_birth_without_all_nodes() {
    without::<3>(births_and_losses(), Bug::BirthByHearsay);
}

#[test]
fn search_finds_reused_loss_id() {
    without::<3>(second_loss_and_a_stray(), Bug::StampReused);
}

#[test]
fn search_finds_abstention_under_another_loss_id() {
    without::<3>(second_loss(), Bug::AnyStamp);
}

#[test]
#[ignore = "a minute: cargo xtask prove"]
fn doubtful_witnesses() {
    without::<5>(two_losses_of_five(), Bug::DoubtfulWitnesses);
}

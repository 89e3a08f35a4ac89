//! Searches that must find nothing wrong, and must get to see everything that matters.

use crate::search::search;
use crate::state::Budget;
use crate::stories::{
    delayed_repair, doubtful_majority_of_five, informed_repair, loss_after_a_grant, two_losses_of_five, unborn,
};
use crate::world::{Deadlines, Reached, RepairTrust, Setting};

/// Nothing goes wrong but that records run out and answers come in any order.
pub(crate) const CALM: Budget = Budget { timeouts: 0, strays: 0, losses: 0, repairs: 0 };

pub(crate) fn setting(nodes: usize, clients: usize, attempts: u8, budget: Budget) -> Setting {
    Setting {
        attempts: vec![attempts; clients],
        story: Vec::new(),
        counters: vec![0; nodes],
        floors: vec![0; clients],
        born: true,
        budget,
        deadlines: Deadlines::Kept,
        repair_trust: RepairTrust::Never,
        bug: None,
        limit: usize::MAX,
    }
}

/// The size of a search: everything, or this many states at least.
#[derive(Clone, Copy)]
enum Extent {
    All,
    Steps(usize),
}

fn sound<const N: usize, const C: usize>(name: &str, mut setting: Setting, extent: Extent, sees: &[Reached]) {
    if let Extent::Steps(steps) = extent {
        setting.limit = steps;
    }
    let found = search::<N, C>(name, setting);
    assert_eq!(found.broken, None, "{name}: see above");
    for what in sees {
        assert!(found.counts[*what as usize] > 0, "{name}: never saw {what:?}");
    }
    assert!(found.unique > 5_000, "{name}: a search of so few states has lost its way");
}

const CONTENDED: [Reached; 4] = [Reached::Granted, Reached::RaiseSent, Reached::AcksRestarted, Reached::MinorityDown];
const DOUBT: [Reached; 4] =
    [Reached::Rejoined, Reached::DoubtfulRaised, Reached::DoubtfulCounted, Reached::TrustedByEntry];
const TWICE: [Reached; 3] = [Reached::LostTwice, Reached::DoubtfulRaised, Reached::DoubtfulCounted];

#[test]
fn two_clients() {
    let setting = Setting { attempts: vec![2, 1], ..setting(3, 2, 0, CALM) };
    sound::<3, 2>("two clients", setting, Extent::Steps(2_000_000), &CONTENDED);
}

#[test]
fn two_clients_that_accept_answers_of_any_age() {
    let any_age = Setting { deadlines: Deadlines::Ignored, counters: vec![0, 1, 2], ..setting(3, 2, 1, CALM) };
    sound::<3, 2>("any age", any_age, Extent::All, &CONTENDED[..2]);
}

#[test]
fn three_clients() {
    sound::<3, 3>("three clients", setting(3, 3, 1, CALM), Extent::Steps(2_000_000), &CONTENDED[..2]);
}

#[test]
fn different_floors() {
    for floors in [vec![3, 0], vec![0, 3]] {
        let setting = Setting { floors, ..setting(3, 2, 1, CALM) };
        sound::<3, 2>("floors differ", setting, Extent::All, &CONTENDED[..2]);
    }
}

#[test]
fn resends_that_arrive_late() {
    let budget = Budget { timeouts: 2, strays: 1, ..CALM };
    let setting = Setting { attempts: vec![2, 1], ..setting(3, 2, 0, budget) };
    sound::<3, 2>("late sends", setting, Extent::Steps(2_000_000), &[Reached::Granted, Reached::StrayLanded]);
}

#[test]
fn one_node_loses_its_data() {
    let budget = Budget { losses: 1, ..CALM };
    let setting = Setting { attempts: vec![1, 2], ..setting(3, 2, 0, budget) };
    sound::<3, 2>("a loss", setting, Extent::Steps(2_000_000), &[Reached::Granted]);
    let story = Setting { attempts: vec![2, 2], ..loss_after_a_grant() };
    sound::<3, 2>("a loss after a grant", story, Extent::Steps(3_000_000), &DOUBT);
}

#[test]
fn holder_repairs_a_node() {
    let late = [Reached::RepairedTooLate, Reached::TrustedByEntry];
    let sees = [Reached::Repaired, Reached::DoubtfulRaised, late[0], late[1]];
    for repair_trust in [RepairTrust::Never, RepairTrust::WaitedOut] {
        let story = Setting { repair_trust, ..informed_repair() };
        sound::<3, 2>("repair by one who knows", story, Extent::Steps(2_000_000), &sees);
        let story = Setting { repair_trust, ..delayed_repair() };
        sound::<3, 2>("repair that comes late", story, Extent::All, &late);
    }
}

#[test]
fn two_nodes_of_five_lose_their_data() {
    let story = Setting { attempts: vec![2, 2], ..doubtful_majority_of_five() };
    sound::<5, 2>("five nodes, two in doubt", story, Extent::Steps(1_000_000), &TWICE);
}

#[test]
fn quorum_bootstrap() {
    let sees = [Reached::Granted, Reached::Born, Reached::DoubtfulCounted];
    sound::<3, 2>("a birth", unborn(), Extent::Steps(2_000_000), &sees);
}

#[test]
#[ignore = "minutes: cargo xtask prove"]
fn two_clients_for_long() {
    sound::<3, 2>("two clients", setting(3, 2, 2, CALM), Extent::All, &CONTENDED);
    let any_age = Setting { deadlines: Deadlines::Ignored, attempts: vec![2, 1], ..setting(3, 2, 0, CALM) };
    sound::<3, 2>("any age", any_age, Extent::All, &CONTENDED[..2]);
    for floors in [vec![3, 0], vec![0, 3]] {
        let setting = Setting { floors, attempts: vec![2, 1], ..setting(3, 2, 0, CALM) };
        sound::<3, 2>("floors differ", setting, Extent::All, &CONTENDED[..2]);
    }
}

#[test]
#[ignore = "minutes: cargo xtask prove"]
fn three_clients_for_long() {
    sound::<3, 3>("three clients", setting(3, 3, 1, CALM), Extent::Steps(40_000_000), &CONTENDED);
}

#[test]
#[ignore = "minutes: cargo xtask prove"]
fn a_loss_for_long() {
    let budget = Budget { losses: 1, repairs: 1, strays: 1, timeouts: 1 };
    for repair_trust in [RepairTrust::Never, RepairTrust::WaitedOut] {
        let setting = Setting { repair_trust, ..setting(3, 2, 2, budget) };
        sound::<3, 2>("all at once", setting, Extent::Steps(10_000_000), &[Reached::Granted]);
    }
    let story = Setting { attempts: vec![2, 2], ..loss_after_a_grant() };
    sound::<3, 2>("a loss after a grant", story, Extent::Steps(20_000_000), &DOUBT);
    sound::<3, 2>("a birth", unborn(), Extent::Steps(20_000_000), &[Reached::Granted, Reached::Born]);
}

#[test]
#[ignore = "minutes: cargo xtask prove"]
fn five_nodes() {
    sound::<5, 2>("five nodes", setting(5, 2, 1, CALM), Extent::Steps(20_000_000), &CONTENDED[..2]);
}

#[test]
#[ignore = "minutes: cargo xtask prove"]
fn two_nodes_of_five_lose_their_data_for_long() {
    let story = Setting { attempts: vec![2, 2], ..two_losses_of_five() };
    sound::<5, 2>("five nodes, two losses", story, Extent::Steps(20_000_000), &TWICE[..2]);
    let story = Setting { attempts: vec![2, 2], ..doubtful_majority_of_five() };
    sound::<5, 2>("five nodes, two in doubt", story, Extent::Steps(20_000_000), &TWICE);
}

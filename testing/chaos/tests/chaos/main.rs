//! The checker of `cargo xtask chaos` against books written by hand: each lie is seen, and the truth passes.

use leasehold_chaos::chaos::blows::{Blow, Kind, Target};
use leasehold_chaos::chaos::books::{Book, Entry, What};
use leasehold_chaos::chaos::check::{Deeds, Evidence, Findings};
use leasehold_chaos::chaos::run::counts;
use leasehold_chaos::chaos::vault::Ledger;

/// Everything below is in milliseconds.
const MS: u64 = 1_000_000;
const TTL: u64 = 600;
const MARGIN: u64 = 14;

/// A line: when, what, and the token, with the end of the lease where that matters.
type Line = (u64, &'static str, u64, u64);

fn book(worker: &str, lines: &[Line]) -> Book {
    let entry = |(at, what, token, until): &Line| {
        let (at, until) = (at * MS, until * MS);
        let text = match *what {
            "stalled" => format!(r#"{{"at":{at},"what":"stalled","from":{until}}}"#),
            "unwatched" => {
                format!(r#"{{"at":{at},"what":"granted","token":{token},"until":{until},"watched":false}}"#)
            }
            _ => format!(
                r#"{{"at":{at},"what":"{what}","token":{token},"until":{until},"watched":true,"valid":{}}}"#,
                until > 0
            ),
        };
        Entry::parse(&text).unwrap()
    };
    Book { worker: worker.to_owned(), group: 0, entries: lines.iter().map(entry).collect(), ended: 0 }
}

fn killed(ended: u64, book: Book) -> Book {
    Book { ended: ended * MS, ..book }
}

fn blow(kind: Kind, target: Target, from: u64, to: u64) -> Blow {
    Blow { kind, target, from: from * MS, to: to * MS, has_hit: true }
}

fn worker(name: &str) -> Target {
    Target::Worker(name.to_owned())
}

fn ledger(value: u64, tokens: &[u64]) -> Ledger {
    Ledger { value, tokens: tokens.to_vec() }
}

/// Two workers take turns, and renew.
fn honest() -> Evidence {
    Evidence {
        ttl: TTL * MS,
        margin: MARGIN * MS,
        is_file: false,
        stalls: Vec::new(),
        pressure: Vec::new(),
        books: vec![
            book(
                "rust-1",
                &[
                    (0, "asked", 0, 0),
                    (2, "granted", 1, 588),
                    (250, "valid", 1, 800),
                    (700, "releasing", 1, 0),
                    (701, "released", 1, 0),
                ],
            ),
            book("node-1", &[(1, "asked", 0, 0), (710, "granted", 2, 1_290), (760, "releasing", 2, 0)]),
        ],
        blows: Vec::new(),
        bare: ledger(2, &[0, 0, 0]),
        locked: ledger(2, &[1, 2]),
        guarded: ledger(2, &[1, 2]),
    }
}

fn findings(change: impl FnOnce(&mut Evidence)) -> Findings {
    let mut evidence = honest();
    change(&mut evidence);
    Findings::of(&evidence)
}

/// The first worker does not release but runs into the end of its lease at 800, and is told then.
fn lost(told: u64) -> Vec<Line> {
    vec![(0, "asked", 0, 0), (2, "granted", 1, 588), (250, "valid", 1, 800), (told, "told", 1, 0), (told, "lost", 1, 0)]
}

#[test]
fn honest_books_pass() {
    let found = findings(|_| {});
    assert_eq!(found.broken(), Vec::<String>::new());
    assert_eq!((found.doubtful(), found.is_blind()), (Vec::new(), false));
    assert_eq!((found.grants, found.lost_bare, found.losses), (2, 1, 0));
    assert_eq!(found.deeds["rust-1"], Deeds { grants: 1, renewals: 1, writes: 1 });
    assert_eq!(found.deeds["node-1"].missing(), Some("renewal"));
    let looked_at = findings(|evidence| {
        evidence.books[0]
            .entries
            .insert(2, Entry { at: 3 * MS, what: What::Valid { token: 1, until: 588 * MS + 999_999 } });
    });
    assert_eq!(looked_at.deeds["rust-1"].renewals, 1, "the same end, looked at once more");
}

#[test]
fn a_lost_update_past_the_guard_is_seen() {
    let found = findings(|evidence| evidence.guarded = ledger(1, &[1, 2]));
    assert_eq!(found.lost_guarded, 1);
    assert_eq!(found.broken(), ["1 updates were lost past the guard"]);
}

#[test]
fn a_lost_update_under_the_lock_alone_is_told_and_no_breach() {
    let found = findings(|evidence| evidence.locked = ledger(1, &[1, 2]));
    assert_eq!((found.lost_locked, found.broken().len()), (1, 0));
}

#[test]
fn a_token_that_is_given_out_twice_is_seen() {
    let found = findings(|evidence| {
        evidence.books[1] = book("node-1", &[(1, "asked", 0, 0), (710, "granted", 1, 1_290), (760, "releasing", 1, 0)]);
    });
    assert_eq!((found.duplicates, found.broken().len()), (1, 1));
}

#[test]
fn a_token_below_an_earlier_one_is_seen_but_a_late_stamp_is_none() {
    let asked_at = |asked: u64, until: u64| {
        findings(|evidence| {
            evidence.books[0] = book("rust-1", &[(0, "asked", 0, 0), (2, "granted", 3, 588), (9, "releasing", 3, 0)]);
            evidence.books[1] = book("node-1", &[(asked, "asked", 0, 0), (710, "granted", 2, until)]);
        })
        .falling
    };
    assert_eq!(asked_at(10, 710), 1, "it asked when token 3 was known");
    assert_eq!(asked_at(1, 1_290), 1, "it waited, and its grant is younger than that of token 3");
    assert_eq!(asked_at(1, 710), 0, "its grant may be the earlier one: it stood still before its stamp");
    let found = findings(|evidence| evidence.guarded = ledger(3, &[1, 2, 1]));
    assert_eq!(found.falling, 1, "an accepted write");
}

#[test]
fn two_believers_at_once_are_seen_to_the_last_moment() {
    let granted_at = |at: u64| {
        findings(|evidence| {
            // Killed while it held: it would have believed until 800.
            evidence.books[0] = book("rust-1", &lost(800)[..3]);
            evidence.books[1] = book("node-1", &[(1, "asked", 0, 0), (at, "granted", 2, 1_290)]);
        })
        .overlaps
    };
    assert_eq!(granted_at(800), Vec::<String>::new());
    assert_eq!(granted_at(799), ["rust-1 with token 1 and node-1 with token 2 both believed for 1.0 ms"]);
}

#[test]
fn a_check_that_passes_is_belief() {
    let checked_at = |at: u64| {
        findings(|evidence| {
            evidence.books[0] = book("rust-1", &[(2, "granted", 1, 588), (at, "checked", 1, 0)]);
            evidence.books[1] = book("node-1", &[(700, "granted", 2, 1_290)]);
        })
        .overlaps
        .len()
    };
    assert_eq!(checked_at(500), 0);
    assert_eq!(checked_at(699), 0, "a renewal that nobody has seen");
    assert_eq!(checked_at(700), 1);
    assert_eq!(checked_at(900), 1);
}

#[test]
fn a_lease_that_is_valid_after_its_loss_is_seen() {
    for look in ["checked", "valid"] {
        let at = |at: u64| {
            findings(|evidence| {
                let lines = [(2, "granted", 1, 588), (500, "told", 1, 0), (at, look, 1, 900)];
                evidence.books = vec![book("rust-1", &lines)];
            })
        };
        assert_eq!(at(500).revived, Vec::<String>::new(), "{look}");
        let found = at(501);
        assert_eq!(found.revived, ["rust-1 knew that token 1 is lost, and it was valid 1.0 ms later"], "{look}");
        assert_eq!(found.broken(), ["1 leases were believed in after they were lost"], "{look}");
    }
}

#[test]
fn who_is_refused_must_not_hold() {
    let refused = |valid: u64| {
        findings(|evidence| {
            let lines = [(2, "granted", 1, 588), (300, "refused", 1, valid)];
            evidence.books[0] = book("rust-1", &lines);
        })
    };
    assert_eq!((refused(0).refused, refused(0).broken()), (1, Vec::new()));
    assert_eq!(refused(1).broken(), ["1 leases were refused by the guard and still valid"]);
}

#[test]
fn who_has_given_back_or_was_told_believes_no_more() {
    for ending in ["releasing", "told", "lost"] {
        let found = findings(|evidence| {
            evidence.books[0] = book("rust-1", &[(2, "granted", 1, 588), (300, ending, 1, 0)]);
            evidence.books[1] = book("node-1", &[(301, "granted", 2, 900)]);
        });
        assert_eq!(found.overlaps.len(), 0, "{ending}");
    }
}

#[test]
fn a_loss_that_is_told_too_late_is_seen() {
    let told_at = |at: u64| findings(|evidence| evidence.books[0] = book("rust-1", &lost(at)));
    assert_eq!(told_at(800 + MARGIN).late.len(), 0);
    let late = told_at(800 + MARGIN + 1);
    assert_eq!(late.late, ["rust-1 was told that token 1 is lost 15.0 ms after its own deadline"]);
    assert_eq!((late.late_stopped, late.late_starved), (0, 0));
    assert_eq!(late.doubtful()[0], "1 losses were told after the store could give the lease away");
}

#[test]
fn a_loss_that_was_not_told_until_the_end_is_seen() {
    let killed_at = |at: u64, granted: &'static str, stops: &[(u64, u64)]| {
        findings(|evidence| {
            let lines = [(0, "asked", 0, 0), (2, granted, 1, 800)];
            evidence.books[0] = killed(at, book("rust-1", &lines));
            evidence.blows = stops.iter().map(|(from, to)| blow(Kind::Stop, worker("rust-1"), *from, *to)).collect();
        })
    };
    assert_eq!(killed_at(800 + MARGIN, "granted", &[]).losses, 0, "it held until it was killed");
    let late = killed_at(900, "granted", &[]);
    assert_eq!(
        late.late,
        ["rust-1 was killed, and had not been told, that token 1 is lost 100.0 ms after its own deadline"]
    );
    let stopped = killed_at(2_000, "granted", &[(700, 2_000)]);
    assert_eq!((stopped.late.len(), stopped.late_stopped, stopped.late_starved), (0, 1, 0));
    assert_eq!(killed_at(2_000, "granted", &[(700, 1_900)]).late.len(), 1, "it ran for long enough before the end");
    assert_eq!(
        killed_at(710 + MARGIN, "unwatched", &[]).losses,
        0,
        "it may have been renewed until another was granted"
    );
    let late = killed_at(900, "unwatched", &[]);
    assert_eq!(
        late.late,
        ["rust-1 was killed, and had not been told, that token 1 is lost 190.0 ms after the next grant"]
    );
}

#[test]
fn who_waits_for_longer_than_it_wanted_to_is_seen() {
    let answered = |at: u64, what: &'static str| {
        findings(|evidence| {
            evidence.books = vec![killed(at, book("rust-1", &[(0, "asked", 0, 0), (at, what, 9, 9_999)]))]
        })
    };
    for what in ["granted", "started"] {
        assert_eq!(answered(7 * TTL, what).stuck.len(), 0, "{what}");
        assert_eq!(answered(7 * TTL + 1, what).stuck, ["rust-1 had no answer for 4201 ms in which it ran"], "{what}");
    }
    let stopped = findings(|evidence| {
        evidence.books = vec![book("rust-1", &[(0, "asked", 0, 0), (8 * TTL, "granted", 9, 9_999)])];
        evidence.blows = vec![blow(Kind::Stop, worker("rust-1"), 100, 100 + TTL)];
    });
    assert_eq!((stopped.stuck.len(), stopped.longest_wait), (0, 7 * TTL * MS));
}

#[test]
fn only_what_has_hit_counts() {
    let missed = Blow { has_hit: false, ..blow(Kind::Reset, Target::Path { group: 0, node: 0 }, 0, 1) };
    let hit = blow(Kind::Cut, Target::Network(1), 0, 1);
    assert_eq!(counts(&[missed, hit]), [(Kind::Cut, 1)].into());
}

#[test]
fn who_did_not_run_is_late_for_another_reason() {
    let stopped = findings(|evidence| {
        evidence.books[0] = book("rust-1", &lost(1_500));
        evidence.blows.push(blow(Kind::Stop, worker("rust-1"), 700, 1_499));
    });
    assert_eq!((stopped.late.len(), stopped.late_stopped, stopped.late_starved), (0, 1, 0));
    let stopped_before = findings(|evidence| {
        evidence.books[0] = book("rust-1", &lost(900));
        evidence.blows.push(blow(Kind::Stop, worker("rust-1"), 400, 810));
    });
    assert_eq!(stopped_before.late.len(), 1, "it went on, and was not told for a long time");
    let starved = |from: u64, to: u64| {
        findings(|evidence| {
            evidence.books[0] = book("rust-1", &lost(900));
            evidence.stalls = vec![(from * MS, to * MS)];
        })
    };
    assert_eq!((starved(790, 899).late.len(), starved(790, 899).late_starved), (0, 1));
    assert_eq!(starved(741, 850).late.len(), 1, "there was time enough afterwards");
    assert_eq!(starved(790, 899).longest_stall, 109 * MS);
    let by_itself = findings(|evidence| {
        let mut lines = lost(900);
        lines.push((899, "stalled", 0, 790));
        evidence.books[0] = book("rust-1", &lines);
    });
    assert_eq!(by_itself.late.len(), 1, "what is under test may have kept its own watch from running");
    let both = findings(|evidence| {
        evidence.books[0] = book("rust-1", &lost(900));
        evidence.stalls = vec![(750 * MS, 860 * MS)];
        evidence.blows.push(blow(Kind::Stop, worker("rust-1"), 850, 895));
    });
    assert_eq!(both.late.len(), 0, "the machine stood still before somebody ordered it");
}

#[test]
fn a_machine_that_is_short_of_processors_excuses_as_much_as_the_kernel_counts() {
    let waited = |ms: u64| {
        findings(|evidence| {
            evidence.books[0] = book("rust-1", &lost(900));
            evidence.pressure = [(790, 5_000), (905, 5_000 + ms)].map(|(at, total)| (at * MS, total * MS)).to_vec();
        })
        .late
        .len()
    };
    assert_eq!(waited(100 - MARGIN), 0);
    assert_eq!(waited(100 - MARGIN - 1), 1);
}

#[test]
fn a_loss_that_is_never_told_is_seen() {
    let found = findings(|evidence| {
        let mut lines = lost(800);
        lines[3] = (10_800, "untold", 1, 0);
        evidence.books = vec![book("rust-1", &lines)];
    });
    assert_eq!(found.broken(), ["1 losses were never told"]);
}

#[test]
fn a_loss_without_a_reason_is_told_from_one_that_was_dealt() {
    let with = |blows: &[Blow]| {
        let found = findings(|evidence| {
            evidence.books[0] = book("rust-1", &lost(800));
            evidence.blows = blows.to_vec();
        });
        (found.losses, found.false_losses)
    };
    assert_eq!(with(&[]), (1, 1));
    let found = findings(|evidence| evidence.books[0] = book("rust-1", &lost(800)));
    assert_eq!(found.doubtful(), ["1 leases were lost without a reason"]);
    assert_eq!(with(&[blow(Kind::Freeze, Target::Store(0), 300, 500)]), (1, 0));
    assert_eq!(with(&[blow(Kind::Delay, Target::Path { group: 0, node: 0 }, 300, 500)]), (1, 0));
    assert_eq!(with(&[blow(Kind::Delay, Target::Path { group: 1, node: 0 }, 300, 500)]), (1, 1), "not its way");
    assert_eq!(with(&[blow(Kind::Stop, worker("node-1"), 300, 500)]), (1, 1), "another worker");
    let in_a_file = findings(|evidence| {
        evidence.books[0] = book("rust-1", &lost(800));
        evidence.blows = vec![blow(Kind::Stop, worker("node-1"), 300, 500)];
        evidence.is_file = true;
    });
    assert_eq!(in_a_file.false_losses, 0, "it may have been stopped in a transaction");
}

#[test]
fn a_takeover_is_measured_from_the_blow_unless_something_is_in_the_way() {
    let with = |more: &[Blow]| {
        findings(|evidence| {
            evidence.books[0] = book("rust-1", &lost(800)[..3]);
            evidence.books[1] = book("node-1", &[(1, "asked", 0, 0), (900, "granted", 2, 1_290)]);
            evidence.blows = vec![blow(Kind::Kill, worker("rust-1"), 300, 301)];
            evidence.blows.extend_from_slice(more);
        })
    };
    assert_eq!((with(&[]).takeovers, with(&[]).hindered), (vec![1.0], 0));
    let hindered = with(&[blow(Kind::Crash, Target::Store(0), 400, 500)]);
    assert_eq!((hindered.takeovers.len(), hindered.hindered), (0, 1));
}

#[test]
fn a_run_without_grants_or_without_losses_of_the_control_proves_nothing() {
    assert_eq!(findings(|evidence| evidence.books.clear()).broken(), ["nobody was granted the lock"]);
    assert!(findings(|evidence| evidence.bare = ledger(3, &[0, 0, 0])).is_blind());
}

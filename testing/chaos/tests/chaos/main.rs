//! The checker of `cargo xtask chaos` against journals written by hand: each broken promise is found, and correct
//! journals pass.

mod cron;
mod http;
mod permits;
mod sessions;

use leasehold_chaos::chaos::check::{Activity, Evidence, Findings};
use leasehold_chaos::chaos::faults::{Fault, Kind, Target};
use leasehold_chaos::chaos::guarded_counter::CounterLog;
use leasehold_chaos::chaos::journal::{Entry, Event, Journal};
use leasehold_chaos::chaos::run::counts;

/// Everything below is in milliseconds.
const MS: u64 = 1_000_000;
const TTL: u64 = 600;
const MARGIN: u64 = 14;

/// A line: when, what, and the token, with the end of the lease where that matters.
type Line = (u64, &'static str, u64, u64);

fn journal(worker: &str, lines: &[Line]) -> Journal {
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
    Journal { worker: worker.to_owned(), group: 0, entries: lines.iter().map(entry).collect(), ended: 0 }
}

fn killed(ended: u64, journal: Journal) -> Journal {
    Journal { ended: ended * MS, ..journal }
}

fn fault(kind: Kind, target: Target, from: u64, to: u64) -> Fault {
    Fault { kind, target, from: from * MS, to: to * MS, has_hit: true }
}

fn worker(name: &str) -> Target {
    Target::Worker(name.to_owned())
}

fn log(value: u64, tokens: &[u64]) -> CounterLog {
    CounterLog { value, tokens: tokens.to_vec() }
}

/// Two workers take turns, and renew.
fn correct() -> Evidence {
    Evidence {
        ttl: TTL * MS,
        margin: MARGIN * MS,
        is_file: false,
        stalls: Vec::new(),
        pressure: Vec::new(),
        journals: vec![
            journal(
                "rust-1",
                &[
                    (0, "asked", 0, 0),
                    (2, "granted", 1, 588),
                    (250, "valid", 1, 800),
                    (700, "releasing", 1, 0),
                    (701, "released", 1, 0),
                ],
            ),
            journal("node-1", &[(1, "asked", 0, 0), (710, "granted", 2, 1_290), (760, "releasing", 2, 0)]),
        ],
        faults: Vec::new(),
        bare: log(2, &[0, 0, 0]),
        locked: log(2, &[1, 2]),
        guarded: log(2, &[1, 2]),
    }
}

fn findings(change: impl FnOnce(&mut Evidence)) -> Findings {
    let mut evidence = correct();
    change(&mut evidence);
    Findings::of(&evidence)
}

/// The first worker does not release. Its lease ends at 800, and the loss is reported then.
fn lost(notified: u64) -> Vec<Line> {
    vec![
        (0, "asked", 0, 0),
        (2, "granted", 1, 588),
        (250, "valid", 1, 800),
        (notified, "notified", 1, 0),
        (notified, "lost", 1, 0),
    ]
}

#[test]
fn correct_journals_pass() {
    let found = findings(|_| {});
    assert_eq!(found.broken(), Vec::<String>::new());
    assert_eq!((found.doubtful(), found.is_blind()), (Vec::new(), false));
    assert_eq!((found.grants, found.lost_bare, found.losses), (2, 1, 0));
    assert_eq!(found.activity["rust-1"], Activity { grants: 1, renewals: 1, writes: 1 });
    assert_eq!(found.activity["node-1"].missing(), Some("renewal"));
    let looked_at = findings(|evidence| {
        evidence.journals[0]
            .entries
            .insert(2, Entry { at: 3 * MS, event: Event::Valid { token: 1, until: 588 * MS + 999_999 } });
    });
    assert_eq!(looked_at.activity["rust-1"].renewals, 1, "the same end, looked at once more");
}

#[test]
fn lost_update_with_guard_is_a_broken_promise() {
    let found = findings(|evidence| evidence.guarded = log(1, &[1, 2]));
    assert_eq!(found.lost_guarded, 1);
    assert_eq!(found.broken(), ["1 updates were lost past the guard"]);
}

#[test]
fn lost_update_with_lock_alone_is_reported_only() {
    let found = findings(|evidence| evidence.locked = log(1, &[1, 2]));
    assert_eq!((found.lost_locked, found.broken().len()), (1, 0));
}

#[test]
fn token_granted_twice_is_found() {
    let found = findings(|evidence| {
        evidence.journals[1] =
            journal("node-1", &[(1, "asked", 0, 0), (710, "granted", 1, 1_290), (760, "releasing", 1, 0)]);
    });
    assert_eq!((found.duplicates, found.broken().len()), (1, 1));
}

#[test]
fn falling_token_is_found_unless_its_stamp_is_late() {
    let asked_at = |asked: u64, until: u64| {
        findings(|evidence| {
            evidence.journals[0] =
                journal("rust-1", &[(0, "asked", 0, 0), (2, "granted", 3, 588), (9, "releasing", 3, 0)]);
            evidence.journals[1] = journal("node-1", &[(asked, "asked", 0, 0), (710, "granted", 2, until)]);
        })
        .falling
    };
    assert_eq!(asked_at(10, 710), 1, "it asked when token 3 was known");
    assert_eq!(asked_at(1, 1_290), 1, "it waited, and its grant is younger than that of token 3");
    assert_eq!(asked_at(1, 710), 0, "its grant may be the earlier one: it stood still before its stamp");
    let found = findings(|evidence| evidence.guarded = log(3, &[1, 2, 1]));
    assert_eq!(found.falling, 1, "an accepted write");
}

#[test]
fn overlapping_leases_are_found_to_the_last_moment() {
    let granted_at = |at: u64| {
        findings(|evidence| {
            // Killed while it held: it would have believed until 800.
            evidence.journals[0] = journal("rust-1", &lost(800)[..3]);
            evidence.journals[1] = journal("node-1", &[(1, "asked", 0, 0), (at, "granted", 2, 1_290)]);
        })
        .overlaps
    };
    assert_eq!(granted_at(800), Vec::<String>::new());
    assert_eq!(granted_at(799), ["rust-1 with token 1 and node-1 with token 2 both believed for 1.0 ms"]);
}

#[test]
fn passed_check_extends_the_lease() {
    let checked_at = |at: u64| {
        findings(|evidence| {
            evidence.journals[0] = journal("rust-1", &[(2, "granted", 1, 588), (at, "checked", 1, 0)]);
            evidence.journals[1] = journal("node-1", &[(700, "granted", 2, 1_290)]);
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
fn lease_that_is_valid_after_its_loss_is_found() {
    for look in ["checked", "valid"] {
        let at = |at: u64| {
            findings(|evidence| {
                let lines = [(2, "granted", 1, 588), (500, "notified", 1, 0), (at, look, 1, 900)];
                evidence.journals = vec![journal("rust-1", &lines)];
            })
        };
        assert_eq!(at(500).revived, Vec::<String>::new(), "{look}");
        let found = at(501);
        assert_eq!(found.revived, ["rust-1 knew that token 1 is lost, and it was valid 1.0 ms later"], "{look}");
        assert_eq!(found.broken(), ["1 leases were believed in after they were lost"], "{look}");
    }
}

#[test]
fn valid_lease_with_rejected_token_is_found() {
    let refused = |valid: u64| {
        findings(|evidence| {
            let lines = [(2, "granted", 1, 588), (300, "refused", 1, valid)];
            evidence.journals[0] = journal("rust-1", &lines);
        })
    };
    assert_eq!((refused(0).refused, refused(0).broken()), (1, Vec::new()));
    assert_eq!(refused(1).broken(), ["1 leases were rejected by the guard and still valid"]);
}

#[test]
fn lease_ends_at_release_report_or_loss() {
    for ending in ["releasing", "notified", "lost"] {
        let found = findings(|evidence| {
            evidence.journals[0] = journal("rust-1", &[(2, "granted", 1, 588), (300, ending, 1, 0)]);
            evidence.journals[1] = journal("node-1", &[(301, "granted", 2, 900)]);
        });
        assert_eq!(found.overlaps.len(), 0, "{ending}");
    }
}

#[test]
fn late_report_of_a_loss_is_found() {
    let reported_at = |at: u64| findings(|evidence| evidence.journals[0] = journal("rust-1", &lost(at)));
    assert_eq!(reported_at(800 + MARGIN).late.len(), 0);
    let late = reported_at(800 + MARGIN + 1);
    assert_eq!(late.late, ["rust-1 was told that token 1 is lost 15.0 ms after its own deadline"]);
    assert_eq!((late.late_stopped, late.late_starved), (0, 0));
    assert_eq!(late.doubtful()[0], "1 losses were reported after the store could grant the lock to another");
}

#[test]
fn missing_report_until_the_kill_is_found() {
    let killed_at = |at: u64, granted: &'static str, stops: &[(u64, u64)]| {
        findings(|evidence| {
            let lines = [(0, "asked", 0, 0), (2, granted, 1, 800)];
            evidence.journals[0] = killed(at, journal("rust-1", &lines));
            evidence.faults = stops.iter().map(|(from, to)| fault(Kind::Stop, worker("rust-1"), *from, *to)).collect();
        })
    };
    assert_eq!(killed_at(800 + MARGIN, "granted", &[]).losses, 0, "it held until it was killed");
    let late = killed_at(900, "granted", &[]);
    assert_eq!(
        late.late,
        ["rust-1 was killed before it was told that token 1 is lost 100.0 ms after its own deadline"]
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
    assert_eq!(late.late, ["rust-1 was killed before it was told that token 1 is lost 190.0 ms after the next grant"]);
}

#[test]
fn wait_beyond_its_limit_is_found() {
    let answered = |at: u64, what: &'static str| {
        findings(|evidence| {
            evidence.journals = vec![killed(at, journal("rust-1", &[(0, "asked", 0, 0), (at, what, 9, 9_999)]))]
        })
    };
    for what in ["granted", "started"] {
        assert_eq!(answered(7 * TTL, what).stuck.len(), 0, "{what}");
        assert_eq!(answered(7 * TTL + 1, what).stuck, ["rust-1 had no answer for 4201 ms in which it ran"], "{what}");
    }
    let stopped = findings(|evidence| {
        evidence.journals = vec![journal("rust-1", &[(0, "asked", 0, 0), (8 * TTL, "granted", 9, 9_999)])];
        evidence.faults = vec![fault(Kind::Stop, worker("rust-1"), 100, 100 + TTL)];
    });
    assert_eq!((stopped.stuck.len(), stopped.longest_wait), (0, 7 * TTL * MS));
}

#[test]
fn only_faults_with_effect_are_counted() {
    let missed = Fault { has_hit: false, ..fault(Kind::Reset, Target::Path { group: 0, node: 0 }, 0, 1) };
    let hit = fault(Kind::Cut, Target::Network(1), 0, 1);
    assert_eq!(counts(&[missed, hit]), [(Kind::Cut, 1)].into());
}

#[test]
fn late_report_of_a_paused_process_is_counted_apart() {
    let stopped = findings(|evidence| {
        evidence.journals[0] = journal("rust-1", &lost(1_500));
        evidence.faults.push(fault(Kind::Stop, worker("rust-1"), 700, 1_499));
    });
    assert_eq!((stopped.late.len(), stopped.late_stopped, stopped.late_starved), (0, 1, 0));
    let stopped_before = findings(|evidence| {
        evidence.journals[0] = journal("rust-1", &lost(900));
        evidence.faults.push(fault(Kind::Stop, worker("rust-1"), 400, 810));
    });
    assert_eq!(stopped_before.late.len(), 1, "it went on, and was not told for a long time");
    let starved = |from: u64, to: u64| {
        findings(|evidence| {
            evidence.journals[0] = journal("rust-1", &lost(900));
            evidence.stalls = vec![(from * MS, to * MS)];
        })
    };
    assert_eq!((starved(790, 899).late.len(), starved(790, 899).late_starved), (0, 1));
    assert_eq!(starved(741, 850).late.len(), 1, "there was time enough afterwards");
    assert_eq!(starved(790, 899).longest_stall, 109 * MS);
    let by_itself = findings(|evidence| {
        let mut lines = lost(900);
        lines.push((899, "stalled", 0, 790));
        evidence.journals[0] = journal("rust-1", &lines);
    });
    assert_eq!(by_itself.late.len(), 1, "what is under test may have kept its own watch from running");
    let both = findings(|evidence| {
        evidence.journals[0] = journal("rust-1", &lost(900));
        evidence.stalls = vec![(750 * MS, 860 * MS)];
        evidence.faults.push(fault(Kind::Stop, worker("rust-1"), 850, 895));
    });
    assert_eq!(both.late.len(), 0, "the machine stood still before somebody ordered it");
}

#[test]
fn processor_pressure_excuses_what_the_kernel_counts() {
    let waited = |ms: u64| {
        findings(|evidence| {
            evidence.journals[0] = journal("rust-1", &lost(900));
            evidence.pressure = [(790, 5_000), (905, 5_000 + ms)].map(|(at, total)| (at * MS, total * MS)).to_vec();
        })
        .late
        .len()
    };
    assert_eq!(waited(100 - MARGIN), 0);
    assert_eq!(waited(100 - MARGIN - 1), 1);
}

#[test]
fn loss_without_report_is_found() {
    let found = findings(|evidence| {
        let mut lines = lost(800);
        lines[3] = (10_800, "not_notified", 1, 0);
        evidence.journals = vec![journal("rust-1", &lines)];
    });
    assert_eq!(found.broken(), ["1 losses were never reported"]);
}

#[test]
fn loss_without_fault_is_distinguished() {
    let with = |faults: &[Fault]| {
        let found = findings(|evidence| {
            evidence.journals[0] = journal("rust-1", &lost(800));
            evidence.faults = faults.to_vec();
        });
        (found.losses, found.false_losses)
    };
    assert_eq!(with(&[]), (1, 1));
    let found = findings(|evidence| evidence.journals[0] = journal("rust-1", &lost(800)));
    assert_eq!(found.doubtful(), ["1 leases were lost without a reason"]);
    assert_eq!(with(&[fault(Kind::Freeze, Target::Store(0), 300, 500)]), (1, 0));
    assert_eq!(with(&[fault(Kind::Delay, Target::Path { group: 0, node: 0 }, 300, 500)]), (1, 0));
    assert_eq!(with(&[fault(Kind::Delay, Target::Path { group: 1, node: 0 }, 300, 500)]), (1, 1), "not its way");
    assert_eq!(with(&[fault(Kind::Stop, worker("node-1"), 300, 500)]), (1, 1), "another worker");
    let in_a_file = findings(|evidence| {
        evidence.journals[0] = journal("rust-1", &lost(800));
        evidence.faults = vec![fault(Kind::Stop, worker("node-1"), 300, 500)];
        evidence.is_file = true;
    });
    assert_eq!(in_a_file.false_losses, 0, "it may have been stopped in a transaction");
}

#[test]
fn takeover_is_measured_from_the_fault_unless_hindered() {
    let with = |more: &[Fault]| {
        findings(|evidence| {
            evidence.journals[0] = journal("rust-1", &lost(800)[..3]);
            evidence.journals[1] = journal("node-1", &[(1, "asked", 0, 0), (900, "granted", 2, 1_290)]);
            evidence.faults = vec![fault(Kind::Kill, worker("rust-1"), 300, 301)];
            evidence.faults.extend_from_slice(more);
        })
    };
    assert_eq!((with(&[]).takeovers, with(&[]).hindered), (vec![1.0], 0));
    let hindered = with(&[fault(Kind::Crash, Target::Store(0), 400, 500)]);
    assert_eq!((hindered.takeovers.len(), hindered.hindered), (0, 1));
}

#[test]
fn run_without_grants_or_control_losses_proves_nothing() {
    assert_eq!(findings(|evidence| evidence.journals.clear()).broken(), ["the lock was never granted"]);
    assert!(findings(|evidence| evidence.bare = log(3, &[0, 0, 0])).is_blind());
}

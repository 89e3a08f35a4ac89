//! Bugs that stores once had: planted again, each is found. One needs a sequence that is hardly ever drawn.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::member::{Marker, RETENTION, RunId};
use leasehold_core::op::{Applied, Op, Outcome};
use leasehold_core::{LockId, Monotonic};
use leasehold_differential::compare::Fields;
use leasehold_differential::measure::{Disagreement, measure};
use leasehold_differential::run::{Side, Spoilt};
use leasehold_differential::script::{Abilities, Edit, Step, What};
use leasehold_differential::stores::models::Model;
use leasehold_differential::stores::real::Real;
use leasehold_differential::stores::rows::OutOfReach;
use leasehold_servers::postgres;
use leasehold_sim::store::Kind;

/// The wrong write that follows an operation, by what was asked and what the row showed before the last renewal.
type Bug = fn(&Op, &Outcome, Option<Duration>) -> Option<Spoilt>;

/// The model of DynamoDB, used by clients with a bug.
struct Buggy {
    model: Model,
    bug: Bug,
    /// The lengths of the leases before they were last written.
    lengths: BTreeMap<u8, Duration>,
}

impl Buggy {
    fn length(&mut self, name: u8) -> Option<Duration> {
        let Outcome::Applied(Applied::Read(seen)) = self.model.ask(name, 0, LockId::new(0), &Op::Read) else {
            return None;
        };
        seen.held()?.record_ttl
    }
}

impl Side for Buggy {
    fn store(&self) -> &str {
        self.model.store()
    }

    fn is_observed(&self) -> bool {
        self.model.is_observed()
    }

    fn keeps_queue(&self) -> bool {
        self.model.keeps_queue()
    }

    fn now(&mut self) -> (Monotonic, u64) {
        self.model.now()
    }

    fn ask(&mut self, name: u8, client: u8, lock: LockId, op: &Op) -> Outcome {
        if let (Op::Renew(_), Some(length)) = (op, self.length(name)) {
            self.lengths.insert(name, length);
        }
        let outcome = self.model.ask(name, client, lock, op);
        if matches!(outcome, Outcome::Applied(_))
            && let Some(spoilt) = (self.bug)(op, &outcome, self.lengths.get(&name).copied())
        {
            self.model.spoil(name, &spoilt);
        }
        outcome
    }

    fn edit(&mut self, name: u8, edit: &Edit) -> bool {
        self.model.edit(name, edit)
    }

    fn raw(&mut self, name: u8) -> Fields {
        self.model.raw(name)
    }

    fn look(&mut self) -> Option<(Option<Marker>, Option<RunId>)> {
        self.model.look()
    }

    fn mark(&mut self, marker: Option<&Marker>) {
        self.model.mark(marker);
    }
}

/// In as many sequences as a suite runs of the model.
fn found(bug: Bug) -> Box<Disagreement> {
    let new = || {
        let (model, lengths) = (Model::new(Kind::Dynamodb), BTreeMap::new());
        Box::new(Buggy { model, bug, lengths }) as Box<dyn Side>
    };
    let seeds: Vec<_> = (0..200).collect();
    measure(&seeds, Abilities::default(), new).expect_err("the bug is found")
}

fn fields(found: &Disagreement) -> Vec<&'static str> {
    found.failure.what.iter().map(|difference| difference.field).collect()
}

/// It read the row, and wrote it whole: a renewal in between was undone.
#[test]
fn a_tell_that_writes_an_older_length_back_is_found() {
    let found = found(|op, _, before| match op {
        Op::Tell(_) => before.map(Spoilt::Length),
        _ => None,
    });
    assert_eq!(fields(&found), ["ttl"], "{}", found.text);
    assert!(found.script.len() <= 4, "{}", found.text);
}

/// A mark is kept for longer than rows usually are.
#[test]
fn a_write_that_has_the_row_of_a_mark_removed_early_is_found() {
    for bug in [(|op, _, _| matches!(op, Op::Acquire(_)).then_some(Spoilt::Kept(RETENTION))) as Bug, |op, _, _| {
        matches!(op, Op::Release(_)).then_some(Spoilt::Kept(RETENTION))
    }] {
        let found = found(bug);
        assert_eq!(fields(&found), ["kept until"], "{}", found.text);
        assert!(found.script.len() <= 4, "{}", found.text);
    }
}

/// The server does what statements ask it for, but for those of items that ask for a commit on disk.
#[test]
fn an_item_that_is_answered_before_it_is_on_disk_is_found() {
    let server = postgres::Server::start();
    let schema = server.schema();
    let url = format!("{}?schema={}", server.url(), schema.name());
    leasehold::schema::create(&url).expect("a table can be made");
    server.insist_on_durability(schema.name());
    // A function that statements find before the server's own.
    server.run(&format!(
        "CREATE FUNCTION {0}.set_config(name text, value text, is_local boolean) RETURNS text LANGUAGE sql AS $$ \
         SELECT CASE WHEN current_query() LIKE '%leasehold_items%' THEN value \
         ELSE pg_catalog.set_config(name, value, is_local) END $$; \
         ALTER DATABASE postgres SET search_path = {0}, pg_catalog",
        schema.name()
    ));
    let new = || Box::new(Real::new("postgres", &url, &OutOfReach, true)) as Box<dyn Side>;
    let found =
        measure(&[0, 1, 2], Abilities { quorum: true, ..Abilities::default() }, new).expect_err("the bug is found");
    assert_eq!(fields(&found), ["outcome"], "{}", found.text);
    assert!(server.log().contains("INSERT of leasehold_items is answered before it is on disk"), "{}", server.log());
    assert!(matches!(&found.script[..], [Step { what: What::WriteItem { .. }, .. }]), "{}", found.text);
}

//! Parts of programs, as pages of the documentation show them, after what they need.

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::fence::{Guards, SqliteGuard};

type Tested = Result<(), Box<dyn std::error::Error>>;

#[test]
fn permits() -> Tested {
    let client = Client::connect("memory:")?;
    let run_on = |gpu: &str| -> Tested {
        assert!(gpu.starts_with("gpu/"));
        Ok(())
    };
    let convert = |index: usize| -> Tested {
        assert!(index < 5);
        Ok(())
    };

    let gpu = client.lock_any(["gpu/0", "gpu/1"]).wait(Duration::from_secs(60)).acquire()?;
    run_on(gpu.resource())?;

    let permit = client.semaphore("license", 5).wait(Duration::from_secs(10)).acquire()?;
    convert(permit.index())?; // 0 to 4: which of five equal things it may use

    let reading = client.rw_lock("catalog").read()?; // ended by release or drop, as any lease
    drop(reading);
    let writing = client.rw_lock("catalog").wait(Duration::from_secs(60)).write()?;
    writing.release()?;
    Ok(())
}

fn start_consumer(index: usize, token: u64) {
    assert!(index < 16 && token > 0);
}

fn stop_consumer(_index: usize, lost: bool) {
    assert!(!lost);
}

const fn wait_for_the_end() {}

#[test]
fn shards() -> Tested {
    let client = Client::connect("memory:")?;

    let shards = client
        .shards("mail")
        .count(16) // the same for all workers: 1 to 64, default 16
        .ttl(Duration::from_secs(30))
        .on_gain(|shard| start_consumer(shard.index(), shard.token()))
        .on_loss(|shard, lost| stop_consumer(shard.index(), lost.is_some()))
        .start()?;
    wait_for_the_end();
    shards.stop()?; // lets go of all shards, when on_loss has returned for each
    Ok(())
}

#[test]
fn guards_of_own_code() -> Tested {
    let token = 34;
    let ledger = Ledger::default();

    let guards = Guards::new(10_000); // it keeps marks for at most this many items
    guards.claim("invoice/42", token)?; // before the first read
    let total = ledger.total(42);
    guards.with("invoice/42", token, || ledger.set(42, total + 10))?; // nobody can claim in between
    assert_eq!(ledger.total(42), 10);
    Ok(())
}

#[test]
fn guards_in_sqlite() -> Tested {
    let (token, total) = (34, 110);
    let mut db = rusqlite::Connection::open_in_memory()?;
    db.execute_batch(
        "CREATE TABLE invoices (id INTEGER PRIMARY KEY, total INTEGER); INSERT INTO invoices VALUES (42, 100)",
    )?;

    // cargo add leasehold-fence --features rusqlite-0_41
    let guard = SqliteGuard::new();
    guard.create(&db)?;
    guard.claim(&db, "invoice/42", token)?; // before the first read
    let change = db.transaction()?;
    guard.check(&change, "invoice/42", token)?; // in the transaction of the write
    change.execute("UPDATE invoices SET total = ?1 WHERE id = 42", [total])?;
    change.commit()?;
    assert_eq!(db.query_row("SELECT total FROM invoices", [], |row| row.get::<_, i64>(0))?, total);
    Ok(())
}

#[test]
fn guards_in_objects() -> Tested {
    use leasehold::cas::{Error, Items};

    /// False: a later holder has claimed the item, and nothing was written.
    fn write(items: &Items, name: &str, token: u64, data: &str) -> Result<bool, Error> {
        let written = items.update(name, |old| {
            let mark: u64 =
                old.map_or(Some(0), |old| std::str::from_utf8(old).ok()?.split_once(' ')?.0.parse().ok())?;
            (mark <= token).then(|| format!("{token} {data}").into_bytes())
        })?;
        Ok(written.is_some())
    }

    let items = Items::connect("memory:")?; // or s3://bucket?region=eu-west-1, azblob://account/container, gs://bucket
    assert!(write(&items, "invoice/42", 34, "paid")?);
    assert!(!write(&items, "invoice/42", 33, "late")?);
    Ok(())
}

#[derive(Default)]
struct Ledger(std::cell::Cell<u32>);

impl Ledger {
    fn total(&self, _invoice: u32) -> u32 {
        self.0.get()
    }

    fn set(&self, _invoice: u32, total: u32) {
        self.0.set(total);
    }
}

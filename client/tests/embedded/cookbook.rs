//! The programs of the cookbook in `docs/cookbook.md`, task by task, after what they need.

use std::time::Duration;

use leasehold::blocking::{Client, Once};
use leasehold::fence::Guards;
use leasehold::{Error, ErrorKind};

type Tested = Result<(), Box<dyn std::error::Error>>;

fn report(_token: u64) -> Result<(), Error> {
    Ok(())
}

#[test]
fn a_client() -> Tested {
    let client = Client::connect("memory:")?; // or "redis://host", or "" for the store of LEASEHOLD_STORE
    client.close()?;
    Ok(())
}

#[test]
fn one_worker_at_a_time() -> Tested {
    let client = Client::connect("memory:")?;

    let lease = client.lock("report").wait(Duration::from_secs(60)).acquire()?;
    report(lease.token())?;
    lease.release()?;
    Ok(())
}

#[test]
fn skip_if_somebody_else_is_at_it() -> Tested {
    let client = Client::connect("memory:")?;

    match client.lock("report").try_acquire()? {
        Some(lease) => report(lease.token())?, // dropping the lease releases it
        None => println!("somebody else is at it"),
    }
    assert!(client.inspect("report")?.is_none());
    Ok(())
}

#[test]
fn once_in_each_period() -> Tested {
    let client = Client::connect("memory:")?;

    let daily = client.once("report").every(Duration::from_secs(86_400)).wait(Duration::from_secs(3_600));
    if let Once::Run(run) = daily.begin()? {
        report(run.token())?;
        run.finish()?; // without it another machine may do the work
    }
    Ok(())
}

#[test]
fn at_a_local_time() -> Tested {
    let client = Client::connect("memory:")?;

    let nightly = client.once("nightly").cron("0 2 * * 1-5").tz("Europe/Berlin").wait(Duration::from_secs(3_600));
    if let Once::Run(run) = nightly.begin()? {
        report(run.token())?;
        run.finish()?;
    }
    Ok(())
}

#[test]
fn once_for_each_message() -> Tested {
    let client = Client::connect("memory:")?;
    let charge = |_order: &str, _token: u64| -> Tested { Ok(()) };

    let order = "order-42";
    match client.once("charge").key(order).keep(Duration::from_secs(30 * 86_400)).begin()? {
        Once::Run(run) => {
            charge(order, run.token())?;
            run.finish()?;
        }
        Once::Done(done) => println!("charged before {done}"), // acknowledge the message
        _ => println!("being charged: deliver the message again later"),
    }
    Ok(())
}

#[test]
fn stop_when_the_lock_is_lost() -> Tested {
    let client = Client::connect("memory:")?;
    let (pages, send) = ([1, 2, 3], |_page: i32, _token: u64| -> Tested { Ok(()) });

    let lease = client.lock("mailing").acquire()?;
    for page in pages {
        lease.check(Duration::from_secs(5))?; // an error unless 5 s of validity are left
        send(page, lease.token())?;
    }
    lease.release()?;
    Ok(())
}

#[test]
fn reject_late_writes() -> Tested {
    let client = Client::connect("memory:")?;
    let guards = Guards::new(10_000); // it belongs to the service that owns the invoices
    let save = |_total: u32| {};

    let lease = client.lock("invoice/42").acquire()?;
    guards.claim("invoice/42", lease.token())?; // before the first read
    match guards.with("invoice/42", lease.token(), || save(110)) {
        Err(error) if error.kind() == ErrorKind::StaleToken => println!("too late: somebody else has it"),
        saved => saved?,
    }
    Ok(())
}

#[test]
fn one_leader() -> Tested {
    let client = Client::connect("memory:")?;
    let (start, stop) = (|_token: u64| {}, || {});

    let election = client.elect("scheduler").on_start(move |lease| start(lease.token())).on_stop(move |_loss| stop());
    let election = election.start()?;
    // the program
    election.resign()?; // when on_stop has returned
    Ok(())
}

#[test]
fn at_most_n_at_once() -> Tested {
    let client = Client::connect("memory:")?;
    let convert = |_index: usize| -> Tested { Ok(()) };

    let permit = client.semaphore("converter", 5).wait(Duration::from_secs(60)).acquire()?;
    convert(permit.index())?; // 0 to 4
    drop(permit);
    Ok(())
}

#[test]
fn several_locks_together() -> Tested {
    let client = Client::connect("memory:")?;

    let accounts = client.lock_all(["account/1", "account/2"]).wait(Duration::from_secs(10)).acquire()?;
    accounts.release()?;
    Ok(())
}

#[test]
fn who_holds_it() -> Tested {
    let client = Client::connect("memory:")?;
    let _held = client.lock("report").acquire()?;

    if let Some(holder) = client.inspect("report")? {
        println!("held by {:?}", holder.owner);
        if let Some(token) = holder.token {
            client.revoke("report", token)?; // asks the holder to let go
        }
    }
    Ok(())
}

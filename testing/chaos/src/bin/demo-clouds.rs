//! A lock on three clouds of which one fails, and then another: DynamoDB Local, Azurite and fake-gcs-server on this machine.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold::table::{self, NewTable};
use leasehold::{ClientBuilder, ErrorKind};
use leasehold_bench::args::Args;
use leasehold_bench::stage::{Stage, Tone};
use leasehold_servers::dynamodb::{self, ACCESS_KEY_ID, REGION};
use leasehold_servers::objects::{self, AZURE_KEY, Api};

const TTL: Duration = Duration::from_secs(6);
/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after which a cloud that does not answer is down for the one who asks.
const ANSWER: Duration = Duration::from_secs(2);
const WORKERS: [&str; 2] = ["worker A", "worker B"];
const JOB: &str = "nightly-report";
const OTHER: &str = "weekly-report";

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    // SAFETY: no other thread runs yet.
    unsafe {
        std::env::set_var("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID);
        std::env::set_var("AWS_SECRET_ACCESS_KEY", "secret");
        std::env::set_var("AZURE_STORAGE_KEY", AZURE_KEY);
    }
    leasehold_bench::exit_code("demo", show())
}

/// The clouds, and two clients of all three.
struct Clouds {
    azure: objects::Server,
    google: objects::Server,
    clients: [Client; 2],
    /// The last field, which outlives the clients.
    _aws: dynamodb::Server,
}

impl Clouds {
    fn start() -> Result<Self> {
        let aws = dynamodb::Server::start();
        let (azure, google) = (objects::Server::start(Api::AzureBlob), objects::Server::start(Api::Gcs));
        let table = format!("dynamodb://locks?region={REGION}&endpoint={}", aws.endpoint());
        table::create(&table, &NewTable::default())?;
        let urls = [table, azure.url("demo"), google.url("demo")];
        Client::connect_with(ClientBuilder::default().create_quorum(), &urls)?.close()?;
        let connect = |owner: &str| -> Result<Client> {
            Ok(Client::connect_with(ClientBuilder::default().owner(owner).request_timeout(ANSWER), &urls)?)
        };
        Ok(Self { clients: [connect(WORKERS[0])?, connect(WORKERS[1])?], azure, google, _aws: aws })
    }

    fn take(&self, stage: &Stage, who: usize) -> Result<Lease> {
        let lease = self.clients[who].lock(JOB).ttl(TTL).wait(PATIENCE).acquire()?;
        stage.line(who, Tone::Strong, &format!("has the lock, token {}", lease.token()));
        Ok(lease)
    }
}

fn show() -> Result {
    Args::parse(std::env::args().skip(1), &[], &[])?;
    let mut stage = Stage::open();
    stage.title(
        "leasehold: one lock on three clouds",
        "A table of DynamoDB, a container of Azure and a bucket of Google are one quorum, without a server of its own. Here \
         they are emulators on this machine.",
    );
    let clouds = Clouds::start()?;

    stage.act("1. All three answer", "Two of three make the lock.", &WORKERS);
    let first = clouds.take(&stage, 0)?;
    ensure(clouds.clients[1].lock(JOB).ttl(TTL).try_acquire()?.is_none(), "two workers had the lock")?;
    stage.line(1, Tone::Plain, "is refused: A has it");
    stage.outcome(true, "One worker has the lock.");

    stage.act(
        "2. Azure is away",
        "It does not answer any more. A keeps its lease, and lets it go when it is done.",
        &WORKERS,
    );
    clouds.azure.stop_process();
    std::thread::sleep(TTL);
    first.check(Duration::ZERO)?;
    stage.line(0, Tone::Plain, "still has its lease, which it has renewed on the other two");
    first.release()?;
    stage.line(0, Tone::Plain, "has let go");
    let second = clouds.take(&stage, 1)?;
    ensure(second.token() > first.token(), "the token has not grown")?;
    stage.outcome(true, "The lock goes on without one cloud.");

    stage.act(
        "3. Google is away as well",
        "One cloud alone can say nothing. Nobody may work, and everybody is told so.",
        &WORKERS,
    );
    clouds.google.stop_process();
    let lost = second.lost();
    stage.line(1, Tone::Bad, &format!("is told in time: {lost}"));
    let error = match clouds.clients[0].lock(OTHER).ttl(TTL).try_acquire() {
        Err(error) => error,
        Ok(_) => return Err("a worker had an answer from one cloud of three".into()),
    };
    ensure(error.kind() == ErrorKind::StoreUnavailable, &format!("not unavailable, but: {error}"))?;
    stage.line(0, Tone::Bad, "asks for another lock, which is free, and is told that the store cannot be reached");
    stage.outcome(true, "Without a majority nobody has the lock.");

    stage.act("4. Both are back", "Nothing has to be repaired.", &WORKERS);
    clouds.azure.continue_process();
    clouds.google.continue_process();
    let third = clouds.take(&stage, 0)?;
    ensure(third.token() > second.token(), "the token has not grown")?;
    third.release()?;
    stage.outcome(
        true,
        &format!("Tokens have grown all the time: {}, {}, {}.", first.token(), second.token(), third.token()),
    );
    stage.words("All of the above was checked while it was shown.");
    Ok(())
}

fn ensure(good: bool, otherwise: &str) -> Result {
    if good { Ok(()) } else { Err(otherwise.into()) }
}

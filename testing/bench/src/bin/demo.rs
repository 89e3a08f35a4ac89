//! The purpose of leasehold on one screen: several processes, locks in a SQLite file, and every claim checked.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use leasehold::blocking::{Client, Once};
use leasehold::{ClientBuilder, ErrorKind};
use leasehold_bench::args::Args;
use leasehold_bench::child::{self, Child};
use leasehold_bench::database;
use leasehold_bench::protected::{Protected, Write};
use leasehold_bench::stage::{Stage, Tone};
use tempfile::TempDir;

const TTL: Duration = Duration::from_millis(1_500);
/// The time for which a worker waits for the lock.
const WAIT: Duration = Duration::from_secs(15);
/// The demo takes about six seconds. After this time something is wrong.
const LIMIT: Duration = Duration::from_secs(60);
/// The pause between steps, for the viewer.
const PACE: Duration = Duration::from_millis(300);

const NAMES: [&str; 2] = ["worker A", "worker B"];
const JOB: &str = "invoices";
const MONTH: &str = "2026-11";
const ACCOUNT: &str = "account/42";
const BEFORE: i64 = 100;
const DEPOSITS: [i64; 2] = [30, 50];
const RIGHT: i64 = BEFORE + DEPOSITS[0] + DEPOSITS[1];

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let result = match child::part() {
        Some(part) => play(&part.iter().map(String::as_str).collect::<Vec<_>>()),
        None => direct(),
    };
    leasehold_bench::exit_code("demo", result)
}

// The director: starts the workers, stops and wakes them, and checks what they say.

fn direct() -> Result {
    Args::parse(std::env::args().skip(1), &[], &[])?;
    let mut show = Show::open()?;
    show.stage.title(
        "leasehold: locks that tell the truth",
        "Workers are processes of their own. Their locks are rows of a SQLite file; there is no server.",
    );
    one_job(&mut show)?;
    let guarded = late_write(&mut show, true)?;
    let unguarded = late_write(&mut show, false)?;
    close(&mut show, &guarded, &unguarded);
    Ok(())
}

/// Two workers start the same job at once. A lock alone would have the second one run it after the first.
fn one_job(show: &mut Show) -> Result {
    show.stage.act(
        "1. Two workers, one job",
        "Both start the monthly invoices at the same moment, and wait for each other. They must go out once.",
        &NAMES,
    );
    let db = database::open(&show.dir.path().join("jobs.db"))?;
    db.execute_batch("CREATE TABLE runs (worker TEXT NOT NULL, token INTEGER NOT NULL)")?;
    for name in NAMES {
        show.enter(&["job", name])?;
    }
    for who in 0..2 {
        show.fact(who, "ready")?;
    }
    for who in 0..2 {
        show.cast[who].tell("go");
    }
    for who in 0..2 {
        show.fact(who, "asks")?;
    }
    let winner = show.first_to("running")?;
    let other = 1 - winner;
    show.fact(winner, "runs")?;
    std::thread::sleep(PACE);
    show.cast[winner].tell("finish");
    let done_by = show.fact(other, "done")?;
    expect("the worker that the other one is told", &done_by.as_str(), &NAMES[winner])?;
    for who in 0..2 {
        show.fact(who, "end")?;
    }
    let runs: Vec<String> =
        db.prepare("SELECT worker FROM runs")?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    expect("the workers that ran the job", &runs, &vec![NAMES[winner].to_owned()])?;
    show.stage.outcome(true, &format!("The database has counted {} run of the job.", runs.len()));
    show.exeunt();
    Ok(())
}

/// The fate of the write of a worker that slept through the end of its lease.
struct Late {
    accepted: bool,
    balance: i64,
}

/// A worker reads an account, is stopped for longer than its lease lasts, wakes up and writes.
fn late_write(show: &mut Show, guarded: bool) -> Result<Late> {
    let (title, about, file) = if guarded {
        (
            "2. A worker sleeps through its lease; the account is guarded",
            format!(
                "The account holds {BEFORE}. A adds {}, B adds {}. A lease lasts {} s here. A is stopped just before it \
                 writes, as a garbage collector, swapping or a paused virtual machine can do.",
                DEPOSITS[0],
                DEPOSITS[1],
                TTL.as_secs_f64()
            ),
            "guarded.db",
        )
    } else {
        (
            "3. The same, without the guard",
            "Same lock, same account. But the database takes every write, whatever its token.".to_owned(),
            "plain.db",
        )
    };
    show.stage.act(title, &about, &NAMES);
    let path = show.dir.path().join(file);
    let account = Protected::create(&path, ACCOUNT, guarded, BEFORE)?;
    for (name, deposit) in NAMES.iter().zip(DEPOSITS) {
        show.enter(&["deposit", name, file, &deposit.to_string(), &guarded.to_string()])?;
    }
    for who in 0..2 {
        show.fact(who, "ready")?;
    }

    show.cast[0].tell("sleepy");
    let first: u64 = show.fact(0, "locked")?.parse()?;
    show.fact(0, "checked")?;
    show.stop(0);
    // It will find this when it wakes.
    show.cast[0].tell("write");

    show.cast[1].tell("awake");
    let second: u64 = show.fact(1, "locked")?.parse()?;
    ensure(second > first, || format!("the second token, {second}, is not above the first, {first}"))?;
    show.fact(1, "written")?;
    show.fact(1, "end")?;
    std::thread::sleep(PACE);

    show.wake(0);
    show.fact(0, "lost")?;
    if guarded {
        show.fact(0, "refused")?;
        let third: u64 = show.fact(0, "locked")?.parse()?;
        ensure(third > second, || format!("the third token, {third}, is not above the second, {second}"))?;
    }
    let written = show.fact(0, "written")?;
    show.fact(0, "end")?;
    let balance = account.value()?;
    expect("the last write", &balance.to_string(), &written)?;
    let late = Late { accepted: !guarded, balance };
    let sum = format!("{BEFORE} + {} + {}", DEPOSITS[0], DEPOSITS[1]);
    if guarded {
        expect("the guarded balance", &balance, &RIGHT)?;
        show.stage.outcome(true, &format!("The balance is {balance} = {sum}. Nothing is lost."));
    } else {
        // Not the aim, but the point: if the late write did no harm here, the guard above proved nothing.
        expect("the balance without a guard", &balance, &(BEFORE + DEPOSITS[0]))?;
        show.stage.outcome(false, &format!("The balance is {balance}, not {sum} = {RIGHT}: the deposit of B is gone."));
    }
    show.exeunt();
    Ok(late)
}

fn close(show: &mut Show, guarded: &Late, unguarded: &Late) {
    let row = |name: &str, cell: &dyn Fn(&Late) -> String| vec![name.to_owned(), cell(unguarded), cell(guarded)];
    let rows = [
        vec![String::new(), "lock only".to_owned(), "lock and guard".to_owned()],
        row("A is told that its lease is lost", &|_| "yes".to_owned()),
        row("A's late write", &|late| if late.accepted { "accepted" } else { "refused" }.to_owned()),
        row("the balance should be", &|_| RIGHT.to_string()),
        row("the balance is", &|late| late.balance.to_string()),
        row("missing", &|late| match RIGHT - late.balance {
            0 => "nothing".to_owned(),
            lost => lost.to_string(),
        }),
    ];
    show.stage.table("What the guard is for", &rows);
    show.stage.words(
        "No lock can stop a write that is already on its way. The database can: every lease carries a token that grows, \
         and the guard refuses tokens older than it has seen. In code: leasehold::fence.",
    );
    show.stage.words("All of the above was checked while it was shown.");
}

/// The stage, the workers on it, and what they have said.
struct Show {
    stage: Stage,
    cast: Vec<Child>,
    /// The act; a worker's last words must not be taken for those of its successor.
    act: usize,
    news: Receiver<News>,
    voice: Sender<News>,
    heard: Vec<(usize, String, String)>,
    until: Instant,
    /// The last field, so that the folder is removed after its last use.
    dir: TempDir,
}

/// Act, worker, line; no line when the worker has ended.
type News = (usize, usize, Option<String>);

impl Show {
    fn open() -> Result<Self> {
        let (voice, news) = channel();
        Ok(Self {
            stage: Stage::open(),
            cast: Vec::new(),
            act: 0,
            news,
            voice,
            heard: Vec::new(),
            until: Instant::now() + LIMIT,
            dir: tempfile::Builder::new().prefix("leasehold-demo-").tempdir()?,
        })
    }

    /// Starts the next worker. Its part gets the folder after its own name.
    fn enter(&mut self, part: &[&str]) -> Result {
        let folder = self.dir.path().to_str().ok_or("the temporary folder has no readable name")?;
        let mut args = part.to_vec();
        args.insert(1, folder);
        let (voice, act, who) = (self.voice.clone(), self.act, self.cast.len());
        self.cast.push(Child::start(&args, move |line| {
            // Fails when the show is over; then no one needs it.
            let _ = voice.send((act, who, line.map(str::to_owned)));
        })?);
        Ok(())
    }

    /// Waits until a worker has said something, and answers what.
    fn fact(&mut self, who: usize, key: &str) -> Result<String> {
        self.await_one(key, |speaker| speaker == who).map(|(_, value)| value)
    }

    /// Waits until any worker has said something, and answers who.
    fn first_to(&mut self, key: &str) -> Result<usize> {
        self.await_one(key, |_| true).map(|(who, _)| who)
    }

    fn await_one(&mut self, key: &str, from: impl Fn(usize) -> bool) -> Result<(usize, String)> {
        loop {
            if let Some(at) = self.heard.iter().position(|(who, heard, _)| heard == key && from(*who)) {
                let (who, _, value) = self.heard.remove(at);
                return Ok((who, value));
            }
            let left = self.until.saturating_duration_since(Instant::now());
            let Ok((act, who, line)) = self.news.recv_timeout(left) else {
                return Err(format!("nobody has said {key:?} within {LIMIT:?}").into());
            };
            if act != self.act {
                continue;
            }
            let Some(line) = line else {
                let status = self.cast[who].wait()?;
                ensure(status.success(), || format!("{} has failed: {status}", NAMES[who]))?;
                self.heard.push((who, "end".to_owned(), String::new()));
                continue;
            };
            let fields: Vec<&str> = line.splitn(4, '\t').collect();
            let &[key, value, tone, text] = &fields[..] else {
                return Err(format!("{} said {line:?}, which means nothing", NAMES[who]).into());
            };
            if !text.is_empty() {
                self.stage.line(who, tone_of(tone), text);
            }
            self.heard.push((who, key.to_owned(), value.to_owned()));
        }
    }

    fn stop(&mut self, who: usize) {
        self.cast[who].stop();
        self.stage.line(who, Tone::Bad, "STOPPED (SIGSTOP) before it writes");
        self.stage.set_stopped(who, true);
    }

    fn wake(&mut self, who: usize) {
        self.stage.set_stopped(who, false);
        self.stage.line(who, Tone::Bad, "GOES ON (SIGCONT)");
        self.cast[who].go_on();
    }

    /// The act is over, and all workers leave.
    fn exeunt(&mut self) {
        self.cast.clear();
        self.heard.clear();
        self.act += 1;
    }
}

fn ensure(good: bool, otherwise: impl FnOnce() -> String) -> Result {
    if good { Ok(()) } else { Err(otherwise().into()) }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, right: &T) -> Result {
    ensure(found == right, || format!("{what}: expected {right:?}, found {found:?}"))
}

// The workers.

fn play(part: &[&str]) -> Result {
    match *part {
        ["job", folder, name] => job(Path::new(folder), name),
        ["deposit", folder, name, file, amount, guarded] => {
            let account = Protected::open(&Path::new(folder).join(file), ACCOUNT, guarded.parse()?)?;
            deposit(&connect(Path::new(folder), name)?, account, amount.parse()?)
        }
        _ => Err(format!("there is no part {part:?}").into()),
    }
}

fn connect(folder: &Path, name: &str) -> Result<Client> {
    let store = format!("sqlite:{}", folder.join("locks.db").display());
    Ok(Client::connect_with(ClientBuilder::default().owner(name), store)?)
}

/// Runs the job unless it was done; stands by while another process is at it.
fn job(folder: &Path, name: &str) -> Result {
    let client = connect(folder, name)?;
    let db = database::open(&folder.join("jobs.db"))?;
    tell("ready", "", Tone::Plain, "");
    child::listen();
    tell("asks", "", Tone::Plain, "asks for the run");
    let run = match client.once(JOB).key(MONTH).ttl(TTL).wait(WAIT).begin()? {
        Once::Run(run) => run,
        Once::Done(completion) => {
            let owner = completion.owner.as_deref().unwrap_or("somebody");
            tell("done", owner, Tone::Strong, &format!("DONE ALREADY, by {owner}"));
            tell("left", "", Tone::Plain, "leaves the job alone");
            return Ok(());
        }
        other => return Err(format!("the run did not end: {other:?}").into()),
    };
    tell("running", "", Tone::Strong, &format!("HAS THE RUN, token {}", run.token()));
    tell("runs", "", Tone::Plain, "runs the job ...");
    db.execute("INSERT INTO runs (worker, token) VALUES (?1, ?2)", (name, i64::try_from(run.token())?))?;
    child::listen();
    run.finish()?;
    tell("finished", "", Tone::Plain, "... is done, and marks it as done");
    Ok(())
}

/// Reads the balance, adds to it, and writes it back; from the start again if the guard refuses.
fn deposit(client: &Client, account: Protected, amount: i64) -> Result {
    tell("ready", "", Tone::Plain, "");
    let mut sleepy = child::listen() == "sleepy";
    loop {
        let before = client.inspect(ACCOUNT)?;
        if let Some(holder) = &before {
            let owner = holder.owner.as_deref().unwrap_or("somebody");
            tell("waits", owner, Tone::Plain, &format!("waits: {owner} has the lock"));
        }
        let lease = client.lock(ACCOUNT).ttl(TTL).wait(WAIT).acquire()?;
        let token = lease.token();
        tell("locked", &token.to_string(), Tone::Strong, &format!("HAS THE LOCK, token {token}"));
        if let Some(holder) = before.filter(|holder| holder.token < Some(token)) {
            let owner = holder.owner.as_deref().unwrap_or("somebody");
            tell("higher", owner, Tone::Plain, &format!("higher than the token of {owner}"));
        }
        let balance = account.read(Some(token))?.ok_or("the guard refuses a claim with a fresh token")?;
        let claims = if account.is_guarded() { "claims the account, " } else { "" };
        tell("read", "", Tone::Plain, &format!("{claims}reads {balance}"));
        lease.check(Duration::ZERO)?;
        let left = lease.remaining().as_secs_f64();
        tell("checked", "", Tone::Plain, &format!("asks its lease: {left:.1} s left"));

        let is_late = std::mem::take(&mut sleepy);
        if is_late {
            // It is stopped here, and has its check behind it.
            child::listen();
            let loss = lease.lost();
            ensure(loss.kind() == ErrorKind::Lost, || format!("not told of the loss, but of {loss}"))?;
            ensure(lease.check(Duration::ZERO).is_err(), || "a lost lease passes a check".to_owned())?;
            tell("lost", "", Tone::Bad, "is told LOST, but it is past its check");
        }
        let sum = format!("{balance} + {amount} = {}", balance + amount);
        match account.write(balance + amount, Some(token))? {
            Write::Done if is_late => {
                tell("written", &(balance + amount).to_string(), Tone::Bad, &format!("writes {sum}: ACCEPTED"));
            }
            Write::Done => {
                tell("written", &(balance + amount).to_string(), Tone::Strong, &format!("writes {sum}"));
                lease.release()?;
                tell("done", "", Tone::Plain, "releases the lock");
            }
            Write::Refused => {
                tell("refused", "", Tone::Bad, &format!("writes {sum}: REFUSED"));
                tell("why", "", Tone::Plain, "the guard has seen a higher token");
                tell("again", "", Tone::Plain, "starts over with a new lease");
                continue;
            }
        }
        return Ok(());
    }
}

/// A fact for the director, with its value, and words for the screen, unless they are empty.
fn tell(key: &str, value: &str, tone: Tone, text: &str) {
    child::say(&format!("{key}\t{value}\t{tone:?}\t{text}"));
}

fn tone_of(name: &str) -> Tone {
    match name {
        "Strong" => Tone::Strong,
        "Bad" => Tone::Bad,
        _ => Tone::Plain,
    }
}

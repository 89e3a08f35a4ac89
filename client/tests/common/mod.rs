//! Shared by the behaviour tests: waiting for conditions, and roles played by processes of their own.

#![allow(dead_code, reason = "each test file is a crate of its own and uses another part of this")]

#[cfg(target_os = "linux")]
pub(crate) mod closing;
pub(crate) mod items;
pub(crate) mod log;
#[cfg(feature = "dynamodb")]
pub(crate) mod on_dynamodb;
#[cfg(feature = "objects")]
pub(crate) mod on_objects;
#[cfg(feature = "postgres")]
pub(crate) mod on_postgres;
#[cfg(feature = "redis")]
pub(crate) mod on_redis;
#[cfg(feature = "redis")]
pub(crate) mod quorum;
pub(crate) mod silence;
pub(crate) mod twice;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use leasehold::ErrorKind;
use leasehold::blocking::Client;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until something is true.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "still not so after {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Four clients take one lock in turn, and get tokens that only grow.
pub(crate) fn four_clients_get_growing_tokens(client: impl Fn() -> Client) {
    let highest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in [(); 4].map(|()| client()) {
            let highest = &highest;
            scope.spawn(move || {
                for _ in 0..8 {
                    let held = client.lock("a").wait(PATIENCE).acquire().unwrap();
                    assert!(highest.swap(held.token(), Ordering::SeqCst) < held.token());
                    held.release().unwrap();
                }
            });
        }
    });
}

/// A client that takes no slow answer for a lost one, however busy the machine is. For tests whose stores do answer.
#[track_caller]
pub(crate) fn connect_patiently(url: impl AsRef<str>) -> Client {
    let patient = leasehold::Client::builder().request_timeout(PATIENCE / 2);
    Client::connect_with(patient, url.as_ref()).unwrap()
}

pub(crate) const fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// How often this process has run its test again for want of time.
pub(crate) static RUN_AGAIN: AtomicU32 = AtomicU32::new(0);

/// Makes a grant whose ttl is as short as the store can grant one: a store that takes longer for it than the ttl grants nothing at all.
pub(crate) fn with_shortest_ttl<T>(shortest: Duration, grant: impl Fn(Duration) -> Result<T, leasehold::Error>) -> T {
    let mut ttl = shortest;
    loop {
        match grant(ttl) {
            Err(error) if error.kind() == ErrorKind::StoreUnavailable && ttl < PATIENCE / 4 => ttl *= 2,
            granted => return granted.unwrap(),
        }
    }
}

/// That many milliseconds, and twice as many each time a test is run again: a machine that was too slow for it has more
/// time then.
pub(crate) fn paced(value: u64) -> Duration {
    let attempt = std::env::var("NEXTEST_ATTEMPT").ok().and_then(|attempt| attempt.parse().ok()).unwrap_or(1_u32);
    ms(value << (attempt - 1 + RUN_AGAIN.load(Ordering::Relaxed)).min(3))
}

pub(crate) fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// An ignored test of the same binary, run as a process of its own. It is killed when the test is over.
pub(crate) struct Role {
    child: Mutex<Child>,
    lines: Receiver<String>,
}

impl Role {
    /// Starts the ignored test `name`; its arguments come through `ROLE_ARGS`.
    pub(crate) fn start(name: &str, args: &str) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), name, args)
    }

    /// As [`Role::start`], by a program that starts the one named behind it.
    pub(crate) fn start_through(program: &[&str], name: &str, args: &str) -> Self {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(std::env::current_exe().unwrap());
        Self::start_by(command, name, args)
    }

    fn start_by(mut command: Command, name: &str, args: &str) -> Self {
        let mut child = command
            .args(["--exact", name, "--ignored", "--nocapture"])
            .env("ROLE_ARGS", args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test runner's own words share the stream, and its lines may lack an end.
                if let Some((_, said)) = line.split_once("role: ") {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Self { child: Mutex::new(child), lines }
    }

    /// The next thing it says.
    pub(crate) fn says(&self) -> String {
        self.says_within(PATIENCE)
    }

    /// The next thing a role says that has much to do before.
    pub(crate) fn says_within(&self, patience: Duration) -> String {
        self.lines.recv_timeout(patience).expect("the role says something")
    }

    pub(crate) fn kill(&self) {
        self.child().kill().unwrap();
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child().id()).unwrap();
        // SAFETY: plain system call; the child has not been waited for, so the id is its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Stops it, and waits until it stands still.
    #[cfg(unix)]
    pub(crate) fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let (pid, mut status) = (i32::try_from(self.child().id()).unwrap(), 0);
        // SAFETY: plain system call; the child has not been waited for, so the id is its own.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) }, pid);
        assert!(libc::WIFSTOPPED(status), "it has ended instead");
    }

    /// Ends its [`stay`].
    pub(crate) fn close_input(&mut self) {
        drop(self.child().stdin.take());
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap()
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child().wait().unwrap()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The arguments of a role; `None` when somebody runs the ignored tests by hand.
pub(crate) fn role_args() -> Option<String> {
    std::env::var("ROLE_ARGS").ok()
}

/// Speaks to the test that started this role.
#[allow(clippy::print_stdout, reason = "that is the way to it")]
pub(crate) fn say(what: impl std::fmt::Display) {
    println!("role: {what}");
}

/// Waits until the test closes its end.
pub(crate) fn stay() {
    let _ = std::io::stdin().lines().count();
}

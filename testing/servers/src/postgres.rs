//! Real PostgreSQL servers, and PgBouncer in front of one.
//!
//! The user `postgres` needs no password, others do over TCP. The programs refuse to run as root, so root hands the folder
//! and the processes to another user.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use postgres::Client;
use postgres::{Config, NoTls};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::clock::Clock;
use crate::full::Disk;
use crate::process::{Daemon, Program, Sight};
use crate::redis::tls::Tls;
use crate::{ports, wait_until};

const SERVER: Program = Program { name: "postgres", debian_package: "postgresql" };
const POOLER: Program = Program { name: "pgbouncer", debian_package: "pgbouncer" };

const ACCESS: &str = "\
local all all trust
host all postgres all trust
host replication postgres all trust
host all all all scram-sha-256
";

/// The options of connections of tests.
const BY_HAND: &str = "-csynchronous_commit=on";

/// A real PostgreSQL of a test's own, on 127.0.0.1 and on a socket in its folder. Dropped, it is stopped and its data
/// removed.
///
/// # Panics
///
/// Every method panics where it cannot do what it says, and shows what the server wrote last.
#[derive(Debug)]
pub struct Server {
    daemon: Mutex<Daemon>,
    port: u16,
    user: Option<(u32, u32)>,
    settings: Vec<String>,
    rig: Option<(Clock, Disk)>,
    /// Below the fields that use it: removed after the server has ended.
    folder: TempDir,
}

/// Starting one takes a second, so that the tests of a process share it. It ends with the last of them: a static would
/// never be dropped.
static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

impl Server {
    /// The server of this process.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// A server that does not wait for its disk, and answers commits before they are on it, unless they ask for more.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// A server with more settings, such as `max_connections=10`.
    #[track_caller]
    pub fn with(settings: &[&str]) -> Self {
        Self::made(settings, false)
    }

    /// A server whose clock and disk a test can disturb: [`Server::set_clock`], [`Server::fill_disk`]. Linux only.
    #[track_caller]
    pub fn rigged() -> Self {
        Self::made(&[], true)
    }

    #[track_caller]
    fn made(settings: &[&str], is_rigged: bool) -> Self {
        let folder = crate::process::folder();
        let user = unprivileged(folder.path());
        let mut initdb = command(&programs().join("initdb"), user, folder.path());
        initdb.args([
            "--no-sync",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "-D",
            "data",
        ]);
        run(initdb);
        let access = folder.path().join("data/pg_hba.conf");
        fs::write(&access, ACCESS).unwrap_or_else(|error| panic!("{}: {error}", access.display()));
        let rig = is_rigged.then(|| (Clock::new(folder.path()), Disk::new(folder.path())));
        Self::launch(folder, user, settings, rig)
    }

    /// A server that speaks TLS too, with a certificate for 127.0.0.1, and the file of the authority behind it.
    #[track_caller]
    pub fn with_tls(files: &Path) -> (Self, PathBuf) {
        let tls = write_tls(files);
        let settings = [("ssl_cert_file", &tls.certificate), ("ssl_key_file", &tls.key)];
        let settings = settings.map(|(name, file)| format!("{name}={}", file.display()));
        (Self::with(&["ssl=on", &settings[0], &settings[1]]), tls.authority)
    }

    /// A standby of this server that follows it.
    #[track_caller]
    pub fn standby(&self) -> Self {
        let folder = crate::process::folder();
        let user = unprivileged(folder.path());
        let mut copy = command(&programs().join("pg_basebackup"), user, folder.path());
        let (host, port) = ("127.0.0.1", self.port.to_string());
        copy.args(["-R", "--checkpoint=fast", "--no-sync", "-D", "data", "-U", "postgres", "-h", host, "-p", &port]);
        run(copy);
        Self::launch(folder, user, &[], None)
    }

    #[track_caller]
    fn launch(folder: TempDir, user: Option<(u32, u32)>, settings: &[&str], rig: Option<(Clock, Disk)>) -> Self {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        for _ in 0..10 {
            let port = ports::free();
            let mut daemon = spawn(&folder, user, &settings, rig.as_ref(), port);
            if daemon.wait_until_ready(|| look(&folder, port)).is_ok() {
                return Self { daemon: Mutex::new(daemon), port, user, settings, rig, folder };
            }
        }
        panic!("every port that was free a moment ago was taken when PostgreSQL came to it");
    }

    /// The port on 127.0.0.1. It stays the same when the server is started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The url for clients that may do everything.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The url with another port: that of a pooler, or of a [`Proxy`](crate::proxy::Proxy) in front.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    /// The folder of its socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection that may do everything.
    #[track_caller]
    pub fn connect(&self) -> Client {
        let config = config(&self.folder, self.port);
        config.connect(NoTls).unwrap_or_else(|error| panic!("{error:?}\n{}", self.daemon().tail()))
    }

    /// Runs statements.
    #[track_caller]
    pub fn run(&self, sql: &str) {
        self.connect().batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Changes a setting of the running server: `SET name = value` or `RESET name`.
    #[track_caller]
    pub fn configure(&self, change: &str) {
        self.run(&format!("ALTER SYSTEM {change}"));
        self.run("SELECT pg_reload_conf()");
    }

    /// The only value of a query.
    #[track_caller]
    pub fn value<T: for<'a> postgres::types::FromSql<'a>>(&self, sql: &str) -> T {
        self.connect().query_one(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    /// A new schema for one test, where its connections find their tables.
    #[track_caller]
    pub fn schema(&self) -> Schema<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::SeqCst));
        self.run(&format!("CREATE SCHEMA {name}"));
        Schema { server: self, name }
    }

    /// From now on fails every commit that has changed a table of this schema and would be answered before it is on disk.
    /// Tables that a crash empties anyway are left out.
    #[track_caller]
    pub fn insist_on_durability(&self, schema: &str) {
        let mut text = format!(
            "CREATE OR REPLACE FUNCTION {schema}.insist() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF current_setting('synchronous_commit') = 'off' THEN \
             RAISE '% of % is answered before it is on disk: %', TG_OP, TG_TABLE_NAME, current_query(); END IF; \
             RETURN NULL; END $$;"
        );
        let tables = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relpersistence = 'p' AND \
                      relnamespace = $1::text::regnamespace";
        for row in self.connect().query(tables, &[&schema]).unwrap_or_else(|error| panic!("{error:?}")) {
            // At the commit, when what the transaction has set is known.
            let table: String = row.get(0);
            text += &format!(
                "DROP TRIGGER IF EXISTS insist ON {schema}.{table}; \
                 CREATE CONSTRAINT TRIGGER insist AFTER INSERT OR UPDATE OR DELETE ON {schema}.{table} \
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.insist();"
            );
        }
        self.run(&text);
    }

    /// Kills it as a crash would.
    pub fn kill(&self) {
        self.daemon().kill();
    }

    /// Stops all of its processes with SIGSTOP. Connections stay open, and there are no answers.
    pub fn stop_process(&self) {
        // First the one that would start others.
        self.daemon().freeze();
        self.signal_sessions(Signal::STOP);
    }

    /// Lets stopped processes go on.
    pub fn continue_process(&self) {
        self.signal_sessions(Signal::CONT);
        self.daemon().signal(Signal::CONT);
    }

    fn signal_sessions(&self, signal: Signal) {
        let pid = self.daemon().pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            // It may have ended.
            let _ = kill_process(child, signal);
        }
    }

    /// Starts it again on the same data and port, after [`Server::kill`] or while it runs.
    #[track_caller]
    pub fn restart(&self) {
        let mut daemon = self.daemon();
        daemon.signal(Signal::QUIT);
        daemon.stop();
        let start = || spawn(&self.folder, self.user, &self.settings, self.rig.as_ref(), self.port);
        let mut next = start();
        // Processes of the old one may not have noticed its end yet.
        wait_until("PostgreSQL starts again", || {
            if next.ended().is_some() {
                next = start();
            }
            look(&self.folder, self.port) == Sight::Ready
        });
        *daemon = next;
    }

    /// Sets the clock of a [rigged](Server::rigged) server, and of nothing else, to the true time plus `offset_ms`.
    #[track_caller]
    pub fn set_clock(&self, offset_ms: i64) {
        self.rig.as_ref().expect("a rigged server").0.set(offset_ms);
    }

    /// Has the disk of a [rigged](Server::rigged) server full for whatever would grow, or not any more.
    #[track_caller]
    pub fn fill_disk(&self, is_full: bool) {
        self.rig.as_ref().expect("a rigged server").1.set(is_full);
    }

    /// Copies its disk while it is stopped for a moment, as snapshots of volumes do.
    #[track_caller]
    pub fn take_snapshot(&self) {
        self.kill();
        self.copy("data", "snapshot");
        self.restart();
    }

    /// Puts the copy of [`Server::take_snapshot`] in the place of its disk.
    #[track_caller]
    pub fn restore_snapshot(&self) {
        self.kill();
        self.copy("snapshot", "data");
        self.restart();
    }

    /// Copies what is in one folder of this server over another.
    #[track_caller]
    fn copy(&self, from: &str, to: &str) {
        let to = self.folder.path().join(to);
        let _ = fs::remove_dir_all(&to);
        let mut copy = command(Path::new("cp"), self.user, self.folder.path());
        copy.arg("-a").arg(from).arg(to);
        run(copy);
    }

    /// Makes a standby a primary.
    #[track_caller]
    pub fn promote(&self) {
        self.run("SELECT pg_promote()");
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The order to stop at once. A kill would leave its processes and its shared memory behind.
        self.daemon().signal(Signal::QUIT);
    }
}

/// A schema of one test's own.
#[derive(Debug)]
pub struct Schema<'a> {
    server: &'a Server,
    name: String,
}

impl Schema<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A connection that looks for tables in it.
    #[track_caller]
    pub fn connect(&self) -> Client {
        let mut config = config(&self.server.folder, self.server.port);
        config.options(&format!("{BY_HAND} -csearch_path={}", self.name));
        config.connect(NoTls).unwrap_or_else(|error| panic!("{error:?}\n{}", self.server.log()))
    }
}

/// A PgBouncer in transaction mode in front of a server.
#[derive(Debug)]
pub struct Pooler {
    daemon: Mutex<Daemon>,
    user: Option<(u32, u32)>,
    port: u16,
    folder: TempDir,
}

impl Pooler {
    /// A pooler with five connections to the server.
    #[track_caller]
    pub fn start(server: &Server) -> Self {
        let folder = crate::process::folder();
        let user = unprivileged(folder.path());
        for _ in 0..10 {
            let port = ports::free();
            let text = format!(
                "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
                 default_pool_size = 5\nserver_login_retry = 1\n",
                server.port
            );
            crate::process::write_file(folder.path(), "pgbouncer.ini", text);
            let mut daemon = spawn_pooler(&folder, user);
            if daemon.wait_until_ready(|| answers(port)).is_ok() {
                return Self { daemon: Mutex::new(daemon), user, port, folder };
            }
        }
        panic!("every port that was free a moment ago was taken when pgbouncer came to it");
    }

    /// The port on 127.0.0.1. It stays the same when the pooler is started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it as a crash would.
    pub fn kill(&self) {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// Starts it again on the same port, after [`Pooler::kill`] or while it runs.
    #[track_caller]
    pub fn restart(&self) {
        let mut daemon = self.daemon.lock().unwrap_or_else(PoisonError::into_inner);
        daemon.kill();
        *daemon = spawn_pooler(&self.folder, self.user);
        wait_until("pgbouncer starts again", || answers(self.port) == Sight::Ready);
    }
}

fn spawn(
    folder: &TempDir,
    user: Option<(u32, u32)>,
    settings: &[String],
    rig: Option<&(Clock, Disk)>,
    port: u16,
) -> Daemon {
    let mut postgres = command(&programs().join("postgres"), user, folder.path());
    if let Some((clock, disk)) = rig {
        clock.install(&mut postgres);
        disk.install(&mut postgres);
    }
    postgres.args(["-D", "data", "-k"]).arg(folder.path()).args(["-p", &port.to_string()]);
    let usual = ["listen_addresses=127.0.0.1", "fsync=off", "synchronous_commit=off", "max_connections=100"];
    let usual = usual.into_iter().chain(["shared_buffers=16MB"]);
    for setting in usual.chain(settings.iter().map(String::as_str)) {
        postgres.args(["-c", setting]);
    }
    Daemon::spawn(SERVER, postgres, &folder.path().join("log"))
}

fn spawn_pooler(folder: &TempDir, user: Option<(u32, u32)>) -> Daemon {
    let mut pooler = command(Path::new("pgbouncer"), user, folder.path());
    // Debian puts it where only root has its path.
    if let Some(found) = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].iter().find(|path| Path::new(path).exists()) {
        pooler = command(Path::new(found), user, folder.path());
    }
    pooler.arg("pgbouncer.ini");
    Daemon::spawn(POOLER, pooler, &folder.path().join("log"))
}

fn look(folder: &TempDir, port: u16) -> Sight {
    // Its socket is in a folder where nobody else can be.
    if config(folder, port).connect(NoTls).is_ok() { Sight::Ready } else { Sight::NotYet }
}

fn answers(port: u16) -> Sight {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname("postgres");
    if config.connect(NoTls).is_ok() { Sight::Ready } else { Sight::NotYet }
}

fn config(folder: &TempDir, port: u16) -> Config {
    let mut config = Config::new();
    config.host_path(folder.path()).port(port).user("postgres").dbname("postgres").options(BY_HAND);
    config
}

#[track_caller]
fn run(mut command: Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{}", SERVER.complaint(&error)));
    assert!(done.status.success(), "{command:?} fails:\n{}", String::from_utf8_lossy(&done.stderr));
}

/// The folder with the server's programs: of the newest version where Debian puts them, or on the path.
fn programs() -> PathBuf {
    let has_all = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file());
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = versions.into_iter().rev().map(|(_, folder)| folder).chain(std::env::split_paths(&path));
    places.find(has_all).expect("initdb and postgres are installed; on Debian: apt-get install postgresql")
}

/// Files for TLS in a folder. Those that stand there are replaced, and the server has the new ones after a restart.
#[track_caller]
pub fn write_tls(files: &Path) -> Tls {
    let tls = Tls::new(files);
    if let Some((user, group)) = unprivileged(files) {
        chown(&tls.key, Some(user), Some(group)).unwrap_or_else(|error| panic!("{}: {error}", tls.key.display()));
    }
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&tls.key, private).unwrap_or_else(|error| panic!("{}: {error}", tls.key.display()));
    tls
}

/// PostgreSQL refuses to run as root, and its user needs a name: the folder is given to one.
fn unprivileged(folder: &Path) -> Option<(u32, u32)> {
    let owner = fs::metadata(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).uid();
    if owner != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let fields: Vec<&str> =
            users.lines().map(|line| line.split(':').collect()).find(|user: &Vec<_>| user[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    let user: (u32, u32) = ids("postgres").or_else(|| ids("nobody")).expect("a user `postgres` or `nobody`");
    chown(folder, Some(user.0), Some(user.1)).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    Some(user)
}

fn command(program: &Path, user: Option<(u32, u32)>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

//! A PostgreSQL server of the test's own.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use postgres::{Client, Config, NoTls};

use super::eventually;

/// Listens on a socket in a folder of its own, where nobody else can be, and ends when it is dropped.
pub(crate) struct PostgresServer {
    child: Child,
    folder: tempfile::TempDir,
}

/// Starting one takes seconds, so that the tests of a process share it. It ends with the last of them: a static would
/// never be dropped.
static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());

impl PostgresServer {
    pub(crate) fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    pub(crate) fn start() -> Self {
        let programs = programs();
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let user = unprivileged(folder.path());

        let mut initdb = command(&programs.join("initdb"), user, folder.path());
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D"]);
        let made = initdb.arg(&data).output().unwrap();
        assert!(made.status.success(), "initdb fails:\n{}", String::from_utf8_lossy(&made.stderr));

        let log = File::create(folder.path().join("log")).unwrap();
        let mut postgres = command(&programs.join("postgres"), user, folder.path());
        postgres.arg("-D").arg(&data).arg("-k").arg(folder.path());
        for setting in ["listen_addresses=", "fsync=off", "max_connections=100", "shared_buffers=16MB"] {
            postgres.args(["-c", setting]);
        }
        let child = postgres.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let mut server = Self { child, folder };
        eventually("PostgreSQL answers", || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "PostgreSQL has ended:\n{}", server.log());
            server.config().connect(NoTls).is_ok()
        });
        server
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host_path(self.folder.path()).user("postgres").dbname("postgres");
        config
    }

    /// A schema for one test, where its connections find their tables.
    pub(crate) fn schema(&self) -> Schema<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::SeqCst));
        let mut client = self.config().connect(NoTls).unwrap_or_else(|error| panic!("{error}\n{}", self.log()));
        client.batch_execute(&format!("CREATE SCHEMA {name}")).unwrap();
        Schema { server: self, name }
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).unwrap();
        // The order to stop at once. A kill would leave its processes and its shared memory behind.
        // SAFETY: plain system call; the child has not been waited for, so the id is its own.
        let _ = unsafe { libc::kill(pid, libc::SIGQUIT) };
        let _ = self.child.wait();
    }
}

pub(crate) struct Schema<'a> {
    server: &'a PostgresServer,
    name: String,
}

impl Schema<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn connect(&self) -> Client {
        let mut config = self.server.config();
        config.options(&format!("-csearch_path={}", self.name));
        config.connect(NoTls).unwrap_or_else(|error| panic!("{error}\n{}", self.server.log()))
    }
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

/// PostgreSQL refuses to run as root, and its user needs a name: the folder is given to one.
fn unprivileged(folder: &Path) -> Option<(u32, u32)> {
    if fs::metadata(folder).unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let fields: Vec<&str> =
            users.lines().map(|line| line.split(':').collect()).find(|user: &Vec<_>| user[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    let user: (u32, u32) = ids("postgres").or_else(|| ids("nobody")).expect("a user `postgres` or `nobody`");
    chown(folder, Some(user.0), Some(user.1)).unwrap();
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

//! The options of a Redis server.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Server;
use super::tls::Tls;
use crate::process::{Program, write_file};

pub(super) const PROGRAM: Program = Program { name: "redis-server", debian_package: "redis-server" };

/// The user that the rig is, beside the users of an ACL file.
const RIG_USER: &str = "leasehold-servers";
const RIG_PASSWORD: &str = "of-the-rig-alone";

/// The credentials of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// The options of a [`Server`]. Without any, it keeps everything in memory and lets everybody in.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    args: Vec<(String, String)>,
    primary: Option<(u16, Credentials)>,
    password: Option<String>,
    acl: Option<String>,
    pub(super) unix_socket: bool,
    pub(super) tls: bool,
    pub(super) clock: bool,
    launcher: Option<Launcher>,
}

/// A program that runs the server, and the arguments of that program.
#[derive(Clone, Debug)]
struct Launcher(OsString, Vec<OsString>);

impl Builder {
    /// An option as on the command line: `.arg("--hz", "100")`. It wins over what the rig sets itself.
    pub fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes every change to disk before it is answered, so that [`Data::Kept`](super::Data::Kept) keeps it.
    pub fn appendonly(self) -> Self {
        self.arg("--appendonly", "yes").arg("--appendfsync", "always")
    }

    /// A replica of `primary`. [`Server::wait_replicas_in_sync`] of the primary says when it has caught up.
    pub fn replica_of(mut self, primary: &Server) -> Self {
        self.primary = Some((primary.port(), primary.admin.clone()));
        self
    }

    /// The password of the default user. It stands in [`Server::url`] as it is: use no characters that urls escape.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Users, as lines of an ACL file: `user job on >secret ~* &* +@all`. What such a user may do is tried with
    /// [`Connection::command`](crate::resp::Connection::command) and `AUTH`, or with a url of the test's own making;
    /// [`Server::command`] goes on being allowed everything. The default user is as the file says, or as Redis has it.
    pub fn acl_file(mut self, text: &str) -> Self {
        self.acl = Some(text.to_owned());
        self
    }

    /// Limits the memory to this many bytes. When they are used up, writes fail and nothing is evicted.
    pub fn maxmemory(self, bytes: u64) -> Self {
        self.arg("--maxmemory", &bytes.to_string()).arg("--maxmemory-policy", "noeviction")
    }

    /// Also listens on [`Server::socket_path`].
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Also listens for TLS, at [`Server::tls_url`].
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Gives the server a wall clock that [`Server::set_clock_ms`] moves. Linux only; compiles a little C.
    pub fn with_clock_offset(mut self) -> Self {
        self.clock = true;
        self
    }

    /// Runs the server by this command, such as a profiler, in place of its own. The options of the server follow, and both
    /// must be one process.
    pub fn run_by(mut self, command: &Command) -> Self {
        let args = command.get_args().map(ToOwned::to_owned).collect();
        self.launcher = Some(Launcher(command.get_program().to_owned(), args));
        self
    }

    /// Starts the server, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not: with the Debian package to install, or with the server's output.
    #[track_caller]
    pub fn start(self) -> Server {
        crate::trace_capture::listen();
        Server::from(self)
    }

    /// Writes what must be there before the first start. Returns who the rig is to the server.
    #[track_caller]
    pub(super) fn prepare(&self, folder: &Path) -> Credentials {
        create_data_path(folder);
        let Some(acl) = &self.acl else { return Credentials { user: None, password: self.password.clone() } };
        assert!(self.password.is_none(), "with an ACL file, the password of the default user belongs into it");
        let text = format!("{acl}\nuser {RIG_USER} on >{RIG_PASSWORD} ~* &* +@all\n");
        // Redis refuses empty lines with spaces in them.
        let text: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        write_file(folder, "users.acl", text);
        Credentials { user: Some(RIG_USER.to_owned()), password: Some(RIG_PASSWORD.to_owned()) }
    }

    pub(super) fn command(&self, folder: &Path, port: u16, tls: Option<&Tls>) -> Command {
        let mut command = match &self.launcher {
            Some(Launcher(program, args)) => {
                let mut command = Command::new(program);
                command.args(args);
                command
            }
            None => PROGRAM.command(),
        };
        let path = |path: PathBuf| path.display().to_string();
        if let Some((port, _)) = &self.primary {
            command.args(["--replicaof", "127.0.0.1", &port.to_string()]);
        }
        let mut option = |name: &str, value: &str| {
            command.args([name, value]);
        };
        option("--port", &port.to_string());
        option("--bind", "127.0.0.1");
        option("--dir", &path(data_path(folder)));
        option("--daemonize", "no");
        option("--save", "");
        option("--appendonly", "no");
        // A replica is in sync as soon as it can be.
        option("--repl-diskless-sync-delay", "0");
        if let Some((_, primary)) = &self.primary {
            if let Some(user) = &primary.user {
                option("--masteruser", user);
            }
            if let Some(password) = &primary.password {
                option("--masterauth", password);
            }
        }
        if let Some(password) = &self.password {
            option("--requirepass", password);
        }
        if self.acl.is_some() {
            option("--aclfile", &path(folder.join("users.acl")));
        }
        if self.unix_socket {
            option("--unixsocket", &path(socket_path(folder)));
        }
        for (name, value) in tls.map(Tls::options).unwrap_or_default() {
            option(name, &value);
        }
        for (name, value) in &self.args {
            option(name, value);
        }
        command
    }

    /// The part of a url before the host.
    pub(super) fn userinfo(&self) -> String {
        self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default()
    }
}

pub(super) fn data_path(folder: &Path) -> PathBuf {
    folder.join("data")
}

pub(super) fn socket_path(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}

#[track_caller]
pub(super) fn create_data_path(folder: &Path) {
    let path = data_path(folder);
    fs::create_dir(&path).unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
}

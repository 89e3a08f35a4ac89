//! A child of this process.

use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process, waitid};

#[derive(Debug)]
pub(crate) struct Child(std::process::Child);

impl Child {
    /// Starts the command, whose output is appended to `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        spawn_to_die_with_us(command).map(Self)
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        let _ = kill_process(self.handle(), signal);
    }

    /// Its end is left for `ended` to see.
    pub(super) fn wait_until_stopped(&mut self) {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(self.handle()), options) {}
    }

    pub(super) fn wait(&mut self) {
        let _ = self.0.wait();
    }

    fn handle(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

type Order = (Command, Sender<io::Result<std::process::Child>>);

/// Starts a process that the kernel kills when ours is gone, however it went.
///
/// On Linux that signal comes when the *thread* ends which started the child, and tests have threads of their own: so
/// all children are started by one that lasts.
fn spawn_to_die_with_us(
    #[cfg_attr(not(target_os = "linux"), allow(unused_mut))] mut command: Command,
) -> io::Result<std::process::Child> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    #[cfg(target_os = "linux")]
    {
        let die_with_parent = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: the closure makes one system call and touches no memory that another thread of ours may have locked.
        unsafe { command.pre_exec(die_with_parent) };
    }
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, queue) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in queue {
                let _ = reply.send(command.spawn());
            }
        });
        orders
    });
    let gone = |_| io::Error::other("the thread that starts servers is gone");
    let (reply, child) = channel();
    spawner.send((command, reply)).map_err(|_| gone(()))?;
    child.recv().map_err(|_| gone(()))?
}

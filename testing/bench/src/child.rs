//! Child processes, most of them this program again. They get commands on standard input, and answer in lines.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::args;

/// The argument that makes a program play a part; the part's own arguments follow.
pub const PART: &str = "--part";

/// A child process. Killed when dropped, stopped or not.
pub struct Child {
    process: std::process::Child,
    input: ChildStdin,
    ears: Option<JoinHandle<()>>,
}

impl Child {
    /// Starts this program as `part`, with its lines passed on as by [`Child::run`].
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(part: &[&str], hear: impl FnMut(Option<&str>) + Send + 'static) -> io::Result<Self> {
        Self::run(Command::new(std::env::current_exe()?).args(args::benchmark()).arg(PART).args(part), hear)
    }

    /// Starts a command. `hear` is called with each line that it prints, and with `None` at the end.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn run(command: &mut Command, mut hear: impl FnMut(Option<&str>) + Send + 'static) -> io::Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take().ok_or_else(|| io::Error::other("no pipe to the child"))?;
        let output = process.stdout.take().ok_or_else(|| io::Error::other("no pipe from the child"))?;
        let ears = std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines();
            while let Some(Ok(line)) = lines.next() {
                hear(Some(&line));
            }
            hear(None);
        });
        Ok(Self { process, input, ears: Some(ears) })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a line. A child that has ended cannot read it, which shows in its silence.
    pub fn tell(&mut self, line: &str) {
        let _ = writeln!(self.input, "{line}");
    }

    /// SIGSTOP: the process stands still, all its threads with it.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: it goes on, and does not know that time has passed.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// The exit status, if it has ended.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Waits for the end of a child whose output has ended.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }

    /// SIGKILL, and waits until it is gone and its last line was heard.
    pub fn kill(&mut self) {
        // Fails for a child that has ended, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(ears) = self.ears.take() {
            let _ = ears.join();
        }
    }

    fn signal(&self, signal: Signal) {
        // The id stays the child's own until it is waited for, so no stranger can be hit.
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The part this process is to play, if it is a child. It then dies with its parent, even while it is stopped.
pub fn part() -> Option<Vec<String>> {
    let mut args = std::env::args().skip(1 + usize::from(args::benchmark().is_some()));
    if args.next().as_deref() != Some(PART) {
        return None;
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    Some(args.collect())
}

/// In a child: sends a line to the parent.
///
/// # Panics
/// When the parent no longer reads.
pub fn say(line: &str) {
    let mut out = io::stdout().lock();
    // One write, so that a line is heard whole or not at all even if the process is killed.
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}

/// In a child: the next line from the parent. Ends the process when there is none, since the parent is gone.
pub fn listen() -> String {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(length) if length > 0 => line.trim_end().to_owned(),
        Ok(_) | Err(_) => std::process::exit(1),
    }
}

//! A terminal that a test types on.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal};
use rustix::termios::{LocalModes, Winsize};

use super::{Place, Ran, Started, wait_for};

/// An interactive shell. `L` is the program; the prompt is `$ `.
pub(crate) fn shell(place: &Place) -> Pty {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-i"]).current_dir(place.path("."));
    bash.env("LEASEHOLD_STORE", place.store()).env("L", env!("CARGO_BIN_EXE_leasehold")).env("PS1", "$ ");
    bash.env_remove("PROMPT_COMMAND").env("INPUTRC", "/dev/null").env("TERM", "dumb");
    let pty = Pty::start(&mut bash);
    pty.wait_for("$ ");
    pty
}

pub(crate) struct Pty {
    keyboard: File,
    screen: Arc<Mutex<String>>,
    cells: Arc<Mutex<vt100::Parser>>,
    program: Option<Started>,
}

impl Pty {
    /// Starts a program as the leader of a session on a terminal of its own.
    pub(crate) fn start(command: &mut Command) -> Self {
        let (mut master, mut slave) = (0, 0);
        // SAFETY: both pointers are valid, and null asks for nothing.
        let failed = unsafe {
            libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
        };
        assert_eq!(failed, 0);
        // SAFETY: both were opened just now, and belong to nobody else.
        let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        for fd in [&master, &slave] {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC).unwrap();
        }
        let file = || File::from(slave.try_clone().unwrap());
        command.stdin(file()).stdout(file()).stderr(file());
        let raw = slave.as_raw_fd();
        let prepare = move || {
            rustix::process::setsid()?;
            // SAFETY: a plain request to the terminal, which is open.
            match unsafe { libc::ioctl(raw, libc::TIOCSCTTY, 0) } {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            }
        };
        // SAFETY: only system calls are made.
        unsafe { command.pre_exec(prepare) };
        let program = Started::unseen(command);
        // The slave must be open in the program alone, or its end is not seen.
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        drop(slave);

        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(String::new()));
        let cells = Arc::new(Mutex::new(vt100::Parser::default()));
        let mut output = keyboard.try_clone().unwrap();
        let (shown, drawn) = (Arc::clone(&screen), Arc::clone(&cells));
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                drawn.lock().unwrap().process(&bytes[..count]);
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keyboard, screen, cells, program: Some(program) }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for a text in the output, and forgets all up to its end.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        let mut seen = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(text, || {
                let mut screen = self.screen.lock().unwrap();
                seen.clone_from(&screen);
                let end = screen.find(text).map(|at| at + text.len());
                end.map(|end| drop(screen.drain(..end))).is_some()
            });
        }));
        assert!(found.is_ok(), "no {text:?} on the screen: {seen:?}");
    }

    /// Waits for a text in a line of the screen, as people see it.
    #[track_caller]
    pub(crate) fn wait_until_shown(&self, text: &str) {
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(text, || self.shown().contains(text));
        }));
        assert!(found.is_ok(), "no {text:?} on the screen:\n{}", self.shown());
    }

    /// The screen as people see it.
    pub(crate) fn shown(&self) -> String {
        self.cells.lock().unwrap().screen().contents()
    }

    /// The output since the text that was waited for last.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let [cells_wide, cells_high] = [columns, rows].map(|count| count.try_into().unwrap());
        self.cells.lock().unwrap().set_size(cells_high, cells_wide);
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// Tells if the terminal shows what is typed, as it does unless a program changes that.
    pub(crate) fn echoes(&self) -> bool {
        rustix::termios::tcgetattr(&self.keyboard).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.program.as_ref().unwrap().signal(signal);
    }

    /// The process group in the foreground.
    pub(crate) fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.keyboard).ok()
    }

    pub(crate) fn pid(&self) -> Pid {
        self.program.as_ref().unwrap().pid()
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> Ran {
        self.program.take().unwrap().wait()
    }
}

//! Catches signals while `exec` runs, and restores the former handlers afterwards.
//!
//! Crates for signals keep their handlers installed for good, which a function inside another program must not do.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::{self, JoinHandle};

use libc::c_int;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;

use super::inbox::{Event, tell};

/// Signals that are passed on to the command. While there is none they end leasehold, as without handlers.
const ENDING: [c_int; 6] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2];
/// Signals that are passed on to the command, and left to the system while there is none.
const STOPPING: [c_int; 2] = [libc::SIGTSTP, libc::SIGCONT];

/// The descriptor that handlers write to; negative while none is installed.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// The number of running handlers, on all threads.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// Signals belong to the process, so only one `exec` at a time can catch them.
static TAKEN: Mutex<()> = Mutex::new(());

/// Turns signals into events while it lives. Dropping it restores the former handlers. It belongs to one thread.
pub(crate) struct Signals {
    saved: Vec<(c_int, libc::sigaction)>,
    mask: libc::sigset_t,
    pipe: PipeWriter,
    reader: Option<JoinHandle<()>>,
    _taken: MutexGuard<'static, ()>,
}

impl Signals {
    /// Catches the signals that end programs.
    ///
    /// # Errors
    /// Another `exec` runs in this process, or the system refuses a pipe or a thread.
    pub(crate) fn catch(events: Sender<Event>) -> io::Result<Self> {
        let taken = match TAKEN.try_lock() {
            Ok(taken) => taken,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another exec runs in this process")),
        };
        let (reader, pipe) = io::pipe()?;
        // A handler must never wait.
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let reader =
            thread::Builder::new().name("leasehold-signals".to_owned()).spawn(move || forward(reader, &events))?;
        PIPE.store(pipe.as_raw_fd(), Ordering::SeqCst);
        // Output of leasehold must not stop it while the command has the terminal, and neither must taking the terminal
        // back.
        let mask = block(libc::SIGTTOU);
        let mut signals = Self { saved: Vec::new(), mask, pipe, reader: Some(reader), _taken: taken };
        for signal in ENDING {
            signals.install(signal)?;
        }
        signals.reap_children()?;
        Ok(signals)
    }

    /// Also catches the signals that stop and continue programs, because there is a command now.
    pub(super) fn catch_stops(&mut self) -> io::Result<()> {
        STOPPING.into_iter().try_for_each(|signal| self.install(signal))
    }

    /// Stops the process as Ctrl-Z would have done. Returns when it is continued, or at once where the system knows no
    /// process that could continue it.
    pub(crate) fn stop_process(&self) -> io::Result<()> {
        let ours = set_action(libc::SIGTSTP, &action(libc::SIG_DFL))?;
        // SAFETY: raises a signal in this thread; its action is the system's own.
        unsafe { libc::raise(libc::SIGTSTP) };
        set_action(libc::SIGTSTP, &ours).map(drop)
    }

    /// Has nobody told of changes of the terminal's size, for programs that see them by themselves.
    pub(crate) fn ignore_sizes(&mut self) -> io::Result<()> {
        let old = set_action(libc::SIGWINCH, &action(libc::SIG_IGN))?;
        self.saved.push((libc::SIGWINCH, old));
        Ok(())
    }

    fn install(&mut self, signal: c_int) -> io::Result<()> {
        let old = get_action(signal)?;
        // The parent of leasehold wants it ignored (nohup, a background job), by the command too.
        if old.sa_sigaction != libc::SIG_IGN {
            let handler: extern "C" fn(c_int) = note;
            set_action(signal, &action(handler as libc::sighandler_t))?;
            self.saved.push((signal, old));
        }
        Ok(())
    }

    /// If the death of children is ignored, the system keeps no status of them.
    fn reap_children(&mut self) -> io::Result<()> {
        let old = get_action(libc::SIGCHLD)?;
        if old.sa_sigaction == libc::SIG_IGN {
            set_action(libc::SIGCHLD, &action(libc::SIG_DFL))?;
            self.saved.push((libc::SIGCHLD, old));
        }
        Ok(())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in self.saved.drain(..) {
            // It was accepted before; if it fails now, there is no alternative.
            let _ = set_action(signal, &old);
        }
        PIPE.store(-1, Ordering::SeqCst);
        // A handler that has read the pipe's number must finish before the number can be reused.
        while RUNNING.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
        let _ = self.pipe.write_all(&[0]);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        restore(&self.mask);
    }
}

/// Turns bytes into events until it reads a zero.
fn forward(mut pipe: PipeReader, events: &Sender<Event>) {
    let mut bytes = [0; 64];
    loop {
        let count = match pipe.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(_) => return,
        };
        for byte in &bytes[..count] {
            match Signal::from_named_raw(c_int::from(*byte)) {
                Some(signal) => tell(events, Event::Signal(signal)),
                None => return,
            }
        }
    }
}

/// The signal handler. It makes only calls that are safe in one, atomics and `write`, and keeps `errno`.
extern "C" fn note(signal: c_int) {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let pipe = PIPE.load(Ordering::SeqCst);
    if pipe >= 0 {
        let byte = u8::try_from(signal).unwrap_or(0);
        let error = errno::get();
        // SAFETY: the pipe stays open while `RUNNING` counts this call, and the byte lives on this stack.
        unsafe { libc::write(pipe, std::ptr::from_ref(&byte).cast(), 1) };
        errno::set(error);
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}

mod errno {
    use libc::c_int;

    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    use libc::__errno as location;
    #[cfg(target_os = "linux")]
    use libc::__errno_location as location;
    #[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
    use libc::__error as location;

    pub(super) fn get() -> c_int {
        // SAFETY: points to this thread's own variable, which lives as long as the thread.
        unsafe { *location() }
    }

    pub(super) fn set(value: c_int) {
        // SAFETY: as above.
        unsafe { *location() = value }
    }
}

fn action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: all zeroes is a valid `sigaction`: an empty mask, no flags.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler;
    // Other threads must not have their calls interrupted, and may have small stacks.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    action
}

fn get_action(signal: c_int) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: a null action only queries; `old` is valid for the write.
    let failed = unsafe { libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr()) };
    // SAFETY: all zeroes is valid, and so is what the call wrote.
    if failed == 0 { Ok(unsafe { old.assume_init() }) } else { Err(io::Error::last_os_error()) }
}

/// Sets an action, and returns the former one.
fn set_action(signal: c_int, new: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: both pointers are valid; the handler is the system's, a former one, or `note`, which is safe at any time.
    let failed = unsafe { libc::sigaction(signal, new, old.as_mut_ptr()) };
    // SAFETY: all zeroes is valid, and so is what the call wrote.
    if failed == 0 { Ok(unsafe { old.assume_init() }) } else { Err(io::Error::last_os_error()) }
}

/// Blocks a signal in this thread, and returns the former mask. Safe between fork and exec.
pub(super) fn block(signal: c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    let mut old = MaybeUninit::zeroed();
    // SAFETY: `sigemptyset` initializes `set`; both pointers are valid; an unknown signal changes nothing.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), old.as_mut_ptr());
        old.assume_init()
    }
}

/// Undoes [`block`].
pub(super) fn restore(mask: &libc::sigset_t) {
    // SAFETY: the pointer is valid; a null pointer means that no former mask is returned.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

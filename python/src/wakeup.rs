//! The ways of other threads to the loop of a reactor.

use std::io;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use crate::asyncio::Asyncio;

/// A function that any thread may call, and that waits for nothing.
pub(crate) type Notify = Box<dyn Fn() + Send + Sync>;

/// A pipe that the loop watches. Both ends live as long as any task can be woken.
pub(crate) struct Pipe(Arc<(PipeReader, PipeWriter)>);

impl Pipe {
    pub(crate) fn new() -> io::Result<(Self, Notify)> {
        let pipe = Arc::new(pipe()?);
        let ends = Arc::clone(&pipe);
        // The pipe holds a few bytes at most, so it takes one more; a failure could be reported to nobody.
        let notify = move || drop((&ends.1).write(&[1]));
        Ok((Self(pipe), Box::new(notify)))
    }

    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> i32 {
        use std::os::fd::AsRawFd;
        self.0.0.as_raw_fd()
    }

    /// Takes what was written. It is called before the executor looks, so that a later wake-up writes again.
    pub(crate) fn clear(&self) {
        let _ = (&self.0.0).read(&mut [0; 64]);
    }
}

/// For a loop that can watch no pipe: a thread calls it, because the interpreter may be busy for long. It ends when the answer is
/// dropped.
pub(crate) fn by_thread(event_loop: Asyncio) -> io::Result<Notify> {
    let (sender, wake_ups) = channel();
    let run = move || {
        while wake_ups.recv().is_ok() {
            // One call serves all that have come.
            while wake_ups.try_recv().is_ok() {}
            if event_loop.call().is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("leasehold-loop".to_owned()).spawn(run)?;
    // It fails only once the interpreter ends.
    Ok(Box::new(move || _ = sender.send(())))
}

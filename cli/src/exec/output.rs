//! The output of a command: passed on as it comes, and kept for those who come later.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use leasehold::RunResult;

/// How long the end of the output is waited for once the command has ended: a process that it has left may hold the stream open.
const PATIENCE: Duration = Duration::from_secs(1);

/// The output of a command that runs.
#[derive(Debug)]
pub(crate) struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    /// How reading has ended.
    end: Receiver<io::Result<()>>,
}

impl Output {
    /// Passes on what the command writes.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn of(stream: impl Read + Send + 'static) -> io::Result<Self> {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let (ended, end) = channel();
        let ours = Arc::clone(&kept);
        thread::Builder::new().name("leasehold-output".to_owned()).spawn(move || {
            // Nobody may wait for it any more.
            let _ = ended.send(pass_on(stream, &ours));
        })?;
        Ok(Self { kept, end })
    }

    /// The output of a command that has ended.
    ///
    /// # Errors
    /// It is not known to be whole. A part is no result: others would take it for all.
    pub(crate) fn taken(self) -> Result<RunResult, String> {
        match self.end.recv_timeout(PATIENCE) {
            Ok(Ok(())) => Ok(RunResult::Output(self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone())),
            Ok(Err(error)) => Err(format!("it cannot be read: {error}")),
            Err(_) => {
                Err("a process that the command has left behind may still write to it, so give that one another stdout; or nobody reads what is passed on"
                    .to_owned())
            }
        }
    }
}

/// Passes on what comes, and keeps its beginning.
fn pass_on(mut stream: impl Read, kept: &Mutex<Vec<u8>>) -> io::Result<()> {
    let (mut part, mut out) = ([0; 8192], io::stdout());
    loop {
        let count = match stream.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let Some(written) = part.get(..count).filter(|written| !written.is_empty()) else { return Ok(()) };
        // One byte more than fits tells that it does not.
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (RunResult::MAX_BYTES + 1).saturating_sub(kept.len());
        kept.extend(written.iter().take(room));
        drop(kept);
        // A reader that has gone does not stop the command.
        let _ = out.write_all(written).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A stream that breaks.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the pipe is broken"))
        }
    }

    #[test]
    fn only_a_whole_output_is_a_result() {
        assert_eq!(Output::of(Cursor::new("")).unwrap().taken(), Ok(RunResult::Output(Vec::new())));
        let error = Output::of(Broken).unwrap().taken().unwrap_err();
        assert_eq!(error, "it cannot be read: the pipe is broken");
    }
}

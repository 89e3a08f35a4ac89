//! The output of a command: passed on as it comes, and kept for those who come later.

use std::io::{self, Read, Write};
use std::process::ChildStdout;
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
    end: Receiver<()>,
}

impl Output {
    /// Passes on what the command writes.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn of(mut stream: ChildStdout) -> io::Result<Self> {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let (ended, end) = channel();
        let ours = Arc::clone(&kept);
        thread::Builder::new().name("leasehold-output".to_owned()).spawn(move || {
            let (mut part, mut out) = ([0; 8192], io::stdout());
            while let Ok(count) = stream.read(&mut part) {
                let Some(written) = part.get(..count).filter(|written| !written.is_empty()) else { break };
                // One byte more than fits tells that it does not.
                let mut kept = ours.lock().unwrap_or_else(PoisonError::into_inner);
                let room = (RunResult::MAX_BYTES + 1).saturating_sub(kept.len());
                kept.extend(written.iter().take(room));
                drop(kept);
                // A reader that has gone does not stop the command.
                let _ = out.write_all(written).and_then(|()| out.flush());
            }
            drop(ended);
        })?;
        Ok(Self { kept, end })
    }

    /// The output of a command that has ended.
    pub(crate) fn taken(self) -> RunResult {
        let _ = self.end.recv_timeout(PATIENCE);
        RunResult::Output(self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

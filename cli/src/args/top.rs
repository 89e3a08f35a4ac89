//! The arguments of `leasehold top`.

use std::time::Duration;

use clap::Args;

use super::StoreArgs;
use crate::duration;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The beginning of the names [default: all names]
    #[arg(default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// The time between two looks at the store: at least 500ms
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval, allow_hyphen_values = true)]
    pub every: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(500);
    let every = duration::parse(text)?;
    if every < SHORTEST { Err("the shortest is 500ms".to_owned()) } else { Ok(every) }
}

pub(super) const HELP: &str = "\
Examples:
  leasehold top                  all locks that are held
  leasehold top invoice/         those whose names begin with invoice/
  leasehold top --every 10s      ask a busy store less often

Keys: q or Esc quits; the arrows, Page up, Page down, Home and End scroll; s
sorts by name, by age (the oldest first) or by time left (the shortest first).

Each look reads at most 2000 locks, page by page, and costs what `leasehold
list` costs; name a prefix to see others. WAIT is the number of queued clients,
for the rows on the screen, on stores that keep a queue. When the store does not
answer, the second line says so, and the rows stay as they were.

Exit status:
    0  it was quit
128+N  signal N ended it: 130 after Ctrl-C
and 64 (also: no terminal), 71, 77 as in `leasehold --help`; 69 if the store
cannot be reached at the start.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_needs_no_wrapping() {
        assert!(HELP.lines().all(|line| line.len() <= 80), "{HELP}");
    }
}

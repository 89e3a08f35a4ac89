//! The long help texts: examples, exit statuses, and what machines read.

pub(super) const MAIN_HELP: &str = "\
Durations have a unit: 500ms, 30s, 1.5s, 2m, 1h, 7d.

Environment, where the option is not given:
  LEASEHOLD_STORE          --store; several urls separated by spaces
  LEASEHOLD_REQUIRE_STORE  1: a store must be named, there is no default
  LEASEHOLD_MAX_TTL        --max-ttl, if there are several stores
  LEASEHOLD_QUORUM_ID      --quorum-id, if there are several stores
  LEASEHOLD_TTL            --ttl of exec, once and elect
  LEASEHOLD_WAIT           --wait of exec and once
  LEASEHOLD_CONFIG         a file of settings, see below

Settings, where neither the option nor the variable is given, from the first of
LEASEHOLD_CONFIG, ~/.config/leasehold/config.toml, /etc/leasehold/config.toml:
  store = \"redis://locks.example.com\"    or a list of urls
  max-ttl = \"60s\"    quorum-id = \"main\"
  ttl = \"30s\"        wait = \"5m\"        owner = \"batch\"

Examples:
  export LEASEHOLD_STORE=redis://locks.example.com
  leasehold exec nightly -- ./report.sh    run one at a time
  leasehold once --every 1d nightly -- ./report.sh
                                           run once a day
  leasehold elect scheduler -- ./scheduler run it on one machine of several
  leasehold inspect nightly                show the holder
  leasehold list                           show all locks that are held
  leasehold runs nightly@                  show when a job was done
  leasehold sessions                       show clients with their locks
  leasehold doctor                         check the store

Exit status, for every command:
   64  wrong arguments, url or name
   69  the store cannot be reached or does not answer
   70  an internal error: no thread could be started, or a bug
   71  the operating system refuses a thread, a pipe or a process
   74  the answer cannot be written
   77  the store refuses: permissions, a missing table, a record it cannot read
See `leasehold help COMMAND` for those of a command.
";

pub(super) const EXEC_HELP: &str = "\
Examples:
  leasehold exec nightly -- ./report.sh
      wait for the lock as long as it takes
  leasehold exec --no-wait --busy-status 0 sync -- rsync -a src/ dst/
      from cron: skip this round if the last one still runs
  leasehold exec --ttl 10s --wait 5m deploy -- make deploy
  leasehold exec --permits 3 convert -- ./convert.sh
      at most three at a time
  leasehold exec db -- sh -c 'psql -v fence=$LEASEHOLD_TOKEN -f write.sql'

Exit status: that of the command, or 128 + N if signal N ended it, except
   75  the lock could not be acquired: it was held, or not free within the wait
       (--busy-status)
   76  the lease was lost or in danger, or the lock was found broken when the
       command had ended (--lost-status)
  126  the command cannot be executed; the lock was released at once
  127  the command was not found; the lock was released at once
128+N  signal N came while waiting for the lock
and 64, 69, 70, 71, 77 as in `leasehold --help`. Whenever leasehold ends with a
status of its own, a line on stderr that begins with `leasehold:` explains it.

When the lease is lost:
  When less than a sixth of the ttl is left and no renewal has succeeded, the
  command's process group gets TERM. When 1/24 of the ttl is left (at least
  10ms, at most 1s), or the lease ends early because the lock was broken, it
  gets KILL. So does the rest of the group after the command has ended.
  With --on-lost ignore the command goes on beside the next holder, and its own
  status counts; there is a warning.
  If leasehold itself is killed, the command's group is killed too, and the lock
  is free when the ttl has passed.

Stopping:
  Ctrl-Z stops the command and leasehold. A stopped leasehold renews nothing:
  the lease expires after the ttl, others may get the lock, and on `fg` the
  command is killed instead of continued. If only the command is stopped, by
  `kill -STOP`, the lock stays held; --max-hold bounds that.

Not guaranteed:
  - While leasehold itself is stopped or starved, or KILL has not yet reached a
    command that hangs in the kernel, the command can write after its lease has
    ended. Only the protected resource can reject that, by comparing
    LEASEHOLD_TOKEN with the largest token it has seen.
  - A command that runs as another user cannot be signalled: sudo, su, setuid
    programs. It goes on when the lease is lost (a message says so) or leasehold
    is killed. Run `sudo leasehold exec` instead.
  - Processes that the command leaves behind when it ends are left alone, and
    the lock no longer covers them.
  - Processes that leave the command's process group (setsid, daemons) are not
    reached by any of the above.
  - Waiters are served in order only where the store keeps a queue of them:
    redis://, postgres://, sqlite: and memory:.
";

pub(super) const ELECT_HELP: &str = "\
Examples:
  leasehold elect scheduler -- ./scheduler
      on each machine: one of them runs it
  leasehold elect --ttl 10s feed -- ./consume --fence
      the next one takes over at most 10s after the leader's machine has died

Exit status: that of the command, or 128 + N if signal N ended it, except
   76  the lock was found broken when the command had ended (--lost-status); a
       leader that loses its lease earlier waits with the others
  126  the command cannot be executed; the next machine leads at once
  127  the command was not found; the next machine leads at once
128+N  signal N came while waiting to lead
and 64, 69, 70, 71, 77 as in `leasehold --help`; 69 only before the first
answer of the store.

For the lease, its loss, stopping, and what is not guaranteed, see
`leasehold help exec`. For a moment two machines may both act as the leader, so
let the resource that the command writes to compare LEASEHOLD_TOKEN.
";

pub(super) const ONCE_HELP: &str = "\
Examples:
  leasehold once --every 1d --wait 1h nightly -- ./report.sh
      in the crontab of each machine: one runs it, or another if that one dies
  leasehold once --cron '0 2 * * 1-5' --tz Europe/Berlin nightly -- ./report.sh
      on weekdays at 02:00 in Berlin, if it is started then or later
  leasehold once --key invoice-42 --keep 365d --wait 1h bill -- ./bill.sh 42
      stand by while another one bills, and take over if it dies
  leasehold once --cooldown 1h sync -- ./sync.sh
      at most once an hour
  leasehold once --forget --key 2026-11-24 nightly
      so that it is done again

Exit status: that of the command, or 128 + N if signal N ended it, except
    0  the job was done before; a line on stderr says by whom (--done-status);
       with --forget: the completion was removed
    1  with --forget: there is no completion
   73  the command succeeded, but the store did not confirm the record: the job
       may run again
   75  another client runs the job, and has not done it within the wait
       (--running-status)
   76  the lease was lost or in danger: no completion was written, and the job
       may run again (--lost-status)
   80  with --replace: a newer start has taken the place of this one
       (--replaced-status)
  126  the command cannot be executed; the next client may try at once
  127  the command was not found; the next client may try at once
128+N  signal N came while waiting for the other client
and 64, 69, 70, 71, 77 as in `leasehold --help`. Whenever leasehold ends with a
status of its own, a line on stderr that begins with `leasehold:` explains it.

When the command fails, by its status or a signal, the next client may run it at
once; with --keep-failures that counts as done. For the lease, its loss, and
stopping, see `leasehold help exec`.

Not guaranteed:
  - If a machine dies after the work is done, but before the completion is
    written, the job runs again. Once it is written, nobody runs the job until
    --keep is over, as long as the store keeps its records.
  - A run that lost its lease can overlap its successor. Only the protected
    resource can reject that, by comparing LEASEHOLD_TOKEN with the largest
    token it has seen.
";

pub(super) const INSPECT_HELP: &str = "\
Examples:
  leasehold inspect nightly               the lock of `leasehold exec nightly`
  leasehold inspect nightly --every 1d    the run of `leasehold once --every 1d`
  leasehold inspect bill --key 42        the run of `leasehold once --key 42`

Exit status:
    0  the lock is held; of a run: somebody runs it, or it is done
    1  the lock is free; of a run: neither
and 64, 69, 70, 74, 77 as in `leasehold --help`.

JSON: resource, held, store (its url, or several separated by spaces; files by
their full paths); if held also owner, token, since (RFC 3339), since_unix_ms,
ttl_ms, left_ms (until the lock is free unless renewed), session (its name),
data_bytes, foreign (written by another lock library), revoked (nobody renews
it any more), votes (the number of nodes that show it), nodes (that were asked;
1 for a single store). Of a run also done: null, or the completion: token,
owner, at (RFC 3339), at_unix_ms, left_ms (until it may be done again).
Values that the store does not show are null. A failure is
{\"error\": {\"kind\", \"message\"}}.
";

pub(super) const LIST_HELP: &str = "\
Examples:
  leasehold list                 all locks that are held
  leasehold list invoice/        those whose names begin with invoice/
  leasehold list --json | jq -r 'select(.foreign).resource'

Exit status:
    0  some lock is held
    1  none is
and 64, 69, 70, 74, 77 as in `leasehold --help`. If the store fails midway, the
locks before that are shown, and the status is that of the failure.

JSON lines: those of `leasehold inspect --json`, without store.

Redis: SCAN, for which the user needs +scan. DynamoDB: the whole table is read,
at one read unit for each 4 KiB, with the right dynamodb:Scan. Of a quorum, the
answer says how many nodes show the lock.
";

pub(super) const RUNS_HELP: &str = "\
Examples:
  leasehold runs                 all runs that are done or under way
  leasehold runs nightly@        the occurrences of one job
  leasehold runs --json | jq -r 'select(.done == null).resource'

Exit status:
    0  there is some run
    1  there is none
and 64, 69, 70, 74, 77 as in `leasehold --help`. If the store fails midway, the
runs before that are shown, and the status is that of the failure.

JSON lines: resource, name, key (null for the job as a whole), held, holder (as
`leasehold inspect --json` has it, or null) and done (the completion, or null).

It costs what `leasehold list` costs, and a read for each run on Redis and
DynamoDB.
";

pub(super) const SESSIONS_HELP: &str = "\
Examples:
  leasehold sessions
  leasehold sessions --json | jq -r '.session + \" \" + .locks[].resource'
  leasehold revoke --session worker-7
      ask the clients of that name to let go of all their locks

In DynamoDB, etcd and objects, a session is a record that is renewed in the
place of its locks, and two clients of one name have the sessions NAME and
NAME/2. It has no locks while its client holds none. If its process was killed,
the session stays until somebody takes one of its locks; if you know that the
process is dead, `leasehold break session:NAME` frees all of them at once. In
other stores, a session is a name beside each lock.

Exit status:
    0  some client has a session
    1  none has
and 64, 69, 70, 74, 77 as in `leasehold --help`.

JSON lines: session, since (or null), since_unix_ms (or null), revoked (true or
false), locks (a list; each as in `leasehold list --json`). What it costs, and
the rights that it needs, are those of `leasehold list`.
";

pub(super) const WATCH_HELP: &str = "\
Examples:
  leasehold watch nightly
  leasehold watch --json nightly | while read -r change; do ...; done

The first line is the state at the start. If the store does not answer, a line
says so, and another one shows the state when it answers again.

Exit status:
128+N  signal N ended it: 130 after Ctrl-C
and 64, 74, 77 as in `leasehold --help`; 69 if the store cannot be reached at
the start.

JSON lines: at (RFC 3339, by this machine's clock), change: held, free or
unreadable; if held, holder as in `leasehold inspect --json`; if unreadable,
error: kind, message.
";

pub(super) const BREAK_HELP: &str = "\
Examples:
  leasehold break nightly
      show the holder, ask, and take the lock from that holder
  leasehold break --token 1727695801234 --yes nightly
      in a script that has inspected the lock: only this lease
  leasehold break --owner 'worker-7:1234:*' --yes nightly
      in a supervisor that knows that this process has died

Comparing and releasing is one step: a holder that takes the lock in between
keeps it. The lock of another library is refused (77): release it with that
library's own tools.

Exit status:
    0  the lock was taken from its holder
    1  the lock was free already
    2  nothing was changed: not confirmed, held by another holder than the named
       one, or the lock changed hands while you were asked
and 64 (also: no terminal to ask on, and no --yes), 69, 70, 74, 77 as in
`leasehold --help`.

JSON: resource, broken (true or false), holder (as in `leasehold inspect
--json`, or null). A failure is {\"error\": {\"kind\", \"message\"}}.
";

pub(super) const REVOKE_HELP: &str = "\
Examples:
  leasehold revoke nightly
      show the holder, ask, and revoke its lease
  leasehold revoke --token 1727695801234 --yes nightly
      in a script that has inspected the lock: only this lease
  leasehold revoke --owner 'worker-7:*' --yes nightly
      before worker-7 is drained
  leasehold revoke --session 'ci-42*' --yes
      all locks of the processes whose sessions are named so, those that
      `leasehold sessions` shows with /2 and so on, too

`leasehold inspect` shows whether a lock is revoked, and by whom it is still
held. A command under `leasehold exec` gets TERM at once when its lease is
revoked. To free the lock of a holder that is known to be dead, use `leasehold
break`. The lock of another library is refused (77).

Exit status:
    0  the lease is revoked, by this call or an earlier one; its holder still
       has the lock until its work has ended, or its ttl
    1  the lock is free
    2  nothing was changed: not confirmed, held by another holder than the named
       one, or the lock changed hands while you were asked
and 64 (also: no terminal to ask on, and no --yes), 69 (also: revoked on too few
nodes of a quorum; try again), 70, 74, 77 as in `leasehold --help`. With
--session, 1 means that no such session has locks.

JSON: resource, revoked (true or false), holder (as in `leasehold inspect
--json`, or null); with --session the lines of `leasehold sessions --json`, of
those that were revoked. A failure is {\"error\": {\"kind\", \"message\"}}.
";

pub(super) const DOCTOR_HELP: &str = "\
Exit status:
    0  all checks are good
    1  warnings, and nothing worse
    2  a problem: locks are not reliable, or do not work at all; also if the
       store cannot be opened
and 64 (an empty --store), 74 as in `leasehold --help`.

With several --store, the nodes of a quorum are checked one by one and against
each other.

JSON: store (as in `leasehold inspect --json`; null if it cannot be read), worst
(good, warning or problem), findings: severity, check, what, advice.
";

pub(super) const INIT_HELP: &str = "\
Example:
  leasehold quorum init --store redis://a --store redis://b --store redis://c

Exit status:
    0  the nodes are members now, or were before
    1  nothing was done: the quorum exists, or is coming up, and nodes that do
       not vote yet come back by themselves
and 64 (also: a node has another quorum or max_ttl), 69, 74, 77 as in
`leasehold --help`.

With --force all nodes vote at once. If a client holds a lock meanwhile, or
believes that it does, two may hold it. After a change of nodes or of
--max-ttl: stop all clients, wait for the longest ttl, then use it. If a node
cannot be marked, the others are unmarked again.

JSON: quorum, result (marked, exists, recovering or coming_up), nodes (the
number that were marked), left_out and recovering (names). A failure is
{\"error\": {\"kind\", \"message\"}}.
";

pub(super) const STATUS_HELP: &str = "\
Exit status:
    0  a majority of the nodes votes
    1  it does not: no lock can be acquired
and 64, 74 as in `leasehold --help`.

JSON: quorum, max_ttl_ms, majority, voting, nodes: name, standing (member,
rejoined, joining, restarted, unmarked, stranger, unreadable, unreachable,
refused), answers, votes, quorum, max_ttl_ms, run, durable, meaning.
";

pub(super) const JOIN_HELP: &str = "\
Example, after a machine of the quorum was replaced:
  leasehold quorum join --store redis://a --store redis://b --store redis://c

It reports on stderr what it waits for and until when, and any change.

Exit status:
    0  all nodes that answer vote, and they are a majority
    1  they do not after the timeout; the answer names the nodes and reasons
and 64 (also: a node has another quorum or max_ttl), 69, 74, 77 as in
`leasehold --help`.

JSON: quorum, result (complete or timed_out), majority, voting, reasons, nodes
(as in `leasehold quorum status --json`). A failure is
{\"error\": {\"kind\", \"message\"}}.
";

pub(super) const CREATE_HELP: &str = "\
Examples:
  leasehold store create --store 'postgres://owner:secret@db/prod?schema=jobs'
  leasehold store create --store 'dynamodb://locks?region=eu-west-1'
  leasehold store create --read-units 5 --write-units 5 --tag team=billing \\
      --store 'dynamodb://locks?region=eu-west-1&expires=ttl'

Exit status:
    0  the table exists, created now or before
and 64 (also: the store needs no table), 69, 74, 77 (also: a table of that name
has other keys) as in `leasehold --help`.

On DynamoDB it needs dynamodb:CreateTable and DescribeTable; with --tag
TagResource; with expires in the url DescribeTimeToLive and UpdateTimeToLive.

JSON: result (made or exists; of PostgreSQL there), and for DynamoDB what
`leasehold store show --json` shows. A failure is
{\"error\": {\"kind\", \"message\"}}.
";

pub(super) const SHOW_HELP: &str = "\
Examples:
  leasehold store show --store 'postgres://app@db/prod' > migrations/locks.sql
  leasehold store show --store 'dynamodb://locks?region=eu-west-1'

Exit status:
    0  the table can be used; its SQL was printed
    1  it exists, but cannot be used now
and 64 (also: the store needs no table), 69, 74, 77 (also: the table does not
exist) as in `leasehold --help`.

JSON, PostgreSQL: sql. DynamoDB: name, status, keys (name, type), billing (mode:
on_demand or provisioned; read_units, write_units), expires (the attribute of
its time to live), replicas (Regions), consistency (strong or eventual),
witnesses (Regions), arn. Values that DynamoDB does not show, or not to us, are
null. A failure is {\"error\": {\"kind\", \"message\"}}.
";

pub(super) const PERMITS_HELP: &str = "\
Examples:
  leasehold permits set license 8
  leasehold permits set --readers catalog 32

Exit status:
    0  the number was changed
   75  somebody holds a permit, reads or writes; nothing was changed
and 64, 69, 77 as in `leasehold --help`.
";

pub(super) const COMPLETIONS_HELP: &str = "\
Examples:
  leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold
  leasehold completions fish > ~/.config/fish/completions/leasehold.fish
  leasehold completions zsh  > \"${fpath[1]}/_leasehold\"
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status;

    #[test]
    fn help_lists_the_statuses_that_are_used() {
        let listed = |help: &str, status: u8| help.lines().any(|line| line.starts_with(&format!("{status:>5}  ")));
        let main =
            [status::USAGE, status::UNAVAILABLE, status::INTERNAL, status::SYSTEM, status::OUTPUT, status::REFUSED];
        assert!(main.iter().all(|status| listed(MAIN_HELP, *status)));
        let exec = [status::BUSY, status::LOST, status::NOT_EXECUTABLE, status::NOT_FOUND];
        assert!(exec.iter().all(|status| listed(EXEC_HELP, *status)));
        assert!(EXEC_HELP.contains(&format!("{}+N", status::SIGNAL)));
        let once = [status::DONE, status::NOTHING, status::UNCONFIRMED];
        assert!(exec.iter().chain(&once).all(|status| listed(ONCE_HELP, *status)));
        let small = [status::DONE, status::NOTHING];
        assert!(
            small.iter().all(|status| listed(INSPECT_HELP, *status)
                && listed(LIST_HELP, *status)
                && listed(RUNS_HELP, *status))
        );
        let of_quorums = [INIT_HELP, STATUS_HELP, JOIN_HELP];
        assert!(of_quorums.iter().all(|help| small.iter().all(|status| listed(help, *status))));
        assert!(small.iter().all(|status| listed(SHOW_HELP, *status)) && listed(CREATE_HELP, status::DONE));
        assert!([status::DONE, status::BUSY].iter().all(|status| listed(PERMITS_HELP, *status)));
        let small = [status::DONE, status::NOTHING, status::NOT_DONE];
        assert!(small.iter().all(|status| listed(BREAK_HELP, *status) && listed(DOCTOR_HELP, *status)));
    }

    #[test]
    fn help_needs_no_wrapping_on_common_terminals() {
        let helps = [MAIN_HELP, EXEC_HELP, INSPECT_HELP, BREAK_HELP, DOCTOR_HELP, INIT_HELP, STATUS_HELP, JOIN_HELP];
        let more = [
            ONCE_HELP,
            CREATE_HELP,
            SHOW_HELP,
            PERMITS_HELP,
            LIST_HELP,
            RUNS_HELP,
            WATCH_HELP,
            REVOKE_HELP,
            SESSIONS_HELP,
        ];
        for help in helps.into_iter().chain(more) {
            assert!(help.lines().all(|line| line.len() <= 80), "{help}");
        }
    }
}

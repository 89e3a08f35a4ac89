//! The completion of a run, written in the transaction of its work.

use std::fmt;

use leasehold_core::op::Finish;
use leasehold_core::{RunResult, Token};
use leasehold_wire::postgres::{Codec, Settings};

use crate::client::{Backend, Client, Shared};
use crate::driver::{Caller, LeaseState, Purpose};
use crate::error::{Error, ErrorKind};
use crate::host::sync::Arc;
use crate::url::postgres::PostgresUrl;

/// A statement that marks the work of a run as done, for the transaction in which the work is done: see
/// [`Run::completion_in`](crate::Run::completion_in).
#[derive(Clone)]
#[non_exhaustive]
pub struct CompletionStatement {
    /// The text, with one parameter, `$1`. It answers one row.
    pub sql: String,
    /// The parameter, a `text[]`. Keep it out of logs: it is enough to end the run.
    pub parameter: Vec<String>,
}

impl fmt::Debug for CompletionStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionStatement").field("sql", &self.sql).finish_non_exhaustive()
    }
}

/// The statement that marks a run with this token.
///
/// # Errors
/// [`ErrorKind::Config`] where the store is no single PostgreSQL database, or the lease is none of a run;
/// [`ErrorKind::Lost`] where it is over.
pub(crate) fn statement(
    shared: &Shared,
    state: &LeaseState,
    token: u64,
    result: Option<&RunResult>,
) -> Result<CompletionStatement, Error> {
    let url = database(shared).map_err(|error| error.on(state.resource().as_str()))?;
    let Purpose::Run { keep } = state.purpose() else {
        return Err(Error::config("only a run has a completion: begin it with `once`").on(state.resource().as_str()));
    };
    let over = || Error::new(ErrorKind::Lost, "the lease is over").on(state.resource().as_str());
    let nonce = shared.driver().nonce(state).filter(|_| !state.remaining().is_zero());
    let nonce = nonce.ok_or_else(|| state.loss().unwrap_or_else(over))?;
    let token = Token::new(token).unwrap_or(Token::ZERO);
    let about = result.and_then(|result| shared.driver().about(state, result));
    let finish = Finish { nonce, token, counter: token, keep, owner: state.owner().clone(), about, quorum: None };
    let codec = Codec::new(&Settings { schema: url.schema.clone(), ..Settings::default() });
    let (sql, parameter) = codec.completion_in(state.resource(), &finish);
    Ok(CompletionStatement { sql, parameter })
}

fn database(shared: &Shared) -> Result<&PostgresUrl, Error> {
    let Backend::Store(store) = shared.backend() else {
        return Err(Error::config(
            "the completion of a quorum is on several nodes, and a transaction is on one: use a single PostgreSQL \
             database",
        ));
    };
    store.of().ok_or_else(|| {
        Error::config(format!(
            "{store} cannot write a completion in your transaction: keep the lock in the PostgreSQL database of the \
             work"
        ))
    })
}

/// Looks if the completion that a transaction has written bears this result: a finish that finds it adds nothing. The reason, if it
/// does not.
///
/// # Errors
/// As [`Client::inspect`](crate::Client::inspect).
pub(crate) async fn confirm_result(
    shared: &Arc<Shared>,
    resource: &str,
    result: &RunResult,
    caller: Caller,
) -> Result<Option<&'static str>, Error> {
    let client = Client { shared: Arc::clone(shared), caller };
    let (_, done) = client.inspect_marked(resource).await?;
    let kept = done.and_then(|completion| completion.result);
    let is_kept = kept == Some(crate::RunResult::shown(result));
    Ok((!is_kept).then_some("your transaction has written the completion without it: give it to `completion_in`"))
}

/// Looks if the completion of a run whose transaction was given one stands. That transaction holds the row of the lock to its end,
/// for longer than the lease perhaps, which then could not be renewed.
///
/// # Errors
/// The error of the finish, if the completion does not stand; [`ErrorKind::FinishUnconfirmed`] if nobody can tell.
pub(crate) async fn confirm(
    shared: &Arc<Shared>,
    resource: &str,
    token: u64,
    finished: Error,
    caller: Caller,
) -> Result<(), Error> {
    let client = Client { shared: Arc::clone(shared), caller };
    match client.inspect_marked(resource).await {
        Ok((_, Some(completion))) if completion.token == token => Ok(()),
        Ok(_) => Err(finished),
        Err(why) => {
            let message =
                format!("it is not known whether the transaction with the completion of this run was committed: {why}");
            Err(Error::new(ErrorKind::FinishUnconfirmed, message).on(resource))
        }
    }
}

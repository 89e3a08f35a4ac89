//! The login: user and password, database, and the name of the library.

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_wire::redis::{Command, refusal};
use leasehold_wire::resp::Value;
use zeroize::Zeroizing;

use super::super::link::NoConnection;
use super::Opened;
use crate::transport::info::printable;

/// User, password and database: the first words to a server.
#[derive(Clone)]
pub(in super::super) struct Login {
    pub(in super::super) username: Option<String>,
    pub(in super::super) password: Option<Zeroizing<String>>,
    /// 0 by default.
    pub(in super::super) database: u32,
}

/// How much is said beside the login. Some proxies close the connection on commands that they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Courtesy {
    /// The name of the library, and the question for the server's role.
    Full,
    /// Only that question.
    Role,
    /// The same once more: a server that dies closes connections too.
    RoleAgain,
    /// Nothing: the server is taken for a master, as where the user may not ask.
    None,
}

impl Courtesy {
    pub(in super::super) const fn less(self) -> Option<Self> {
        match self {
            Self::Full => Some(Self::Role),
            Self::Role => Some(Self::RoleAgain),
            Self::RoleAgain => Some(Self::None),
            Self::None => None,
        }
    }
}

impl From<u8> for Courtesy {
    fn from(left_out: u8) -> Self {
        match left_out {
            0 => Self::Full,
            1 => Self::Role,
            2 => Self::RoleAgain,
            _ => Self::None,
        }
    }
}

impl From<Courtesy> for u8 {
    fn from(courtesy: Courtesy) -> Self {
        match courtesy {
            Courtesy::Full => 0,
            Courtesy::Role => 1,
            Courtesy::RoleAgain => 2,
            Courtesy::None => 3,
        }
    }
}

/// Logs in on a new connection.
///
/// # Errors
/// The server refuses, or the connection breaks.
pub(in super::super) async fn greet(
    opened: &mut Opened,
    login: &Login,
    courtesy: Courtesy,
) -> Result<(), NoConnection> {
    let greeted = say(opened, login, courtesy).await;
    // The password was in these bytes.
    opened.forget_what_was_sent();
    greeted
}

async fn say(opened: &mut Opened, login: &Login, courtesy: Courtesy) -> Result<(), NoConnection> {
    let first = commands(login, login.username.as_deref(), courtesy);
    let mut replies = opened.call(&first).await.map_err(NoConnection::Fault)?;
    // Servers before Redis 6 know passwords only.
    let knows_no_users =
        |reply: &Value| reply.as_error().is_some_and(|said| said.contains("wrong number of arguments"));
    if login.password.is_some() && login.username.is_some() && replies.first().is_some_and(knows_no_users) {
        replies = opened.call(&commands(login, None, courtesy)).await.map_err(NoConnection::Fault)?;
    }
    let mut replies = replies.iter();
    if login.password.is_some()
        && let Some(said) = replies.next().and_then(Value::as_error)
    {
        return Err(NoConnection::Refused(refused_login(&printable(said))));
    }
    if login.database != 0
        && let Some(said) = replies.next().and_then(Value::as_error)
    {
        let said = printable(said);
        return Err(refusal(&said).map_or_else(
            || NoConnection::Fault(Fault::new(FaultKind::Server, &format!("database {}: {said}", login.database))),
            NoConnection::Refused,
        ));
    }
    // Older servers do not know the rest. What closes connections on `CLIENT` has done so.
    opened.may_be_named = courtesy == Courtesy::Full;
    Ok(())
}

fn commands(login: &Login, username: Option<&str>, courtesy: Courtesy) -> Vec<Command> {
    let mut commands = Vec::with_capacity(4);
    if let Some(password) = &login.password {
        commands.push(Command::new(["AUTH"].into_iter().chain(username).chain([password.as_str()])));
    }
    if login.database != 0 {
        commands.push(Command::new(["SELECT", &login.database.to_string()]));
    }
    if courtesy != Courtesy::Full {
        // A proxy without a server behind it may take connections and close them, so something has to be answered.
        if commands.is_empty() {
            commands.push(Command::new(["PING"]));
        }
        return commands;
    }
    for [what, value] in [["LIB-NAME", "leasehold"], ["LIB-VER", env!("CARGO_PKG_VERSION")]] {
        commands.push(Command::new(["CLIENT", "SETINFO", what, value]));
    }
    commands
}

fn refused_login(said: &str) -> Refusal {
    refusal(said).unwrap_or_else(|| {
        let detail = format!("the server refuses user and password of the store url: {said}");
        Refusal::Denied(Denial::new(DenialKind::Permission, &detail))
    })
}

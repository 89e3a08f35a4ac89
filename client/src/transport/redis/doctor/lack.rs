//! Tells by a server's refusal of a command which right its user lacks.

use leasehold_wire::resp::Value;

/// A reason why a server refused a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// The server does not have it.
    Command,
    /// The user may not run it.
    Right,
    /// The user may not use its key or channel.
    Place,
}

impl Lack {
    /// `None` if the command was not refused, or for another reason than permissions, which a trial will show too.
    pub(super) fn of(reply: &Value) -> Option<Self> {
        let error = reply.as_error()?.to_ascii_lowercase();
        // The refusal of `EXEC` itself.
        let error = error.strip_prefix("execabort transaction discarded because of: ").unwrap_or(&error);
        if error.contains("unknown command") {
            Some(Self::Command)
        } else if !error.starts_with("noperm") {
            None
        } else if error.contains("permissions to run") {
            Some(Self::Right)
        } else {
            Some(Self::Place)
        }
    }

    /// The rule that a command needs, where `place` is that of its key or channel.
    pub(super) fn rule(self, name: &str, place: &str) -> String {
        match self {
            Self::Command | Self::Right => format!("+{name}"),
            Self::Place => place.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_rule_that_is_missing() {
        let rule = |error: &str| Some(Lack::of(&Value::Error(error.to_owned()))?.rule("zadd", "~{jobs/*"));
        let named = |rule: &str| Some(rule.to_owned());
        assert_eq!(rule("NOPERM User x has no permissions to run the 'zadd' command"), named("+zadd"));
        assert_eq!(rule("NOPERM No permissions to access a key"), named("~{jobs/*"));
        assert_eq!(rule("ERR unknown command 'ZADD', with args beginning with"), named("+zadd"));
        assert_eq!(rule("OOM command not allowed"), None);
    }
}

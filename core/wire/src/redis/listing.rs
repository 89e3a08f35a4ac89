//! Pages of the locks of one server, by `SCAN`.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use leasehold_core::Resource;
use leasehold_core::op::{Denial, DenialKind, Outcome, Refusal};

use super::keys::done_of;
use super::replies::protocol;
use super::{Command, error_outcome, said};
use crate::listing::{PAGE, Page, Which};
use crate::resp::Value;

/// The name of a key is short enough and no lock's part, and its value is a lease of ours, which begins with its nonce, or `!` and its
/// nonce where it is revoked.
macro_rules! is_ours {
    () => {
        r"local nonce = string.rep('[0-9a-f]', 32)
local function is_ours(key)
  if #key > 1024 or string.find(key, '\31', 1, true) then return false end
  local head = redis.pcall('GETRANGE', key, 0, 32)
  return type(head) == 'string' and (string.find(head, '^' .. nonce .. '@$') or string.find(head, '^!' .. nonce .. '$'))
end
"
    };
}

/// A page of the keys of which a condition is true. ARGV: cursor, pattern, number of keys to look at. Keys of other programs are left
/// out here, so that no reply is longer than our names.
macro_rules! page_where {
    ($condition:literal) => {
        concat!(
            "local page = redis.pcall('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
if page.err then return page end
",
            is_ours!(),
            "local reply = {page[1]}
for _, key in ipairs(page[2]) do
  if ",
            $condition,
            " then reply[#reply + 1] = key end
end
return reply
"
        )
    };
}

const NAMES: &str = page_where!("is_ours(key)");

/// Runs that are done have a key beside the lock's, and those under way have the lock's alone.
const RUNS: &str = page_where!(r"(#key <= 1044 and string.find(key, '\31done', 1, true)) or is_ours(key)");

/// Asks one server for a page of the names that begin with `prefix`; [`listed`] reads the reply. `after` is empty for the
/// first page. A name may come more than once.
pub fn list(prefix: &str, after: &[u8], which: Which) -> Command {
    let cursor = if after.is_empty() { b"0" } else { after };
    let (script, pattern) = match which {
        Which::Held => (NAMES, pattern(prefix)),
        // The key with a completion may begin with a brace.
        Which::Runs => (RUNS, b"*@*".to_vec()),
    };
    Command::new([&b"EVAL"[..], script.as_bytes(), b"0", cursor, &pattern, PAGE.to_string().as_bytes()])
}

/// Reads the reply to [`list`].
///
/// # Errors
/// The server refuses, or its reply is no page.
pub fn listed(prefix: &str, reply: &Value) -> Result<Page, Outcome> {
    if let Some(error) = reply.as_error() {
        let is_forbidden = error.contains("NOPERM") || error.contains("can't run this command");
        let advice =
            format!("to list locks, the user also needs the command SCAN: +scan (the server said: {})", said(error));
        let denial = Denial::new(DenialKind::Permission, &advice);
        return Err(if is_forbidden { Outcome::NotApplied(Refusal::Denied(denial)) } else { error_outcome(error) });
    }
    let misfit = || protocol("the reply is no page of names");
    let Value::Array(parts) = reply else { return Err(misfit()) };
    let (cursor, names) = parts.split_first().ok_or_else(misfit)?;
    let cursor = cursor.as_bytes().filter(|cursor| !cursor.is_empty() && cursor.iter().all(u8::is_ascii_digit));
    let cursor = cursor.ok_or_else(misfit)?;
    let named = |key: &Value| {
        let key = core::str::from_utf8(key.as_bytes()?).ok()?;
        if key.contains('\x1f') { done_of(key) } else { Resource::new(key).ok() }
    };
    let names = names.iter().filter_map(named).filter(|name| name.as_str().starts_with(prefix));
    Ok(Page::of_names(names, (cursor != b"0").then(|| cursor.to_vec())))
}

/// The pattern of all keys that begin so.
fn pattern(prefix: &str) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(prefix.len() + 1);
    for byte in prefix.bytes() {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^' | b'-') {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern.push(b'*');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    #[test]
    fn the_prefix_is_taken_literally() {
        assert_eq!(pattern("a*[b]?\\"), b"a\\*\\[b\\]\\?\\\\*");
        let command = list("x", b"17", Which::Held);
        assert_eq!(command.words().skip(2).collect::<Vec<_>>(), [&b"0"[..], b"17", b"x*", b"250"]);
        assert_eq!(list("", b"", Which::Runs).words().skip(3).collect::<Vec<_>>(), [&b"0"[..], b"*@*", b"250"]);
    }

    #[test]
    fn a_page_is_its_names_and_the_next_cursor() {
        let reply = Value::Array(vec![bulk("7"), bulk("a/1"), bulk("b"), bulk("a/\u{7}"), Value::Bulk(vec![0xff])]);
        let page = listed("a/", &reply).unwrap();
        assert_eq!((page.records.len(), page.next), (1, Some(b"7".to_vec())));
        assert_eq!(listed("", &Value::Array(vec![bulk("0")])), Ok(Page::default()));
        let done =
            ["{a/1@}\x1fdone of name", "{b}@\x1fdone", "{a/2@}\x1ffence of name", "a/3@\x1fdone", "\x1fdone of name"];
        let page = listed("a/", &Value::Array([&["0"][..], &done].concat().into_iter().map(bulk).collect())).unwrap();
        assert_eq!(page, Page::of_names([Resource::new("a/1@").unwrap()], None));
    }

    #[test]
    fn other_replies_are_no_page() {
        let denied = Value::Error("NOPERM this user has no permissions to run the 'scan' command".into());
        assert!(matches!(listed("", &denied), Err(Outcome::NotApplied(_))));
        let odd = [Value::Nil, Value::Array(vec![]), Value::Array(vec![bulk("-1")]), Value::Array(vec![Value::Nil])];
        for odd in odd {
            assert!(matches!(listed("", &odd), Err(Outcome::Unknown(_))), "{odd:?}");
        }
    }
}

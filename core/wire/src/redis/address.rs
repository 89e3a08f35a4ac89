//! Where servers say that others are.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use crate::resp::Value;

const LONGEST_HOST: usize = 255;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name, or a number without brackets.
    pub host: String,
    /// The port, not 0.
    pub port: u16,
}

impl Address {
    /// As a server told it; `None` if that is no name or number of a host, or no port.
    pub fn told(host: &str, port: impl TryInto<u16>) -> Option<Self> {
        let is_of_a_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        let is_host = (1..=LONGEST_HOST).contains(&host.len()) && host.bytes().all(is_of_a_host);
        let port = port.try_into().ok().filter(|port| *port != 0)?;
        is_host.then(|| Self { host: host.to_owned(), port })
    }

    /// The master, from a Sentinel's reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`; `None` if it knows none.
    pub fn of_master(reply: &Value) -> Option<Self> {
        let Value::Array(parts) = reply else { return None };
        let [Value::Bulk(host), Value::Bulk(port)] = parts.as_slice() else { return None };
        let port: u16 = core::str::from_utf8(port).ok()?.parse().ok()?;
        Self::told(core::str::from_utf8(host).ok()?, port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn a_host_is_a_name_or_a_number() {
        let shown = |host: &str, port: i64| Address::told(host, port).map(|address| address.to_string());
        assert_eq!(shown("cache-1.local", 6379).as_deref(), Some("cache-1.local:6379"));
        assert_eq!(shown("::1", 7).as_deref(), Some("[::1]:7"));
        assert_eq!(shown("fe80::1%eth0", 65_535).as_deref(), Some("[fe80::1%eth0]:65535"));
        for (host, port) in [("", 1), ("a", 0), ("a", -1), ("a", 65_536), ("a b", 1), ("a\u{1b}", 1), ("é", 1)] {
            assert_eq!(shown(host, port), None, "{host:?} {port}");
        }
        assert_eq!(shown(&"a".repeat(256), 1), None);
    }

    #[test]
    fn a_sentinel_names_the_master() {
        let reply = |host: &str, port: &str| Value::Array(vec![Value::Bulk(host.into()), Value::Bulk(port.into())]);
        assert_eq!(Address::of_master(&reply("10.0.0.1", "6379")), Address::told("10.0.0.1", 6379));
        for odd in [Value::Nil, Value::Array(vec![]), reply("", "1"), reply("a", "x"), reply("a", "65536")] {
            assert_eq!(Address::of_master(&odd), None, "{odd:?}");
        }
    }
}

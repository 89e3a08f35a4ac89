//! Settings of a codec for its table, checked by DynamoDB's own rules before anything is sent.

use alloc::sync::Arc;

use super::record::OURS;
use leasehold_core::op::{Denial, DenialKind};

/// Which table, and how its keys are called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    table: Arc<str>,
    key: Arc<str>,
    sort_key: Option<SortKey>,
    expires: Option<Arc<str>>,
}

/// A second half of the table's primary key, the same for all locks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The attribute.
    pub name: Arc<str>,
    /// The attribute's value.
    pub value: Arc<str>,
}

impl Settings {
    /// The partition key's attribute unless another is named, as in the AWS lock client for Java.
    pub const KEY: &str = "key";

    /// The longest name of an attribute, in bytes.
    pub const MAX_NAME: usize = 255;

    /// The longest value of a sort key, in bytes.
    pub const MAX_SORT_VALUE: usize = 1024;

    /// A table by its name or its ARN, with the partition key [`Settings::KEY`] and no sort key.
    ///
    /// # Errors
    /// A name that is not 3 to 255 of `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`, nor the ARN of a table of such a name.
    pub fn new(table: &str) -> Result<Self, Denial> {
        let is_name = |name: &str| {
            (3..=255).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        };
        if !is_name(table) && !table_of(table).is_some_and(is_name) {
            let table = shortened(table);
            return Err(refused(&alloc::format!(
                "{table:?} is not the name of a table: write 3 to 255 letters, digits, `_`, `-` and `.`, or is an ARN, \
                 arn:aws:dynamodb:REGION:ACCOUNT:table/NAME"
            )));
        }
        Ok(Self { table: table.into(), key: Self::KEY.into(), sort_key: None, expires: None })
    }

    /// Another name for the partition key's attribute.
    ///
    /// # Errors
    /// An empty name, one longer than [`Settings::MAX_NAME`], one with a control character, or one that is in use.
    pub fn key(self, name: &str) -> Result<Self, Denial> {
        self.checked("key", name, [self.sort_name(), self.expires.as_deref()])?;
        Ok(Self { key: name.into(), ..self })
    }

    /// A table with a sort key, and the value that it has for all locks.
    ///
    /// # Errors
    /// As for [`Settings::key`]; a value that is empty, longer than [`Settings::MAX_SORT_VALUE`], or has a control
    /// character.
    pub fn sort_key(self, name: &str, value: &str) -> Result<Self, Denial> {
        self.checked("sort key", name, [Some(&*self.key), self.expires.as_deref()])?;
        bounded("value of the sort key", value, Self::MAX_SORT_VALUE)?;
        Ok(Self { sort_key: Some(SortKey { name: name.into(), value: value.into() }), ..self })
    }

    /// An attribute for DynamoDB's time to live: 7 days after the last write, in seconds since 1970. What it removes in
    /// time is counters that nobody has used for as long; nothing here relies on it.
    ///
    /// It is the one thing that goes by wall clocks: DynamoDB would remove a lock that is held by a client whose clock is 7
    /// days behind. AWS refuses the signatures of such a clock. Where nobody checks them, as in DynamoDB Local, see to the
    /// clocks or leave this out.
    ///
    /// # Errors
    /// As for [`Settings::key`].
    pub fn expires(self, name: &str) -> Result<Self, Denial> {
        self.checked("expiry", name, [Some(&*self.key), self.sort_name()])?;
        Ok(Self { expires: Some(name.into()), ..self })
    }

    /// The table, by name or ARN.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The table's name, also where it was given by its ARN.
    pub fn table_name(&self) -> &str {
        table_of(&self.table).unwrap_or(&self.table)
    }

    /// The Region that the table's ARN names; `None` where it was given by its name alone.
    pub fn region(&self) -> Option<&str> {
        table_of(&self.table).and_then(|_| self.table.split(':').nth(3))
    }

    /// The partition key's attribute.
    pub fn key_name(&self) -> &str {
        &self.key
    }

    /// The sort key.
    pub fn sort(&self) -> Option<&SortKey> {
        self.sort_key.as_ref()
    }

    /// The attribute for DynamoDB's time to live.
    pub fn expires_name(&self) -> Option<&str> {
        self.expires.as_deref()
    }

    /// Returns true if the locks keep something of their own in an attribute of this name.
    pub fn reserves(name: &str) -> bool {
        OURS.contains(&name)
    }

    fn sort_name(&self) -> Option<&str> {
        self.sort_key.as_ref().map(|sort| &*sort.name)
    }

    fn checked(&self, what: &str, name: &str, taken: [Option<&str>; 2]) -> Result<(), Denial> {
        bounded(&alloc::format!("attribute for the {what}"), name, Self::MAX_NAME)?;
        if Self::reserves(name) || taken.contains(&Some(name)) {
            return Err(refused(&alloc::format!(
                "{name:?} cannot be the attribute for the {what}: the lock keeps something else there; choose another"
            )));
        }
        Ok(())
    }
}

/// The name in a table's ARN.
fn table_of(arn: &str) -> Option<&str> {
    let mut parts = arn.splitn(6, ':');
    let head = (parts.next()?, parts.next()?, parts.next()?);
    let (region, account) = (parts.next()?, parts.next()?);
    let is_plain = |part: &str| {
        !part.is_empty() && part.len() <= 64 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_table = head.0 == "arn" && head.1.starts_with("aws") && is_plain(head.1) && head.2 == "dynamodb";
    (is_table && is_plain(region) && is_plain(account)).then(|| parts.next()?.strip_prefix("table/"))?
}

fn bounded(what: &str, text: &str, most: usize) -> Result<(), Denial> {
    if text.is_empty() || text.len() > most {
        let bytes = text.len();
        return Err(refused(&alloc::format!("the {what} has {bytes} bytes; it has 1 to {most}")));
    }
    if text.chars().any(char::is_control) {
        return Err(refused(&alloc::format!("the {what} has a control character; it holds printable text only")));
    }
    Ok(())
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

fn refused(detail: &str) -> Denial {
    Denial::new(DenialKind::Other, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    const ARN: &str = "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/a.b_c-D9";

    #[test]
    fn tables_are_named_as_dynamodb_wants_it() {
        let longest = "x".repeat(255);
        for table in ["abc", "a.b_c-D9", &longest, ARN] {
            assert_eq!(Settings::new(table).unwrap().table(), table);
        }
        assert_eq!(Settings::new(ARN).unwrap().table_name(), "a.b_c-D9");
        assert_eq!(Settings::new(ARN).unwrap().region(), Some("us-gov-west-1"));
        assert_eq!(Settings::new("abc").unwrap().region(), None);
        let too_long = "x".repeat(256);
        for table in [
            "",
            "ab",
            "a b",
            "tablé",
            "a/b",
            "a:b",
            &too_long,
            "arn:aws:dynamodb:eu-west-1:123456789012:table/ab",
            "arn:aws:dynamodb:eu-west-1:123456789012:table/abc/index/x",
            "arn:aws:dynamodb:eu-west-1:123456789012:stream/abc",
            "arn:aws:sqs:eu-west-1:123456789012:table/abc",
            "arn:aws:dynamodb::123456789012:table/abc",
            "arn:aws:dynamodb",
            "arn:my:dynamodb:eu-west-1:123456789012:table/abc",
        ] {
            assert!(Settings::new(table).is_err(), "{table}");
        }
        let told = |table: &str| Settings::new(table).unwrap_err().detail;
        assert!(told("a b").starts_with("\"a b\" is not the name of a table"), "{}", told("a b"));
        let (long, shown) = ("é".repeat(60), "é".repeat(50));
        assert!(told(&long).starts_with(&alloc::format!("{shown:?} is not the name")), "{}", told(&long));
    }

    #[test]
    fn attributes_do_not_get_into_each_others_way() {
        let plain = || Settings::new("locks").unwrap();
        assert_eq!((plain().key_name(), plain().sort(), plain().expires_name()), ("key", None, None));
        let all = plain().key("LockID").unwrap().sort_key("sk", "-").unwrap().expires("ttl").unwrap();
        assert_eq!((all.key_name(), all.expires_name()), ("LockID", Some("ttl")));
        assert_eq!(all.sort().map(|sort| (&*sort.name, &*sort.value)), Some(("sk", "-")));
        assert!(Settings::reserves("quorumTrust") && !Settings::reserves("key"));
        for name in ["", "a\nb", &"x".repeat(256), "ownerName", "fencingToken", "quorumMarker"] {
            assert!(plain().key(name).is_err(), "{name}");
            assert!(plain().sort_key(name, "-").is_err(), "{name}");
            assert!(plain().expires(name).is_err(), "{name}");
        }
        assert!(all.clone().key("sk").is_err() && all.clone().key("ttl").is_err());
        assert!(all.clone().sort_key("LockID", "-").is_err() && all.clone().sort_key("ttl", "-").is_err());
        assert!(all.clone().expires("LockID").is_err() && all.expires("sk").is_err());
        for value in [String::new(), "x".repeat(1025), "\u{1f}".into()] {
            assert!(plain().sort_key("sk", &value).is_err(), "{value}");
        }
        assert!(plain().sort_key(&"x".repeat(255), &"x".repeat(1024)).is_ok());
    }
}

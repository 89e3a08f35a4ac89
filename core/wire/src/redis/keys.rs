//! Which keys and which channel belong to a resource.
//!
//! The lock is the resource itself, where other libraries look for it. The rest is told apart by the byte 0x1F, which
//! no resource contains, and lies in the hash slot of the lock.

use leasehold_core::Resource;
use leasehold_core::op::{Denial, DenialKind};

const SEPARATOR: &[u8] = &[0x1f];

/// A key or channel that belongs to a resource, in parts.
pub(super) type Beside<'a> = [&'a [u8]; 6];

/// The key with what a node of a quorum remembers of its membership.
pub(super) const MARKER: &[u8] = b"leasehold\x1fquorum";
/// The beginning of the channels of clients.
pub(super) const CLIENTS: &[u8] = b"leasehold\x1fclient\x1f";
/// How many slots the keys of a cluster are spread over.
pub const SLOTS: u16 = 16_384;

/// Returns the text between the first `{` and the first `}` after it, unless that is empty: the part that a cluster
/// hashes instead of the whole key.
pub(super) fn hash_tag(resource: &str) -> Option<&str> {
    let (_, rest) = resource.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

/// The slot of a key on a cluster, below [`SLOTS`]: CRC-16/XMODEM of its hash tag, or of the whole key if it has none.
pub fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    tag.unwrap_or(key).iter().fold(0_u16, |crc, byte| shifted(crc ^ u16::from(*byte) << 8)) % SLOTS
}

fn shifted(crc: u16) -> u16 {
    (0..8).fold(crc, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
}

/// Names what belongs to a resource.
#[derive(Clone, Copy)]
pub(super) struct Family<'a> {
    name: &'a [u8],
    has_hash_tag: bool,
}

/// The keys and the channel of a resource, whose name is looked at once for all of them.
pub(super) fn of(resource: &Resource) -> Family<'_> {
    let name = resource.as_str();
    Family { name: name.as_bytes(), has_hash_tag: hash_tag(name).is_some() }
}

impl<'a> Family<'a> {
    /// The key with the counter.
    pub(super) fn fence(self) -> Beside<'a> {
        self.beside(b"fence")
    }

    /// The key with the loss of memory since which the counter was raised.
    pub(super) fn trust(self) -> Beside<'a> {
        self.beside(b"trust")
    }

    /// The key with the completion of finished work.
    pub(super) fn done(self) -> Beside<'a> {
        self.beside(b"done")
    }

    /// The key with the record of the run that wrote the completion.
    pub(super) fn about(self) -> Beside<'a> {
        self.beside(b"about")
    }

    /// The key with the queue of waiters.
    pub(super) fn queue(self) -> Beside<'a> {
        self.beside(b"line")
    }

    /// The key with an item of compare-and-set.
    pub(super) fn item(self) -> Beside<'a> {
        self.beside(b"item")
    }

    /// The channel on which releases are announced.
    pub(super) fn channel(self) -> Beside<'a> {
        self.beside(b"wake")
    }

    /// Braces put a name without a hash tag into the slot of its lock. The ending differs then, or `x` and `{x}` would
    /// share what lies beside them.
    fn beside(self, what: &'a [u8]) -> Beside<'a> {
        if self.has_hash_tag {
            [b"", self.name, b"", SEPARATOR, what, b""]
        } else {
            [b"{", self.name, b"}", SEPARATOR, what, b" of name"]
        }
    }
}

/// The resource of a key with a completion; `None` for any other key.
pub(super) fn done_of(key: &str) -> Option<Resource> {
    let (name, _) = key.split_once('\x1f')?;
    let bare = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
    let resources = [Some(name), bare].into_iter().flatten().filter_map(|name| Resource::new(name).ok());
    resources.into_iter().find(|resource| of(resource).done().concat() == key.as_bytes())
}

/// On a cluster the keys of a resource must share a slot, which no braces around it can bring about in this case.
pub(super) fn check_cluster(resource: &Resource) -> Result<(), Denial> {
    let name = resource.as_str();
    if name.contains('}') && hash_tag(name).is_none() {
        let detail = alloc::format!(
            "the name {name:?} cannot be locked on a Redis Cluster: it has a `}}` but no hash tag (a `{{`, at least one \
             byte and a `}}`), so its keys would lie in different slots; choose another name"
        );
        return Err(Denial::new(DenialKind::Other, &detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Resource {
        Resource::new(name).unwrap()
    }

    #[test]
    fn keys_are_these_bytes() {
        assert_eq!(of(&named("invoice/42")).fence().concat(), b"{invoice/42}\x1ffence of name");
        assert_eq!(of(&named("{user}/42")).fence().concat(), b"{user}/42\x1ffence");
        assert_eq!(of(&named("a{b")).fence().concat(), b"{a{b}\x1ffence of name");
        assert_eq!(of(&named("{}a")).fence().concat(), b"{{}a}\x1ffence of name");
        assert_eq!(of(&named("invoice/42")).channel().concat(), b"{invoice/42}\x1fwake of name");
        assert_eq!(of(&named("{user}/42")).channel().concat(), b"{user}/42\x1fwake");
    }

    #[test]
    fn keys_of_completions_tell_their_resource() {
        for name in ["job@", "{user}@42", "a{b@", "{}a@", "{x}", "{{x}}@", "}@"].map(named) {
            assert_eq!(done_of(core::str::from_utf8(&of(&name).done().concat()).unwrap()), Some(name));
        }
        for other in ["job@", "{job@}\x1ffence of name", "job@\x1fdone of name", "\x1fdone", "\x1fdone of name"] {
            assert_eq!(done_of(other), None, "{other:?}");
        }
    }

    #[test]
    fn no_two_names_share_a_key_or_a_channel() {
        let names = ["x", "{x}", "{{x}}", "a{x}", "{a{x}}", "{", "{{", "{}", "{{}}", "}", "{}}"].map(named);
        let all = names.iter().flat_map(|name| {
            [Family::fence, Family::trust, Family::done, Family::about, Family::queue, Family::item, Family::channel]
                .map(|beside| beside(of(name)).concat())
                .into_iter()
                .chain([name.as_str().into()])
        });
        assert_eq!(all.collect::<alloc::collections::BTreeSet<_>>().len(), names.len() * 8);
    }

    #[test]
    fn keys_of_a_name_share_a_slot_or_the_name_is_refused() {
        // The first is the check value of the specification; a server gives the others.
        for (key, expected) in [("123456789", 12739), ("", 0), ("foo{}{bar}", 8363), ("{user1000}.x", 3443)] {
            assert_eq!(slot(key.as_bytes()), expected, "{key:?}");
        }
        for name in ["a", "{a}", "a{b}c", "a{b", "{", "a{b}}", "{a}{b}", "x{{y}z}", "}{a}", "a{{}}b", "{{a}"] {
            let resource = named(name);
            assert_eq!(check_cluster(&resource), Ok(()), "{name}");
            assert_eq!(slot(name.as_bytes()), slot(&of(&resource).fence().concat()), "{name}");
            assert_eq!(slot(name.as_bytes()), slot(&of(&resource).channel().concat()), "{name}");
        }
        for name in ["}", "a}", "{}", "{}{a}", "}{"] {
            assert_eq!(check_cluster(&named(name)).map_err(|denial| denial.kind), Err(DenialKind::Other), "{name}");
        }
    }
}

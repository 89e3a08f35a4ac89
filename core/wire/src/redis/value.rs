//! The value of a lock key: `<nonce>@<owner>;<since>`, with data `;<data>`, and in a session `;=<session>`, in printable
//! ASCII.
//!
//! A revoked lock has `!<nonce>` in the place of `<nonce>@`: as many bytes, of which no client takes the lock for its own.
//!
//! The nonce is 32 lowercase hexadecimal digits, the owner percent-encoded, `since` the holder's milliseconds since
//! 1970 at the grant, and the data base64url without padding. Whatever does not read so is another client's.
//!
//! The value of a completion is `<nonce>@<owner>;<at>;<token>`: `at` is the holder's milliseconds since 1970 at the finish. The record
//! of its run is base64url without padding, in a key of its own.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::resp::Digits;
use crate::session_text;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::op::{Acquire, Completion, Session};
use leasehold_core::{About, Nonce, Owner, Payload, Token};

/// A lock value of ours, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockValue {
    pub(super) nonce: Nonce,
    pub(super) owner: Owner,
    pub(super) since_unix_ms: u64,
    pub(super) data: Option<Payload>,
    pub(super) session: Option<Session>,
    pub(super) revoked: bool,
}

/// Appends the value to write for a grant.
pub(super) fn write_grant(acquire: &Acquire, since_unix_ms: u64, out: &mut Vec<u8>) {
    write(&acquire.nonce, &acquire.owner, since_unix_ms, (acquire.data.as_ref(), acquire.session.as_ref()), out);
}

fn write(
    nonce: &Nonce,
    owner: &Owner,
    since_unix_ms: u64,
    (data, session): (Option<&Payload>, Option<&Session>),
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&hex(nonce));
    out.push(b'@');
    let mut rest = owner.as_str().as_bytes();
    while let Some(at) = rest.iter().position(|byte| !stands_as_it_is(*byte)) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, behind)) = from.split_first() else { break };
        let [high, low] = [byte >> 4, byte & 15].map(|digit| b"0123456789ABCDEF"[usize::from(digit)]);
        out.extend_from_slice(&[b'%', high, low]);
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.push(b';');
    out.extend_from_slice(Digits::of(since_unix_ms).as_bytes());
    if let Some(data) = data {
        out.push(b';');
        out.extend_from_slice(URL_SAFE_NO_PAD.encode(data.as_bytes()).as_bytes());
    }
    if let Some(session) = session {
        out.extend_from_slice(b";=");
        out.extend_from_slice(session_text::write(session).as_bytes());
    }
}

const fn stands_as_it_is(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'%' && byte != b';'
}

/// Appends the value to write for a completion of finished work.
pub(super) fn write_completion(nonce: &Nonce, owner: &Owner, at_unix_ms: u64, token: Token, out: &mut Vec<u8>) {
    write(nonce, owner, at_unix_ms, (None, None), out);
    out.push(b';');
    out.extend_from_slice(Digits::of(token.get()).as_bytes());
}

/// Appends the value to write for the record of a run; nothing for none.
pub(super) fn write_about(about: Option<&About>, out: &mut Vec<u8>) {
    if let Some(about) = about {
        out.extend_from_slice(URL_SAFE_NO_PAD.encode(about.as_bytes()).as_bytes());
    }
}

/// A completion that stands for `left`, with the record of its run; `None` for everything that this crate does not write. A record
/// that it does not write is none.
pub(super) fn parse_completion(value: &[u8], left: Duration, about: &[u8]) -> Option<Completion> {
    let (rest, token) = core::str::from_utf8(value).ok()?.rsplit_once(';')?;
    let LockValue { nonce, owner, since_unix_ms, data: None, session: None, revoked: false } = parse(rest.as_bytes())?
    else {
        return None;
    };
    if !token.bytes().all(|byte| byte.is_ascii_digit()) || left > MAX_KEEP {
        return None;
    }
    let about = URL_SAFE_NO_PAD.decode(about).ok().and_then(|about| About::beside(&about, &nonce));
    let token = Token::new(token.parse().ok()?)?;
    Some(Completion { token, owner, at_unix_ms: since_unix_ms, left, about, unsettled: false })
}

/// The nonce as it is written.
pub(super) fn hex(nonce: &Nonce) -> [u8; 32] {
    let digit = |at: usize| nonce.as_bytes()[at / 2] >> (4 - at % 2 * 4) & 15;
    core::array::from_fn(|at| b"0123456789abcdef"[usize::from(digit(at))])
}

/// `None` for everything that this crate does not write.
pub(super) fn parse(value: &[u8]) -> Option<LockValue> {
    let text = core::str::from_utf8(value).ok()?;
    let (nonce, rest) = match text.strip_prefix('!') {
        Some(marked) => marked.split_at_checked(32)?,
        None => text.split_once('@')?,
    };
    let (rest, session) = match rest.split_once(";=") {
        Some((rest, session)) => (rest, Some(session_text::read(session)?)),
        None => (rest, None),
    };
    let mut parts = rest.splitn(3, ';');
    let owner = unpercent(parts.next()?)?;
    let since = parts.next()?;
    if since.is_empty() || !since.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let data = match parts.next() {
        Some(text) => Some(Payload::new(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?),
        None => None,
    };
    Some(LockValue {
        nonce: unhex(nonce)?,
        owner: Owner::new(&owner).ok()?,
        since_unix_ms: since.parse().ok()?,
        data,
        session,
        revoked: text.starts_with('!'),
    })
}

fn unhex(text: &str) -> Option<Nonce> {
    let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = lowercase(pair[0])? << 4 | lowercase(pair[1])?;
    }
    Some(Nonce::from_bytes(bytes))
}

fn lowercase(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn unpercent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let (high, low) = (rest.next()?, rest.next()?);
                bytes.push(lowercase(high.to_ascii_lowercase())? << 4 | lowercase(low.to_ascii_lowercase())?);
            }
            byte if byte.is_ascii_graphic() => bytes.push(byte),
            _ => return None,
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use leasehold_core::SessionLabel;
    use proptest::prelude::*;

    const NONCE: Nonce = Nonce::from_bytes([0xab; 16]);
    const HEX: &str = "abababababababababababababababab";

    fn written(owner: &str, data: Option<&[u8]>) -> String {
        let data = data.map(|data| Payload::new(data).unwrap());
        text_of(&NONCE, &Owner::new(owner).unwrap(), 1_700_000_000_000, (data.as_ref(), None))
    }

    fn text_of(
        nonce: &Nonce,
        owner: &Owner,
        since_unix_ms: u64,
        beside: (Option<&Payload>, Option<&Session>),
    ) -> String {
        let mut bytes = Vec::new();
        write(nonce, owner, since_unix_ms, beside, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_value_is_these_bytes() {
        assert_eq!(written("host:7", None), format!("{HEX}@host:7;1700000000000"));
        assert_eq!(written("a b;c%@é", Some(b"")), format!("{HEX}@a%20b%3Bc%25@%C3%A9;1700000000000;"));
        for (data, text) in
            [(&b"f"[..], "Zg"), (b"fo", "Zm8"), (b"foo", "Zm9v"), (b"foob", "Zm9vYg"), (b"\xfb\xff", "-_8")]
        {
            assert_eq!(written("", Some(data)), format!("{HEX}@;1700000000000;{text}"));
        }
    }

    #[test]
    fn what_others_write_is_not_ours() {
        let good = written("host", Some(b"data"));
        assert!(parse(good.as_bytes()).is_some());
        for bad in [
            "".into(),
            HEX.into(),
            format!("{HEX}@"),
            format!("{HEX}@host"),
            format!("{HEX}@host;"),
            format!("{HEX}@host;-1"),
            format!("{HEX}@host;+1"),
            format!("{HEX}@host;18446744073709551616"),
            format!("{HEX}@ho st;1"),
            format!("{HEX}@%;1"),
            format!("{HEX}@%0A;1"),
            format!("{HEX}@%FF;1"),
            format!("{HEX}@{};1", "x".repeat(257)),
            format!("{HEX}@host;1;Z"),
            format!("{HEX}@host;1;Zh"),
            format!("{HEX}@host;1;Zg=="),
            format!("{HEX}@host;1;Z+"),
            format!("{HEX}@host;1;Zg;"),
            format!("{HEX}@host;1;{}", "A".repeat(5464)),
            format!("{HEX}@host;1;="),
            format!("{HEX}@host;1;=w"),
            format!("{HEX}@host;1;={HEX}:"),
            format!("{HEX}@host;1;={HEX}:a b"),
            format!("{HEX}@host;1;={HEX}:a;b"),
            format!("{}@host;1", HEX.to_uppercase()),
            format!("{}@host;1", &HEX[1..]),
            format!("{HEX}0@host;1"),
            format!("!{HEX}"),
            format!("!{}@host;1", &HEX[1..]),
            format!("!!{HEX}host;1"),
            "!é".into(),
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(b"\xff\xfe"), None);
    }

    proptest! {
        #[test]
        fn every_value_reads_back(
            nonce: [u8; 16],
            owner in "[^\\p{Cc}]{0,60}",
            since: u64,
            data in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
            session in proptest::option::of((any::<[u8; 16]>(), "[-a-zA-Z0-9_.:@/]{1,64}")),
        ) {
            let expected = LockValue {
                nonce: Nonce::from_bytes(nonce),
                owner: Owner::new(&owner).unwrap(),
                since_unix_ms: since,
                data: data.map(|data| Payload::new(&data).unwrap()),
                session: session.map(|(nonce, label)| Session {
                    nonce: Nonce::from_bytes(nonce),
                    label: SessionLabel::new(&label).unwrap(),
                }),
                revoked: false,
            };
            let text = text_of(&expected.nonce, &expected.owner, since, (expected.data.as_ref(), expected.session.as_ref()));
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(parse(text.as_bytes()), Some(expected.clone()));
            let marked = format!("!{}{}", &text[..32], &text[33..]);
            prop_assert_eq!(parse(marked.as_bytes()), Some(LockValue { revoked: true, ..expected }));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes);
            let _ = parse(&[HEX.as_bytes(), b"@", &bytes].concat());
        }
    }
}

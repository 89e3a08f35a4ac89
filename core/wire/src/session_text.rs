//! A session as text beside a lock: `<nonce>:<label>`, the nonce as 32 lowercase hexadecimal digits.

use alloc::string::{String, ToString};

use leasehold_core::op::Session;
use leasehold_core::{Nonce, Owner, SessionLabel};

/// Between an owner's label and a session in one column; no label has it.
const BESIDE: char = '\u{1f}';

pub(crate) fn write(session: &Session) -> String {
    alloc::format!("{:032x}:{}", u128::from_be_bytes(*session.nonce.as_bytes()), session.label)
}

/// `None` for everything that [`write`] does not write.
pub(crate) fn read(text: &str) -> Option<Session> {
    let (hex, label) = text.split_once(':')?;
    let nonce = Nonce::from_bytes(u128::from_str_radix(hex, 16).ok()?.to_be_bytes());
    let session = Session { nonce, label: SessionLabel::new(label).ok()? };
    (write(&session) == text).then_some(session)
}

/// The owner's label, and behind the character U+001F the session, if the lease belongs to one: a column that holds both.
pub fn write_owner(owner: &Owner, session: Option<&Session>) -> String {
    let owner = owner.as_str().to_string();
    session.map_or(owner.clone(), |session| owner + &alloc::format!("{BESIDE}{}", write(session)))
}

/// Reads what [`write_owner`] writes; `None` for anything else.
pub fn read_owner(text: &str) -> Option<(Owner, Option<Session>)> {
    match text.split_once(BESIDE) {
        None => Some((Owner::new(text).ok()?, None)),
        Some((owner, session)) => Some((Owner::new(owner).ok()?, Some(read(session)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_and_its_session_read_back() {
        let owner = Owner::new("host:7:main").unwrap();
        let session = Session { nonce: Nonce::from_bytes([0x0a; 16]), label: SessionLabel::new("worker:7").unwrap() };
        let text = write_owner(&owner, Some(&session));
        assert_eq!(text, "host:7:main\u{1f}0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a:worker:7");
        assert_eq!(read_owner(&text), Some((owner.clone(), Some(session))));
        assert_eq!(read_owner("host:7:main"), Some((owner, None)));
        for bad in ["a\u{1f}", "a\u{1f}0a:w", "a\nb", "a\u{1f}0A0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a:w"] {
            assert_eq!(read_owner(bad), None, "{bad:?}");
        }
    }
}

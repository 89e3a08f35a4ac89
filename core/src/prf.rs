//! The only source of variation in the core: a keyed function of the purpose of a value.
//!
//! Every jitter and every nonce is `PRF(secret, domain, lock, attempt, n)` instead of a draw from a shared stream, so
//! that one more draw anywhere changes no other value, and a replay needs only the seed. The function is SipHash.

use crate::ids::{LockId, NodeId, Nonce, Seq};
use crate::member::LossId;
use crate::sip::{bytes_of, sip128, words};

/// 32 bytes that the embedder draws once; they serve jitter, name the session, and are mixed into every nonce.
pub type Seed = [u8; 32];

/// 16 bytes that the embedder draws from the operating system **in the call that carries them**.
///
/// A seed can be copied by a fork or by a cloned machine; fresh bytes cannot, so two copies of one client never give
/// two attempts the same nonce.
pub type Entropy = [u8; 16];

/// The purpose of a pseudo-random value. Two domains never share a value.
#[derive(Clone, Copy)]
pub(crate) enum Domain {
    Nonce = 1,
    Backoff = 2,
    Renewal = 3,
    Takeover = 4,
    Retry = 5,
    LossId = 6,
    Session = 7,
    SessionRecord = 8,
}

/// The nonce of a new attempt: unique as long as `fresh` is.
pub(crate) fn nonce(seed: &Seed, fresh: &Entropy, lock: LockId, attempt: u32) -> Nonce {
    let [a, b, c, d] = words(seed);
    let message = [a, b, c, d, Domain::Nonce as u64, lock.get(), u64::from(attempt)];
    Nonce::from_bytes(bytes_of(sip128(words(fresh), &message)))
}

/// The id for a loss of memory that this send of an attempt is the first to find.
pub(crate) fn loss_id(seed: &Seed, nonce: &Nonce, node: NodeId, seq: Seq) -> LossId {
    let [a, b, c, d] = words(seed);
    let message = [a, b, c, d, Domain::LossId as u64, u64::from(node.get()), u64::from(seq.get())];
    LossId(bytes_of(sip128(words(nonce.as_bytes()), &message)))
}

/// The nonce of the client's session where that is a name and no record.
pub(crate) fn session(seed: &Seed) -> Nonce {
    let [a, b, c, d] = words(seed);
    let mut bytes = bytes_of(sip128([a, b], &[c, d, Domain::Session as u64]));
    bytes[0] &= !IS_RECORD;
    Nonce::from_bytes(bytes)
}

/// The nonce of a session that is a record of a node, from that of the attempt which first needs it.
pub(crate) fn session_nonce(seed: &Seed, nonce: &Nonce, node: NodeId, begun: u32) -> Nonce {
    let [a, b, c, d] = words(seed);
    let message = [a, b, c, d, Domain::SessionRecord as u64, u64::from(node.get()), u64::from(begun)];
    let mut bytes = bytes_of(sip128(words(nonce.as_bytes()), &message));
    bytes[0] |= IS_RECORD;
    Nonce::from_bytes(bytes)
}

/// The bit in the first byte of a session's nonce that tells sessions with a record from those that are only a name.
pub(crate) const IS_RECORD: u8 = 1;

/// A fraction of `2^32`, uniform, for jitter.
pub(crate) fn fraction(seed: &Seed, domain: Domain, lock: LockId, attempt: u32, n: u32) -> u32 {
    let [a, b, c, d] = words(seed);
    let count = u64::from(attempt) << 32 | u64::from(n);
    let (low, _) = sip128([a, b], &[c, d, domain as u64, lock.get(), count]);
    (low >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_changes_the_nonce() {
        let base = nonce(&[1; 32], &[2; 16], LockId::new(3), 4);
        assert_ne!(base, nonce(&[9; 32], &[2; 16], LockId::new(3), 4));
        assert_ne!(base, nonce(&[1; 32], &[9; 16], LockId::new(3), 4), "a copied seed must not repeat a nonce");
        assert_ne!(base, nonce(&[1; 32], &[2; 16], LockId::new(9), 4));
        assert_ne!(base, nonce(&[1; 32], &[2; 16], LockId::new(3), 9));
    }
}

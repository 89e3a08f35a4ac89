//! The only source of variation in the core: a keyed function of what the value is for.
//!
//! Every jitter and every nonce is `PRF(secret, domain, lock, attempt, n)` instead of a draw from a shared stream, so
//! that one more draw anywhere changes no other value, and a replay needs only the seed. The function is SipHash-2-4
//! with 128 bits of output (Aumasson and Bernstein, 2012), small enough to keep the core free of dependencies.

use crate::ids::{LockId, NodeId, Nonce, Seq};
use crate::member::LossId;

/// 32 bytes that the host draws once; they serve jitter, and are mixed into every nonce.
pub type Seed = [u8; 32];

/// 16 bytes that the host draws from the operating system **in the call that carries them**.
///
/// A seed can be copied by a fork or by a cloned machine; fresh bytes cannot, so two copies of one client never give
/// two attempts the same nonce.
pub type Entropy = [u8; 16];

/// What a pseudo-random value is for. Two domains never share a value.
#[derive(Clone, Copy)]
pub(crate) enum Domain {
    Nonce = 1,
    Backoff = 2,
    Renewal = 3,
    Takeover = 4,
    Retry = 5,
    LossId = 6,
}

/// The name of a new attempt: unique as long as `fresh` is.
pub(crate) fn nonce(seed: &Seed, fresh: &Entropy, lock: LockId, attempt: u32) -> Nonce {
    let [a, b, c, d] = words(seed);
    let message = [a, b, c, d, Domain::Nonce as u64, lock.get(), u64::from(attempt)];
    Nonce::from_bytes(bytes_of(sip128(words(fresh), &message)))
}

/// The name of a loss of memory, should this send of an attempt be the first to find it.
pub(crate) fn loss_id(seed: &Seed, nonce: &Nonce, node: NodeId, seq: Seq) -> LossId {
    let [a, b, c, d] = words(seed);
    let message = [a, b, c, d, Domain::LossId as u64, u64::from(node.get()), u64::from(seq.get())];
    LossId(bytes_of(sip128(words(nonce.as_bytes()), &message)))
}

/// A fraction of `2^32`, uniform, for jitter.
pub(crate) fn fraction(seed: &Seed, domain: Domain, lock: LockId, attempt: u32, n: u32) -> u32 {
    let [a, b, c, d] = words(seed);
    let count = u64::from(attempt) << 32 | u64::from(n);
    let (low, _) = sip128([a, b], &[c, d, domain as u64, lock.get(), count]);
    (low >> 32) as u32
}

/// Short and well mixed, under a key that everybody knows: for telling things apart that nobody forges.
pub(crate) fn digest(message: &[u64]) -> [u8; 16] {
    bytes_of(sip128([0, 0], message))
}

fn bytes_of((low, high): (u64, u64)) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}

fn words<const N: usize, const W: usize>(bytes: &[u8; N]) -> [u64; W] {
    core::array::from_fn(|word| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[8 * word..8 * word + 8]);
        u64::from_le_bytes(eight)
    })
}

struct Sip {
    v: [u64; 4],
}

impl Sip {
    fn rounds(&mut self, count: usize) {
        let v = &mut self.v;
        for _ in 0..count {
            v[0] = v[0].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(13) ^ v[0];
            v[0] = v[0].rotate_left(32);
            v[2] = v[2].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(16) ^ v[2];
            v[0] = v[0].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(21) ^ v[0];
            v[2] = v[2].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(17) ^ v[2];
            v[2] = v[2].rotate_left(32);
        }
    }

    fn absorb(&mut self, word: u64) {
        self.v[3] ^= word;
        self.rounds(2);
        self.v[0] ^= word;
    }

    fn digest(&self) -> u64 {
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }
}

/// Of a message in whole words.
fn sip128(key: [u64; 2], message: &[u64]) -> (u64, u64) {
    sip128_with_tail(key, message, ((8 * message.len()) as u64) << 56)
}

/// `tail` holds the bytes after the last whole word, and the length of the message in its highest byte.
fn sip128_with_tail(key: [u64; 2], message: &[u64], tail: u64) -> (u64, u64) {
    let mut sip = Sip {
        v: [
            key[0] ^ 0x736f_6d65_7073_6575,
            key[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            key[0] ^ 0x6c79_6765_6e65_7261,
            key[1] ^ 0x7465_6462_7974_6573,
        ],
    };
    for word in message {
        sip.absorb(*word);
    }
    sip.absorb(tail);
    sip.v[2] ^= 0xee;
    sip.rounds(4);
    let low = sip.digest();
    sip.v[1] ^= 0xdd;
    sip.rounds(4);
    (low, sip.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two vectors of the reference implementation (128-bit output).
    #[test]
    fn agrees_with_the_published_vectors() {
        let bytes: [u8; 16] = core::array::from_fn(|i| i as u8);
        let key = words(&bytes);
        assert_eq!(sip128(key, &[]), (0xe6a8_25ba_047f_81a3, 0x9302_55c7_1472_f66d));
        assert_eq!(sip128_with_tail(key, &[], 1 << 56), (0x44af_996b_d8c1_87da, 0x45fc_229b_1159_7634));
    }

    #[test]
    fn every_argument_changes_the_nonce() {
        let base = nonce(&[1; 32], &[2; 16], LockId::new(3), 4);
        assert_ne!(base, nonce(&[9; 32], &[2; 16], LockId::new(3), 4));
        assert_ne!(base, nonce(&[1; 32], &[9; 16], LockId::new(3), 4), "a copied seed must not repeat a nonce");
        assert_ne!(base, nonce(&[1; 32], &[2; 16], LockId::new(9), 4));
        assert_ne!(base, nonce(&[1; 32], &[2; 16], LockId::new(3), 9));
    }
}

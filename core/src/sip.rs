//! SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012): small enough to keep the core free of
//! dependencies.

/// A short digest under a public key, to tell apart things that nobody forges.
pub(crate) fn digest(message: &[u64]) -> [u8; 16] {
    bytes_of(sip128([0, 0], message))
}

pub(crate) fn bytes_of((low, high): (u64, u64)) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    bytes
}

pub(crate) fn words<const N: usize, const W: usize>(bytes: &[u8; N]) -> [u64; W] {
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

/// The hash of a message in whole words.
pub(crate) fn sip128(key: [u64; 2], message: &[u64]) -> (u64, u64) {
    sip128_with_tail(key, message, ((8 * message.len()) as u64) << 56)
}

/// The hash of a message. `tail` holds the bytes after the last whole word, and the length of the message in its highest
/// byte.
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
}

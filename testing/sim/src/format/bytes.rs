//! Bytes as pairs of lower-case hexadecimal digits.

use std::fmt::Write;

use super::Error;

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

pub(super) fn from_hex(hex: &str) -> Result<Vec<u8>, Error> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(Error::new(format!("{hex:?} is not lower-case hexadecimal"))),
    };
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Error::new(format!("{hex:?} has an odd number of digits")));
    }
    pairs.iter().map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Exactly `N` bytes.
pub(crate) fn array<const N: usize>(hex: &str) -> Result<[u8; N], Error> {
    let bytes = from_hex(hex)?;
    let count = bytes.len();
    bytes.try_into().map_err(|_| Error::new(format!("{count} bytes where there must be {N}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_and_what_is_no_hexadecimal_does_not() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&all)).unwrap(), all);
        assert_eq!(to_hex(&[0, 0x0f, 0xf0]), "000ff0");
        for bad in ["0", "0g", "FF", "é1", "0x"] {
            assert!(from_hex(bad).is_err(), "{bad}");
        }
        assert_eq!(array::<2>("aabb").unwrap(), [0xaa, 0xbb]);
        assert_eq!(array::<2>("aa").unwrap_err().to_string(), "1 bytes where there must be 2");
    }
}

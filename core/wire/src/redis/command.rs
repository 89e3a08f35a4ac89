//! Commands, kept as the bytes that are sent: each has one piece of memory, however many words it has.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::iter;

use super::keys;
use crate::resp::{Digits, push_header};

/// One command: its name and its arguments.
///
/// `Debug` shows the name only, for the arguments name attempts, and anyone who knows one can free its lock.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Command {
    words: Words,
}

impl Command {
    /// A command of these words, its name first.
    pub fn new<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut written = Words::default();
        words.into_iter().for_each(|word| written.push(word.as_ref()));
        Self::of(written)
    }

    pub(super) const fn of(words: Words) -> Self {
        Self { words }
    }

    /// The name, and behind it the arguments.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.words.iter()
    }

    /// How many words there are, the name included.
    pub const fn len(&self) -> usize {
        self.words.count
    }

    /// Returns true if there is not even a name.
    pub const fn is_empty(&self) -> bool {
        self.words.count == 0
    }

    /// The name as it was given; empty if there is none.
    pub fn name(&self) -> &[u8] {
        first_word(&self.words.bytes).map_or(&[], |(name, _)| name)
    }

    /// All words, each behind its length: the command as it is sent, but for their number, which comes first.
    pub(crate) fn encoded_words(&self) -> &[u8] {
        &self.words.bytes
    }

    /// The slot of the keys of a script call on a cluster; `None` for what is no script call or has no key.
    pub fn slot(&self) -> Option<u16> {
        let mut words = self.words();
        let name = words.next()?;
        let has_keys = words.nth(1).is_some_and(|count| count != b"0");
        let key = words.next().filter(|_| has_keys && (name == b"EVALSHA" || name == b"EVAL"))?;
        Some(keys::slot(key))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_empty() { "?" } else { core::str::from_utf8(self.name()).unwrap_or("?") };
        write!(f, "Command({name:?}, {} arguments)", self.len().saturating_sub(1))
    }
}

/// The most bytes that are sent before and behind a word.
const SIZE_OF_ENDS: usize = 26;

/// Words as they are sent, each behind its length.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Words {
    bytes: Cow<'static, [u8]>,
    count: usize,
}

/// The first word, and what is sent behind it.
fn first_word(encoded: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match encoded {
        [b'$', digit, b'\r', b'\n', rest @ ..] => (usize::from(digit - b'0'), rest),
        _ => {
            let digits = encoded.iter().position(|byte| *byte == b'\r')?;
            let length = encoded.get(1..digits)?.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
            (length, encoded.get(digits + 2..)?)
        }
    };
    let (word, rest) = rest.split_at_checked(length)?;
    Some((word, rest.get(2..)?))
}

impl Words {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Cow::Owned(Vec::with_capacity(bytes)), count: 0 }
    }

    /// One word that is known already, with its length.
    pub(super) const fn constant(encoded: &'static [u8]) -> Self {
        Self { bytes: Cow::Borrowed(encoded), count: 1 }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// The bytes that they take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut rest: &[u8] = &self.bytes;
        iter::from_fn(move || {
            let (word, behind) = first_word(rest)?;
            rest = behind;
            Some(word)
        })
    }

    /// Adds words that are encoded already.
    pub(super) fn append_encoded(&mut self, encoded: &[u8], count: usize) {
        self.bytes.to_mut().extend_from_slice(encoded);
        self.count += count;
    }

    pub(super) fn push(&mut self, word: &[u8]) {
        self.push_parts(&[word]);
    }

    /// Adds one word that is made of these parts.
    pub(super) fn push_parts(&mut self, parts: &[&[u8]]) {
        let bytes = self.bytes.to_mut();
        let length = parts.iter().map(|part| part.len()).sum();
        bytes.reserve(length + SIZE_OF_ENDS);
        push_header(b'$', length, bytes);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.extend_from_slice(b"\r\n");
        self.count += 1;
    }

    /// Adds a number as its decimal digits.
    pub(super) fn push_number(&mut self, number: u64) {
        self.push(Digits::of(number).as_bytes());
    }

    /// Adds the word that `write` appends. Its length is known only then.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let bytes = self.bytes.to_mut();
        let begin = bytes.len();
        // Most words of this kind have two digits of bytes.
        bytes.extend_from_slice(b"$00\r\n");
        let word = bytes.len();
        write(bytes);
        let header = Digits::header(b'$', bytes.len() - word);
        bytes.splice(begin..word, header.as_bytes().iter().copied());
        bytes.extend_from_slice(b"\r\n");
        self.count += 1;
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.append_encoded(&other.bytes, other.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Value, decode_all, encode};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_are_read_and_sent_as_they_were_given(
            all in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 0..6),
            number: u64,
        ) {
            let mut written = Words::default();
            for word in &all {
                written.push_with(|bytes| bytes.extend_from_slice(word));
                written.push_parts(&[&word[..word.len() / 2], &word[word.len() / 2..]]);
            }
            let mut twice = written.clone();
            twice.append(&written);
            twice.push_number(number);
            let once = all.into_iter().flat_map(|word| [word.clone(), word]).collect::<Vec<_>>();
            let last = alloc::vec![alloc::format!("{number}").into_bytes()];
            let expected = [once.clone(), once, last].concat();
            let command = Command::of(twice);
            prop_assert_eq!(command.words().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!((command.len(), command.name()), (expected.len(), expected[0].as_slice()));
            prop_assert_eq!(&command, &Command::new(&expected));
            let mut bytes = Vec::new();
            encode(&command, &mut bytes);
            prop_assert_eq!(
                decode_all(&bytes),
                Ok(alloc::vec![Value::Array(expected.into_iter().map(Value::Bulk).collect())])
            );
        }
    }
}

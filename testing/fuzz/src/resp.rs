//! The bytes of a Redis: replies in pieces, and the values that are read from them.

use leasehold_core::RequestId;
use leasehold_wire::redis::cluster::{self, Map, Redirection};
use leasehold_wire::redis::{self, Address};
use leasehold_wire::resp::{Decoder, Limits, Malformed, Reader, Value, decode_all};

const LIMITS: Limits = Limits { max_bytes: 4096, depth: 8, elements: 256 };

/// The first bytes say how the rest is cut.
pub fn run(bytes: &[u8]) {
    let (cuts, bytes) = bytes.split_at(bytes.len().min(4));
    let whole = decoded([bytes]);
    assert_eq!(whole, decoded(pieces(bytes, cuts)), "what is read depends on how it came");
    let (values, end) = whole;
    for value in &values {
        let mut size = Size::default();
        size.add(value, 0);
        // The head of a list is not a value, and one invalid byte becomes three bytes of text.
        assert!(size.values <= LIMITS.elements + 1 && size.depth <= LIMITS.depth && size.bytes <= LIMITS.max_bytes * 3);
        let again = written(value);
        assert_eq!(decode_all(&again), Ok(vec![value.clone()]), "{}", String::from_utf8_lossy(&again));
        looked_at(value);
    }
    if let Ok(all) = decode_all(bytes) {
        assert!(end.is_err() || all == values);
    }
    cut(bytes, cuts);
    let _ = redis::found(&values);
    if let [first, second, ..] = values.as_slice()
        && let Ok(found) = redis::found(&[first.clone(), second.clone()])
        && let Some(marker) = found.marker
    {
        assert_eq!(marker.text().as_bytes(), found.text);
    }
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let (mut rest, mut pieces) = (bytes, Vec::new());
    for cut in cuts.iter().copied().cycle().take(if cuts.is_empty() { 0 } else { 4096 }) {
        let (piece, left) = rest.split_at(rest.len().min(usize::from(cut) % 17));
        pieces.push(piece);
        rest = left;
    }
    pieces.push(rest);
    pieces
}

fn decoded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Value>, Result<(), Malformed>) {
    let (mut decoder, mut values) = (Decoder::new(LIMITS), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(malformed) => {
                    assert_eq!(decoder.next(), Err(malformed), "what is broken stays so");
                    return (values, Err(malformed));
                }
            }
        }
    }
    (values, Ok(()))
}

/// Checks that whole replies, cut out, are the same replies.
fn cut(bytes: &[u8], cuts: &[u8]) {
    let mut reader = Reader::new(LIMITS.max_bytes).expect("invariant: it is not 0");
    let mut taken = Vec::new();
    for piece in pieces(bytes, cuts) {
        reader.push(piece);
        while let Ok(Some(one)) = reader.take(1) {
            let values = decode_all(&one).expect("what was cut out is whole");
            assert!(matches!(&values[..], [value] if !matches!(value, Value::Push(_))));
            taken.push(one);
        }
    }
    assert!(taken.iter().map(Vec::len).sum::<usize>() <= bytes.len());
}

#[derive(Default)]
struct Size {
    values: usize,
    depth: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, value: &Value, above: usize) {
        self.values += 1;
        self.depth = self.depth.max(above);
        match value {
            Value::Array(items) | Value::Push(items) | Value::Set(items) => {
                items.iter().for_each(|item| self.add(item, above + 1));
            }
            Value::Map(pairs) => pairs.iter().for_each(|(key, value)| {
                self.add(key, above + 1);
                self.add(value, above + 1);
            }),
            Value::Simple(text) => self.bytes += text.len(),
            Value::Error(text) | Value::Double(text) | Value::BigNumber(text) => self.bytes += text.len(),
            Value::Bulk(bytes) | Value::Verbatim(bytes) => self.bytes += bytes.len(),
            Value::Nil | Value::Integer(_) | Value::Boolean(_) => {}
        }
    }
}

/// The value as a server would write it.
fn written(value: &Value) -> Vec<u8> {
    let line = |kind: char, text: &str| format!("{kind}{text}\r\n").into_bytes();
    let long = |kind: char, bytes: &[u8]| [format!("{kind}{}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let list = |kind: char, items: &[Value]| {
        let mut bytes = format!("{kind}{}\r\n", items.len()).into_bytes();
        items.iter().for_each(|item| bytes.extend(written(item)));
        bytes
    };
    match value {
        Value::Nil => b"_\r\n".to_vec(),
        Value::Simple(text) => line('+', text),
        Value::Error(text) if text.contains(['\r', '\n']) => long('!', text.as_bytes()),
        Value::Error(text) => line('-', text),
        Value::Integer(number) => line(':', &number.to_string()),
        Value::Boolean(flag) => line('#', if *flag { "t" } else { "f" }),
        Value::Double(text) => line(',', text),
        Value::BigNumber(text) => line('(', text),
        Value::Bulk(bytes) => long('$', bytes),
        Value::Verbatim(bytes) => long('=', bytes),
        Value::Array(items) => list('*', items),
        Value::Push(items) => list('>', items),
        Value::Set(items) => list('~', items),
        Value::Map(pairs) => {
            let mut bytes = format!("%{}\r\n", pairs.len()).into_bytes();
            pairs.iter().for_each(|(key, value)| bytes.extend([written(key), written(value)].concat()));
            bytes
        }
    }
}

/// Reads the value as the answers to a client's other questions.
fn looked_at(value: &Value) {
    let asked = Address { host: "asked".into(), port: 1 };
    let is_told = |address: &Address| assert_eq!(Address::told(&address.host, address.port).as_ref(), Some(address));
    if let Ok(map) = Map::read(value, &asked) {
        map.everybody().for_each(is_told);
        let served = (0..redis::SLOTS).filter(|slot| map.master_of(*slot).is_some()).count();
        assert_eq!(served, map.covered());
        assert_eq!(map.failovers_since(&map), []);
    }
    match Redirection::of(value, &asked) {
        Some(Redirection::Moved { slot, to }) => {
            assert!(slot < redis::SLOTS);
            is_told(&to);
        }
        Some(Redirection::Ask { to }) => is_told(&to),
        None => {}
    }
    Address::of_master(value).iter().for_each(is_told);
    let _ = (cluster::epoch(value), redis::time_ms(value));
    let id = RequestId::new(7);
    if redis::marked(id, value).is_ok() {
        let Value::Array(parts) = value else { panic!("only a list answers") };
        assert_eq!(parts.last().and_then(Value::as_bytes), Some(&b"7"[..]), "the answer to another request");
    }
    if let Value::Error(error) = value {
        let _ = (redis::classify(error), redis::refusal(error));
    }
    if let Value::Array(parts) | Value::Push(parts) = value
        && let [_, channel, message] = parts.as_slice()
        && let (Some(channel), Some(message)) = (channel.as_bytes(), message.as_bytes())
        && let Some(resource) = redis::Codec::released_by(channel, message)
    {
        assert!(resource.as_str().as_bytes() == message && redis::Codec::channel(&resource) == channel);
    }
}

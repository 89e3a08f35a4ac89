use alloc::format;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

use super::*;

fn all(bytes: &[u8]) -> Result<Vec<Value>, Malformed> {
    in_pieces(bytes.chunks(bytes.len().max(1)))
}

fn in_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Value>, Malformed> {
    let mut decoder = Decoder::new(Limits::default());
    let mut values = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(value) = decoder.next()? {
            values.push(value);
        }
    }
    Ok(values)
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn simple(text: &str) -> Value {
    Value::Simple(Cow::Owned(text.into()))
}

fn header(kind: u8, count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{}{count}\r\n", char::from(kind)).as_bytes());
}

/// Writes a value as a server of version 3 would.
fn write(value: &Value, out: &mut Vec<u8>) {
    let mut line = |kind: u8, text: &str| {
        out.push(kind);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    };
    match value {
        Value::Nil => line(b'_', ""),
        Value::Simple(text) => line(b'+', text),
        Value::Integer(integer) => line(b':', &integer.to_string()),
        Value::Error(text) => line(b'-', text),
        Value::Boolean(yes) => line(b'#', if *yes { "t" } else { "f" }),
        Value::Double(text) => line(b',', text),
        Value::BigNumber(text) => line(b'(', text),
        Value::Bulk(bytes) | Value::Verbatim(bytes) => {
            header(if matches!(value, Value::Bulk(_)) { b'$' } else { b'=' }, bytes.len(), out);
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Value::Array(items) | Value::Push(items) | Value::Set(items) => {
            let kind = match value {
                Value::Array(_) => b'*',
                Value::Push(_) => b'>',
                _ => b'~',
            };
            header(kind, items.len(), out);
            items.iter().for_each(|item| write(item, out));
        }
        Value::Map(pairs) => {
            header(b'%', pairs.len(), out);
            for (key, value) in pairs {
                write(key, out);
                write(value, out);
            }
        }
    }
}

#[test]
fn a_command_is_a_list_of_byte_strings() {
    let mut out = Vec::new();
    encode(&Command::new(["SET", "k\r\n", ""]), &mut out);
    assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
}

#[test]
fn replies_of_version_2_are_read() {
    let bytes =
        b"+OK\r\n-ERR odd\r\n:-9223372036854775808\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n*1\r\n:1\r\n$0\r\n\r\n";
    let nested = Value::Array(vec![Value::Array(vec![Value::Integer(1)]), bulk("")]);
    let expected = vec![
        simple("OK"),
        Value::Error("ERR odd".into()),
        Value::Integer(i64::MIN),
        bulk("a\r\n"),
        Value::Nil,
        Value::Nil,
        Value::Array(vec![]),
        nested,
    ];
    assert_eq!(all(bytes), Ok(expected));
}

#[test]
fn replies_of_version_3_are_read() {
    let bytes =
        b"_\r\n#t\r\n#f\r\n,1.5\r\n,inf\r\n(123456789012345678901234567890\r\n!7\r\nERR odd\r\n=6\r\ntxt:hi\r\n\
                  %1\r\n+a\r\n~1\r\n:1\r\n>2\r\n+message\r\n$1\r\nx\r\n:+7\r\n";
    let expected = vec![
        Value::Nil,
        Value::Boolean(true),
        Value::Boolean(false),
        Value::Double("1.5".into()),
        Value::Double("inf".into()),
        Value::BigNumber("123456789012345678901234567890".into()),
        Value::Error("ERR odd".into()),
        Value::Verbatim(b"txt:hi".to_vec()),
        Value::Map(vec![(simple("a"), Value::Set(vec![Value::Integer(1)]))]),
        Value::Push(vec![simple("message"), bulk("x")]),
        Value::Integer(7),
    ];
    assert_eq!(all(bytes), Ok(expected));
}

#[test]
fn attributes_are_skipped_wherever_they_stand() {
    let bytes = b"|1\r\n+ttl\r\n:5\r\n*2\r\n|1\r\n+a\r\n*1\r\n:9\r\n:1\r\n|0\r\n:2\r\n|0\r\n+OK\r\n";
    assert_eq!(all(bytes), Ok(vec![Value::Array(vec![Value::Integer(1), Value::Integer(2)]), simple("OK")]));
}

#[test]
fn text_that_is_no_utf8_is_still_an_error_or_a_status() {
    assert_eq!(all(b"-ERR \xff\r\n"), Ok(vec![Value::Error("ERR \u{fffd}".into())]));
    assert_eq!(all(b"+OK \xff\r\n"), Ok(vec![simple("OK \u{fffd}")]));
}

#[test]
fn what_is_no_resp_is_refused() {
    for bytes in [
        &b"\r\n"[..],
        b"HTTP/1.1 400 Bad Request\r\n",
        b"+OK\n",
        b"+O\rK\r\n",
        b":\r\n",
        b":1.0\r\n",
        b":1e3\r\n",
        b":9223372036854775808\r\n",
        b": 1\r\n",
        b"$-2\r\n",
        b"$+1\r\n",
        b"$ 1\r\n",
        b"$\r\n",
        b"*-2\r\n",
        b"%-1\r\n",
        b"$?\r\n",
        b"*?\r\n",
        b";4\r\n",
        b".\r\n",
        b"#x\r\n",
        b"_x\r\n",
        b"(1.5\r\n",
        b",\r\n",
        b"$3\r\nabcd\r\n",
        b"$\xff\r\n",
        b"*2\r\n:1\r\n?\r\n",
    ] {
        assert!(all(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
    }
    for (bytes, what) in [
        (&b";4\r\n"[..], "an unknown type"),
        (b"#x\r\n", "a value that its type does not have"),
        (b"$\xff\r\n", "a length that is no number"),
        (b",\xff\r\n", "a header that is no text"),
    ] {
        assert_eq!(all(bytes), Err(Malformed { what }));
    }
}

#[test]
fn what_is_broken_stays_broken() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(b"+OK\r\n?\r\n+OK\r\n");
    assert_eq!(decoder.next(), Ok(Some(simple("OK"))));
    let malformed = decoder.next().unwrap_err();
    decoder.push(b"+OK\r\n");
    assert_eq!(decoder.next(), Err(malformed));
    assert!(malformed.to_string().contains("unknown type"));
}

#[test]
fn whatever_is_announced_nothing_is_set_aside_for_it() {
    for header in ["*4294967296", "%4294967296", "*18446744073709551616", "$4294967296", "*65537", "%32769", "$1048577"]
    {
        assert!(all(format!("{header}\r\n").as_bytes()).is_err(), "{header}");
    }
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(b"*65536\r\n");
    assert_eq!(decoder.next(), Ok(None));
    assert_eq!(decoder.open.len(), 1);
    assert_eq!(decoder.open[0].items.capacity(), 0);
}

#[test]
fn lists_are_only_so_deep() {
    let deep = |depth: usize| format!("{}:1\r\n", "*1\r\n".repeat(depth));
    assert!(all(deep(32).as_bytes()).is_ok());
    assert!(all(deep(33).as_bytes()).is_err());
    assert!(all(format!("{}:1\r\n", "|1\r\n".repeat(100_000)).as_bytes()).is_err());
}

#[test]
fn a_reply_is_only_so_long() {
    let longest = (1 << 20) - "$1048565\r\n\r\n".len();
    let of = |length: usize| format!("${length}\r\n{}\r\n", "x".repeat(length));
    assert!(all(of(longest).as_bytes()).is_ok());
    assert!(all(of(longest + 1).as_bytes()).is_err());
    let two = format!("*2\r\n{0}{0}", of(600_000));
    assert!(all(two.as_bytes()).is_err(), "together");
    let apart = format!("{0}{0}", of(600_000));
    assert_eq!(all(apart.as_bytes()).map(|values| values.len()), Ok(2), "apart");
    assert!(all("|0\r\n".repeat(300_000).as_bytes()).is_err(), "attributes without end");
}

#[test]
fn a_line_is_only_so_long() {
    let of = |length: usize| format!("+{}\r\n", "x".repeat(length - "+\r".len()));
    assert!(all(of(MAX_LINE).as_bytes()).is_ok());
    assert_eq!(all(of(MAX_LINE + 1).as_bytes()), Err(Malformed { what: "a line longer than allowed" }));
}

#[test]
fn a_line_without_end_is_given_up() {
    let mut decoder = Decoder::new(Limits::default());
    let mut pushed = 0;
    while decoder.next().is_ok() {
        decoder.push(&[b'+'; 1000]);
        pushed += 1000;
        assert!(pushed <= 70_000);
    }
    assert_eq!(decoder.buffer.capacity(), 0);
}

#[test]
fn single_bytes_of_a_long_reply_cost_no_more_than_the_whole() {
    let mut bytes = b"*3\r\n$300000\r\n".to_vec();
    bytes.resize(bytes.len() + 300_000, b'x');
    bytes.extend_from_slice(b"\r\n:1\r\n+");
    bytes.resize(bytes.len() + 60_000, b'y');
    bytes.extend_from_slice(b"\r\n");
    // Ten thousand million steps if every byte made us begin again.
    let whole = all(&bytes);
    assert_eq!(whole.as_ref().map(Vec::len), Ok(1));
    assert_eq!(in_pieces(bytes.chunks(1)), whole);
}

#[test]
fn a_reply_under_way_is_told() {
    let mut decoder = Decoder::new(Limits::default());
    assert!(!decoder.is_pending());
    decoder.push(b"*2\r\n:1\r\n");
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.is_pending());
    decoder.push(b":2\r\n");
    assert!(decoder.next().unwrap().is_some());
    assert!(!decoder.is_pending());
}

fn values() -> impl Strategy<Value = Value> {
    let line = "[^\r\n]{0,20}";
    let leaf = prop_oneof![
        Just(Value::Nil),
        line.prop_map(|text| Value::Simple(text.into())),
        line.prop_map(Value::Error),
        any::<i64>().prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Boolean),
        any::<i128>().prop_map(|number| Value::BigNumber(number.to_string())),
        any::<f64>().prop_map(|number| Value::Double(number.to_string())),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bulk),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Verbatim),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            list.clone().prop_map(Value::Array),
            list.clone().prop_map(Value::Push),
            list.prop_map(Value::Set),
            proptest::collection::vec((inner.clone(), inner), 0..3).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_reads_back_however_it_is_split(
        sent in proptest::collection::vec(values(), 0..4),
        cuts in proptest::collection::vec(1_usize..30, 1..20),
    ) {
        let mut bytes = Vec::new();
        sent.iter().for_each(|value| write(value, &mut bytes));
        let mut cuts = cuts.iter().cycle();
        let mut rest = bytes.as_slice();
        let pieces = core::iter::from_fn(|| {
            let (piece, after) = rest.split_at((*cuts.next()?).min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(in_pieces(pieces), Ok(sent.clone()));
        prop_assert_eq!(all(&bytes), Ok(sent));
    }

    #[test]
    fn every_command_reads_back(args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6)) {
        let mut out = Vec::new();
        encode(&Command::new(&args), &mut out);
        prop_assert_eq!(all(&out), Ok(vec![Value::Array(args.into_iter().map(Value::Bulk).collect())]));
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = all(&bytes);
    }

    #[test]
    fn almost_resp_is_not_too_odd(text in "([*$:+%|~>!=_#,(-][0-9a-z?-]{0,3}\r\n){0,20}", cut in 1_usize..8) {
        prop_assert_eq!(in_pieces(text.as_bytes().chunks(cut)), all(text.as_bytes()));
    }
}

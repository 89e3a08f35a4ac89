//! Commands that ask a server about itself, and how its answers are read.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Command;
use crate::resp::Value;

/// `INFO` through a script, for servers that take the plain reply to pieces, such as Webdis. Without a section, the
/// default ones. `section` must be a word of letters, as all of them are.
pub fn info_by_script(section: Option<&str>) -> Command {
    let section = section.filter(|section| section.bytes().all(|byte| byte.is_ascii_lowercase()));
    let call = section
        .map_or_else(|| String::from("return redis.call('INFO')"), |s| format!("return redis.call('INFO','{s}')"));
    Command::new(["EVAL", &call, "0"])
}

/// The server's milliseconds since 1970, from its reply to `TIME`; `None` if that does not tell.
pub fn time_ms(reply: &Value) -> Option<u64> {
    let Value::Array(parts) = reply else { return None };
    let numbers: Option<Vec<u64>> = parts.iter().map(number).collect();
    let [seconds, micros] = *numbers? else { return None };
    seconds.checked_mul(1_000)?.checked_add(micros / 1_000)
}

fn number(part: &Value) -> Option<u64> {
    if let Value::Integer(number) = part {
        return u64::try_from(*number).ok();
    }
    core::str::from_utf8(part.as_bytes()?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn info_is_asked_for_by_a_script() {
        let asked = |section, script: &str| info_by_script(section) == Command::new(["EVAL", script, "0"]);
        assert!(asked(Some("server"), "return redis.call('INFO','server')"));
        assert!(asked(None, "return redis.call('INFO')"));
        assert!(asked(Some("x');evil('"), "return redis.call('INFO')"), "no code comes in");
    }

    #[test]
    fn time_is_read_in_milliseconds() {
        let bulk = |text: &str| Value::Bulk(text.into());
        assert_eq!(time_ms(&Value::Array(vec![bulk("1700000000"), bulk("123456")])), Some(1_700_000_000_123));
        assert_eq!(time_ms(&Value::Array(vec![Value::Integer(2), Value::Integer(999)])), Some(2_000));
        for odd in [
            Value::Nil,
            Value::Error("NOPERM no".into()),
            Value::Array(vec![]),
            Value::Array(vec![bulk("1")]),
            Value::Array(vec![bulk("1"), bulk("-1")]),
            Value::Array(vec![bulk("18446744073709551615"), bulk("0")]),
        ] {
            assert_eq!(time_ms(&odd), None, "{odd:?}");
        }
    }
}

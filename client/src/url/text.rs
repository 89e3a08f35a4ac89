//! The text of a url: what may be shown of it, and what its parts say.

use url::Url;
use zeroize::Zeroizing;

/// Reads a url that may have a login. A sign in it that was not encoded makes the url mean something else, so that no part of
/// it can be named.
///
/// # Errors
/// Those of `read`, or the signs where one of them may be the reason.
pub(super) fn with_login<T>(
    text: &str,
    signs: &str,
    is_misread: impl FnOnce(&str) -> bool,
    read: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    if is_misread(text) {
        return Err(signs.to_owned());
    }
    read().map_err(|what| if has_doubtful_parameters(text) { signs.to_owned() } else { what })
}

/// The user and the password in front of the host.
///
/// # Errors
/// One is not UTF-8.
pub(super) fn login(url: &Url) -> Result<(Option<String>, Option<Zeroizing<String>>), String> {
    let password = decoded(url.password().unwrap_or_default(), "password")?;
    Ok((decoded(url.username(), "user")?, password.map(Zeroizing::new)))
}

/// Tells if an `@` stands in the path, or in the name of a parameter. Then the host is not one, but the beginning of a
/// user, token or password that was not encoded, and no part of the url can be shown.
pub(super) fn has_unencoded_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let in_path = place.split_once('/').is_some_and(|(_, path)| path.contains('@'));
    in_path || parameters.split('&').filter_map(|pair| pair.split('=').next()).any(|name| name.contains('@'))
}

/// Tells if a sign of a login that was not encoded makes the url mean something else. Web servers end the host at a
/// backslash; among the parameters, it is part of a path of Windows.
pub(super) fn is_misread(url: &str) -> bool {
    let place = url.split_once('?').map_or(url, |(place, _)| place);
    place.contains('\\') || url.contains('#') || has_unencoded_login(url)
}

/// Tells if an `@` stands among the parameters. Then a parameter may be the rest of a password that was not encoded,
/// and must not be shown in an error.
fn has_doubtful_parameters(url: &str) -> bool {
    url.split_once('?').is_some_and(|(_, parameters)| parameters.contains('@'))
}

/// A decoded part of a url; `None` where it is empty.
///
/// # Errors
/// The part, by its name, is not UTF-8.
pub(super) fn decoded(text: &str, part: &str) -> Result<Option<String>, String> {
    let text = String::from_utf8(percent(text)).map_err(|_| format!("the {part} is not UTF-8"))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Undoes percent-encoding, the only encoding of a path or password in a url.
fn percent(text: &str) -> Vec<u8> {
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let code = (byte == b'%').then(|| Some(digit(ahead.next())? * 16 + digit(ahead.next())?)).flatten();
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                decoded.push(code);
                bytes = ahead;
            }
            None => decoded.push(byte),
        }
    }
    decoded
}

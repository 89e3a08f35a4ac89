//! The parameters of a url, read by the same rules for all stores.

use std::path::PathBuf;

use leasehold_core::member::Durability;
use url::form_urlencoded;
use zeroize::Zeroizing;

/// The parameters that nobody has asked for yet. Each is given once; all that are asked for are named in the error for another.
pub(super) struct Parameters {
    left: Vec<(String, Zeroizing<String>)>,
    known: Vec<&'static str>,
}

/// The permission to send requests or secrets without encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plaintext {
    /// To this machine only.
    ToLoopback,
    Allowed,
}

impl Parameters {
    /// Reads what stands behind the question mark.
    ///
    /// # Errors
    /// A parameter is given twice.
    pub(super) fn of(query: &str) -> Result<Self, String> {
        let mut left: Vec<(String, Zeroizing<String>)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if left.iter().any(|(other, _)| *other == name) {
                return Err(format!("{} is given twice; give it once", shown(&name).trim_matches('"')));
            }
            left.push((name.into_owned(), Zeroizing::new(value.into_owned())));
        }
        Ok(Self { left, known: Vec::new() })
    }

    /// A value as it stands there, even if it is empty.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<Zeroizing<String>> {
        self.known.push(name);
        self.unlisted(name)
    }

    /// As [`Parameters::raw`], for a parameter that errors need not offer.
    pub(super) fn unlisted(&mut self, name: &str) -> Option<Zeroizing<String>> {
        let at = self.left.iter().position(|(other, _)| other == name)?;
        Some(self.left.swap_remove(at).1)
    }

    /// # Errors
    /// The value is empty.
    pub(super) fn secret(&mut self, name: &'static str) -> Result<Option<Zeroizing<String>>, String> {
        match self.raw(name) {
            Some(value) if value.is_empty() => {
                Err(format!("{} is empty; give it a value, or leave it out", shown(name)))
            }
            value => Ok(value),
        }
    }

    /// # Errors
    /// As for [`Parameters::secret`].
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        Ok(self.secret(name)?.map(|value| (*value).clone()))
    }

    /// # Errors
    /// As for [`Parameters::secret`].
    pub(super) fn file(&mut self, name: &'static str) -> Result<Option<PathBuf>, String> {
        Ok(self.text(name)?.map(PathBuf::from))
    }

    /// The certificate of the client and its key, which are `cert` and `key`.
    ///
    /// # Errors
    /// One of them is missing.
    pub(super) fn certificate(&mut self) -> Result<Option<(PathBuf, PathBuf)>, String> {
        match (self.file("cert")?, self.file("key")?) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) | (None, Some(_)) => Err("cert and key belong together: name both files".to_owned()),
        }
    }

    /// A switch, if it is set.
    ///
    /// # Errors
    /// The value is no switch.
    pub(super) fn switch(&mut self, name: &'static str) -> Result<Option<bool>, String> {
        let Some(value) = self.text(name)? else { return Ok(None) };
        match value.as_str() {
            "true" | "yes" => Ok(Some(true)),
            "false" | "no" => Ok(Some(false)),
            _ => Err(format!("{name} is {value:?}; write {name}=true, or leave it out")),
        }
    }

    /// The parameter `durable`: the store loses nothing in a restart.
    ///
    /// # Errors
    /// The value is neither `yes` nor `no`; `server` tells which servers may be called so.
    pub(super) fn durability(&mut self, server: &str) -> Result<Option<Durability>, String> {
        let Some(value) = self.raw("durable") else { return Ok(None) };
        match value.as_str() {
            "yes" => Ok(Some(Durability::Declared)),
            "no" => Ok(Some(Durability::NotDeclared)),
            _ => Err(format!("durable is {:?}; write durable=yes for {server}, or leave it out", *value)),
        }
    }

    /// The parameter `plaintext`.
    ///
    /// # Errors
    /// The value is not `allow`.
    pub(super) fn plaintext(&mut self) -> Result<Plaintext, String> {
        match self.raw("plaintext") {
            None => Ok(Plaintext::ToLoopback),
            Some(value) if *value == "allow" => Ok(Plaintext::Allowed),
            Some(value) => Err(format!("plaintext is {:?}; write plaintext=allow, or leave it out", *value)),
        }
    }

    /// # Errors
    /// One of the parameters is there, for this reason is none.
    pub(super) fn refuse(&self, names: &[&str], why: &str) -> Result<(), String> {
        let is_there = |name: &&str| self.left.iter().any(|(other, _)| other == name);
        if names.iter().any(is_there) { Err(why.to_owned()) } else { Ok(()) }
    }

    /// # Errors
    /// A parameter is left, of which nobody knows; `advice` follows the list of those that are known.
    pub(super) fn finish(self, advice: &str) -> Result<(), String> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let [most @ .., last] = self.known.as_slice() else { return Err("the url takes no parameters".to_owned()) };
        Err(format!("there is no parameter {}; there are {} and {last}{advice}", shown(name), most.join(", ")))
    }
}

/// The reason why a proxy is no parameter.
pub(super) const NO_PROXY: &str = "the url cannot name a proxy: set LEASEHOLD_PROXY=environment, and HTTPS_PROXY";

/// The name of a parameter, if it looks like one and not like something misplaced.
fn shown(name: &str) -> String {
    let is_name = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_name { format!("{name:?}") } else { "\"...\"".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Parameters {
        Parameters::of(query).unwrap()
    }

    #[test]
    fn values_are_decoded_and_given_once() {
        let mut given = of("ca=%2Fa+b.pem&fips=yes&durable=no");
        assert_eq!(given.file("ca"), Ok(Some("/a b.pem".into())));
        assert_eq!((given.switch("fips"), given.switch("dualstack")), (Ok(Some(true)), Ok(None)));
        assert_eq!(given.durability("none"), Ok(Some(Durability::NotDeclared)));
        assert_eq!(given.finish(""), Ok(()));
        assert_eq!(Parameters::of("a=1&b=2&a=1").err().as_deref(), Some("a is given twice; give it once"));
    }

    #[test]
    fn an_unknown_parameter_is_named_beside_those_that_were_asked_for() {
        let mut given = of("pool=3");
        for name in ["region", "key", "ca"] {
            assert!(given.raw(name).is_none() && given.unlisted("gssencmode").is_none());
        }
        let said = given.finish(", and no others").unwrap_err();
        assert_eq!(said, "there is no parameter \"pool\"; there are region, key and ca, and no others");
        let mut given = of("hunter2%2F%3A=x");
        assert_eq!((given.file("a"), given.file("b")), (Ok(None), Ok(None)));
        assert!(!given.finish("").unwrap_err().contains("hunter2"));
    }

    #[test]
    fn wrong_values_are_refused() {
        assert!(of("ca=").file("ca").unwrap_err().contains("\"ca\" is empty"));
        assert!(of("fips=1").switch("fips").unwrap_err().contains("write fips=true"));
        assert!(of("durable=maybe").durability("a good server").unwrap_err().contains("durable=yes for a good server"));
        assert!(of("plaintext=yes").plaintext().unwrap_err().contains("plaintext=allow"));
        assert!(of("cert=a").certificate().unwrap_err().contains("belong together"));
        assert_eq!(of("proxy=x").refuse(&["proxy"], "no"), Err("no".to_owned()));
        assert_eq!(of("a=x").refuse(&["proxy"], "no"), Ok(()));
    }
}

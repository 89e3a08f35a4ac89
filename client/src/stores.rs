//! Naming one store, or the nodes of a quorum.

use std::env::VarError;
use std::ffi::OsStr;

use crate::error::Error;
use crate::url::StoreUrl;

/// The name of a store: one url, or a list of urls, whose stores form a quorum of independent nodes.
///
/// A text may have several urls as well, with white space in between; a word that begins with no scheme belongs to the
/// path before it. An empty text is an error: it is most often a variable that is not set. [`DefaultStore`] is the store
/// that nobody named.
pub trait Stores {
    /// The urls, at least one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for what cannot be read, and for an empty list.
    fn urls(&self) -> Result<Vec<StoreUrl>, Error>;
}

/// The store of a program that names none: the urls in the environment variable `LEASEHOLD_STORE`, else a file in the
/// user's state folder, with the warning `store.default`, or an error if `LEASEHOLD_REQUIRE_STORE` is `1`. A
/// `LEASEHOLD_STORE` that is set, but empty, is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultStore;

impl Stores for DefaultStore {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        match from_environment()? {
            Some(text) if text.trim().is_empty() => Err(Error::config(
                "LEASEHOLD_STORE is set, but empty; write a url such as redis://locks.example.com, or unset it for the \
                 default",
            )),
            Some(text) => text.urls(),
            None => the_default().map(|url| vec![url]),
        }
    }
}

impl Stores for str {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        if self.trim().is_empty() {
            return Err(Error::config(
                "the store is an empty text, perhaps from a variable that is not set; name a store, such as \
                 redis://locks.example.com, or leave it out for the default",
            ));
        }
        split(self).into_iter().map(str::parse).collect()
    }
}

/// The stores that the environment names.
fn from_environment() -> Result<Option<String>, Error> {
    match std::env::var("LEASEHOLD_STORE") {
        Ok(text) => Ok(Some(text)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(Error::config("LEASEHOLD_STORE is not valid UTF-8; write a url such as sqlite:/var/lib/app/locks.db"))
        }
    }
}

/// The file of this user, unless the environment forbids it: other machines, and other users, do not see its locks.
fn the_default() -> Result<StoreUrl, Error> {
    const REQUIRE: &str = "LEASEHOLD_REQUIRE_STORE";
    match std::env::var_os(REQUIRE).as_deref().map(OsStr::as_encoded_bytes) {
        None | Some(b"" | b"0") => {}
        Some(b"1") => {
            return Err(Error::config(format!(
                "no store is named, and {REQUIRE} demands one: name it where the program connects, or in \
                 LEASEHOLD_STORE"
            )));
        }
        Some(_) => return Err(Error::config(format!("{REQUIRE} may be 1, to demand a named store, or 0"))),
    }
    let store = StoreUrl::default_store()?;
    tracing::warn!(
        name: "store.default", target: "leasehold", %store,
        "no store is named, so locks are kept in {store}: they exclude only processes of this user on this machine; \
         name a store, in LEASEHOLD_STORE for example"
    );
    Ok(store)
}

impl Stores for String {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        self.as_str().urls()
    }
}

impl<S: AsRef<str>> Stores for [S] {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        if self.is_empty() {
            return Err(Error::config(
                "the list of stores is empty; name one store, or the nodes of a quorum, three or five of them",
            ));
        }
        self.iter()
            .map(|url| match url.as_ref().trim() {
                "" => Err(Error::config(
                    "a url in the list of stores is empty; each names one store, such as redis://host",
                )),
                url => url.parse(),
            })
            .collect()
    }
}

impl<S: AsRef<str>> Stores for Vec<S> {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        self.as_slice().urls()
    }
}

impl<S: AsRef<str>, const N: usize> Stores for [S; N] {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        self.as_slice().urls()
    }
}

impl<T: Stores + ?Sized> Stores for &T {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        T::urls(self)
    }
}

impl StoreUrl {
    /// The urls in a text that names one or several with white space in between, as [`Stores`] reads it; none of them is
    /// looked at. A path may contain spaces, so that only a word with a scheme begins another url.
    pub fn split(text: &str) -> Vec<&str> {
        split(text)
    }
}

fn split(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut starts: Vec<usize> = text
        .split_whitespace()
        .filter(|word| has_scheme(word))
        .map(|word| word.as_ptr() as usize - text.as_ptr() as usize)
        .collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| text[*start..end].trim_end()).collect()
}

fn has_scheme(word: &str) -> bool {
    word.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_scheme_begins_another_url() {
        for (text, urls) in [
            ("sqlite:a.db", &["sqlite:a.db"][..]),
            (" sqlite:/my files/a.db\n", &["sqlite:/my files/a.db"]),
            ("sqlite:/my files/12:30.db", &["sqlite:/my files/12:30.db"]),
            ("redis://a redis+unix:///b\tmemory:", &["redis://a", "redis+unix:///b", "memory:"]),
            ("sqlite:/my  files/a.db   redis://b", &["sqlite:/my  files/a.db", "redis://b"]),
            ("locks.db redis://b", &["locks.db", "redis://b"]),
        ] {
            assert_eq!(split(text), urls, "{text}");
        }
    }

    #[test]
    fn one_url_or_a_list_of_them_names_stores() {
        let one = |name: &str| format!("memory:{name}").parse::<StoreUrl>().unwrap();
        let two = vec![one("a"), one("b")];
        assert_eq!("memory:a".urls().unwrap(), [one("a")]);
        assert_eq!("memory:a".to_owned().urls().unwrap(), [one("a")]);
        assert_eq!("memory:a memory:b".urls().unwrap(), two);
        assert_eq!(["memory:a", "memory:b"].urls().unwrap(), two);
        let borrowed: &[&str; 2] = &["memory:a", "memory:b"];
        assert_eq!(Stores::urls(&borrowed).unwrap(), two);
        assert_eq!(vec!["memory:a".to_owned(), "memory:b".to_owned()].urls().unwrap(), two);
        assert_eq!(["memory:a", "memory:b"][..].urls().unwrap(), two);
    }

    /// Runs where the variable in the environment is no text.
    #[test]
    #[ignore = "a role of another test"]
    fn role_in_an_odd_environment() {
        if std::env::var_os("LEASEHOLD_STORE").is_none_or(|text| text.to_str().is_some()) {
            return;
        }
        assert!("memory:a".urls().is_ok());
        assert!(DefaultStore.urls().unwrap_err().to_string().contains("not valid UTF-8"));
        println!("as it should be");
    }

    #[cfg(unix)]
    #[test]
    fn the_environment_counts_only_where_no_store_is_named() {
        use std::os::unix::ffi::OsStrExt;
        let ran = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stores::tests::role_in_an_odd_environment", "--ignored", "--nocapture"])
            .env("LEASEHOLD_STORE", std::ffi::OsStr::from_bytes(b"sqlite:\xff"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && said.contains("as it should be"), "{said}");
    }

    #[test]
    fn a_list_without_stores_is_refused() {
        assert!(Vec::<String>::new().urls().unwrap_err().to_string().contains("list of stores is empty"));
        assert!(["memory:a", " "].urls().unwrap_err().to_string().contains("is empty"));
        for empty in ["", "  ", "\n"] {
            assert!(empty.urls().unwrap_err().to_string().contains("the store is an empty text"), "{empty:?}");
        }
    }
}

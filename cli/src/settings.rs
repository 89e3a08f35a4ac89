//! Settings that the command line leaves out: those of the environment, and then those of a file.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::args::Command;
use crate::duration;
use crate::output::{Failure, say};
use crate::store::variable;

const FILE: &str = "LEASEHOLD_CONFIG";
const TTL: &str = "LEASEHOLD_TTL";
const WAIT: &str = "LEASEHOLD_WAIT";
/// Below the folder of a user's settings, or below `/etc`.
const PLACE: &str = "leasehold/config.toml";
const FOR_ALL_USERS: &str = "/etc";

/// The file: TOML with the names of the options.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    #[serde(deserialize_with = "one_or_several")]
    pub store: Vec<String>,
    #[serde(deserialize_with = "some_duration")]
    pub max_ttl: Option<Duration>,
    pub quorum_id: Option<String>,
    #[serde(deserialize_with = "some_duration")]
    ttl: Option<Duration>,
    #[serde(deserialize_with = "some_duration")]
    wait: Option<Duration>,
    owner: Option<String>,
}

impl Settings {
    /// The settings of the file that `LEASEHOLD_CONFIG` names, or else of the user's or the machine's, with the variables of
    /// the environment before them.
    ///
    /// # Errors
    /// The named file cannot be read, a file says something else than settings, or a variable is no duration.
    pub(crate) fn load() -> Result<Self, Failure> {
        let mut settings = match variable(FILE)? {
            Some(path) => {
                let path = PathBuf::from(path);
                Self::of_file(&path)?
                    .ok_or_else(|| Failure::usage(format!("{FILE} names {}, which does not exist", path.display())))?
            }
            None => Self::of_first(&places())?,
        };
        for (name, setting) in [(TTL, &mut settings.ttl), (WAIT, &mut settings.wait)] {
            if let Some(text) = variable(name)? {
                let length = duration::parse(&text);
                *setting = Some(length.map_err(|why| Failure::usage(format!("{name} is {text:?}: {why}")))?);
            }
        }
        Ok(settings)
    }

    fn of_first(places: &[PathBuf]) -> Result<Self, Failure> {
        for place in places {
            match std::fs::exists(place) {
                // The home of another user, as after setuid, says nothing of this one's settings.
                Err(error) => say(format_args!("{} is left out: {error}", place.display())),
                Ok(false) => {}
                Ok(true) => return Self::of_file(place).map(Option::unwrap_or_default),
            }
        }
        Ok(Self::default())
    }

    /// `None` if there is no such file.
    fn of_file(path: &Path) -> Result<Option<Self>, Failure> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        };
        // Its message has the line, which may have a password.
        let wrong = |error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
            Failure::usage(format!("{}, line {line}: {}", path.display(), error.message()))
        };
        toml::from_str(&text).map(Some).map_err(wrong)
    }

    /// Gives a command the settings that were not on its command line.
    pub(crate) fn fill(&self, command: &mut Command) {
        let hold = if let Command::Exec(args) = command {
            args.wait = args.wait.or(self.wait);
            &mut args.hold
        } else if let Command::Once(args) = command {
            args.wait = args.wait.or(self.wait);
            &mut args.hold
        } else if let Command::Elect(args) = command {
            &mut args.hold
        } else {
            return;
        };
        hold.ttl = hold.ttl.or(self.ttl);
        if hold.owner.is_none() {
            hold.owner.clone_from(&self.owner);
        }
    }
}

/// The files that are looked for, the user's first.
fn places() -> Vec<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let users = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    users.into_iter().chain([PathBuf::from(FOR_ALL_USERS)]).map(|folder| folder.join(PLACE)).collect()
}

fn some_duration<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a length of time is a text with its unit, such as \"30s\"")]
    enum Length {
        Text(String),
    }
    let Length::Text(text) = Length::deserialize(value)?;
    duration::parse(&text).map(Some).map_err(de::Error::custom)
}

fn one_or_several<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a url, or a list of urls")]
    enum Urls {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Urls::deserialize(value)? {
        Urls::One(url) => vec![url],
        Urls::Several(urls) => urls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let settings = Settings::of_file(&path).map_err(|failure| format!("{failure:?}"))?;
        Ok(settings.expect("it exists"))
    }

    #[test]
    fn a_file_has_the_names_of_the_options() {
        let settings = of_text("store = 'redis://a'\nttl = '10s'\nwait = '1m'\nowner = 'batch'\n").unwrap();
        let (ttl, wait) = (Some(Duration::from_secs(10)), Some(Duration::from_secs(60)));
        let store = vec!["redis://a".to_owned()];
        assert_eq!(settings, Settings { store, ttl, wait, owner: Some("batch".to_owned()), ..Settings::default() });
        let quorum = of_text("store = ['redis://a', 'redis://b']\nmax-ttl = '2m'\nquorum-id = 'main'\n").unwrap();
        assert_eq!((quorum.store.len(), quorum.max_ttl), (2, Some(Duration::from_secs(120))));
        assert_eq!(of_text(""), Ok(Settings::default()));
    }

    #[test]
    fn a_wrong_file_says_where_and_shows_no_secret() {
        for (text, parts) in [
            ("ttl = 10\n", &["line 1", "with its unit"][..]),
            ("ttl = '10'\n", &["line 1", "the unit is missing"]),
            ("\nttls = '10s'\n", &["line 2", "unknown field `ttls`", "`ttl`"]),
            ("store = 3\n", &["line 1", "a url, or a list of urls"]),
            ("store = 'redis://:hunter2@host\n", &["line 1"]),
        ] {
            let error = of_text(text).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn the_first_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("all"), "ttl = '7s'").unwrap();
        let settings = Settings::of_first(&[place("users"), place("all")]).unwrap();
        assert_eq!(settings.ttl, Some(Duration::from_secs(7)));
        assert_eq!(Settings::of_first(&[place("users")]).unwrap(), Settings::default());
    }
}

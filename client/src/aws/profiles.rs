//! The files that AWS users have: `~/.aws/config` and `~/.aws/credentials`, and the profiles in them.
//!
//! Read as AWS's tools read them: sections in brackets, a property on each line, what is indented belongs to the
//! property above, `#` and `;` begin comments at the start of a line and behind white space.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use zeroize::{Zeroize, Zeroizing};

use super::EnvVars;

/// The profile of those who name none.
pub(crate) const DEFAULT: &str = "default";

/// The contents of the files.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    profiles: BTreeMap<String, Section>,
    sessions: BTreeMap<String, Section>,
    services: BTreeMap<String, Section>,
    places: String,
}

/// Properties by their names, in lower case; those below another as `other.name`.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Section(BTreeMap<String, String>);

impl Section {
    /// The value of a property. A blank one counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Tells if a property is `true`.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values are secrets, some of them.
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        self.0.values_mut().for_each(Zeroize::zeroize);
    }
}

/// The profile that is meant where a url names none.
pub(crate) fn usual(env: &EnvVars) -> String {
    env.variable("AWS_PROFILE").unwrap_or_else(|| DEFAULT.to_owned())
}

impl Profiles {
    /// Files that do not exist say nothing.
    ///
    /// # Errors
    /// A file cannot be read or parsed; the message names it.
    pub(crate) fn read(env: &EnvVars) -> Result<Self, String> {
        let mut found = Self::default();
        let mut places = Vec::new();
        for (kind, variable, usual) in [
            (Kind::Config, "AWS_CONFIG_FILE", "~/.aws/config"),
            (Kind::Credentials, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
        ] {
            let named = env.variable(variable).unwrap_or_else(|| usual.to_owned());
            let Some(path) = env.expanded(&named) else { continue };
            places.push(path.display().to_string());
            if let Some(text) = text(&path)? {
                found.add(kind, &text).map_err(|what| format!("{}: {what}", path.display()))?;
            }
        }
        found.places =
            if places.is_empty() { "the home folder, which is unknown".to_owned() } else { places.join(" or ") };
        Ok(found)
    }

    /// The files, read at the first use.
    ///
    /// # Errors
    /// As [`Profiles::read`].
    pub(crate) fn opened<'a>(files: &'a mut Option<Self>, env: &EnvVars) -> Result<&'a Self, String> {
        match files {
            Some(files) => Ok(files),
            None => Ok(files.insert(Self::read(env)?)),
        }
    }

    /// Checks that there is a profile of this name, which a url has.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn expect(&self, name: &str) -> Result<(), String> {
        match self.profile(name) {
            Some(_) => Ok(()),
            None => Err(format!("there is no profile {name:?} in {}, only {}", self.places(), self.names())),
        }
    }

    pub(crate) fn profile(&self, name: &str) -> Option<&Section> {
        self.profiles.get(name)
    }

    /// A session, as `aws configure sso` calls it.
    pub(crate) fn sso_session(&self, name: &str) -> Option<&Section> {
        self.sessions.get(name)
    }

    /// The endpoint that a profile names: for this service alone, or for all of them.
    pub(crate) fn endpoint_url<'a>(&'a self, profile: &'a Section, service: &str) -> Option<&'a str> {
        let services = profile.get("services").and_then(|name| self.services.get(name));
        let of_service = services.and_then(|section| section.get(&format!("{service}.endpoint_url")));
        of_service.or_else(|| profile.get("endpoint_url"))
    }

    /// The files in which profiles are looked for.
    pub(crate) fn places(&self) -> &str {
        &self.places
    }

    /// The names of the profiles, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.profiles.keys().map(String::as_str).take(20).collect();
        if names.is_empty() { "no profile at all".to_owned() } else { names.join(", ") }
    }

    fn add(&mut self, kind: Kind, text: &str) -> Result<(), String> {
        let mut sections: BTreeMap<Header, Section> = BTreeMap::new();
        let mut header = None;
        let mut above: Option<String> = None;
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let wrong = |what: &str| format!("line {}: {what}", number + 1);
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if !is_indented && let Some(rest) = line.strip_prefix('[') {
                let (name, _) = rest.split_once(']').ok_or_else(|| wrong("a ] is missing"))?;
                header = Header::of(kind, name);
                if let Some(header) = &header {
                    sections.entry(header.clone()).or_default();
                }
                above = None;
                continue;
            }
            // Sections of other kinds are not ours.
            let Some(section) = header.as_ref().and_then(|header| sections.get_mut(header)) else { continue };
            let pair = line.split_once('=').map(|(name, value)| (name.trim().to_ascii_lowercase(), plain(value)));
            match (is_indented, &above, pair) {
                (false, _, Some((name, value))) => {
                    above = Some(name.clone());
                    section.0.insert(name, value.to_owned());
                }
                (true, Some(above), Some((name, value))) if section.get(above).is_none() => {
                    section.0.insert(format!("{above}.{name}"), value.to_owned());
                }
                // The rest of a multi-line value, which no property here has.
                (true, Some(_), _) => {}
                (false, _, None) | (true, None, _) => {
                    return Err(wrong("not a property; write name = value"));
                }
            }
        }
        for (header, mut section) in sections {
            let place = match &header {
                Header::Profile { name, .. } => self.profiles.entry(name.clone()),
                Header::Session(name) => self.sessions.entry(name.clone()),
                Header::Services(name) => self.services.entry(name.clone()),
            };
            place.or_default().0.append(&mut section.0);
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Config,
    Credentials,
}

/// Later sections override earlier ones of the same name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Header {
    /// `[profile default]` overrides `[default]`.
    Profile {
        name: String,
        has_word: bool,
    },
    Session(String),
    Services(String),
}

impl Header {
    fn of(kind: Kind, text: &str) -> Option<Self> {
        let text = text.trim();
        let name = |text: &str| text.trim().trim_matches(['"', '\'']).trim().to_owned();
        let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        match (kind, word) {
            (Kind::Credentials, _) => Some(Self::Profile { name: name(text), has_word: false }),
            (Kind::Config, "profile") if !rest.is_empty() => Some(Self::Profile { name: name(rest), has_word: true }),
            (Kind::Config, "sso-session") => Some(Self::Session(name(rest))),
            (Kind::Config, "services") => Some(Self::Services(name(rest))),
            (Kind::Config, DEFAULT) => Some(Self::Profile { name: DEFAULT.to_owned(), has_word: false }),
            (Kind::Config, _) => None,
        }
    }
}

/// A value without the comment behind it.
fn plain(value: &str) -> &str {
    let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|start| value.find(start)).min();
    value[..comment.unwrap_or(value.len())].trim()
}

fn text(path: &Path) -> Result<Option<Zeroizing<String>>, String> {
    match super::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8", path.display()))?;
            Ok(Some(Zeroizing::new(text)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Profiles {
        let mut profiles = Profiles::default();
        profiles.add(Kind::Config, text).unwrap();
        profiles
    }

    fn get<'a>(profiles: &'a Profiles, profile: &str, name: &str) -> Option<&'a str> {
        profiles.profile(profile)?.get(name)
    }

    #[test]
    fn profiles_are_read_as_the_tools_of_aws_read_them() {
        let profiles = config(
            "\u{20}\n# a comment\n[default]\nregion = eu-west-1 # behind\nRegion2=a#b;c\nempty =\n\n\
             [profile \"two words\"]\nregion=us-east-1\ns3 =\n  max = 3\n[preview]\nregion = nobody\n\
             [sso-session corp]\nsso_region = eu-central-1\n[plugins]\n  odd\n",
        );
        assert_eq!(get(&profiles, "default", "region"), Some("eu-west-1"));
        assert_eq!(get(&profiles, "default", "region2"), Some("a#b;c"));
        assert_eq!(get(&profiles, "default", "empty"), None);
        assert_eq!(get(&profiles, "two words", "s3.max"), Some("3"));
        assert!(profiles.profile("preview").is_none() && profiles.profile("corp").is_none());
        assert_eq!(profiles.sso_session("corp").unwrap().get("sso_region"), Some("eu-central-1"));
        assert_eq!(profiles.names(), "default, two words");
    }

    #[test]
    fn later_values_override_earlier_ones() {
        let mut profiles = config("[profile default]\nregion = a\n[default]\nregion = b\nsource = config");
        profiles.add(Kind::Credentials, "[default]\nsource = credentials\n[profile x]\nk = v").unwrap();
        assert_eq!(get(&profiles, "default", "region"), Some("a"));
        assert_eq!(get(&profiles, "default", "source"), Some("credentials"));
        assert_eq!(get(&profiles, "profile x", "k"), Some("v"));
    }

    #[test]
    fn a_service_may_have_an_endpoint_of_its_own() {
        let profiles = config(
            "[profile a]\nservices = local\nendpoint_url = http://all\n[profile b]\nendpoint_url = http://all\n\
             [services local]\ns3 =\n  endpoint_url = http://s3\ndynamodb = \n  endpoint_url = http://ddb\n",
        );
        let endpoint = |name: &str| profiles.endpoint_url(profiles.profile(name).unwrap(), "dynamodb");
        assert_eq!((endpoint("a"), endpoint("b")), (Some("http://ddb"), Some("http://all")));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_its_line() {
        for (text, words) in
            [("[default\n", "line 1: a ] is missing"), ("[default]\na = b\nodd\n", "line 3: not a property")]
        {
            let said = Profiles::default().add(Kind::Config, text).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn files_are_where_the_environment_says() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        std::fs::write(folder.path().join(".aws/config"), "[default]\nregion = home").unwrap();
        std::fs::write(folder.path().join("elsewhere"), "[default]\nregion = elsewhere").unwrap();
        let read = |extra: Option<&'static str>| {
            let home = home.clone();
            Profiles::read(&EnvVars::new(move |name| match name {
                "HOME" => Some(home.clone()),
                "AWS_CONFIG_FILE" => extra.map(|extra| extra.replace("HOME", &home)),
                _ => None,
            }))
        };
        assert_eq!(get(&read(None).unwrap(), "default", "region"), Some("home"));
        assert_eq!(get(&read(Some("~/elsewhere")).unwrap(), "default", "region"), Some("elsewhere"));
        assert!(read(Some("HOME/not-there")).unwrap().profile("default").is_none());
        assert!(read(Some("HOME")).unwrap_err().contains("cannot be read"));
        let nowhere = Profiles::read(&EnvVars::new(|_| None)).unwrap();
        assert!(nowhere.names() == "no profile at all" && nowhere.places().contains("unknown"));
    }

    #[test]
    fn debug_shows_no_values() {
        let profiles = config("[default]\naws_secret_access_key = hunter2");
        let shown = format!("{profiles:?}");
        assert!(shown.contains("aws_secret_access_key") && !shown.contains("hunter2"), "{shown}");
    }
}

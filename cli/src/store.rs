//! The stores that a command uses.

use std::env::{self, VarError};
use std::ffi::OsString;
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::quorum::Quorum;
use leasehold::{ClientBuilder, DefaultStore, Error, StoreUrl, Stores};

use crate::args::StoreArgs;
use crate::duration;
use crate::output::Failure;
use crate::settings::Settings;
use crate::warnings;

pub(crate) const STORE: &str = "LEASEHOLD_STORE";
const MAX_TTL: &str = "LEASEHOLD_MAX_TTL";
const QUORUM_ID: &str = "LEASEHOLD_QUORUM_ID";

/// The stores and settings that were named before or after the command. Without any, the client reads the environment,
/// or takes its default.
#[derive(Debug)]
pub(crate) struct Target {
    urls: Vec<String>,
    max_ttl: Option<Duration>,
    quorum_id: Option<String>,
}

impl Target {
    pub(crate) fn of(before: &StoreArgs, after: Option<&StoreArgs>, settings: Settings) -> Result<Self, Failure> {
        let all = || [Some(before), after].into_iter().flatten();
        let mut urls: Vec<String> = all().flat_map(|args| args.urls.iter().cloned()).collect();
        if urls.iter().any(|url| url.trim().is_empty()) {
            return Err(Failure::usage(
                "--store is empty; name a store, such as sqlite:locks.db, or leave --store out",
            ));
        }
        // A variable that is set, but empty, is an error once the store is opened, and not another store.
        if urls.is_empty() && env::var_os(STORE).is_none() {
            urls = settings.store;
        }
        let mut target = Self {
            urls,
            max_ttl: once("--max-ttl", all().filter_map(|args| args.max_ttl))?,
            quorum_id: once("--quorum-id", all().filter_map(|args| args.quorum_id.clone()))?,
        };
        // Urls that cannot be parsed are reported when they are opened.
        if target.urls().is_ok_and(|urls| urls.len() > 1) {
            target.ask_environment()?;
            target.max_ttl = target.max_ttl.or(settings.max_ttl);
            target.quorum_id = target.quorum_id.or(settings.quorum_id);
        }
        Ok(target)
    }

    /// The settings of a quorum that were not given. A single store would refuse them, although the same environment
    /// may be used for both.
    fn ask_environment(&mut self) -> Result<(), Failure> {
        if self.max_ttl.is_none()
            && let Some(text) = variable(MAX_TTL)?
        {
            let max_ttl = duration::parse(&text);
            self.max_ttl = Some(max_ttl.map_err(|why| Failure::usage(format!("{MAX_TTL} is {text:?}: {why}")))?);
        }
        if self.quorum_id.is_none() {
            self.quorum_id = variable(QUORUM_ID)?;
        }
        Ok(())
    }

    /// The settings of a quorum, as environment variables for another process.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let max_ttl = self.max_ttl.map(|max_ttl| (MAX_TTL, format!("{}ms", max_ttl.as_millis()).into()));
        let id = self.quorum_id.as_ref().map(|id| (QUORUM_ID, id.into()));
        max_ttl.into_iter().chain(id)
    }

    /// The urls for another process: files by their full paths, and all else as it was given, secrets and parameters
    /// included. `stores` are those that were opened.
    pub(crate) fn handed_on(&self, stores: &[StoreUrl]) -> OsString {
        let environment = if self.urls.is_empty() { env::var(STORE).unwrap_or_default() } else { String::new() };
        let named = self.urls.iter().map(String::as_str).chain([environment.as_str()]);
        let named: Vec<&str> = named.filter(|text| !text.trim().is_empty()).flat_map(StoreUrl::split).collect();
        let mut all = OsString::new();
        for (index, store) in stores.iter().enumerate() {
            if !all.is_empty() {
                all.push(" ");
            }
            let as_given = || named.get(index).map_or_else(|| store.to_string(), |text| (*text).to_owned()).into();
            all.push(store.handed_on().unwrap_or_else(as_given));
        }
        all
    }

    /// A builder with the settings of the stores.
    pub(crate) fn settings(&self) -> ClientBuilder {
        let mut settings = leasehold::Client::builder();
        if let Some(max_ttl) = self.max_ttl {
            settings = settings.max_ttl(max_ttl);
        }
        if let Some(id) = &self.quorum_id {
            settings = settings.quorum_id(id);
        }
        settings
    }

    pub(crate) fn open(&self) -> Result<Client, Error> {
        warnings::said(|| Client::connect_with(self.settings(), self))
    }

    /// The nodes of the quorum, for administration.
    pub(crate) fn quorum(&self) -> Result<Quorum, Error> {
        warnings::said(|| Quorum::connect(&self.settings(), self))
    }

    /// Connects for a command about locks that other processes see too.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        let client = self.open()?;
        must_be_shared(client.stores())?;
        Ok(client)
    }
}

impl Stores for Target {
    fn urls(&self) -> Result<Vec<StoreUrl>, Error> {
        if self.urls.is_empty() {
            return DefaultStore.urls();
        }
        self.urls.iter().map(Stores::urls).collect::<Result<Vec<_>, _>>().map(|urls| urls.concat())
    }
}

/// The urls for people, without secrets.
pub(crate) fn shown(stores: &[StoreUrl]) -> String {
    stores.iter().map(StoreUrl::shown).collect::<Vec<_>>().join(" ")
}

/// Tells if the environment names these stores, in any spelling.
pub(crate) fn is_in_environment(stores: &[StoreUrl]) -> bool {
    let named = env::var(STORE).ok().filter(|text| !text.trim().is_empty()).and_then(|text| text.urls().ok());
    let names = |stores: &[StoreUrl]| stores.iter().map(|store| store.node_name().ok()).collect::<Option<Vec<_>>>();
    named.is_some_and(|named| names(&named).is_some_and(|named| Some(named) == names(stores)))
}

/// An environment variable; an empty one counts as not set.
pub(crate) fn variable(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::usage(format!("{name} is not valid UTF-8"))),
    }
}

/// A setting of the whole command line: if it is given twice, one must not silently win.
fn once<T>(name: &str, mut given: impl Iterator<Item = T>) -> Result<Option<T>, Failure> {
    let first = given.next();
    match given.next() {
        Some(_) => Err(Failure::usage(format!("{name} was given twice; give it once"))),
        None => Ok(first),
    }
}

/// A lock that no other process can see would be worse than none.
pub(crate) fn must_be_shared(stores: &[StoreUrl]) -> Result<(), Failure> {
    match stores.iter().find(|store| store.is_of_one_process()) {
        Some(store) => Err(Failure::usage(format!(
            "the store {store} lives and ends with one process, so it locks out nobody else; name a store that \
             others share, such as sqlite:locks.db"
        ))),
        None => Ok(()),
    }
}

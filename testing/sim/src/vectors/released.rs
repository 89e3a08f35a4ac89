//! The vectors of versions that were released: clients of that version are still out there, so they still have to pass.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::{Files, Way, play, stored, wire};
use crate::format::{Vector, WireVector};

/// A file beside a release's vectors, which names those that a later version differs from on purpose.
const SUPERSEDED: &str = "superseded.txt";

/// One version's vectors, as they were when it was released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Those of operations.
    pub plain: Files,
    /// Those with whole requests.
    pub wire: Files,
    /// The reasons why vectors need not pass any more, by `NAME` or `wire/NAME`.
    pub superseded: BTreeMap<String, String>,
}

/// All releases in a folder, by version.
///
/// # Errors
/// A file that cannot be read.
pub fn releases(folder: &Path) -> io::Result<BTreeMap<String, Release>> {
    let mut releases = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            let version = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            releases.insert(version, Release::read(&path)?);
        }
    }
    Ok(releases)
}

impl Release {
    fn read(folder: &Path) -> io::Result<Self> {
        let superseded = match fs::read_to_string(folder.join(SUPERSEDED)) {
            Ok(text) => parse(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { plain: stored(folder)?, wire: stored(&folder.join("wire"))?, superseded })
    }

    /// Writes them to a new folder.
    ///
    /// # Errors
    /// A file that cannot be written; and an existing folder, because released vectors never change.
    pub fn keep(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder.parent().unwrap_or(folder))?;
        fs::create_dir(folder)?;
        fs::create_dir(folder.join("wire"))?;
        for (files, folder) in [(&self.plain, folder), (&self.wire, &folder.join("wire"))] {
            for (name, text) in files {
                fs::write(folder.join(name), text)?;
            }
        }
        Ok(())
    }

    /// Every vector that does not pass and should, and every excuse that is not needed.
    pub fn problems(&self) -> Vec<String> {
        let plain = self.plain.iter().map(|(name, text)| (name.clone(), plays(text)));
        let wire = self.wire.iter().map(|(name, text)| (format!("wire/{name}"), plays_wire(text)));
        let mut left = self.superseded.clone();
        let mut problems = Vec::new();
        for (name, result) in plain.chain(wire) {
            match (result, left.remove(&name)) {
                (Err(error), None) => problems.push(format!("{name}: {error}")),
                (Ok(()), Some(_)) => problems.push(format!("{name}: it passes, and is named in {SUPERSEDED}")),
                (Err(_), Some(_)) | (Ok(()), None) => {}
            }
        }
        problems.extend(left.into_keys().map(|name| format!("{name}: {SUPERSEDED} names it, and it is not there")));
        problems
    }
}

/// Lines of `NAME: why`.
fn parse(text: &str) -> io::Result<BTreeMap<String, String>> {
    let line = |line: &str| match line.split_once(": ") {
        Some((name, why)) if !why.trim().is_empty() => Ok((name.to_owned(), why.trim().to_owned())),
        Some(_) | None => Err(io::Error::other(format!("{SUPERSEDED} has no reason in `{line}`"))),
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

fn plays(text: &str) -> Result<(), String> {
    let vector = Vector::parse(text)?;
    [Way::Calls, Way::Steps].into_iter().try_for_each(|way| play(&vector, way).map(|_| ()))
}

fn plays_wire(text: &str) -> Result<(), String> {
    let vector = WireVector::parse(text)?;
    [Way::Calls, Way::Steps].into_iter().try_for_each(|way| wire::play(&vector, way))
}

//! Files with any contents, for the fuzzers of `testing/fuzz`.

use super::{Kind, Profiles};

/// Names and values.
pub type Properties = Vec<(String, String)>;

/// The profiles in the texts of the two files, and their debug output.
///
/// # Errors
/// The text cannot be parsed.
pub fn profiles(config: &str, credentials: &str) -> Result<(Vec<(String, Properties)>, String), String> {
    let mut found = Profiles::default();
    found.add(Kind::Config, config)?;
    found.add(Kind::Credentials, credentials)?;
    let shown = format!("{found:?}");
    let all = found.profiles.iter().map(|(name, section)| {
        (name.clone(), section.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    });
    Ok((all.collect(), shown))
}

//! Arguments of the programs: `--name value`, `--name=value` and `--flag`.

use std::fmt::Display;
use std::str::FromStr;

/// The parsed arguments.
pub struct Args {
    values: Vec<(String, String)>,
    flags: Vec<String>,
}

/// The name of the benchmark in a program that has several of them: the first argument, unless it begins with `-`.
pub fn benchmark() -> Option<String> {
    std::env::args().nth(1).filter(|first| !first.starts_with('-'))
}

impl Args {
    /// Reads what follows the name of the benchmark, as [`Args::parse`].
    ///
    /// # Errors
    /// As [`Args::parse`].
    pub fn of_benchmark(values: &[&str], flags: &[&str]) -> Result<Self, String> {
        let named = usize::from(benchmark().is_some());
        Self::parse(std::env::args().skip(1 + named), values, flags)
    }

    /// Reads arguments of which `values` take a value and `flags` do not.
    ///
    /// # Errors
    /// For anything else, in words for the user.
    pub fn parse(given: impl IntoIterator<Item = String>, values: &[&str], flags: &[&str]) -> Result<Self, String> {
        let mut args = Self { values: Vec::new(), flags: Vec::new() };
        let mut given = given.into_iter();
        while let Some(arg) = given.next() {
            let (name, attached) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (arg.as_str(), None),
            };
            if values.contains(&name) {
                let value = attached.or_else(|| given.next()).ok_or_else(|| format!("{name} needs a value"))?;
                args.values.push((name.to_owned(), value));
            } else if flags.contains(&name) && attached.is_none() {
                args.flags.push(arg);
            } else {
                let known: Vec<&str> = values.iter().chain(flags).copied().collect();
                return Err(match known[..] {
                    [] => format!("unknown argument {arg:?}: there are none"),
                    _ => format!("unknown argument {arg:?}; there are {}", known.join(", ")),
                });
            }
        }
        Ok(args)
    }

    /// True if a flag was passed.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// The value of an argument, the last one if it was passed twice.
    ///
    /// # Errors
    /// When it cannot be parsed, in words for the user.
    pub fn value<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, String> {
        let given = self.values.iter().rev().find(|(given, _)| given == name);
        given.map(|(_, value)| value.parse().map_err(|error| format!("{name} {value}: {error}"))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_owned), &["--seconds", "--seed"], &["--json"])
    }

    #[test]
    fn last_value_of_an_argument_counts() {
        let args = parse("--seconds 60 --json --seconds=5").unwrap();
        assert_eq!(args.value("--seconds"), Ok(Some(5_u32)));
        assert_eq!(args.value::<u64>("--seed"), Ok(None));
        assert!(args.has("--json"));
    }

    #[test]
    fn wrong_arguments_are_reported() {
        let told = |line| parse(line).err().unwrap();
        assert_eq!(told("--sceonds 5"), "unknown argument \"--sceonds\"; there are --seconds, --seed, --json");
        assert_eq!(told("--json=yes"), "unknown argument \"--json=yes\"; there are --seconds, --seed, --json");
        assert_eq!(told("--seconds"), "--seconds needs a value");
        let args = parse("--seconds soon").unwrap();
        assert_eq!(args.value::<u32>("--seconds"), Err("--seconds soon: invalid digit found in string".to_owned()));
    }
}

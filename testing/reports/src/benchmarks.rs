//! Names of benchmarks, as `cargo xtask bench` knows them.

use crate::{Failure, Result};

/// In the order of the page.
pub const ALL: [&str; 15] = [
    "core",
    "sqlite",
    "redis",
    "quorum",
    "dynamodb",
    "postgres",
    "etcd",
    "objects",
    "instructions",
    "serve",
    "admin",
    "cas",
    "component",
    "python",
    "node",
];

/// The benchmarks to run, and the arguments for them.
pub fn selected(args: &[String]) -> Result<(Vec<&str>, &[String])> {
    let is_known = |arg: &&String| ALL.contains(&arg.as_str());
    let (named, rest) = args.split_at(args.iter().take_while(is_known).count());
    match rest.first() {
        // One may take words of its own.
        Some(word) if named.len() != 1 && !word.starts_with('-') => {
            Err(Failure::new(format!("there is no benchmark `{word}`\n  there are: {}", ALL.join(", "))))
        }
        _ if named.is_empty() => Ok((ALL.to_vec(), rest)),
        _ => Ok((named.iter().map(String::as_str).collect(), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_name_selects_one_benchmark_and_keeps_its_arguments() {
        let args = words("sqlite --processes 8");
        assert_eq!(selected(&args).expect("a known name"), (vec!["sqlite"], &args[1..]));
        let args = words("node 1000 5");
        assert_eq!(selected(&args).expect("words of its own"), (vec!["node"], &args[1..]));
    }

    #[test]
    fn several_names_select_these() {
        let args = words("sqlite node --quick");
        assert_eq!(selected(&args).expect("known names"), (vec!["sqlite", "node"], &args[2..]));
        let failure = selected(&words("sqlite node consul")).expect_err("not a benchmark").to_string();
        assert!(failure.contains("`consul`"), "{failure}");
    }

    #[test]
    fn without_a_name_all_benchmarks_run() {
        let args = words("--quick");
        assert_eq!(selected(&args).expect("no name is fine"), (ALL.to_vec(), &args[..]));
        assert_eq!(selected(&[]).expect("nothing is fine").0, ALL.to_vec());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let failure = selected(&words("consul")).expect_err("not a benchmark").to_string();
        assert!(failure.contains("`consul`") && failure.contains("core, sqlite"), "{failure}");
    }
}

//! No panic reaches JavaScript's engine, which could only end the process: each function that it calls stops them.

use super::Finding;

/// Where functions for Node are.
pub const FOLDER: &str = "node/src/";
const STOPPED: &str = "catch_unwind";

pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut findings = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let is_exported = *line == "#[napi]" || line.starts_with("#[napi(");
        let below = lines[number + 1..].iter().find(|line| !line.starts_with("#[") && !line.starts_with("//"));
        let is_function = below.is_some_and(|line| line.starts_with("pub fn ") || line.starts_with("pub unsafe fn "));
        if is_exported && is_function && !line.contains(STOPPED) {
            let message = format!("a panic of this function would end Node; add `{STOPPED}` to the attribute");
            findings.push(Finding { path: path.to_owned(), line: number + 1, rule: "no-panic-crosses", message });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_lets_panics_through_is_flagged() {
        let flagged = |text: &str| check("node/src/a.rs", text).iter().map(|finding| finding.line).collect::<Vec<_>>();
        assert_eq!(
            flagged("#[napi]\npub fn one() {}\n    #[napi(getter)]\n    #[must_use]\n    pub fn two(&self) {}\n"),
            [1, 3]
        );
        assert_eq!(
            flagged("#[napi(catch_unwind)]\npub fn one() {}\n#[napi]\npub struct Two;\n#[napi]\nimpl Two {}\n"),
            [0; 0]
        );
    }
}

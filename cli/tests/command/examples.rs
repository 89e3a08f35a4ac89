//! Runs each script in `examples/shell` and compares what it prints with the comment at its end.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn every_shell_example_prints_its_output() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/shell");
    let scripts: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!scripts.is_empty());
    let mut path = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    for script in scripts {
        let text = fs::read_to_string(&script).unwrap();
        let (_, output) = text.split_once("\n# Output:\n").expect("the example ends with its output");
        let output: String = output.split_inclusive('\n').map(|line| line.trim_start_matches("# ")).collect();
        let ran = Command::new("sh").arg(&script).env("PATH", &path).output().unwrap();
        assert!(ran.status.success(), "{script:?}: {ran:?}");
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), output, "{script:?}");
    }
}

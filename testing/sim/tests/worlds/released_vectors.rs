//! The vectors of earlier releases: what their clients do and expect, the core of today does and expects too.

use std::path::PathBuf;

use leasehold_sim::vectors::{Release, folder, releases, stored, wire};

fn today() -> Release {
    Release { plain: stored(&folder()).unwrap(), wire: stored(&wire::folder()).unwrap(), ..Release::default() }
}

/// A folder that is not there yet.
fn place(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("leasehold-released-{}-{test}", std::process::id())).join("1.2.3")
}

#[test]
fn released_vectors_still_pass() {
    for (version, release) in releases(&folder().join("released")).expect("the folder can be read") {
        assert!(release.plain.len() > 20 && release.wire.len() > 5, "{version} has all of its vectors");
        let problems = release.problems();
        assert!(problems.is_empty(), "core/vectors/released/{version}:\n{}", problems.join("\n"));
    }
}

#[test]
fn released_vectors_are_never_overwritten() {
    let folder = place("kept");
    let release = today();
    release.keep(&folder).unwrap();
    let kept = releases(folder.parent().unwrap()).unwrap();
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [("1.2.3".to_owned(), release.clone())]);
    assert_eq!(release.problems(), Vec::<String>::new());
    assert!(release.keep(&folder).is_err(), "what was released does not change");
    std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
}

#[test]
fn difference_from_a_release_needs_an_entry() {
    let mut release = today();
    for (files, name, from, to) in [
        (&mut release.plain, "granted_renewed_released.json", "\"left_ns\": ", "\"left_ns\": 1"),
        (&mut release.wire, "dynamodb_requests.json", "UpdateItem", "PutItem"),
    ] {
        let text = files.get_mut(name).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        *text = text.replace(from, to);
    }
    let problems = release.problems();
    assert!(problems.len() == 2 && problems[0].starts_with("granted_renewed_released.json: step "), "{problems:?}");
    assert!(problems[1].starts_with("wire/dynamodb_requests.json: step "), "{problems:?}");

    let why = |name: &str| (name.to_owned(), "on purpose".to_owned());
    release.superseded = ["granted_renewed_released.json", "wire/dynamodb_requests.json"].map(why).into();
    assert_eq!(release.problems(), Vec::<String>::new());

    release.superseded.extend(["clocks.json", "never_there.json"].map(why));
    let problems = release.problems();
    assert!(problems.len() == 2 && problems[0].starts_with("clocks.json: it passes"), "{problems:?}");
    assert!(problems[1].starts_with("never_there.json: ") && problems[1].ends_with("it is not there"), "{problems:?}");
}

#[test]
fn superseded_vector_needs_a_reason() {
    let folder = place("reason");
    today().keep(&folder).unwrap();
    std::fs::write(folder.join("superseded.txt"), "clocks.json:\n").unwrap();
    let error = releases(folder.parent().unwrap()).unwrap_err().to_string();
    assert!(error.contains("`clocks.json:`"), "{error}");
    std::fs::write(folder.join("superseded.txt"), "clocks.json: they run the other way now\n").unwrap();
    let kept = releases(folder.parent().unwrap()).unwrap();
    assert_eq!(kept["1.2.3"].superseded["clocks.json"], "they run the other way now");
    std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
}

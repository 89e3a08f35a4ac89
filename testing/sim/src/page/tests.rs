//! What a page must be whatever it shows: alone, faithful, and inert.

use std::path::PathBuf;

use serde_json::Value;

use super::{render, sample};
use crate::clock::TrueTime;
use crate::story::{ArrowFate, Mark, MarkKind, SpanKind, Story};

const BEFORE: &str = r#"<script type="application/json" id="story">"#;

fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once(BEFORE).expect("a page holds its story");
    let (json, _) = rest.split_once("</script>").expect("the story ends");
    serde_json::from_str(json).expect("the story is JSON")
}

fn samples() -> [(&'static str, Story); 4] {
    [
        ("nothing", Story::default()),
        ("healthy", sample::healthy()),
        ("violating", sample::violating()),
        ("big", sample::big()),
    ]
}

fn hostile(text: &str) -> Story {
    let mut story = sample::violating();
    story.title = text.to_owned();
    story.commit = text.to_owned();
    story.facts.push((text.to_owned(), text.to_owned()));
    story.lanes[0].name = text.to_owned();
    story.lanes[0].detail = text.to_owned();
    story.spans[0].label = text.to_owned();
    story.arrows[0].label = text.to_owned();
    story.marks.push(Mark {
        lane: None,
        resource: None,
        at_ns: TrueTime(1),
        kind: MarkKind::Violation,
        label: text.to_owned(),
    });
    story
}

#[test]
fn a_page_stands_alone() {
    for (name, story) in samples() {
        let page = render(&story).to_lowercase();
        for reference in [
            "http:",
            "https:",
            "ws://",
            "wss://",
            "//cdn",
            "@import",
            "url(",
            "src=",
            "fetch(",
            "import(",
            "xmlhttprequest",
        ] {
            assert!(!page.contains(reference), "{name}: the page refers to something outside: {reference}");
        }
        assert!(page.contains("default-src 'none'"), "{name}: the browser is told to load nothing");
        assert!(!page.contains("@@"), "{name}: a marker was not filled in");
    }
}

#[test]
fn the_embedded_story_is_the_story() {
    for (name, story) in samples() {
        assert_eq!(embedded(&render(&story)), serde_json::to_value(&story).unwrap(), "{name}");
    }
}

#[test]
fn hostile_texts_are_inert() {
    let plain = render(&hostile("plain"));
    for text in [
        "</script><b>bold</b>",
        "<!--<script>",
        "</title><script>alert(1)</script>",
        "\" onload=\"x",
        "a & b &lt; 'c'",
        "@@js@@ @@story@@",
        "line\u{2028}separator\\",
    ] {
        let story = hostile(text);
        let page = render(&story);
        assert_eq!(embedded(&page), serde_json::to_value(&story).unwrap(), "{text}");
        for tag in ["<script", "</script", "<b>", "<!--", "</title", "<style"] {
            assert_eq!(page.matches(tag).count(), plain.matches(tag).count(), "{text} adds a {tag}");
        }
    }
}

#[test]
fn the_title_is_readable_in_a_tab() {
    let story = Story { title: "a < b & c".to_owned(), ..Story::default() };
    assert!(render(&story).contains("<title>a &lt; b &amp; c</title>"));
    assert!(render(&Story::default()).contains("<title>A run of the simulator</title>"));
}

#[test]
fn samples_show_what_a_page_can_show() {
    let healthy = sample::healthy();
    assert!(healthy.spans.iter().filter(|span| span.kind == SpanKind::Belief).count() >= 40);
    for kind in [SpanKind::Waiting, SpanKind::Record, SpanKind::Paused, SpanKind::Dead, SpanKind::Fault] {
        assert!(healthy.spans.iter().any(|span| span.kind == kind), "{kind:?}");
    }
    for fate in [ArrowFate::Normal, ArrowFate::Delayed, ArrowFate::Duplicate, ArrowFate::Lost] {
        assert!(healthy.arrows.iter().any(|arrow| arrow.fate == fate), "{fate:?}");
    }
    assert!(healthy.marks.iter().any(|mark| mark.kind == MarkKind::Refused));
    assert!(healthy.marks.iter().all(|mark| mark.kind != MarkKind::Violation));
    assert!(sample::violating().marks.iter().any(|mark| mark.kind == MarkKind::Violation));
    let big = sample::big();
    assert!(big.arrows.len() >= 5_000 && big.spans.len() >= 1_000, "{} arrows", big.arrows.len());
    for (name, story) in samples() {
        let lanes = story.lanes.len();
        assert!(story.spans.iter().all(|span| span.lane < lanes && span.from_ns <= span.to_ns), "{name}");
        assert!(story.arrows.iter().all(|arrow| arrow.from < lanes && arrow.to < lanes), "{name}");
    }
}

/// `LEASEHOLD_PAGES=dir cargo test -p leasehold-sim -- --ignored pages_to_look_at`
#[test]
#[ignore = "writes pages for a person to look at"]
fn pages_to_look_at() {
    let dir = PathBuf::from(std::env::var_os("LEASEHOLD_PAGES").expect("LEASEHOLD_PAGES names a directory"));
    for (name, story) in samples().into_iter().chain([("hostile", hostile("</script><b>\"bold\" & 'quoted'</b>"))]) {
        std::fs::write(dir.join(format!("{name}.html")), render(&story)).unwrap();
    }
}

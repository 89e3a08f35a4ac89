//! Properties of every page: it loads nothing, shows the whole timeline, and escapes all texts.

use std::path::PathBuf;

use serde_json::Value;

use super::{render, sample};
use crate::clock::TrueTime;
use crate::timeline::{ArrowFate, Mark, MarkKind, SpanKind, Timeline};

const BEFORE: &str = r#"<script type="application/json" id="story">"#;

fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once(BEFORE).expect("a page holds its timeline");
    let (json, _) = rest.split_once("</script>").expect("the timeline ends");
    serde_json::from_str(json).expect("the timeline is JSON")
}

fn samples() -> [(&'static str, Timeline); 4] {
    [
        ("nothing", Timeline::default()),
        ("healthy", sample::healthy()),
        ("violating", sample::violating()),
        ("big", sample::big()),
    ]
}

fn hostile(text: &str) -> Timeline {
    let mut timeline = sample::violating();
    timeline.title = text.to_owned();
    timeline.commit = text.to_owned();
    timeline.facts.push((text.to_owned(), text.to_owned()));
    timeline.lanes[0].name = text.to_owned();
    timeline.lanes[0].detail = text.to_owned();
    timeline.spans[0].label = text.to_owned();
    timeline.arrows[0].label = text.to_owned();
    timeline.marks.push(Mark {
        lane: None,
        resource: None,
        at_ns: TrueTime(1),
        kind: MarkKind::Violation,
        label: text.to_owned(),
    });
    timeline
}

#[test]
fn page_loads_nothing() {
    for (name, timeline) in samples() {
        let page = render(&timeline).to_lowercase();
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
fn embedded_timeline_is_complete() {
    for (name, timeline) in samples() {
        assert_eq!(embedded(&render(&timeline)), serde_json::to_value(&timeline).unwrap(), "{name}");
    }
}

#[test]
fn hostile_texts_are_escaped() {
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
        let timeline = hostile(text);
        let page = render(&timeline);
        assert_eq!(embedded(&page), serde_json::to_value(&timeline).unwrap(), "{text}");
        for tag in ["<script", "</script", "<b>", "<!--", "</title", "<style"] {
            assert_eq!(page.matches(tag).count(), plain.matches(tag).count(), "{text} adds a {tag}");
        }
    }
}

#[test]
fn title_is_escaped() {
    let timeline = Timeline { title: "a < b & c".to_owned(), ..Timeline::default() };
    assert!(render(&timeline).contains("<title>a &lt; b &amp; c</title>"));
    assert!(render(&Timeline::default()).contains("<title>A run of the simulator</title>"));
}

#[test]
fn samples_cover_the_page() {
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
    for (name, timeline) in samples() {
        let lanes = timeline.lanes.len();
        assert!(timeline.spans.iter().all(|span| span.lane < lanes && span.from_ns <= span.to_ns), "{name}");
        assert!(timeline.arrows.iter().all(|arrow| arrow.from < lanes && arrow.to < lanes), "{name}");
    }
}

/// `LEASEHOLD_PAGES=dir cargo test -p leasehold-sim -- --ignored pages_to_look_at`
#[test]
#[ignore = "writes pages for a person to look at"]
fn pages_to_look_at() {
    let dir = PathBuf::from(std::env::var_os("LEASEHOLD_PAGES").expect("LEASEHOLD_PAGES names a directory"));
    for (name, timeline) in samples().into_iter().chain([("hostile", hostile("</script><b>\"bold\" & 'quoted'</b>"))]) {
        std::fs::write(dir.join(format!("{name}.html")), render(&timeline)).unwrap();
    }
}

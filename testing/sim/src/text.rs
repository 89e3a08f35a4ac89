//! The story of a run as lines of text, in the order of true time.

use std::fmt::Write as _;

use crate::clock::TrueTime;
use crate::timeline::{ArrowFate, SpanKind, Timeline};

/// Everything that happened from one instant to another.
pub fn render(timeline: &Timeline, from: TrueTime, to: TrueTime) -> String {
    let mut lines: Vec<(TrueTime, String)> = Vec::new();
    let lane = |lane: usize| timeline.lanes.get(lane).map_or("?", |lane| &*lane.name);
    for arrow in &timeline.arrows {
        let arrives = match (arrow.arrived_ns, arrow.fate) {
            (None, _) => "lost".to_owned(),
            (Some(at), ArrowFate::Duplicate) => format!("a copy arrives {}", seconds(at)),
            (Some(at), _) => format!("arrives {}", seconds(at)),
        };
        let line = format!("{} -> {}: {} ({arrives})", lane(arrow.from), lane(arrow.to), arrow.label);
        lines.push((arrow.sent_ns, line));
    }
    for mark in &timeline.marks {
        let whose = mark.lane.map_or("world", lane);
        lines.push((mark.at_ns, format!("{whose}: {:?}: {}", mark.kind, mark.label)));
    }
    for span in
        timeline.spans.iter().filter(|span| matches!(span.kind, SpanKind::Paused | SpanKind::Fault | SpanKind::Dead))
    {
        lines.push((span.from_ns, format!("{}: {} until {}", lane(span.lane), span.label, seconds(span.to_ns))));
    }
    lines.retain(|(at, _)| (from..=to).contains(at));
    lines.sort_by_key(|(at, _)| *at);
    let mut text = String::new();
    for (at, line) in lines {
        let _ = writeln!(text, "{}  {line}", seconds(at));
    }
    text
}

/// Seconds with microseconds.
pub fn seconds(at: TrueTime) -> String {
    format!("{}.{:06}", at.0 / 1_000_000_000, at.0 % 1_000_000_000 / 1_000)
}

//! The story of a run as one page that needs nothing else: no network, no fonts, no files beside it.

use crate::timeline::Timeline;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

const PAGE: &str = include_str!("page.html");
const CSS: &str = include_str!("page.css");
/// In the order in which they build on each other; they share one scope.
const JS: [&str; 5] = [
    include_str!("words.js"),
    include_str!("layout.js"),
    include_str!("arrows.js"),
    include_str!("draw.js"),
    include_str!("page.js"),
];

/// Draws a run as a self-contained HTML page: a timeline of hosts, stores and registers, with whatever promise was
/// broken at its centre.
///
/// Every text of the story is inert, whatever it contains.
pub fn render(timeline: &Timeline) -> String {
    // A story is strings and numbers, and cannot fail to be written; if it ever did, the page would show nothing.
    let json = serde_json::to_string(timeline).map(|json| inert_json(&json)).unwrap_or_default();
    let js = format!("\"use strict\";\n{}", JS.join("\n"));
    let title = inert_text(if timeline.title.is_empty() { "A run of the simulator" } else { &timeline.title });
    let mut page = String::with_capacity(PAGE.len() + CSS.len() + js.len() + json.len());
    let mut rest = PAGE;
    // In the order of the page: what has been filled in is never searched for markers again.
    for (marker, text) in [("@@title@@", title.as_str()), ("@@css@@", CSS), ("@@story@@", &json), ("@@js@@", &js)] {
        if let Some((before, after)) = rest.split_once(marker) {
            page.push_str(before);
            page.push_str(text);
            rest = after;
        }
    }
    page.push_str(rest);
    page
}

/// JSON that cannot end the element it stands in, nor begin another: these characters occur only within strings.
fn inert_json(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn inert_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

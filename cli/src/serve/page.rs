//! The page for people: who holds what, who waits, and what was lost. It works without scripts.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use leasehold::{Error, LockInfo};

use super::list::{Cursor, listed};
use super::state::{Loss, Service};
use crate::output::{instant, printable, seconds};

/// The most locks on the page.
const SHOWN: usize = 500;
const STYLE: &str = include_str!("page.css");

pub(super) async fn show(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let listed = listed::<LockInfo>(&service, Cursor::default(), SHOWN).await;
    let locks = listed.map(|listing| (listing.items, listing.rest.is_none()));
    let page = page(&service.store, &locks, &service.waiting(), &service.losses());
    // The page needs nothing from anywhere.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, policy)], page)
}

type Listed = Result<(Vec<LockInfo>, bool), Error>;

fn page(store: &str, locks: &Listed, waiting: &BTreeMap<String, usize>, losses: &[Loss]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><meta http-equiv=\"refresh\" \
         content=\"5\"><title>leasehold</title><style>{STYLE}</style></head><body><header><h1>leasehold</h1><p>{}</p>\
         </header><main>",
        escaped(store)
    );
    match locks {
        Ok((locks, complete)) => table_of_locks(&mut page, locks, *complete, waiting),
        Err(error) => {
            let what = escaped(&error.to_string());
            let _ = write!(page, "<section class=\"trouble\" role=\"alert\"><h2>The store</h2><p>{what}</p></section>");
        }
    }
    table_of_losses(&mut page, losses);
    page + "</main></body></html>\n"
}

fn table_of_locks(page: &mut String, locks: &[LockInfo], complete: bool, waiting: &BTreeMap<String, usize>) {
    let count = if complete { locks.len().to_string() } else { format!("the first {}", locks.len()) };
    let _ = write!(page, "<section><h2>Held <small>{count}</small></h2>");
    let free = waiting.iter().filter(|(name, _)| !locks.iter().any(|lock| lock.resource == **name));
    let free: Vec<_> = free.collect();
    if locks.is_empty() && free.is_empty() {
        *page += "<p class=\"none\">No lock is held.</p></section>";
        return;
    }
    *page += "<div class=\"wide\"><table><thead><tr><th>Lock</th><th>Holder</th><th class=\"number\">Token</th><th>Since (UTC)</th>\
              <th class=\"number\">Time left</th><th class=\"number\">Waiting here</th></tr></thead><tbody>";
    for lock in locks {
        let owner = match &lock.owner {
            Some(owner) => escaped(owner),
            None if lock.foreign => "<i>another library</i>".to_owned(),
            None => "<i>no label</i>".to_owned(),
        };
        let minority = if lock.is_shown_by_a_majority() {
            String::new()
        } else {
            format!(" <i>on {} of {} nodes</i>", lock.votes, lock.nodes)
        };
        row(
            page,
            &[
                &(escaped(&lock.resource) + &minority + if lock.revoked { " <i>revoked</i>" } else { "" }),
                &owner,
                &lock.token.map_or_else(String::new, |token| token.to_string()),
                &lock.since_unix_ms.map_or_else(String::new, moment),
                &lock.left.map_or_else(String::new, seconds),
                &waiting.get(&lock.resource).map_or_else(String::new, ToString::to_string),
            ],
            &[2, 4, 5],
        );
    }
    let nobody = if complete { "<i>nobody</i>" } else { "<i>not among those shown</i>" };
    for (name, count) in free {
        row(page, &[&escaped(name), nobody, "", "", "", &count.to_string()], &[2, 4, 5]);
    }
    *page += "</tbody></table></div></section>";
}

fn table_of_losses(page: &mut String, losses: &[Loss]) {
    *page += "<section><h2>Lost here</h2>";
    if losses.is_empty() {
        *page += "<p class=\"none\">No lease of this daemon was lost.</p></section>";
        return;
    }
    *page += "<div class=\"wide\"><table><thead><tr><th>When (UTC)</th><th>Lock</th><th>Holder</th><th class=\"number\">Token</th>\
              <th>Why</th></tr></thead><tbody>";
    for loss in losses {
        let (resource, owner, why) = (escaped(&loss.resource), escaped(&loss.owner), escaped(&loss.why));
        row(page, &[&moment(loss.unix_ms), &resource, &owner, &loss.token.to_string(), &why], &[3]);
    }
    *page += "</tbody></table></div></section>";
}

/// One row of cells, which are escaped already.
fn row(page: &mut String, cells: &[&str], numbers: &[usize]) {
    *page += "<tr>";
    for (index, cell) in cells.iter().enumerate() {
        let class = if numbers.contains(&index) { " class=\"number\"" } else { "" };
        let _ = write!(page, "<td{class}>{cell}</td>");
    }
    *page += "</tr>";
}

/// A second that people read.
fn moment(unix_ms: u64) -> String {
    let exact = instant(unix_ms);
    let second = exact.split('.').next().unwrap_or_default();
    format!("<time>{}</time>", second.replace('T', " "))
}

/// A text in which nothing is markup, and nothing reorders what is around it.
fn escaped(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_reasons_are_no_markup() {
        let loss = Loss {
            unix_ms: 0,
            resource: "<script>alert(1)</script>".to_owned(),
            owner: "a\u{202e}b".to_owned(),
            token: 7,
            why: "x & y".to_owned(),
        };
        let waiting = BTreeMap::from([("\"><img src=x>".to_owned(), 2)]);
        let page = page("redis://a", &Ok((Vec::new(), true)), &waiting, &[loss]);
        for bad in ["<script", "<img", "\u{202e}"] {
            assert!(!page.contains(bad), "{bad}");
        }
        let cut_off = super::page("redis://a", &Ok((Vec::new(), false)), &waiting, &[]);
        assert!(cut_off.contains("not among those shown") && !cut_off.contains("nobody"));
        assert!(page.contains("&lt;script&gt;") && page.contains("x &amp; y") && page.contains("<i>nobody</i>"));
    }
}

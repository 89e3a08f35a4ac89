//! The run as a picture: one page that loads nothing.

use std::fmt::Write as _;

use super::check::Findings;
use super::faults::{Fault, Kind, Target};
use super::report;
use super::run::Outcome;
use super::timeline::{Lease, leases};

/// The longest time that is drawn, from the start of the run.
const MOST_SECONDS: f64 = 120.0;
const PER_SECOND: f64 = 24.0;
const LEFT: f64 = 86.0;
const LANE: f64 = 26.0;
const BAR: f64 = 12.0;
const BINS: usize = 30;
/// The end of the histogram, in ttl.
const LONGEST: f64 = 3.0;

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#fbfbfa;--ink:#22252a;--soft:#767c86;--line:#e3e4e6;--rust:#c65d21;--python:#2f6fb3;
--node:#3c8f4d;--stop:#9aa0aa55;--bad:#cf222e;--server:#8250df;--path:#bf8700}
@media(prefers-color-scheme:dark){:root{--bg:#15171a;--ink:#e4e6ea;--soft:#8b929d;--line:#2a2e34;--rust:#f08a4b;
--python:#6aa9ec;--node:#6cc67e;--stop:#9aa0aa55;--bad:#ff6b6b;--server:#b48cff;--path:#e3b341}}
body{background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif;margin:2.5rem auto;max-width:1180px;
padding:0 1.2rem}h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2.6rem 0 .2rem}p{margin:.2rem 0 .8rem;
color:var(--soft)}.scroll{overflow-x:auto}svg{display:block}text{fill:var(--soft);font:11px system-ui,sans-serif}
.lane{stroke:var(--line)}.rust{stroke:var(--rust)}.python{stroke:var(--python)}.node{stroke:var(--node)}
.hold{stroke-width:12;fill:none}.stop{fill:var(--stop)}.kill{stroke:var(--bad);stroke-width:2;fill:none}
.loss{fill:var(--bad)}.server{fill:var(--server)}.path{fill:var(--path)}.band{opacity:.09}.bin{fill:var(--python)}
ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.6rem 0 0}li::before{content:'';
display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.45em;background:var(--c);vertical-align:-1px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.15rem .8rem .15rem 0;text-align:right;
font-weight:400}th{color:var(--soft)}td:first-child,th:first-child{text-align:left}.bad{color:var(--bad)}";

const LEGEND: &str = "\
<ul><li style=\"--c:var(--rust)\">held by Rust</li><li style=\"--c:var(--python)\">by Python</li>
<li style=\"--c:var(--node)\">by Node</li><li style=\"--c:var(--stop)\">worker stopped</li>
<li style=\"--c:var(--bad)\">dot: loss reported, cross: killed</li><li style=\"--c:var(--server)\">fault of the store</li>
<li style=\"--c:var(--path)\">fault of a path</li></ul>";

/// Draws the page.
pub fn page(results: &[(Outcome, Findings)], seed: u64) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>leasehold: chaos</title>\n\
         <style>{STYLE}</style>\n<h1>Chaos</h1><p>Seed {seed}. Time runs to the right; a bar is a lease, from the grant \
         until its holder no longer relies on it.</p>\n{LEGEND}\n"
    );
    for (outcome, found) in results {
        store(&mut page, outcome, found);
    }
    page.push_str("</html>\n");
    page
}

fn store(page: &mut String, outcome: &Outcome, found: &Findings) {
    let seconds = (outcome.span.1 - outcome.span.0) as f64 / 1e9;
    let _ = writeln!(
        page,
        "<h2>{}</h2><p>{seconds:.0} s, a lease lasts {} ms. {}.</p>",
        outcome.store.name(),
        outcome.evidence.ttl / 1_000_000,
        escape(&report::faults(outcome).join(", "))
    );
    figures(page, found);
    let (broken, doubtful) = (found.broken(), found.doubtful());
    for what in [&broken, &doubtful, &found.overlaps, &found.revived, &found.late, &found.stuck].into_iter().flatten() {
        let _ = writeln!(page, "<p class=\"bad\">{}</p>", escape(what));
    }
    timeline(page, outcome);
    histogram(page, found);
}

fn figures(page: &mut String, found: &Findings) {
    let takeover =
        |share| report::percentile(&found.takeovers, share).map_or("-".to_owned(), |ttl| format!("{ttl:.2}"));
    let cells = [
        ("grants", found.grants.to_string()),
        ("lost without a lock", found.lost_bare.to_string()),
        ("with the lock", found.lost_locked.to_string()),
        ("with the guard", found.lost_guarded.to_string()),
        ("refused", found.refused.to_string()),
        ("losses", found.losses.to_string()),
        ("reported late", found.late.len().to_string()),
        ("false", found.false_losses.to_string()),
        ("takeover p50", takeover(0.5)),
        ("p99", takeover(0.99)),
    ];
    let heads: String = cells.iter().map(|(head, _)| format!("<th>{head}</th>")).collect();
    let values: String = cells.iter().map(|(_, value)| format!("<td>{value}</td>")).collect();
    let _ = writeln!(page, "<div class=\"scroll\"><table><tr>{heads}</tr><tr>{values}</tr></table></div>");
}

/// The coordinates of the picture.
struct Frame<'a> {
    start: u64,
    end: u64,
    workers: &'a [String],
}

impl Frame<'_> {
    fn x(&self, at: u64) -> f64 {
        LEFT + at.clamp(self.start, self.end).saturating_sub(self.start) as f64 / 1e9 * PER_SECOND
    }

    fn shows(&self, at: u64) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// The middle of a worker's lane. Faults of the store and the paths have the two lanes above.
    fn y(&self, worker: &str) -> Option<f64> {
        let lane = self.workers.iter().position(|name| name == worker)?;
        Some(self.lane(lane + 2))
    }

    fn lane(&self, number: usize) -> f64 {
        number as f64 * LANE + LANE / 2.0
    }

    fn height(&self) -> f64 {
        (self.workers.len() + 2) as f64 * LANE
    }
}

fn timeline(page: &mut String, outcome: &Outcome) {
    let start = outcome.span.0;
    let end = outcome.span.1.min(start + (MOST_SECONDS * 1e9) as u64);
    let mut workers = outcome.workers.clone();
    workers.sort();
    let frame = Frame { start, end, workers: &workers };
    let (width, height) = (frame.x(end) + 20.0, frame.height() + 24.0);
    let _ = writeln!(page, "<div class=\"scroll\"><svg width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">");
    for (number, name) in ["store", "paths"].into_iter().chain(workers.iter().map(String::as_str)).enumerate() {
        let y = frame.lane(number);
        let _ = writeln!(
            page,
            "<text x=\"0\" y=\"{:.1}\">{name}</text><path class=\"lane\" d=\"M{LEFT} {y:.1}H{:.1}\"/>",
            y + 4.0,
            frame.x(end)
        );
    }
    for second in (0..=((end - start) / 1_000_000_000)).step_by(5) {
        let x = frame.x(start + second * 1_000_000_000);
        let _ = writeln!(
            page,
            "<path class=\"lane\" d=\"M{x:.1} 0V{:.1}\"/><text x=\"{x:.1}\" y=\"{:.1}\">{second} s</text>",
            frame.height(),
            frame.height() + 16.0
        );
    }
    let shown = |fault: &&Fault| frame.shows(fault.from);
    outcome.evidence.faults.iter().filter(shown).for_each(|fault| draw_fault(page, &frame, fault));
    let leases = leases(&outcome.evidence.journals);
    for name in &workers {
        holds(page, &frame, name, leases.iter().filter(|lease| lease.worker == *name && frame.shows(lease.granted)));
    }
    for lease in &leases {
        if let (Some(notified), Some(y)) =
            (lease.notified.filter(|notified| frame.shows(*notified)), frame.y(&lease.worker))
        {
            let _ = writeln!(
                page,
                "<circle class=\"loss\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\"><title>token {}: loss reported</title></circle>",
                frame.x(notified),
                lease.token
            );
        }
    }
    page.push_str("</svg></div>\n");
}

/// One path for each worker keeps the page small.
fn holds<'a>(page: &mut String, frame: &Frame<'_>, worker: &str, leases: impl Iterator<Item = &'a Lease>) {
    let Some(y) = frame.y(worker) else { return };
    let mut path = String::new();
    for lease in leases {
        let (from, to) = (frame.x(lease.granted), frame.x(lease.ends()));
        let _ = write!(path, "M{from:.1} {y:.1}H{:.1}", to.max(from + 0.6));
    }
    let language = worker.split('-').next().unwrap_or_default();
    let _ = writeln!(page, "<path class=\"hold {language}\" d=\"{path}\"/>");
}

fn draw_fault(page: &mut String, frame: &Frame<'_>, fault: &Fault) {
    let (from, to) = (frame.x(fault.from), frame.x(fault.to));
    let width = (to - from).max(1.5);
    let ms = fault.to.saturating_sub(fault.from) / 1_000_000;
    let title = format!("<title>{}: {}, {ms} ms</title>", fault.target, fault.kind.title());
    let _ = match (&fault.target, fault.kind) {
        (Target::Worker(name), Kind::Kill) => match frame.y(name) {
            Some(y) => writeln!(
                page,
                "<path class=\"kill\" d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\">{title}</path>",
                from - 4.0,
                y - 4.0
            ),
            None => Ok(()),
        },
        (Target::Worker(name), _) => match frame.y(name) {
            Some(y) => writeln!(
                page,
                "<rect class=\"stop\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\">{title}</rect>",
                y - LANE / 2.0 + 2.0,
                LANE - 4.0
            ),
            None => Ok(()),
        },
        (Target::Store(_) | Target::Path { .. } | Target::Network(_), _) => {
            let (class, lane) = if matches!(fault.target, Target::Store(_)) { ("server", 0) } else { ("path", 1) };
            let y = frame.lane(lane) - BAR / 2.0;
            writeln!(
                page,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\">{title}\
                 </rect><rect class=\"{class} band\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
                2.0 * LANE,
                frame.height() - 2.0 * LANE
            )
        }
    };
}

fn histogram(page: &mut String, found: &Findings) {
    let mut bins = [0_u64; BINS];
    for ttl in &found.takeovers {
        let bin = (ttl / LONGEST * BINS as f64) as usize;
        bins[bin.min(BINS - 1)] += 1;
    }
    let most = bins.iter().max().copied().unwrap_or(0).max(1) as f64;
    let (width, height) = (14.0, 70.0);
    let _ = writeln!(
        page,
        "<p>From the stop or kill of a holder to the next grant, in ttl; {} times, and {} more during another fault.</p>\
         <svg width=\"{:.0}\" height=\"92\" role=\"img\">",
        found.takeovers.len(),
        found.hindered,
        BINS as f64 * width + 30.0
    );
    for (bin, count) in bins.iter().enumerate() {
        let tall = *count as f64 / most * (height - 6.0);
        let (x, from) = (bin as f64 * width, bin as f64 * LONGEST / BINS as f64);
        let _ = writeln!(
            page,
            "<rect class=\"bin\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" rx=\"1\">\
             <title>{from:.1} ttl: {count}</title></rect>",
            height - tall,
            width - 2.0
        );
        if bin % 10 == 0 {
            let _ = writeln!(page, "<text x=\"{x:.1}\" y=\"{:.1}\">{from:.0}</text>", height + 16.0);
        }
    }
    let _ = writeln!(
        page,
        "<path class=\"lane\" d=\"M0 {height}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\">{LONGEST:.0}+</text></svg>",
        BINS as f64 * width,
        BINS as f64 * width,
        height + 16.0
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

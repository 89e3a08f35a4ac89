//! The content of the screen. It has no colours of its own, so it fits light and dark themes.

use std::collections::HashMap;
use std::time::Duration;

use leasehold::LockInfo;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::looks::Look;
use crate::output::{printable, span};

/// Columns are left out until so much is left for the names of locks and holders.
const FOR_NAMES: u16 = 40;
/// The widest column of sessions.
const MOST_OF_SESSION: u16 = 20;
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// More bytes than any character that people write; a heap of accents would cover other rows.
const CHARACTER: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Name,
    Age,
    Left,
}

#[derive(Clone, Copy)]
pub(super) enum Scroll {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

/// A lock with its texts as they are shown, but for their lengths.
struct Shown {
    lock: LockInfo,
    name: String,
    holder: String,
}

pub(super) struct View {
    store: String,
    prefix: String,
    locks: Vec<Shown>,
    order: Order,
    is_complete: bool,
    waiting: HashMap<String, u64>,
    /// When the locks were seen, by both clocks.
    seen: (u64, u64),
    /// The reason why there is nothing newer.
    trouble: Option<String>,
    /// The first row on the screen, and how many there is room for.
    first: usize,
    room: usize,
}

impl View {
    pub(super) fn new(store: String, prefix: &str) -> Self {
        let prefix = printable(prefix);
        let (locks, waiting) = (Vec::new(), HashMap::new());
        let (order, is_complete, seen, trouble) = (Order::Name, true, (0, 0), None);
        Self { store, prefix, locks, order, is_complete, waiting, seen, trouble, first: 0, room: 0 }
    }

    pub(super) fn learn(&mut self, look: Look) {
        match look.locks {
            Ok(locks) => {
                self.locks = locks.into_iter().map(Shown::new).collect();
                self.sort();
                (self.is_complete, self.waiting) = (look.is_complete, look.waiting);
                self.seen = (look.at_ns, look.unix_ms);
                self.trouble = None;
            }
            Err(error) => self.trouble = Some(printable(&error.to_string()).replace('\n', " ")),
        }
    }

    pub(super) fn sort_otherwise(&mut self) {
        self.order = match self.order {
            Order::Name => Order::Age,
            Order::Age => Order::Left,
            Order::Left => Order::Name,
        };
        self.sort();
        self.first = 0;
    }

    /// Sorts the locks. Those whose value the store does not show come last.
    fn sort(&mut self) {
        let order = self.order;
        self.locks.sort_by_cached_key(|Shown { lock, .. }| {
            let value = match order {
                Order::Name => None,
                Order::Age => lock.since_unix_ms,
                Order::Left => lock.left.map(millis),
            };
            (value.unwrap_or(u64::MAX), lock.resource.clone())
        });
    }

    pub(super) fn scroll(&mut self, by: Scroll) {
        let page = self.room.max(1);
        self.first = match by {
            Scroll::Up => self.first.saturating_sub(1),
            Scroll::Down => self.first + 1,
            Scroll::PageUp => self.first.saturating_sub(page),
            Scroll::PageDown => self.first + page,
            Scroll::Home => 0,
            Scroll::End => self.locks.len(),
        }
        .min(self.last());
    }

    /// The first row on the screen when it shows the end.
    fn last(&self) -> usize {
        self.locks.len().saturating_sub(self.room.max(1))
    }

    fn rows(&self) -> impl Iterator<Item = &Shown> {
        self.locks.iter().skip(self.first).take(self.room)
    }

    /// The names of the locks on the screen.
    pub(super) fn visible(&self) -> Vec<String> {
        self.rows().map(|row| row.lock.resource.clone()).collect()
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, now_ns: u64) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
        self.room = usize::from(body.height.saturating_sub(1));
        self.first = self.first.min(self.last());
        frame.render_widget(Paragraph::new(self.head(head.width, now_ns)), head);
        if self.locks.is_empty() {
            frame.render_widget(Paragraph::new("no lock is held"), body);
        } else {
            frame.render_widget(self.table(body, now_ns), body);
        }
        let keys = match self.locks.len() {
            count if count > self.room => {
                let (from, to) = (self.first + 1, (self.first + self.room).min(count));
                format!("{from} to {to}  q quit  s sort  arrows, page up and page down scroll")
            }
            _ => "q quit  s sort".to_owned(),
        };
        frame.render_widget(Paragraph::new(Span::styled(keys, Modifier::DIM)), foot);
    }

    fn head(&self, width: u16, now_ns: u64) -> Vec<Line<'_>> {
        let below = if self.prefix.is_empty() { String::new() } else { format!(" below {}", self.prefix) };
        let count = self.locks.len();
        let count = if self.is_complete { format!("{count} held") } else { format!("the first {count} held") };
        let order = match self.order {
            Order::Name => "by name",
            Order::Age => "the oldest first",
            Order::Left => "the shortest first",
        };
        let text = format!("{count}{below}, {order}  {}", self.store);
        let first = Line::from(vec![Span::styled("leasehold ", BOLD), fit(&text, width.saturating_sub(10)).into()]);
        let second = self.trouble.as_ref().map_or_else(Line::default, |why| {
            let age = span(Duration::from_nanos(now_ns.saturating_sub(self.seen.0)));
            Line::styled(
                fit(&format!("no answer, seen {age} ago: {why}"), width),
                BOLD.add_modifier(Modifier::REVERSED),
            )
        });
        vec![first, second]
    }

    fn table(&self, area: Rect, now_ns: u64) -> Table<'static> {
        let columns = self.columns(area.width, now_ns);
        let rows = (0..self.rows().count()).map(|row| Row::new(columns.iter().map(|column| column.cell(row))));
        let titles = columns.iter().map(|column| column.aligned(column.title.to_owned()));
        let header = Row::new(titles).style(BOLD.add_modifier(Modifier::UNDERLINED));
        let style = if self.trouble.is_some() { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
        let widths = columns.iter().map(|column| Constraint::Length(column.width));
        Table::new(rows, widths).column_spacing(1).style(style).header(header)
    }

    /// The columns for which there is room.
    fn columns(&self, width: u16, now_ns: u64) -> Vec<Column> {
        let passed = Duration::from_nanos(now_ns.saturating_sub(self.seen.0));
        let now_ms = self.seen.1.saturating_add(millis(passed));
        let number = |title, width, text: &dyn Fn(&LockInfo) -> Option<String>| {
            let cells = self.rows().map(|row| text(&row.lock).unwrap_or_default()).collect();
            Column { title, width, is_number: true, cells }
        };
        let token = |lock: &LockInfo| lock.token.map(|token| token.to_string());
        let longest = self.locks.iter().filter_map(|row| token(&row.lock)).map(|token| token.len()).max();
        let for_tokens = u16::try_from(longest.unwrap_or(0).max(5)).unwrap_or(u16::MAX);
        let age = |lock: &LockInfo| lock.since_unix_ms.map(|since| Duration::from_millis(now_ms.saturating_sub(since)));
        let waiting = |lock: &LockInfo| self.waiting.get(&lock.resource).map(ToString::to_string);
        let mut columns = vec![
            number("TOKEN", for_tokens, &token),
            number("SINCE", 6, &|lock| age(lock).map(span)),
            number("LEFT", 6, &|lock| lock.left.map(|left| span(left.saturating_sub(passed)))),
            number("WAIT", 4, &waiting),
        ];
        let session = |row: &Shown| row.lock.session.clone().unwrap_or_default();
        let longest = self.locks.iter().map(|row| wide(&session(row))).max().unwrap_or(0);
        let width_of_session = longest.clamp(7, MOST_OF_SESSION);
        let cells = self.rows().map(|row| fit(&session(row), width_of_session)).collect();
        columns.insert(0, Column { title: "SESSION", width: width_of_session, is_number: false, cells });
        columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
        let rest = |columns: &[Column]| {
            let used = columns.iter().map(|column| column.width + 1).fold(1, u16::saturating_add);
            width.saturating_sub(used)
        };
        for least in ["SESSION", "SINCE", "TOKEN", "WAIT", "LEFT"] {
            if rest(&columns) < FOR_NAMES {
                columns.retain(|column| column.title != least);
            }
        }
        let longest = |text: &dyn Fn(&Shown) -> &str| self.locks.iter().map(|row| wide(text(row))).max().unwrap_or(0);
        let (for_both, for_locks) = (rest(&columns), longest(&|row| &row.name).max(4));
        let for_holders = longest(&|row| &row.holder).max(6).min(for_both.saturating_sub(for_locks).max(for_both / 2));
        let for_locks = for_both.saturating_sub(for_holders);
        let text = |title, width, text: &dyn Fn(&Shown) -> &str| {
            let cells = self.rows().map(|row| fit(text(row), width)).collect();
            Column { title, width, is_number: false, cells }
        };
        columns.insert(0, text("HOLDER", for_holders, &|row| &row.holder));
        columns.insert(0, text("LOCK", for_locks, &|row| &row.name));
        columns
    }
}

struct Column {
    title: &'static str,
    width: u16,
    is_number: bool,
    cells: Vec<String>,
}

impl Column {
    fn cell(&self, row: usize) -> Cell<'static> {
        self.aligned(self.cells.get(row).cloned().unwrap_or_default())
    }

    fn aligned(&self, text: String) -> Cell<'static> {
        let line = Line::from(text);
        Cell::from(if self.is_number { line.right_aligned() } else { line })
    }
}

impl Shown {
    fn new(lock: LockInfo) -> Self {
        let owner = match &lock.owner {
            Some(owner) => printable(owner).replace('\n', " "),
            None if lock.foreign => "another library".to_owned(),
            None => "no label".to_owned(),
        };
        let revoked = if lock.revoked { " (revoked)" } else { "" };
        let nodes = match lock.is_shown_by_a_majority() {
            true => String::new(),
            false => format!(" ({} of {} nodes)", lock.votes, lock.nodes),
        };
        Self { name: printable(&lock.resource), holder: format!("{owner}{revoked}{nodes}"), lock }
    }
}

/// The columns that a text takes.
fn wide(text: &str) -> u16 {
    u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX)
}

/// The text in so many columns, with a sign where it is cut off.
fn fit(text: &str, width: u16) -> String {
    let is_short = wide(text) <= width;
    let (mut shown, mut room) = (String::new(), if is_short { width } else { width.saturating_sub(1) });
    for part in Span::raw(text).styled_graphemes(Style::new()) {
        let part = if part.symbol.len() > CHARACTER { "\u{fffd}" } else { part.symbol };
        match room.checked_sub(wide(part)) {
            Some(left) => room = left,
            None => break,
        }
        shown.push_str(part);
    }
    if !is_short && width > 0 {
        shown.push('…');
    }
    shown
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

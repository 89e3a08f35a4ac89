//! The look of the demo: a column for each worker, the time on the left, and colours on a terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

const TIME: usize = 8;
const GAP: usize = 2;
const WIDTHS: std::ops::RangeInclusive<usize> = 72..=110;

/// The tone of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A normal event.
    Plain,
    /// An important event.
    Strong,
    /// A failure.
    Bad,
}

/// The screen.
pub struct Stage {
    start: Instant,
    width: usize,
    coloured: bool,
    columns: Vec<Column>,
}

struct Column {
    name: String,
    stopped: bool,
}

impl Stage {
    /// Standard output, with the time starting now.
    pub fn open() -> Self {
        let out = io::stdout();
        let terminal = out.is_terminal();
        let columns =
            if terminal { rustix::termios::tcgetwinsize(&out).map_or(0, |size| size.ws_col.into()) } else { 0 };
        let width = if columns == 0 { 100 } else { columns };
        let coloured = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self::new(width, coloured)
    }

    fn new(width: usize, coloured: bool) -> Self {
        Self {
            start: Instant::now(),
            width: width.clamp(*WIDTHS.start(), *WIDTHS.end()),
            coloured,
            columns: Vec::new(),
        }
    }

    /// Shows the title, and a text about it.
    pub fn title(&self, title: &str, about: &str) {
        let mut text = format!("\n{}\n", self.paint("1", title));
        self.paragraph(&mut text, about);
        print(&text);
    }

    /// A new act: what it is about, and who plays.
    pub fn act(&mut self, title: &str, about: &str, cast: &[&str]) {
        let line = "─".repeat(self.width.saturating_sub(title.chars().count() + 4));
        let mut text = format!("\n{} {} {}\n", self.paint("2", "──"), self.paint("1", title), self.paint("2", &line));
        self.paragraph(&mut text, about);
        self.columns = cast.iter().map(|name| Column { name: (*name).to_owned(), stopped: false }).collect();
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let width = self.column_width();
        let mut heads = " ".repeat(TIME + GAP);
        for (at, name) in names.iter().enumerate() {
            heads.push_str(&self.paint(&format!("1;{}", hue(at)), &format!("{name:<width$}")));
            heads.push_str(&" ".repeat(GAP));
        }
        let _ = writeln!(text, "\n{}", heads.trim_end());
        print(&text);
    }

    /// Something that a worker does, or that is done to it.
    pub fn line(&self, column: usize, tone: Tone, what: &str) {
        print(&self.render(column, tone, what));
    }

    /// Sets whether the column shows its worker as stopped.
    pub fn set_stopped(&mut self, column: usize, stopped: bool) {
        self.columns[column].stopped = stopped;
    }

    /// Shows the outcome of an act, after it was checked.
    pub fn outcome(&self, good: bool, what: &str) {
        let sign = if good { self.paint("1;32", "✓") } else { self.paint("1;31", "✗") };
        let mut text = String::from("\n");
        for (at, line) in wrap(what, self.width - 4).iter().enumerate() {
            let _ = writeln!(text, "  {} {}", if at == 0 { &sign } else { " " }, self.paint("1", line));
        }
        print(&text);
    }

    /// Plain words.
    pub fn words(&self, what: &str) {
        let mut text = String::new();
        self.paragraph(&mut text, what);
        print(&text);
    }

    /// A table under its own heading: see [`table`](crate::figures::table).
    pub fn table(&self, title: &str, rows: &[Vec<String>]) {
        let line = "─".repeat(self.width.saturating_sub(title.chars().count() + 4));
        print(&format!("\n{} {} {}\n\n", self.paint("2", "──"), self.paint("1", title), self.paint("2", &line)));
        for (at, line) in crate::figures::table(rows).lines().enumerate() {
            print(&format!("  {}\n", if at == 0 { self.paint("1", line) } else { line.to_owned() }));
        }
        print("\n");
    }

    fn paragraph(&self, text: &mut String, what: &str) {
        for line in wrap(what, self.width - 2) {
            let _ = writeln!(text, "  {line}");
        }
    }

    fn render(&self, column: usize, tone: Tone, what: &str) -> String {
        let width = self.column_width();
        let colour = match tone {
            Tone::Plain => hue(column).to_owned(),
            Tone::Strong => format!("1;{}", hue(column)),
            Tone::Bad => "1;31".to_owned(),
        };
        let mut text = String::new();
        for (row, part) in wrap(what, width).iter().enumerate() {
            let time = if row == 0 { format!("{:>6.2} s", self.start.elapsed().as_secs_f64()) } else { String::new() };
            let mut line = self.paint("2", &format!("{time:<TIME$}"));
            for at in 0..self.columns.len() {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&if at == column {
                    self.paint(&colour, &format!("{part:<width$}"))
                } else if self.columns[at].stopped {
                    self.paint("31", &format!("{:<width$}", "┊"))
                } else {
                    " ".repeat(width)
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn column_width(&self) -> usize {
        let columns = self.columns.len().max(1);
        (self.width - TIME) / columns - GAP
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The colour of a column: cyan, yellow.
fn hue(column: usize) -> &'static str {
    ["36", "33"][column % 2]
}

/// Lines of at most `width` characters; a longer word has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    // The reader may leave early. The demo must still stop its children.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(coloured: bool) -> Stage {
        let columns = ["a", "b"].map(|name| Column { name: name.to_owned(), stopped: false });
        Stage { columns: columns.into(), ..Stage::new(80, coloured) }
    }

    #[test]
    fn lines_wrap_between_words() {
        assert_eq!(wrap("one two  three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("a verylongword b", 6), ["a", "verylongword", "b"]);
        assert_eq!(wrap("fünf wörter ü", 6), ["fünf", "wörter", "ü"]);
    }

    #[test]
    fn line_is_in_its_column_beside_stopped_workers() {
        let mut stage = stage(false);
        stage.set_stopped(0, true);
        let text = stage.render(1, Tone::Plain, "takes the lock while the other one sleeps, and writes");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        let column = |line: &str, from: usize| line.chars().skip(from).collect::<String>();
        for line in &lines {
            assert_eq!(line.chars().nth(TIME + GAP), Some('┊'), "{line}");
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert_eq!(column(lines[1], TIME + GAP + 34 + GAP), "sleeps, and writes");
    }

    #[test]
    fn no_escapes_without_a_terminal() {
        assert!(!stage(false).render(0, Tone::Bad, "lost").contains('\x1b'));
        assert!(stage(true).render(0, Tone::Bad, "lost").contains("\x1b[1;31mlost"));
    }
}

//! Horizontal bars as SVG: how many times the cost of a peer, which a line marks.
//!
//! Nothing is measured in a font, so widths are guessed, and rather too wide than too narrow.

use crate::record::significant;
use std::fmt::Write;

pub const WIDTH: f64 = 760.0;
const MARGIN: f64 = 28.0;
const ROW: f64 = 22.0;
const BAR: f64 = 12.0;
const GAP: f64 = 14.0;
/// Names before the bars take no more.
const LABELS: f64 = 310.0;
/// For what stands behind the longest bar.
const ROOM: f64 = 124.0;
/// How much wider bold letters are.
const BOLD: f64 = 1.12;
/// A bar that is longer is cut, and its number says how long it is.
const LONGEST: f64 = 10.0;

/// One for both themes: a page that shows it as an image cannot give it another one.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#1c1f23}
.page{fill:#fff;stroke:#dcdcd8}.soft{fill:#565d66}.ours{fill:#2b4bb3}.bar{fill:#b4b9c0}.bar.ours{fill:#2b4bb3}
.grid{stroke:#ececea}.one{stroke:#1c1f23;stroke-width:1.5}.cut{stroke:#fff;stroke-width:3}.bold{font-weight:600}
.s11{font-size:11px}.s13{font-size:13px}.s20{font-size:20px}.number{font-variant-numeric:tabular-nums}
.on{paint-order:stroke;stroke:#fff;stroke-width:5px;stroke-linejoin:round}
@media(prefers-color-scheme:dark){text{fill:#e9ebee}.page{fill:#1a1d21;stroke:#30353b}.soft{fill:#a8b0b9}
.ours{fill:#9db4ff}.bar{fill:#5d656e}.bar.ours{fill:#9db4ff}.grid{stroke:#2a2f35}.one{stroke:#e9ebee}
.cut,.on{stroke:#1a1d21}}";

/// A picture with one idea.
#[derive(Debug, Default)]
pub struct Picture {
    pub title: String,
    pub subtitle: String,
    pub groups: Vec<Group>,
    /// Figures without a peer: a name, and how much.
    pub numbers: Vec<(String, String)>,
    /// When and where.
    pub foot: String,
}

/// Bars that are held against the same peer.
#[derive(Debug)]
pub struct Group {
    pub title: String,
    /// The peer whose cost is 1.
    pub base: String,
    pub rows: Vec<Row>,
}

#[derive(Debug)]
pub struct Row {
    pub who: String,
    pub ratio: f64,
    /// How much that is, to stand behind the ratio; may be empty.
    pub value: String,
    pub is_ours: bool,
}

impl Row {
    fn width(&self) -> f64 {
        if self.is_ours { BOLD * width(&self.who, 13.0) } else { width(&self.who, 13.0) }
    }

    fn label(&self) -> String {
        format!("{}{}", times(self.ratio), self.value)
    }

    fn class(&self) -> &'static str {
        if self.is_ours { " ours bold" } else { "" }
    }
}

impl Picture {
    pub fn draw(&self) -> String {
        let mut sheet = Sheet { y: 44.0, ..Sheet::default() };
        sheet.text(MARGIN, "s20 bold", 20.0, &self.title);
        sheet.y += 22.0;
        sheet.paragraph("s13 soft", 13.0, 18.0, &self.subtitle);
        if !self.groups.is_empty() {
            self.bars(&mut sheet);
        }
        if !self.numbers.is_empty() {
            sheet.y += 12.0;
            for (what, how_much) in &self.numbers {
                sheet.y += ROW;
                sheet.text(MARGIN, "s13", 13.0, what);
                let room = WIDTH - 3.0 * MARGIN - width(what, 13.0);
                sheet.put(WIDTH - MARGIN, "s13 bold number", "end", how_much, fit(how_much, BOLD * 13.0, room));
                let line = sheet.y + 7.0;
                sheet.line("grid", [MARGIN, line, WIDTH - MARGIN, line]);
            }
        }
        sheet.y += 30.0;
        sheet.paragraph("s11 soft", 11.0, 15.0, &self.foot);
        let height = sheet.y + 4.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc \
             id=\"desc\">{}</desc>\n<style>\n{STYLE}\n</style>\n<rect class=\"page\" x=\".5\" y=\".5\" width=\"{}\" \
             height=\"{}\" rx=\"8\"/>\n{}</svg>\n",
            escaped(&self.title),
            escaped(&self.in_words()),
            WIDTH - 1.0,
            height - 1.0,
            sheet.body
        )
    }

    /// For those who hear it.
    pub fn in_words(&self) -> String {
        let mut words = self.subtitle.clone();
        for group in &self.groups {
            let rows = group.rows.iter().map(|row| format!("{} {}", row.who, row.label()));
            let rows = rows.collect::<Vec<_>>().join(", ");
            let _ = write!(words, " {}, where 1× is {}: {rows}.", group.title, group.base);
        }
        for (what, how_much) in &self.numbers {
            let _ = write!(words, " {what}: {how_much}.");
        }
        words
    }

    fn bars(&self, sheet: &mut Sheet) {
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        let widest = rows().map(Row::width).fold(90.0, f64::max).min(LABELS);
        let (left, right) = (MARGIN + widest + GAP, WIDTH - MARGIN - ROOM);
        let axis = Axis::new(rows().map(|row| row.ratio), left, right);
        sheet.y += 14.0;
        for tick in axis.ticks() {
            let class = if tick == 1.0 { "s11 bold number" } else { "s11 soft number" };
            sheet.text_middle(axis.x(tick), class, &times(tick));
        }
        let top = sheet.y + 8.0;
        // Below the bars; how far down is known when these are drawn.
        let under = sheet.body.len();
        for group in &self.groups {
            sheet.y += 26.0;
            sheet.text(MARGIN, "s13 bold", 13.0, &group.title);
            let base = format!("1× = {}", group.base);
            if BOLD * width(&group.title, 13.0) + width(&base, 11.0) > WIDTH - 3.0 * MARGIN {
                sheet.y += 17.0;
            }
            sheet.text_end(WIDTH - MARGIN, "s11 soft", 11.0, &base);
            sheet.y += 2.0;
            let above = sheet.y + 4.0;
            let end = |row: &Row| axis.x(row.ratio.min(axis.end));
            for row in &group.rows {
                sheet.y += ROW;
                sheet.put(
                    MARGIN,
                    &format!("s13{}", row.class()),
                    "start",
                    &row.who,
                    (row.width() > widest).then_some(widest),
                );
                sheet.rect(&format!("bar{}", row.class()), [left, sheet.y - BAR + 1.5, end(row) - left, BAR]);
                if row.ratio > axis.end {
                    let at = end(row) - 14.0;
                    sheet.line("cut", [at - 3.0, sheet.y + 4.0, at + 3.0, sheet.y - BAR - 1.0]);
                }
            }
            sheet.line("one", [axis.x(1.0), above, axis.x(1.0), sheet.y + 6.0]);
            // Last, so that the line does not cross a number.
            sheet.y -= ROW * group.rows.len() as f64;
            for row in &group.rows {
                sheet.y += ROW;
                let class = format!("s13 number on{}", if row.is_ours { " bold" } else { "" });
                sheet.text(end(row) + 7.0, &class, 13.0, &row.label());
            }
        }
        let mut grid = Sheet::default();
        for tick in axis.ticks() {
            grid.line("grid", [axis.x(tick), top, axis.x(tick), sheet.y + 6.0]);
        }
        sheet.body.insert_str(under, &grid.body);
        sheet.y += 8.0;
    }
}

/// From 0 to a round number that is not less than 1, with at most ten marks.
#[derive(Debug, PartialEq)]
struct Axis {
    end: f64,
    step: f64,
    left: f64,
    right: f64,
}

impl Axis {
    fn new(ratios: impl Iterator<Item = f64>, left: f64, right: f64) -> Self {
        let most = ratios.fold(1.0, f64::max).min(LONGEST);
        let step = if most <= 2.5 { 0.5 } else { 1.0 };
        Self { end: ((most / step).ceil() * step).max(1.5), step, left, right }
    }

    fn x(&self, ratio: f64) -> f64 {
        self.left + (self.right - self.left) * ratio / self.end
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=(self.end / self.step).round() as u32).map(|n| f64::from(n) * self.step)
    }
}

/// The drawing so far, from above.
#[derive(Default)]
struct Sheet {
    body: String,
    y: f64,
}

impl Sheet {
    /// Smaller where it would not fit.
    fn text(&mut self, x: f64, class: &str, size: f64, text: &str) {
        self.put(x, class, "start", text, fit(text, size, WIDTH - MARGIN / 2.0 - x));
    }

    fn text_end(&mut self, x: f64, class: &str, size: f64, text: &str) {
        self.put(x, class, "end", text, fit(text, size, x - MARGIN / 2.0));
    }

    fn text_middle(&mut self, x: f64, class: &str, text: &str) {
        self.put(x, class, "middle", text, None);
    }

    fn put(&mut self, x: f64, class: &str, anchor: &str, text: &str, length: Option<f64>) {
        let y = self.y;
        let fitted = length.map_or_else(String::new, |length| {
            format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", short(length))
        });
        let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"{anchor}{fitted}>{}</text>",
            short(x),
            short(y),
            escaped(text)
        );
    }

    /// As many lines as it takes.
    fn paragraph(&mut self, class: &str, size: f64, height: f64, text: &str) {
        let lines = wrapped(text, size, WIDTH - 2.0 * MARGIN);
        for (at, line) in lines.iter().enumerate() {
            self.y += if at == 0 { 0.0 } else { height };
            self.text(MARGIN, class, size, line);
        }
        self.y += height;
    }

    fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let [x, y, width, height] = [x, y, width.max(1.0), height].map(short);
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\"/>"
        );
    }

    fn line(&mut self, class: &str, from_to: [f64; 4]) {
        let [x1, y1, x2, y2] = from_to.map(short);
        let _ = writeln!(self.body, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }
}

/// `1.25×`.
pub fn times(ratio: f64) -> String {
    format!("{}×", significant(ratio, if ratio < 1.0 { 2 } else { 3 }))
}

/// How wide a text will be at most: a capital takes more than a small letter, and fonts differ.
fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | ':' | '|' | '\'' | '(' | ')' | '/' => 0.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.98,
        c if c.is_ascii_uppercase() => 0.74,
        _ => 0.63,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The width to squeeze a text into, where it needs that.
fn fit(text: &str, size: f64, room: f64) -> Option<f64> {
    (width(text, size) > room).then_some(room)
}

fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or("", String::as_str);
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if line.is_empty() || width(&longer, size) <= room {
            lines.pop();
            lines.push(longer);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// No more than a tenth of a pixel, so that a difference of the file is one of the picture.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(ratios: &[f64]) -> (f64, f64) {
        let axis = Axis::new(ratios.iter().copied(), 0.0, 100.0);
        (axis.end, axis.step)
    }

    #[test]
    fn the_axis_ends_with_a_round_number_beyond_the_longest_bar() {
        assert_eq!(axis(&[0.3, 1.0]), (1.5, 0.5), "there is always something beyond the peer");
        assert_eq!(axis(&[2.1]), (2.5, 0.5));
        assert_eq!(axis(&[2.6, 0.1]), (3.0, 1.0));
        assert_eq!(axis(&[7.0]), (7.0, 1.0));
        assert_eq!(axis(&[9.3, 250.0]), (LONGEST, 1.0), "whatever is far longer leaves room for the others");
    }

    #[test]
    fn the_axis_starts_at_nothing_and_its_marks_are_even() {
        let axis = Axis::new([2.0].into_iter(), 100.0, 300.0);
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!([0.0, 1.0, 2.0].map(|ratio| axis.x(ratio)), [100.0, 200.0, 300.0]);
    }

    fn picture(who: &str, ratio: f64) -> Picture {
        let row = Row { who: who.to_owned(), ratio, value: String::new(), is_ours: true };
        let group = Group { title: "Redis".to_owned(), base: "by hand".to_owned(), rows: vec![row] };
        Picture { title: "T".to_owned(), subtitle: "S.".to_owned(), groups: vec![group], ..Picture::default() }
    }

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped(r#"<a href="b">&'"#), "&lt;a href=&quot;b&quot;&gt;&amp;&#39;");
        let drawn = picture("<script>&", 1.5).draw();
        assert!(!drawn.contains("<script>") && drawn.contains("&lt;script&gt;&amp;"), "{drawn}");
    }

    #[test]
    fn a_bar_that_is_too_long_is_cut_and_tells_its_length() {
        assert!(!picture("a", LONGEST).draw().contains("class=\"cut\""));
        assert!(picture("a", LONGEST + 0.1).draw().contains("class=\"cut\""));
        let drawn = picture("a", 25.0).draw();
        assert!(drawn.contains("class=\"cut\"") && drawn.contains(">25×<"), "{drawn}");
    }

    #[test]
    fn it_is_also_told_in_words() {
        let mut picture = picture("leasehold", 1.25);
        picture.numbers.push(("one lease".to_owned(), "1034 bytes".to_owned()));
        assert_eq!(picture.in_words(), "S. Redis, where 1× is by hand: leasehold 1.25×. one lease: 1034 bytes.");
        assert!(picture.draw().contains("leasehold 1.25×. one lease"));
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        let long = "a name that nobody would give to anything that has to stand on one line ".repeat(3);
        let mut picture = picture(&long, 9.99);
        picture.groups[0].title.clone_from(&long);
        picture.groups[0].base.clone_from(&long);
        picture.numbers.push((long.clone(), long.clone()));
        let drawn = picture.draw();
        let value = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}=\""))?;
            rest.split_once('"')?.0.parse::<f64>().ok()
        };
        let mut seen = 0;
        for line in drawn.lines().filter(|line| line.starts_with("<text")) {
            let (tag, text) = line.split_once('>').expect("a tag");
            let text = text.strip_suffix("</text>").expect("its end");
            let size = if tag.contains("s20") { 20.0 } else { 13.0 };
            let width = value(tag, "textLength").unwrap_or_else(|| width(text, size));
            let x = value(tag, "x").expect("a place");
            let (from, to) = if tag.contains("\"end\"") { (x - width, x) } else { (x, x + width) };
            assert!(tag.contains("middle") || from >= 0.0 && to <= WIDTH, "{line}");
            seen += 1;
        }
        assert!(seen > 8, "{drawn}");
    }

    #[test]
    fn long_lines_are_broken_and_long_names_squeezed() {
        let lines = wrapped("aaaa bbbb cccc", 10.0, width("aaaa bbbb", 10.0));
        assert_eq!(lines, ["aaaa bbbb", "cccc"]);
        assert_eq!(fit("short", 13.0, 400.0), None);
        let name = "a name that nobody would give to anything that has to stand on one line ".repeat(2);
        assert_eq!(fit(&name, 13.0, 400.0), Some(400.0));
    }
}

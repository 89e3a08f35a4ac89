//! Colours and weights of the answers for people. They are left out where the answer goes to no terminal, or the user wants
//! none (`NO_COLOR`).

use std::fmt::Display;

use anstream::adapter::strip_str;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::AnsiColor;
pub(crate) use clap::builder::styling::Style;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
pub(crate) const PROBLEM: Style = AnsiColor::Red.on_default().bold();
pub(crate) const STRONG: Style = Style::new().bold();

/// A text with a look, which [`fitting`] takes off again where nobody sees it.
pub(crate) fn painted(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The text as the stream is to have it: with its looks only on a terminal that shows them.
pub(crate) fn fitting(stream: &impl RawStream, text: &str) -> String {
    match AutoStream::choice(stream) {
        ColorChoice::Never => strip_str(text).to_string(),
        ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => text.to_owned(),
    }
}

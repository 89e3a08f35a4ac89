//! Values between Rust and a language that is not known here.

use std::fmt;

pub(crate) use crate::problem::Problem;

/// A value that does not fit where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    path: String,
    message: String,
    kind: UnfitKind,
}

/// The two kinds of unfit values that most languages tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitKind {
    /// Of another type than what is wanted.
    Type,
    /// Of the right type, and outside of what it can be.
    Value,
}

impl Unfit {
    /// A value of another type than what is wanted.
    pub fn ty(message: impl fmt::Display) -> Self {
        Self { path: String::new(), message: message.to_string(), kind: UnfitKind::Type }
    }

    /// A value that nothing can have here.
    pub fn value(message: impl fmt::Display) -> Self {
        Self { kind: UnfitKind::Value, ..Self::ty(message) }
    }

    /// Which of the two.
    pub const fn kind(&self) -> UnfitKind {
        self.kind
    }

    /// The same, about what stands in a field.
    #[must_use]
    pub fn within(self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{name}{dot}{}", self.path), ..self }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// A value of the language. Names are given in kebab case; how the language writes them is for it to know.
pub trait Source: Sized {
    /// A name as the language writes it, for messages.
    fn spelt(name: &str) -> String;

    /// The name of one of several, or of a case, as the language writes it.
    fn spelt_name(name: &str) -> String {
        Self::spelt(name)
    }

    /// Returns true if there is no value here.
    fn is_absent(&self) -> bool;

    /// # Errors
    /// Anything else than true or false.
    fn flag(&self) -> Result<bool, Unfit>;

    /// # Errors
    /// Anything else than a whole number that fits.
    fn number(&self) -> Result<u64, Unfit>;

    /// A length of time in the unit of the language, rounded up to milliseconds.
    ///
    /// # Errors
    /// Anything else than a length of time that has an end.
    fn milliseconds(&self) -> Result<u64, Unfit>;

    /// # Errors
    /// Anything else than a text.
    fn text(&self) -> Result<String, Unfit>;

    /// # Errors
    /// Anything else than bytes.
    fn bytes(&self) -> Result<Vec<u8>, Unfit>;

    /// # Errors
    /// Anything else than a list.
    fn items(&self) -> Result<Vec<Self>, Unfit>;

    /// # Errors
    /// What has no such field.
    fn field(&self, name: &'static str) -> Result<Self, Unfit>;

    /// Refuses fields of other names, where values of the language could have them.
    ///
    /// # Errors
    /// Such a field.
    fn only(&self, names: &[&'static str]) -> Result<(), Unfit>;

    /// Which of these cases of a variant it is.
    ///
    /// # Errors
    /// None of them.
    fn case(&self, of: &'static str, names: &[&'static str]) -> Result<usize, Unfit>;

    /// Which of these names it is.
    ///
    /// # Errors
    /// None of them.
    fn name(&self, names: &[&'static str]) -> Result<usize, Unfit> {
        let given = self.text()?;
        let known: Vec<_> = names.iter().map(|name| Self::spelt_name(name)).collect();
        let found = known.iter().position(|name| *name == given);
        found.ok_or_else(|| Unfit::value(format_args!("{given:?} is not one of {}", known.join(", "))))
    }

    /// Exactly so many items.
    ///
    /// # Errors
    /// Another number of them.
    fn tuple<const N: usize>(&self) -> Result<[Self; N], Unfit> {
        let items = self.items()?;
        let count = items.len();
        items.try_into().map_err(|_| Unfit::value(format_args!("there are {N} of them, not {count}")))
    }
}

/// Where values of the language are made.
pub trait Sink {
    /// A value of the language.
    type Value;

    /// Nothing.
    fn nothing(&self) -> Self::Value;

    /// True or false.
    fn flag(&self, flag: bool) -> Self::Value;

    /// A whole number: a count, a token, an id or milliseconds.
    fn number(&self, number: u64) -> Self::Value;

    /// Nanoseconds, which other languages cannot count in their usual numbers.
    fn nanoseconds(&self, ns: u64) -> Self::Value;

    /// A text.
    fn text(&self, text: &str) -> Self::Value;

    /// The name of one of several, in kebab case.
    fn name(&self, name: &'static str) -> Self::Value;

    /// Bytes.
    fn bytes(&self, bytes: &[u8]) -> Self::Value;

    /// A list.
    fn items(&self, items: Vec<Self::Value>) -> Self::Value;

    /// A record of this type.
    fn record(&self, of: &'static str, fields: Vec<(&'static str, Self::Value)>) -> Self::Value;

    /// A case of this variant.
    fn case(&self, of: &'static str, name: &'static str, fields: Vec<(&'static str, Self::Value)>) -> Self::Value;
}

/// A value that can be read from a language.
pub(crate) trait Read: Sized {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit>;
}

/// A value that can be written for a language.
pub(crate) trait Write {
    fn write<W: Sink>(self, to: &W) -> W::Value;
}

/// The fields of a record, or of a case that has the record as its payload.
pub(crate) trait Fields {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)>;
}

pub(crate) fn field<T: Read, S: Source>(from: &S, name: &'static str) -> Result<T, Unfit> {
    from.field(name).and_then(|field| T::read(&field)).map_err(|error| error.within(&S::spelt(name)))
}

/// A setting, in milliseconds.
pub(crate) fn length<S: Source>(from: &S, name: &'static str) -> Result<Option<u64>, Unfit> {
    let read = |field: S| if field.is_absent() { Ok(None) } else { field.milliseconds().map(Some) };
    from.field(name).and_then(read).map_err(|error| error.within(&S::spelt(name)))
}

pub(crate) fn needed<T>(value: Option<T>, name: &str) -> Result<T, Unfit> {
    value.ok_or_else(|| Unfit::ty("is missing").within(name))
}

pub(crate) fn arguments<S: Source, const N: usize>(args: &[S]) -> Result<&[S; N], Unfit> {
    args.try_into().map_err(|_| Unfit::ty(format_args!("{N} arguments are needed, not {}", args.len())))
}

pub(crate) fn argument<T: Read, S: Source>(from: &S, name: &'static str) -> Result<T, Unfit> {
    T::read(from).map_err(|error| error.within(&S::spelt(name)))
}

impl<T: Read> Read for Option<T> {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        if from.is_absent() { Ok(None) } else { T::read(from).map(Some) }
    }
}

impl<T: Read> Read for Vec<T> {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let items = from.items()?;
        let read = |(at, item): (usize, &S)| T::read(item).map_err(|error| error.within(&format!("[{at}]")));
        items.iter().enumerate().map(read).collect()
    }
}

impl Read for Vec<u8> {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.bytes()
    }
}

impl Read for String {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.text()
    }
}

impl Read for bool {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.flag()
    }
}

impl Read for u64 {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.number()
    }
}

fn smaller<T: TryFrom<u64>, S: Source>(from: &S, max: impl fmt::Display) -> Result<T, Unfit> {
    let number = from.number()?;
    T::try_from(number).map_err(|_| Unfit::value(format_args!("{number} is above the largest, {max}")))
}

impl Read for u32 {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        smaller(from, Self::MAX)
    }
}

impl Read for u16 {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        smaller(from, Self::MAX)
    }
}

impl<T: Write> Write for Option<T> {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        self.map_or_else(|| to.nothing(), |value| value.write(to))
    }
}

impl<T: Write> Write for Vec<T> {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.items(self.into_iter().map(|item| item.write(to)).collect())
    }
}

impl Write for Vec<u8> {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.bytes(&self)
    }
}

impl Write for String {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.text(&self)
    }
}

impl Write for bool {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.flag(self)
    }
}

impl Write for u64 {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.number(self)
    }
}

impl Write for u32 {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.number(self.into())
    }
}

impl Write for u16 {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.number(self.into())
    }
}

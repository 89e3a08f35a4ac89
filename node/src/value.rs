//! Plain values of JavaScript, for the protocol without I/O. They are copied on their way in, so that none of their
//! code runs during a call.

use leasehold_protocol::{Sink, Source, Unfit};
use napi::bindgen_prelude::{BigInt, FromNapiValue, JsObjectValue, JsValue, Object, ToNapiValue, Uint8Array, Unknown};
use napi::{Env, Result, ValueType, sys};

/// The most levels of nesting. The values of the protocol have nine at most; deeper ones may be circular.
const DEEPEST: u32 = 9;
/// The most values within one argument: more than any call has, and few enough for an object passed by mistake.
const MOST: u32 = 1 << 20;
/// The largest integer that a number of JavaScript holds exactly, and the next one.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// A plain value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `undefined` or `null`.
    Nothing,
    /// A boolean.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A bigint of up to 64 bits; nothing for others.
    Big(Option<u64>),
    /// A string.
    Text(String),
    /// A `Uint8Array`, which a `Buffer` is as well.
    Bytes(Vec<u8>),
    /// An array.
    Items(Vec<Self>),
    /// Any other object: its enumerable properties.
    Object(Vec<(String, Self)>),
    /// Something else, such as a function.
    Other(&'static str),
}

impl FromNapiValue for Value {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: both belong to the current call, as the caller promises.
        unsafe { read(env, value, 0, &mut { MOST }) }
    }
}

/// # Safety
/// The value must belong to the environment, in an open scope.
unsafe fn read(env: sys::napi_env, value: sys::napi_value, depth: u32, left: &mut u32) -> Result<Value> {
    *left = left.saturating_sub(1);
    if depth > DEEPEST || *left == 0 {
        return Ok(Value::Other("what nests too deep, goes in circles or never ends"));
    }
    // SAFETY: as this function's caller promises; `get_type` has reported the type of the value.
    unsafe {
        let unknown = Unknown::from_napi_value(env, value)?;
        Ok(match unknown.get_type()? {
            ValueType::Undefined | ValueType::Null => Value::Nothing,
            ValueType::Boolean => Value::Flag(bool::from_napi_value(env, value)?),
            ValueType::Number => Value::Number(f64::from_napi_value(env, value)?),
            ValueType::String => Value::Text(String::from_napi_value(env, value)?),
            ValueType::BigInt => {
                let big = BigInt::from_napi_value(env, value)?;
                let is_small = !big.sign_bit && big.words.iter().skip(1).all(|word| *word == 0);
                Value::Big(is_small.then(|| big.words.first().copied().unwrap_or(0)))
            }
            ValueType::Object if unknown.is_typedarray()? => match Uint8Array::from_napi_value(env, value) {
                Ok(bytes) => Value::Bytes(bytes.to_vec()),
                Err(_) => Value::Other("a typed array of another kind"),
            },
            ValueType::Object => {
                let object = Object::from_napi_value(env, value)?;
                if unknown.is_array()? {
                    let items = 0..object.get_array_length()?;
                    let items =
                        items.map(|at| read(env, object.get_element::<Unknown<'_>>(at)?.raw(), depth + 1, left));
                    Value::Items(items.collect::<Result<_>>()?)
                } else {
                    let fields = Object::keys(&object)?.into_iter().map(|name| {
                        let value = object.get_named_property::<Unknown<'_>>(&name)?.raw();
                        Ok((name, read(env, value, depth + 1, left)?))
                    });
                    Value::Object(fields.collect::<Result<_>>()?)
                }
            }
            ValueType::Function => Value::Other("a function"),
            ValueType::Symbol | ValueType::External | ValueType::Unknown => Value::Other("no plain value"),
        })
    }
}

impl ToNapiValue for Value {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        // SAFETY: the environment is that of the current call, as the caller promises.
        unsafe {
            match value {
                Self::Nothing | Self::Other(_) | Self::Big(None) => <()>::to_napi_value(env, ()),
                Self::Flag(flag) => bool::to_napi_value(env, flag),
                Self::Number(number) => f64::to_napi_value(env, number),
                Self::Big(Some(number)) => BigInt::to_napi_value(env, BigInt::from(number)),
                Self::Text(text) => String::to_napi_value(env, text),
                Self::Bytes(bytes) => Uint8Array::to_napi_value(env, Uint8Array::from(bytes)),
                Self::Items(items) => Vec::to_napi_value(env, items),
                Self::Object(fields) => {
                    let mut object = Object::new(&Env::from_raw(env))?;
                    for (name, field) in fields {
                        object.set_named_property(&name, field)?;
                    }
                    Ok(object.raw())
                }
            }
        }
    }
}

impl Value {
    fn no(&self, what: &str) -> Unfit {
        let found = match self {
            Self::Nothing => "nothing",
            Self::Flag(_) => "a boolean",
            Self::Number(_) => "this number",
            Self::Big(_) => "this bigint",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "a Uint8Array",
            Self::Items(_) => "an array",
            Self::Object(_) => "an object",
            Self::Other(what) => what,
        };
        Unfit::ty(format_args!("{found} is no {what}"))
    }
}

static NOTHING: Value = Value::Nothing;

impl Source for &Value {
    fn spelt(name: &str) -> String {
        let mut words = name.split('-');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| name + &word[..1].to_ascii_uppercase() + &word[1..])
    }

    fn spelt_name(name: &str) -> String {
        name.to_owned()
    }

    fn is_absent(&self) -> bool {
        matches!(self, Value::Nothing)
    }

    fn flag(&self) -> std::result::Result<bool, Unfit> {
        let Value::Flag(flag) = self else { return Err(self.no("boolean")) };
        Ok(*flag)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and within bounds")]
    fn number(&self) -> std::result::Result<u64, Unfit> {
        if let Value::Big(number) = self {
            return number.ok_or_else(|| Unfit::value("this bigint is not within 0 and 2^64 - 1"));
        }
        let Value::Number(number) = self else { return Err(self.no("number")) };
        let is_whole = number.fract() == 0.0 && (0.0..=LARGEST).contains(number);
        if is_whole { Ok(*number as u64) } else { Err(Unfit::value("this is not a whole number from 0 to 2^53 - 1")) }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and within bounds")]
    fn milliseconds(&self) -> std::result::Result<u64, Unfit> {
        let Value::Number(ms) = self else { return Err(self.no("number of milliseconds")) };
        let refuse = || Unfit::value("this is not a duration: give milliseconds, 0 or more");
        if (0.0..=LARGEST).contains(ms) { Ok(ms.ceil() as u64) } else { Err(refuse()) }
    }

    fn text(&self) -> std::result::Result<String, Unfit> {
        let Value::Text(text) = self else { return Err(self.no("string")) };
        Ok(text.clone())
    }

    fn bytes(&self) -> std::result::Result<Vec<u8>, Unfit> {
        let Value::Bytes(bytes) = self else { return Err(self.no("Uint8Array")) };
        Ok(bytes.clone())
    }

    fn items(&self) -> std::result::Result<Vec<Self>, Unfit> {
        let Value::Items(items) = self else { return Err(self.no("array")) };
        Ok(items.iter().collect())
    }

    fn field(&self, name: &'static str) -> std::result::Result<Self, Unfit> {
        let Value::Object(fields) = self else { return Err(self.no("object")) };
        let name = Self::spelt(name);
        Ok(fields.iter().find(|(other, _)| *other == name).map_or(&NOTHING, |(_, value)| value))
    }

    fn only(&self, names: &[&'static str]) -> std::result::Result<(), Unfit> {
        let Value::Object(fields) = self else { return Err(self.no("object")) };
        let known: Vec<_> = names.iter().map(|name| Self::spelt(name)).collect();
        match fields.iter().find(|(name, _)| name != "type" && !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) if known.is_empty() => Err(Unfit::ty(format_args!("there is no {name} here"))),
            Some((name, _)) => Err(Unfit::ty(format_args!("there is no {name}; there are {}", known.join(", ")))),
        }
    }

    fn case(&self, _: &'static str, names: &[&'static str]) -> std::result::Result<usize, Unfit> {
        self.field("type")?.name(names).map_err(|error| error.within("type"))
    }
}

/// Makes plain values.
pub struct Values;

impl Sink for Values {
    type Value = Value;

    fn nothing(&self) -> Value {
        Value::Nothing
    }

    fn flag(&self, flag: bool) -> Value {
        Value::Flag(flag)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts, ids, tokens and milliseconds are below 2^53")]
    fn number(&self, number: u64) -> Value {
        Value::Number(number as f64)
    }

    fn nanoseconds(&self, ns: u64) -> Value {
        Value::Big(Some(ns))
    }

    fn text(&self, text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn name(&self, name: &'static str) -> Value {
        Value::Text(name.to_owned())
    }

    fn bytes(&self, bytes: &[u8]) -> Value {
        Value::Bytes(bytes.to_vec())
    }

    fn items(&self, items: Vec<Value>) -> Value {
        Value::Items(items)
    }

    fn record(&self, _: &'static str, fields: Vec<(&'static str, Value)>) -> Value {
        let there = fields.into_iter().filter(|(_, value)| !matches!(value, Value::Nothing));
        Value::Object(there.map(|(name, value)| (<&Value>::spelt(name), value)).collect())
    }

    fn case(&self, of: &'static str, name: &'static str, fields: Vec<(&'static str, Value)>) -> Value {
        let tag = ("type".to_owned(), Value::Text(name.to_owned()));
        let Value::Object(fields) = self.record(of, fields) else { return Value::Nothing };
        Value::Object(std::iter::once(tag).chain(fields).collect())
    }
}

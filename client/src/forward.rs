//! Settings of requests that are those of another request inside.

/// Methods that pass a setting on to the request inside, and say so: each is named as a setting of the crate's async requests. A
/// request that is nothing but another one, as `Request(another::Request)`, gets the way to it as well; the others have `map`.
macro_rules! settings {
    ($request:ident($inner:ty): $($rest:tt)*) => {
        impl $request {
            fn map(self, change: impl FnOnce($inner) -> $inner) -> Self {
                Self(change(self.0))
            }
        }

        settings! { $request: $($rest)* }
    };
    ($request:ident: $($of:ident::$setting:ident($($value:ident: $type:ty)?);)*) => {
        impl $request {
            $(
                #[doc = concat!(
                    "See [`leasehold::", stringify!($of), "::", stringify!($setting), "`](crate::", stringify!($of), "::",
                    stringify!($setting), ")."
                )]
                pub fn $setting(self, $($value: $type)?) -> Self {
                    self.map(|request| request.$setting($($value)?))
                }
            )*
        }
    };
}

pub(crate) use settings;

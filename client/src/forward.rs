//! Settings of requests, each declared once for both faces of the client.

/// Methods that change a setting of a request, for the request itself and for its twin of the same name in
/// [`blocking`](crate::blocking).
macro_rules! settings {
    ($request:ident: $(
        $(#[$doc:meta])*
        pub fn $setting:ident($this:ident $(, $value:ident: $type:ty)?) -> Self $change:block
    )*) => {
        impl $request {
            $(
                $(#[$doc])*
                pub fn $setting($this $(, $value: $type)?) -> Self $change
            )*
        }

        impl crate::blocking::$request {
            $(
                $(#[$doc])*
                pub fn $setting(self $(, $value: $type)?) -> Self {
                    Self(self.0.$setting($($value)?))
                }
            )*
        }
    };
}

/// Settings that a request passes on to the request of a lock inside, by its `map`.
macro_rules! settings_of_locks {
    ($request:ident: $($setting:ident($($value:ident: $type:ty)?);)*) => {
        $crate::forward::settings! { $request: $(
            #[doc = concat!("See [`LockRequest::", stringify!($setting), "`](crate::LockRequest::", stringify!($setting), ").")]
            pub fn $setting(self $(, $value: $type)?) -> Self {
                self.map(|request| request.$setting($($value)?))
            }
        )* }
    };
}

pub(crate) use {settings, settings_of_locks};

#[cfg(test)]
mod tests;

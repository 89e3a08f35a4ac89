//! Guards for the protected resource.

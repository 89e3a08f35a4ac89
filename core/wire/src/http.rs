//! Responses over HTTP, of all stores behind it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A response over HTTP. One whose end is missing is none: it is a
/// [`TransportFault::Unknown`](leasehold_core::op::TransportFault::Unknown).
///
/// `Debug` does not show the body.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Names in any case, and values: all of them, or at least those of [`HttpResponse::HEADERS`].
    pub headers: Vec<(String, String)>,
    /// As it was sent, decompressed. No more than [`MAX_BODY`](crate::rest::MAX_BODY) and one byte of it need be
    /// read: a longer one is not understood.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The headers that are looked at.
    pub const HEADERS: [&str; 14] = [
        "content-type",
        "date",
        "location",
        "etag",
        "x-goog-generation",
        "x-ms-error-code",
        "x-ms-substatus",
        "x-ms-continuation",
        "x-ms-version-id",
        "x-ms-has-immutability-policy",
        "x-ms-has-legal-hold",
        "x-amz-bucket-region",
        "x-amz-version-id",
        "x-amz-expiration",
    ];

    /// A response without headers.
    pub const fn new(status: u16, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    /// The first header of this name, which is in lowercase.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(named, _)| named.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {} with {} bytes", self.status, self.body.len())
    }
}

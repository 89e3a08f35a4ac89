//! Guards for objects in cloud storage.

use leasehold_wire::fence::objects::{self, Refused};

use crate::marks::number;
use crate::{Error, ErrorKind};

/// Keeps the mark of an object in front of its data, as `34 data`.
///
/// It makes the bodies of the requests that you send, with the client library that you have: read the object with its
/// ETag, and write the new body on the condition that nobody has written since.
///
/// | service | version | write over it | write a new one | somebody else wrote |
/// |---|---|---|---|---|
/// | S3, R2 | `ETag` | `If-Match: ETAG` | `If-None-Match: *` | 412, 409, 404 |
/// | Azure Blob Storage | `ETag` | `If-Match: ETAG` | `If-None-Match: *` | 412, 409 |
/// | Google Cloud Storage | generation | `ifGenerationMatch=GENERATION` | `ifGenerationMatch=0` | 412 |
///
/// When somebody else wrote, read again and **make the body again**: the guard compares the marks each time. Never repeat
/// a write with a new ETag alone. After a lost answer do the same: a body that is yours already may be written again.
///
/// ```
/// use leasehold_fence::ObjectGuard;
///
/// # fn main() -> Result<(), leasehold_fence::Error> {
/// # let token: u64 = 34; // lease.token()
/// # let mut object: Option<Vec<u8>> = None;
/// // Before the first read of the data: GET, then PUT under the condition; again from GET on 412 and 409.
/// let body = ObjectGuard::claim("invoice/42", token, object.as_deref())?;
/// # object = Some(body);
/// // With every write, in the same way:
/// let body = ObjectGuard::write("invoice/42", token, object.as_deref(), b"paid")?;
/// assert_eq!(body, b"34 paid");
/// assert_eq!(ObjectGuard::data(&body), Some(&b"paid"[..]));
///
/// let late = ObjectGuard::write("invoice/42", 33, Some(&body), b"late").unwrap_err();
/// assert_eq!(late.kind(), leasehold_fence::ErrorKind::StaleToken);
/// # Ok(())
/// # }
/// ```
///
/// `leasehold::cas` has such a loop for every store, and its items may have these bodies as their values.
///
/// # Never delete a guarded object
/// The mark goes with it: a late claim would begin again. Write data that says *deleted*. The mark has to stand in the
/// body, since an ETag may depend on the body alone, and a claim has to change it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObjectGuard;

impl ObjectGuard {
    /// The body of a claim, with the data unchanged: it makes the token the only one that is accepted from now on, apart
    /// from higher ones. Write it with each new lease, **before** using the data. `seen` is the object as it was read,
    /// `None` where there is none. `item` names the object in errors.
    ///
    /// # Errors
    /// [`ErrorKind::StaleToken`] when a later holder has claimed it. [`ErrorKind::StoreRefused`] for an object that no
    /// guard has written. [`ErrorKind::Config`] for a token above 2^53 - 1.
    pub fn claim(item: &str, token: u64, seen: Option<&[u8]>) -> Result<Vec<u8>, Error> {
        let claimed = number(token).and_then(|token| objects::claimed(token, seen).map_err(refusal));
        claimed.map_err(|error| error.on(item))
    }

    /// The body of a write.
    ///
    /// # Errors
    /// As [`ObjectGuard::claim`]; and [`ErrorKind::StaleToken`] where there is no object, for a later holder may have
    /// deleted it.
    pub fn write(item: &str, token: u64, seen: Option<&[u8]>, data: &[u8]) -> Result<Vec<u8>, Error> {
        let written = number(token).and_then(|token| objects::written(token, seen, data).map_err(refusal));
        written.map_err(|error| error.on(item))
    }

    /// The data of an object; `None` for one that no guard has written.
    pub fn data(body: &[u8]) -> Option<&[u8]> {
        objects::split(body).map(|(_, data)| data)
    }
}

fn refusal(refused: Refused) -> Error {
    match refused {
        Refused::Rejected(rejected) => rejected.into(),
        Refused::Gone => Error::new(ErrorKind::StaleToken, refused.to_string()),
        Refused::NoToken => Error::new(ErrorKind::StoreRefused, refused.to_string()),
    }
}

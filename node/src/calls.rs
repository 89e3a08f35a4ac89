//! Calls that programs make often: acquire, release, and a look at a lease.
//!
//! They are plain functions of Node-API, and results travel in memory that both sides share. An object of a class would cost
//! more than all the rest of a call: it is allocated, tagged, wrapped, and tracked by the garbage collector.

use std::ffi::{CStr, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Arc;

use leasehold::Error;
use leasehold::ffi::{self, Held};
use napi::bindgen_prelude::{Buffer, FromNapiValue, JsValue, ToNapiValue};
use napi::{Env, Result, check_status, sys};

use crate::failure::Failure;
use crate::options::{LockOptions, milliseconds};
use crate::reactor::{Outcome, Owner, Shared, Task};
use crate::run;
use crate::waiter::{Wait, Waiter};

/// Numbers of one result: the waiter's slot and generation, the lease's number or [`NO_LEASE`], and its token.
pub(crate) const FIELDS: usize = 4;
pub(crate) const NO_LEASE: f64 = -1.0;

type Raw = sys::napi_value;
type Function = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> Raw;

const FUNCTIONS: [(&CStr, Function); 7] = [
    (c"acquire", acquire),
    (c"release", release),
    (c"finish", finish),
    (c"fail", fail),
    (c"remaining", remaining),
    (c"isLost", is_lost),
    (c"drop", drop_lease),
];

/// The functions by name, on an object. `owner` is what they work for.
pub(crate) fn functions(env: &Env, owner: &Owner) -> Result<Raw> {
    let mut object = ptr::null_mut();
    // SAFETY: in the scope of the current call. The data of each function is freed when the function is.
    unsafe {
        check_status!(sys::napi_create_object(env.raw(), &raw mut object))?;
        for (name, function) in FUNCTIONS {
            let data: *mut c_void = Box::into_raw(Box::new(Owner::clone(owner))).cast();
            let (mut made, length) = (ptr::null_mut(), name.count_bytes().cast_signed());
            check_status!(sys::napi_create_function(
                env.raw(),
                name.as_ptr(),
                length,
                Some(function),
                data,
                &raw mut made
            ))?;
            let hint = ptr::null_mut();
            check_status!(sys::napi_add_finalizer(env.raw(), made, data, Some(free::<Owner>), hint, ptr::null_mut()))?;
            check_status!(sys::napi_set_named_property(env.raw(), object, name.as_ptr(), made))?;
        }
    }
    Ok(object)
}

/// A client as an argument of [`acquire`].
pub struct Connection(leasehold::Client);

impl Connection {
    pub(crate) fn new(client: leasehold::Client) -> Self {
        Self(client)
    }
}

impl ToNapiValue for Connection {
    unsafe fn to_napi_value(env: sys::napi_env, connection: Self) -> Result<Raw> {
        let data = Box::into_raw(Box::new(connection)).cast();
        let mut value = ptr::null_mut();
        // SAFETY: the environment is that of the current call; the data is freed with the value.
        check_status!(unsafe {
            sys::napi_create_external(env, data, Some(free::<Self>), ptr::null_mut(), &raw mut value)
        })?;
        Ok(value)
    }
}

unsafe extern "C" fn free<T>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: the data was made by `Box::into_raw` of this type, and Node calls this once.
    drop(unsafe { Box::from_raw(data.cast::<T>()) });
}

/// `(connection, name, ttl, wait, owner, tries, slot, generation)`: a lock with the most frequent settings, of which
/// `undefined` is the default. Answers as [`crate::reactor::Reactor::start`].
unsafe extern "C" fn acquire(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: Node calls this with the information of the call, whose arguments are of the types that are read.
    unsafe {
        call(env, info, |shared, [connection, name, ttl, wait, owner, tries, slot, generation]: [Raw; 8]| {
            let options = LockOptions {
                ttl: number(env, ttl)?,
                wait: number(env, wait)?,
                owner: text(env, owner)?,
                ..LockOptions::default()
            };
            let mut data = ptr::null_mut();
            check_status!(sys::napi_get_value_external(env, connection, &raw mut data))?;
            let Connection(client) = &*data.cast::<Connection>();
            let request = client.lock(text(env, name)?.unwrap_or_default());
            let waiter = called(env, slot, generation)?;
            let task: Task = match options.request(request) {
                Err(failure) => Box::pin(std::future::ready(Err(failure))),
                Ok(request) if boolean(env, tries)? => {
                    Box::pin(async move { Ok(Outcome::MaybeLease(request.try_acquire().await?)) })
                }
                Ok(request) => Box::pin(async move { Ok(Outcome::Lease(ffi::acquire_async(request).await?)) }),
            };
            Ok(shared.begun(&Env::from_raw(env), waiter, task)?.raw())
        })
    }
}

/// `(lease, leaves, slot, generation)`: releases a lease, which has no number any more. With `leaves` it is the end of a body, which
/// fails if it was not protected to its end. Answers as [`crate::reactor::Reactor::start`].
unsafe extern "C" fn release(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: as in `acquire`.
    unsafe {
        end(env, info, |held, leaves| async move {
            let was_lost = leaves && held.is_lost();
            let released = held.release().await;
            if leaves { ffi::left(was_lost, released) } else { released }
        })
    }
}

/// The same for a run: finishes it. Two more arguments may be the kind of its result, and the result.
unsafe extern "C" fn finish(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: as in `acquire`.
    unsafe {
        call(env, info, |shared, [lease, leaves, slot, generation, kind, result]: [Raw; 6]| {
            let kind = text(env, kind)?;
            let bytes = matches!(kind.as_deref(), Some("bytes" | "output"))
                .then(|| Buffer::from_napi_value(env, result).map(|bytes| bytes.to_vec()))
                .transpose()?;
            let outcome = run::outcome(kind.as_deref(), text(env, result)?, bytes);
            let ending = |held: Held, leaves| async move {
                let was_lost = leaves && held.is_lost();
                let finished = ffi::finish_async(&held, outcome).await;
                if leaves { ffi::run_left(was_lost, finished) } else { finished }
            };
            ended(env, shared, [lease, leaves, slot, generation], ending)
        })
    }
}

/// `(lease, leaves, slot, generation, reason)`: releases a run whose work has failed. The reason is kept where its attempts are counted.
unsafe extern "C" fn fail(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: as in `acquire`.
    unsafe {
        call(env, info, |shared, [lease, leaves, slot, generation, reason]: [Raw; 5]| {
            let reason = text(env, reason)?.unwrap_or_default();
            let ending = |held: Held, _| async move { ffi::fail_async(&held, &reason).await };
            ended(env, shared, [lease, leaves, slot, generation], ending)
        })
    }
}

/// `(lease)`: the milliseconds for which it is valid without renewal.
unsafe extern "C" fn remaining(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: as in `acquire`.
    unsafe { look(env, info, 0.0, |held| milliseconds(held.remaining())) }
}

/// `(lease)`: true if it has ended without having been released.
unsafe extern "C" fn is_lost(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: as in `acquire`.
    unsafe { look(env, info, true, |held| held.is_lost()) }
}

/// `(lease)`: gives back a lease that nobody waits for any more.
unsafe extern "C" fn drop_lease(env: sys::napi_env, info: sys::napi_callback_info) -> Raw {
    // SAFETY: as in `acquire`.
    unsafe {
        call(env, info, |shared, [lease]: [Raw; 1]| {
            drop(shared.take(index(env, lease)?));
            Ok(ptr::null_mut())
        })
    }
}

/// # Safety
/// As for [`call`].
unsafe fn end<F: Future<Output = std::result::Result<(), Error>> + Send + 'static>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    ending: impl FnOnce(Held, bool) -> F,
) -> Raw {
    // SAFETY: as the caller promises.
    unsafe { call(env, info, |shared, arguments: [Raw; 4]| ended(env, shared, arguments, ending)) }
}

/// # Safety
/// The arguments must belong to the environment, in an open scope.
unsafe fn ended<F: Future<Output = std::result::Result<(), Error>> + Send + 'static>(
    env: sys::napi_env,
    shared: &Arc<Shared>,
    [lease, leaves, slot, generation]: [Raw; 4],
    ending: impl FnOnce(Held, bool) -> F,
) -> Result<Raw> {
    // SAFETY: as the caller promises.
    unsafe {
        let held = shared.take(index(env, lease)?);
        let leaves = boolean(env, leaves)?;
        let waiter = called(env, slot, generation)?;
        let task: Task = match held.map(|held| ending(held, leaves)) {
            None => Box::pin(std::future::ready(Err(Failure::internal("there is no such lease".to_owned())))),
            Some(ending) => Box::pin(async move {
                ending.await?;
                Ok(Outcome::Nothing)
            }),
        };
        Ok(shared.begun(&Env::from_raw(env), waiter, task)?.raw())
    }
}

/// # Safety
/// As for [`call`].
unsafe fn look<T: ToNapiValue>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    gone: T,
    look: impl FnOnce(&Held) -> T,
) -> Raw {
    // SAFETY: as the caller promises.
    unsafe {
        call(env, info, |shared, [lease]: [Raw; 1]| {
            let seen = shared.look(index(env, lease)?, look);
            T::to_napi_value(env, seen.unwrap_or(gone))
        })
    }
}

/// Runs a call with its arguments, which are `undefined` where none are given. Throws its error, or that it has panicked.
///
/// # Safety
/// Node must have called a function of [`functions`] with this environment and information.
unsafe fn call<const N: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    call: impl FnOnce(&Arc<Shared>, [Raw; N]) -> Result<Raw>,
) -> Raw {
    let run = || {
        let (mut count, mut arguments, mut data) = (N, [ptr::null_mut(); N], ptr::null_mut());
        // SAFETY: there is room for `count` arguments; the data is that of `functions`, which lives as long as the function.
        let owner = unsafe {
            let this = ptr::null_mut();
            let pointer = arguments.as_mut_ptr();
            check_status!(sys::napi_get_cb_info(env, info, &raw mut count, pointer, this, &raw mut data))?;
            &*data.cast::<Owner>()
        };
        let shared = owner.upgrade().ok_or_else(|| napi::Error::from_reason("the event loop has ended"))?;
        call(&shared, arguments)
    };
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    match result.unwrap_or_else(|_| Err(napi::Error::from_reason("leasehold has panicked; please report this"))) {
        Ok(value) => value,
        Err(error) => {
            let message = error.reason.replace('\0', "");
            let message = std::ffi::CString::new(message).unwrap_or_default();
            // SAFETY: both end with a zero, and Node copies them.
            unsafe { sys::napi_throw_error(env, ptr::null(), message.as_ptr()) };
            ptr::null_mut()
        }
    }
}

/// Nothing for a value that is no number.
///
/// # Safety
/// The value must belong to the environment, in an open scope; so for the functions below.
unsafe fn number(env: sys::napi_env, value: Raw) -> Result<Option<f64>> {
    let mut number = 0.0;
    // SAFETY: as the caller promises.
    let status = unsafe { sys::napi_get_value_double(env, value, &raw mut number) };
    if status == sys::Status::napi_number_expected {
        return Ok(None);
    }
    check_status!(status).map(|()| Some(number))
}

/// The waiter of a call.
unsafe fn called(env: sys::napi_env, slot: Raw, generation: Raw) -> Result<Waiter> {
    // SAFETY: as the caller promises.
    unsafe { Ok(Waiter::Call { slot: index(env, slot)?, generation: index(env, generation)?, wait: Wait::Client }) }
}

unsafe fn index(env: sys::napi_env, value: Raw) -> Result<u32> {
    let mut index = 0;
    // SAFETY: as the caller promises.
    check_status!(unsafe { sys::napi_get_value_uint32(env, value, &raw mut index) })?;
    Ok(index)
}

unsafe fn boolean(env: sys::napi_env, value: Raw) -> Result<bool> {
    let mut boolean = false;
    // SAFETY: as the caller promises.
    check_status!(unsafe { sys::napi_get_value_bool(env, value, &raw mut boolean) })?;
    Ok(boolean)
}

/// Nothing for a value that is no string.
unsafe fn text(env: sys::napi_env, value: Raw) -> Result<Option<String>> {
    let (mut short, mut length) = ([0_u8; 128], 0);
    // SAFETY: as the caller promises; there is room for so many bytes, of which Node uses one for a zero.
    let status =
        unsafe { sys::napi_get_value_string_utf8(env, value, short.as_mut_ptr().cast(), short.len(), &raw mut length) };
    if status == sys::Status::napi_string_expected {
        return Ok(None);
    }
    check_status!(status)?;
    match std::str::from_utf8(&short[..length]) {
        // A longer text may have been cut before a character of up to four bytes.
        Ok(text) if length < short.len() - 4 => Ok(Some(text.to_owned())),
        // SAFETY: as above.
        Ok(_) | Err(_) => unsafe { String::from_napi_value(env, value) }.map(Some),
    }
}

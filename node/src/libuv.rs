//! Handles of libuv, which runs Node's event loop, for sockets and a timer of our own.
//!
//! Node exports libuv's functions. They are looked up when they are needed, because other runtimes that load addons have none.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use leasehold::ffi::{Interest, RawFd};
use napi::{Env, sys};

/// The numbers that libuv has given to its kinds of handles since its first stable version.
const POLL: c_int = 8;
const TIMER: c_int = 13;
const READABLE: c_int = 1;
const WRITABLE: c_int = 2;

type Loop = *mut sys::uv_loop_s;
type Handle = *mut c_void;

/// The functions of libuv that are used here, with the types of its documentation.
struct Functions {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    handle_set_data: unsafe extern "C" fn(Handle, *mut c_void),
    handle_get_data: unsafe extern "C" fn(Handle) -> *mut c_void,
    unref: unsafe extern "C" fn(Handle),
    close: unsafe extern "C" fn(Handle, unsafe extern "C" fn(Handle)),
    poll_init: unsafe extern "C" fn(Loop, Handle, c_int) -> c_int,
    poll_start: unsafe extern "C" fn(Handle, c_int, unsafe extern "C" fn(Handle, c_int, c_int)) -> c_int,
    timer_init: unsafe extern "C" fn(Loop, Handle) -> c_int,
    timer_start: unsafe extern "C" fn(Handle, unsafe extern "C" fn(Handle), u64, u64) -> c_int,
}

impl Functions {
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        // SAFETY: each field has the type of the function of that name.
        let find = || unsafe {
            Some(Self {
                handle_size: symbol(c"uv_handle_size")?,
                handle_set_data: symbol(c"uv_handle_set_data")?,
                handle_get_data: symbol(c"uv_handle_get_data")?,
                unref: symbol(c"uv_unref")?,
                close: symbol(c"uv_close")?,
                poll_init: symbol(c"uv_poll_init")?,
                poll_start: symbol(c"uv_poll_start")?,
                timer_init: symbol(c"uv_timer_init")?,
                timer_start: symbol(c"uv_timer_start")?,
            })
        };
        FOUND.get_or_init(find).as_ref()
    }
}

/// # Safety
/// `F` must be the function's type, as a pointer.
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: pointers to functions have the size of this one, and the caller knows the type.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

/// Called on the loop's thread: with a socket that is ready, or without one by the timer.
type Callback = Box<dyn Fn(Option<RawFd>)>;

/// The event loop of one thread of Node, and our handles in it. Only that thread may use it; any thread may drop it.
pub(crate) struct Uv {
    functions: &'static Functions,
    raw: Loop,
    callback: Callback,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    polls: Vec<(RawFd, Handle)>,
    timer: Option<Handle>,
    /// Handles that are not closed yet.
    open: usize,
    /// The end of the environment waits until all are closed.
    ending: Option<sys::napi_async_cleanup_hook_handle>,
    is_over: bool,
}

// SAFETY: the pointers and the callback are used on the loop's thread alone, as is said above. What another thread may drop is
// plain memory: the callback of this package holds nothing but weak references.
unsafe impl Send for Uv {}
// SAFETY: as above.
unsafe impl Sync for Uv {}

impl Uv {
    /// The loop of the current thread, if Node has one that can watch sockets. `callback` must bear being dropped on another
    /// thread.
    pub(crate) fn of(env: Env, callback: impl Fn(Option<RawFd>) + Send + 'static) -> Option<Arc<Self>> {
        let functions = Functions::get()?;
        // SAFETY: only looks if there is such a function.
        unsafe { symbol::<*const c_void>(c"napi_get_uv_event_loop")? };
        let mut raw = ptr::null_mut();
        // SAFETY: the environment is that of the current call.
        let status = unsafe { sys::napi_get_uv_event_loop(env.raw(), &raw mut raw) };
        if status != sys::Status::napi_ok || raw.is_null() {
            return None;
        }
        let uv = Arc::new(Self { functions, raw, callback: Box::new(callback), state: Mutex::default() });
        let owned = Arc::into_raw(Arc::clone(&uv)).cast_mut().cast();
        // SAFETY: `end` gets the pointer once, and makes it an `Arc` again.
        let status = unsafe { sys::napi_add_async_cleanup_hook(env.raw(), Some(end), owned, ptr::null_mut()) };
        if status != sys::Status::napi_ok {
            // SAFETY: the pointer was made above, and nobody else has it.
            drop(unsafe { Arc::from_raw(owned.cast::<Self>().cast_const()) });
            return None;
        }
        Some(uv)
    }

    /// Calls back whenever the socket is ready.
    pub(crate) fn watch(self: &Arc<Self>, socket: RawFd, interest: Interest) -> io::Result<()> {
        let known = self.state().polls.iter().find(|(fd, _)| *fd == socket).map(|(_, handle)| *handle);
        let handle = known.map_or_else(|| self.poll(socket), Ok)?;
        let events = if interest == Interest::Read { READABLE } else { READABLE | WRITABLE };
        // SAFETY: the handle is open.
        checked(unsafe { (self.functions.poll_start)(handle, events, on_poll) })
    }

    /// Stops watching the socket at once.
    pub(crate) fn unwatch(&self, socket: RawFd) {
        let mut state = self.state();
        let Some(at) = state.polls.iter().position(|(fd, _)| *fd == socket) else { return };
        let (_, handle) = state.polls.swap_remove(at);
        drop(state);
        self.close(handle);
    }

    /// Calls back once, and not at the time that was set before.
    pub(crate) fn set_timer(self: &Arc<Self>, delay: Duration) -> io::Result<()> {
        let known = self.state().timer;
        let handle = known.map_or_else(|| self.timer(), Ok)?;
        let ms = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        // SAFETY: the handle is open.
        checked(unsafe { (self.functions.timer_start)(handle, on_timer, ms, 0) })
    }

    fn poll(self: &Arc<Self>, socket: RawFd) -> io::Result<Handle> {
        // SAFETY: the memory is that of such a handle; the loop is that of this thread.
        let handle =
            self.open(POLL, Some(socket), |handle| unsafe { (self.functions.poll_init)(self.raw, handle, socket) })?;
        self.state().polls.push((socket, handle));
        Ok(handle)
    }

    fn timer(self: &Arc<Self>) -> io::Result<Handle> {
        // SAFETY: as in `poll`.
        let handle = self.open(TIMER, None, |handle| unsafe { (self.functions.timer_init)(self.raw, handle) })?;
        self.state().timer = Some(handle);
        Ok(handle)
    }

    /// A new handle, which does not keep the process alive.
    fn open(
        self: &Arc<Self>,
        kind: c_int,
        socket: Option<RawFd>,
        init: impl FnOnce(Handle) -> c_int,
    ) -> io::Result<Handle> {
        let mut state = self.state();
        if state.is_over {
            return Err(io::Error::other("the event loop has ended"));
        }
        // SAFETY: any size may be asked for; `closed` frees the memory.
        let handle = unsafe { libc::calloc(1, (self.functions.handle_size)(kind)) };
        if handle.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if let Err(error) = checked(init(handle)) {
            // SAFETY: it was allocated above, and is no handle yet.
            unsafe { libc::free(handle) };
            return Err(error);
        }
        state.open += 1;
        let data = Box::new(Data { uv: Arc::clone(self), socket });
        // SAFETY: the handle is open.
        unsafe {
            (self.functions.handle_set_data)(handle, Box::into_raw(data).cast());
            (self.functions.unref)(handle);
        }
        Ok(handle)
    }

    fn close(&self, handle: Handle) {
        // SAFETY: the handle is open, and nobody has it any more.
        unsafe { (self.functions.close)(handle, closed) }
    }

    /// Closes all handles. The environment lives until that is done.
    fn end(&self, hook: sys::napi_async_cleanup_hook_handle) {
        let mut state = self.state();
        state.is_over = true;
        state.ending = Some(hook);
        let handles: Vec<_> = state.polls.drain(..).map(|(_, handle)| handle).collect();
        let timer = state.timer.take();
        drop(state);
        handles.into_iter().chain(timer).for_each(|handle| self.close(handle));
        self.end_if_closed();
    }

    fn end_if_closed(&self) {
        let mut state = self.state();
        let ending = if state.open == 0 { state.ending.take() } else { None };
        drop(state);
        if let Some(hook) = ending {
            // SAFETY: Node has given this to `end`, and it is removed once.
            unsafe { sys::napi_remove_async_cleanup_hook(hook) };
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data of a handle.
struct Data {
    uv: Arc<Uv>,
    socket: Option<RawFd>,
}

/// # Safety
/// The handle must be one of [`Uv`] that is not closed.
unsafe fn call_back(handle: Handle) {
    let Some(functions) = Functions::get() else { return };
    // SAFETY: the data lives until the handle is closed, which never happens inside of its own callback.
    let data = unsafe { &*(functions.handle_get_data)(handle).cast::<Data>() };
    // A panic must not end the process; requests that it has left behind end by their deadlines.
    let _ = panic::catch_unwind(AssertUnwindSafe(|| (data.uv.callback)(data.socket)));
}

unsafe extern "C" fn on_poll(handle: Handle, _: c_int, _: c_int) {
    // SAFETY: libuv calls it with a handle that is open. An error is found when the socket is read.
    unsafe { call_back(handle) };
}

unsafe extern "C" fn on_timer(handle: Handle) {
    // SAFETY: as above.
    unsafe { call_back(handle) };
}

unsafe extern "C" fn closed(handle: Handle) {
    let Some(functions) = Functions::get() else { return };
    // SAFETY: libuv calls it once for each handle, and has forgotten it. Data and memory are those of `open`.
    let data = unsafe {
        let data = Box::from_raw((functions.handle_get_data)(handle).cast::<Data>());
        libc::free(handle);
        data
    };
    data.uv.state().open -= 1;
    data.uv.end_if_closed();
}

unsafe extern "C" fn end(hook: sys::napi_async_cleanup_hook_handle, uv: *mut c_void) {
    // SAFETY: the pointer is that of `Uv::of`, and Node calls this once.
    let uv = unsafe { Arc::from_raw(uv.cast::<Uv>().cast_const()) };
    uv.end(hook);
}

fn checked(status: c_int) -> io::Result<()> {
    // On Unix, libuv's errors are the negative numbers of the system.
    if status < 0 { Err(io::Error::from_raw_os_error(-status)) } else { Ok(()) }
}

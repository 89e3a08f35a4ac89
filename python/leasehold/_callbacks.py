"""Runs callbacks of the native half, each call on a separate thread."""

from __future__ import annotations

# Bound now: a later patch of the module could start something other than a thread, and its locks do not work between threads.
from _thread import allocate_lock as allocate_lock
from _thread import start_new_thread as start_new_thread
from contextvars import copy_context

from leasehold._functions import refuse_deferred, refuse_result
from leasehold._within import Callback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from leasehold._native import Done

AWAITED = "nobody awaits a callback: use a client of leasehold.aio, or a plain function"


def check(callback: object) -> None:
    """Raises TypeError for a callback that cannot be called, or that would have to be awaited."""
    if not callable(callback):
        raise TypeError(f"a callback must be callable, and {callback!r} is not")
    refuse_deferred(callback, AWAITED)


def look() -> None:
    """Checks which events and samples have listeners; runs on a separate thread."""
    from leasehold import _observe

    _observe.look()


def look_now() -> None:
    """As :func:`look`, and waits for it, so that later events are delivered."""
    looked = allocate_lock()
    looked.acquire()

    def run() -> None:
        try:
            look()
        except BaseException:
            # A broken logger must not prevent a lock.
            import traceback

            traceback.print_exc()
        finally:
            looked.release()

    start_new_thread(run, ())
    looked.acquire()


def text_of(error: BaseException) -> str:
    """The type and the text of an exception."""
    try:
        return f"{type(error).__qualname__}: {error}"
    except BaseException:
        return type(error).__qualname__


class Cancelled(BaseException):
    """A callback was cancelled, as at the end of its event loop. As with any task, nobody is told."""


class LoopCallback:
    """A callback that runs on an event loop."""

    def begin(self, owned: Callback, call: Call, arguments: tuple[object, ...], done: Done) -> None:
        """Begins it, and waits for nothing: the thread of the loop may be the caller's."""
        raise NotImplementedError


class Call:
    """One call of a callback, on a separate thread. Its stack has only frames of Python and C, which the exit of
    the interpreter can unwind. The interpreter prints its exceptions with the name of the callback.
    """

    def __init__(self, callback: Callable[..., object]) -> None:
        self._callback = callback

    def __call__(self, arguments: tuple[object, ...], done: Done) -> None:
        try:
            refuse_result(self._callback(*arguments), AWAITED)
        except Cancelled:
            done.cancelled()
        except SystemExit as error:
            # A thread would end silently.
            failure = RuntimeError("a callback has raised SystemExit, which ends nothing but the callback")
            failure.__cause__ = error
            self.note(failure, arguments, done)
            raise failure from error
        except BaseException as error:
            self.note(error, arguments, done)
            raise
        else:
            done.returned()

    def here(self, arguments: tuple[object, ...], done: Done) -> None:
        """Calls it on this thread, which moves a test clock."""
        callback = self._callback
        if isinstance(callback, Callback) and isinstance(callback.original, LoopCallback):
            callback.original.begin(callback, self, arguments, done)
        else:
            # What it sets in its context is its own, as on a separate thread.
            copy_context().run(self, arguments, done)

    def note(self, error: BaseException, arguments: tuple[object, ...], done: Done) -> None:
        """Notes that it has raised."""
        if isinstance(self._callback, Callback):
            self._callback.note(error, arguments)
        done.raised(text_of(error))

    def __repr__(self) -> str:
        return repr(self._callback)

"""What runs callbacks of the native half, on a thread of its own for each call."""

from __future__ import annotations

# Bound now: what patches the module later would start something else than a thread.
from _thread import allocate_lock
from _thread import start_new_thread as start_new_thread

from leasehold._functions import refuse_deferred, refuse_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from leasehold._native import Done

AWAITED = "nobody awaits a callback: use a client of leasehold.aio, or a plain function"


def check(callback: object) -> None:
    """Raises TypeError for what cannot be called, or would be awaited in vain."""
    if not callable(callback):
        raise TypeError(f"a callback can be called, and {callback!r} cannot")
    refuse_deferred(callback, AWAITED)


def look() -> None:
    """Looks whether anybody listens to what the client tells; run by a thread of its own."""
    from leasehold import _observe

    _observe.look()


def look_now() -> None:
    """As :func:`look`, and waits for it: what follows is told."""
    looked = allocate_lock()
    looked.acquire()

    def run() -> None:
        try:
            look()
        except BaseException:
            # A logger that is broken is no reason to refuse a lock.
            import traceback

            traceback.print_exc()
        finally:
            looked.release()

    start_new_thread(run, ())
    looked.acquire()


class Call:
    """One call of a callback, for a thread of its own. Under it there are frames of Python and C alone, which the end of
    the interpreter can unwind; the interpreter shows what it raises, named as the callback is.
    """

    def __init__(self, callback: Callable[[object], object]) -> None:
        self._callback = callback

    def __call__(self, argument: object, done: Done) -> None:
        try:
            refuse_result(self._callback(argument), AWAITED)
        except BaseException as error:
            # A traceback may be kept, with this frame; and that `done` is dropped says that the call has ended.
            del done
            if isinstance(error, SystemExit):
                # A thread would end without a word.
                raise RuntimeError("a callback has raised SystemExit, which ends nothing but the callback") from error
            raise
        done.returned()

    def __repr__(self) -> str:
        return repr(self._callback)

"""Calls of asyncio that say what to write where their `await` was forgotten, and those whose result can be entered at once."""

from __future__ import annotations

import functools
from collections.abc import Coroutine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any, ParamSpec, Protocol, TypeVar

    from typing_extensions import Self

    class Entered(Protocol):
        """A result that can be entered."""

        async def __aenter__(self) -> Self: ...
        async def __aexit__(
            self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
        ) -> None: ...

    P = ParamSpec("P")
    R = TypeVar("R")
    T = TypeVar("T", bound=Entered)

    class _Coroutine(Coroutine[Any, Any, R]): ...

else:

    class _Coroutine(Coroutine):
        __slots__ = ()

        def __class_getitem__(cls, item):
            return cls


class Asked(_Coroutine["R"]):
    """A call that has not begun: ``await`` it for its result. It is no condition, since it would always be true."""

    __slots__ = ("_call",)

    def __init__(self, call: Coroutine[Any, Any, R]) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, Any, R]:
        return self._call.__await__()

    def send(self, value: Any) -> Any:
        """Runs the call to its next pause; for event loops."""
        return self._call.send(value)

    def throw(self, kind: Any, error: Any = None, traceback: Any = None) -> Any:
        """Raises an exception in the call; for event loops."""
        return self._call.throw(kind if error is None else error)

    def close(self) -> None:
        """Ends the call; for event loops."""
        self._call.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith(("cr_", "__")):
                # Event loops show coroutines by these.
                return getattr(self._call, name)
            what = _name(self._call)
            raise AttributeError(f"{what}() has not been awaited, so there is no {name!r} yet: write `await` before the call")

        def __bool__(self):
            what = _name(self._call)
            raise TypeError(f"{what}() has not been awaited, so it is neither true nor false: write `if await ...{what}():`")

    def __repr__(self) -> str:
        return f"<call of {_name(self._call)}, to be awaited>"


class Pending(Asked["T"]):
    """A call that has not begun: ``await`` it for its result, or enter the result by ``async with``. It is a coroutine, so
    ``asyncio.create_task`` takes it too.
    """

    __slots__ = ("_result",)

    async def __aenter__(self) -> T:
        self._result = await self._call
        return await self._result.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._result.__aexit__(kind, error, traceback)

    if not TYPE_CHECKING:

        def __enter__(self):
            raise TypeError(f"use `async with`: {_name(self._call)}() is a call for asyncio")

        def __exit__(self, kind, error, traceback): ...


def asked(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """A call whose result people take for a condition."""

    @functools.wraps(function)
    def ask(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        return Asked(function(*args, **kwargs))

    return ask


def _name(call: Any) -> str:
    name: str = call.__name__
    return name.lstrip("_")

"""Calls of asyncio whose result can be awaited, or entered at once."""

from __future__ import annotations

from collections.abc import Coroutine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType
    from typing import Any, Protocol, TypeVar

    from typing_extensions import Self

    class Entered(Protocol):
        """A result that can be entered."""

        async def __aenter__(self) -> Self: ...
        async def __aexit__(
            self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
        ) -> None: ...

    T = TypeVar("T", bound=Entered)

    class _Coroutine(Coroutine[Any, Any, T]): ...

else:

    class _Coroutine(Coroutine):
        __slots__ = ()

        def __class_getitem__(cls, item):
            return cls


class Pending(_Coroutine["T"]):
    """A call that has not begun: ``await`` it for its result, or enter the result by ``async with``. It is a coroutine, so
    ``asyncio.create_task`` takes it too.
    """

    __slots__ = ("_call", "_result")

    def __init__(self, call: Coroutine[Any, Any, T]) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, Any, T]:
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

    async def __aenter__(self) -> T:
        self._result = await self._call
        return await self._result.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._result.__aexit__(kind, error, traceback)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith(("cr_", "__")):
                # Event loops show coroutines by these.
                return getattr(self._call, name)
            what = _name(self._call)
            raise AttributeError(f"{what}() has not been awaited, so there is no {name!r} yet: write `await` before the call")

        def __enter__(self):
            raise TypeError(f"use `async with`: {_name(self._call)}() is a call for asyncio")

        def __exit__(self, kind, error, traceback): ...

    def __repr__(self) -> str:
        return f"<call of {_name(self._call)}, to be awaited>"


def _name(call: Any) -> str:
    name: str = call.__name__
    return name.lstrip("_")

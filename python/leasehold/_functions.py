"""Functions whose body runs after their call has returned."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def refuse_deferred(function: Callable[..., object], why: str) -> None:
    """Raises TypeError for a function whose body runs after its call, as far as this is known before the call. A wrapper of a
    coroutine function may run it to its end: see :func:`refuse_result`.
    """
    import inspect

    if any(inspect.iscoroutinefunction(layer) for layer in (function, _call_of(function))):
        raise TypeError(why)
    refuse_generator(function)


def refuse_generator(function: Callable[..., object]) -> None:
    """Raises TypeError for generator functions, also below ``contextlib.contextmanager`` and other decorators."""
    import inspect

    if any(inspect.isgeneratorfunction(layer) or inspect.isasyncgenfunction(layer) for layer in _layers(function)):
        raise TypeError("the body of a generator runs after its call: take the lock inside of it")


def refuse_plain(function: Callable[..., object]) -> None:
    """Raises TypeError unless it is a coroutine function, or an object or a decorator's result that calls one."""
    import inspect

    if not any(inspect.iscoroutinefunction(layer) for layer in _layers(function)):
        raise TypeError("only a coroutine function can be awaited: use a client of leasehold for plain functions")


def refuse_result(result: object, why: str) -> None:
    """Raises TypeError for a result that has not run yet, such as a coroutine, and closes it."""
    import inspect
    from collections.abc import Coroutine
    from types import AsyncGeneratorType, GeneratorType

    if isinstance(result, (GeneratorType, Coroutine)):
        result.close()
    elif not isinstance(result, AsyncGeneratorType) and not inspect.isawaitable(result):
        return
    raise TypeError(why)


def _layers(function: Callable[..., object]) -> tuple[object, ...]:
    # Decorators expose the decorated function.
    import inspect

    return function, inspect.unwrap(function), _call_of(function)


def _call_of(function: object) -> object:
    # The class of an object defines what a call does.
    return getattr(type(function), "__call__", None)

"""Work that is done once: by ``with``, or by a decorator."""

from __future__ import annotations

import functools

from leasehold._functions import refuse_deferred, refuse_result
from leasehold._misuse import SyncOnly
from leasehold._names import namer
from leasehold._native import OnceBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, ParamSpec, TypeVar

    from leasehold._client import Client
    from leasehold._runs import AlreadyDone, Ran, RunningElsewhere
    from leasehold._types import OnceOptions

    P = ParamSpec("P")
    R = TypeVar("R")

NOT_A_CONDITION = "no run has begun: write `with client.once(...) as run:`, or `async with`, and in it `if run:`"
_LATER = "a coroutine would run after the completion is written: use a client of leasehold.aio, or begin the run inside of it"


def requester(
    function: Callable[..., object], name: str, options: OnceOptions
) -> Callable[[tuple[object, ...], Mapping[str, object]], tuple[str, OnceOptions]]:
    """Returns a function that gives the name and options for each call of the decorated one."""
    name_of, key = namer(function, name, "name of the run"), options.get("key")
    if key is None:
        return lambda args, kwargs: (name_of(args, kwargs), options)
    key_of = namer(function, key, "key")
    return lambda args, kwargs: (name_of(args, kwargs), {**options, "key": key_of(args, kwargs)})


class Once(OnceBase, SyncOnly):
    """A job that is done once, with its settings; made by :meth:`Client.once`, and nothing runs until it is entered.

    ``with once as run:`` gives the run, or None if there is nothing to do; ``once.outcome`` says why then. ``@once`` decorates a
    function.
    """

    __module__ = "leasehold"
    _saves = False

    def __init__(self, client: Client, name: str, options: OnceOptions) -> None:
        self._client = client
        self._name = name
        self._options = options

    @property
    def name(self) -> str:
        """The name of the job; for a decorator with fields, the template."""
        return self._name

    def __call__(self, function: Callable[P, R]) -> Callable[P, Ran[R] | AlreadyDone | RunningElsewhere]:
        """Decorates: each call is a run, and answers ``Ran(value)``, ``AlreadyDone(...)`` or ``RunningElsewhere(...)``, of
        which only the first is true. Fields of the name and of the key, as in ``"report-{day}"``, are filled from the
        arguments of the call. An exception of the function is raised, and leaves no completion. With ``save_result`` all later
        calls get what the function has returned, in ``AlreadyDone.result``.
        """
        refuse_deferred(function, _LATER)
        request_of = requester(function, self._name, self._options)
        client, saves = self._client, self._saves

        @functools.wraps(function)
        def ran(*args: P.args, **kwargs: P.kwargs) -> Ran[R] | AlreadyDone | RunningElsewhere:
            once = Once(client, *request_of(args, kwargs))
            return called(once, functools.partial(function, *args, **kwargs), saves, _LATER)

        return ran

    def __bool__(self) -> NoReturn:
        raise TypeError(NOT_A_CONDITION)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a run belongs to its client, and both to this process: connect again in the other one")

    def __repr__(self) -> str:
        return f"<leasehold.Once {self._name!r}>"


def called(once: Once, body: Callable[[], R], saves: bool, later: str) -> Ran[R] | AlreadyDone | RunningElsewhere:
    """Calls the body if there is a run, and leaves its value as the result if that is to be saved. Raises TypeError with ``later`` for
    a value that has not run yet.
    """
    from leasehold._runs import Ran

    value: Any
    with once as run:
        if run is not None:
            value = body()
            refuse_result(value, later)
            if saves:
                from leasehold._results import as_read

                run.finish(result=value)
                value = as_read(value)
    outcome = once.outcome
    return Ran(value) if outcome is None else outcome

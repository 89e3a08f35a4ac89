"""One client for each process and store, connected with its first use, and runs of it."""

from __future__ import annotations

import functools
import inspect
import os

from leasehold._client import connect
from leasehold._functions import refuse_deferred
from leasehold._once import Once, called, requester
from leasehold._options import Unnamed, running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from leasehold._client import Client
    from leasehold._runs import AlreadyDone, Ran, RunningElsewhere
    from leasehold._types import OnceOptions, Stores

    P = ParamSpec("P")
    R = TypeVar("R")
    F = TypeVar("F", bound=Callable[..., object])

_LATER = "a coroutine would run after the completion is written: use leasehold.aio for it"

# A forked child connects by itself.
_clients: dict[tuple[int, str], Client] = {}


def shows_options(function: F) -> F:
    """Makes ``help()``, ``inspect.signature`` and editors show the options of a run instead of ``**options``. Whether results are
    saved is an option of those that name it.
    """
    own = inspect.signature(function)
    named = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
    options = [
        each
        for each in inspect.signature(running).parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.name != "save_result"
    ]
    function.__signature__ = own.replace(parameters=named + options)  # type: ignore[attr-defined]
    return function


def client_of(stores: Stores | None | Unnamed) -> Client:
    """The client of this process for these stores."""
    key = (os.getpid(), repr(stores))
    client = _clients.get(key)
    if client is None:
        made = connect(stores)
        client = _clients.setdefault(key, made)
        if client is not made:
            made.close()
    return client


def runs_once(
    stores: Callable[[], Stores | None | Unnamed], name: str, options: OnceOptions, *, save_result: bool
) -> Callable[[Callable[P, R]], Callable[P, Ran[R] | AlreadyDone | RunningElsewhere]]:
    """A decorator as that of :meth:`leasehold.Client.once`, which connects with the first call."""

    def decorate(function: Callable[P, R]) -> Callable[P, Ran[R] | AlreadyDone | RunningElsewhere]:
        refuse_deferred(function, _LATER)
        request_of = requester(function, name, options)

        @functools.wraps(function)
        def ran(*args: P.args, **kwargs: P.kwargs) -> Ran[R] | AlreadyDone | RunningElsewhere:
            once = Once(client_of(stores()), *request_of(args, kwargs))
            return called(once, functools.partial(function, *args, **kwargs), save_result, _LATER)

        return ran

    return decorate

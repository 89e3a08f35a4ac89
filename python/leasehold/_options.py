"""Keyword parameters: their signatures, and the errors for unknown ones."""

from __future__ import annotations

from types import FunctionType

from leasehold._hints import of_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from leasehold._types import Seconds, Stores

    F = TypeVar("F", bound=Callable[..., object])

_TIMEOUT = "there is no timeout here: ttl= is how long a lease lasts without renewal, wait= is how long to try"
_INSTEAD = {
    "timeout": _TIMEOUT,
    "blocking_timeout": "wait= is how long to try",
    "blocking": "wait=0 tries once; try_acquire() returns None when somebody else holds the lock",
    "expire": "ttl= is how long a lease lasts without renewal",
    "lease_time": "ttl= is how long a lease lasts without renewal",
}
_STORES = 'the stores come first, without a name: connect("redis://host")'
_CONNECT = {
    "timeout": "request_timeout= is how long to wait for one reply of the store",
    **dict.fromkeys(["url", "urls", "store", "host"], _STORES),
}


class Unnamed:
    """The default of a store that nobody named. Not None, which is most often a variable that is not set."""

    def __repr__(self) -> str:
        return "<the default store>"


UNNAMED = Unnamed()


def named(stores: Stores | None | Unnamed) -> Stores | None:
    """The store as the native half takes it: None is the default."""
    if isinstance(stores, Unnamed):
        return None
    return "" if stores is None else stores


def connecting(
    stores: Stores | None | Unnamed = UNNAMED,
    *,
    owner: str | None = None,
    session: str | None = None,
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
    max_ttl: Seconds | None = None,
    quorum_id: str | None = None,
    create_quorum: bool = False,
) -> None: ...


def trying(
    self: object,
    name: str,
    *,
    ttl: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    lock_delay: Seconds | None = None,
    max_hold: Seconds | None = None,
    renew_every: Seconds | None = None,
    renew: bool = True,
    fair: bool = True,
    watch_holder: bool = False,
) -> None: ...


def acquiring(
    self: object,
    name: str,
    *,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    lock_delay: Seconds | None = None,
    max_hold: Seconds | None = None,
    renew_every: Seconds | None = None,
    renew: bool = True,
    fair: bool = True,
    watch_holder: bool = False,
) -> None: ...


def acquiring_all(
    self: object,
    names: list[str],
    *,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def any_of(
    self: object,
    names: list[str],
    *,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def permitting(
    self: object,
    name: str,
    permits: int,
    *,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def sharing(
    self: object,
    name: str,
    *,
    readers: int | None = None,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def watching(
    self: object,
    name: str,
    *,
    on_lost: str | None = None,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    lock_delay: Seconds | None = None,
    max_hold: Seconds | None = None,
    renew_every: Seconds | None = None,
    renew: bool = True,
    fair: bool = True,
    watch_holder: bool = False,
) -> None: ...


def watching_any(
    self: object,
    names: list[str],
    *,
    on_lost: str | None = None,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def watching_permits(
    self: object,
    name: str,
    permits: int,
    *,
    on_lost: str | None = None,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def watching_shared(
    self: object,
    name: str,
    *,
    on_lost: str | None = None,
    readers: int | None = None,
    ttl: Seconds | None = None,
    wait: Seconds | None = None,
    owner: str | None = None,
    max_hold: Seconds | None = None,
) -> None: ...


def running(
    self: object,
    name: str,
    *,
    key: str | None = None,
    every: Seconds | None = None,
    offset: Seconds | None = None,
    at: str | None = None,
    tz: str | None = None,
    cron: str | None = None,
    cooldown: Seconds | None = None,
    keep: Seconds | None = None,
    wait: Seconds | None = None,
    ttl: Seconds | None = None,
    owner: str | None = None,
    data: bytes | None = None,
    lock_delay: Seconds | None = None,
    max_hold: Seconds | None = None,
    renew_every: Seconds | None = None,
    renew: bool = True,
    trust_quorum: bool = False,
    even_if_done: bool = False,
    replace: bool = False,
    watch_holder: bool = False,
    max_attempts: int | None = None,
    retry_after: Seconds | None = None,
    save_result: bool = False,
) -> None: ...


def shown_as(signature: Callable[..., object]) -> Callable[[F], F]:
    """Makes ``help()``, ``inspect.signature`` and editors show these parameters instead of ``**options``."""

    of: Any = signature

    def decorate(function: F) -> F:
        shown, seen = FunctionType(of.__code__, of.__globals__, of.__name__, of.__defaults__), of_function(of)
        shown.__kwdefaults__ = of.__kwdefaults__
        shown.__annotations__ = function.__annotations__ = seen.returning(of_function(function))
        function.__wrapped__ = shown  # type: ignore[attr-defined]
        return function

    return decorate


def known(signature: Callable[..., object]) -> tuple[str, ...]:
    """The names of its keyword parameters."""
    code = signature.__code__
    return code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]


def refuse_unknown(what: str, signature: Callable[..., object], options: object) -> None:
    """Raises TypeError for an unknown option, with a hint at the right one. Call it after a call was rejected."""
    assert isinstance(options, dict)
    names = known(signature)
    for option in options:
        if option not in names:
            hints = {**_INSTEAD, **_CONNECT} if signature is connecting else _INSTEAD
            hint = hints.get(option) or f"it has {', '.join(names)}"
            raise TypeError(f"{what}() got an unexpected keyword argument {option!r}: {hint}") from None


def refuse_name(name: object) -> None:
    """Raises TypeError unless the name is a str."""
    if not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"name must be the name of a lock, a str, not {kind}: {name!r}")


def refuse_prefix(prefix: object) -> None:
    """Raises TypeError unless the prefix is a str."""
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be the beginning of names, a str, not {type(prefix).__name__}: {prefix!r}")


def refuse_key(key: object) -> None:
    """Raises TypeError unless the key is a str or None."""
    if not (key is None or isinstance(key, str)):
        raise TypeError(f"key must be a str, such as day.isoformat() for a date, not {type(key).__name__}: {key!r}")


def warn(message: str) -> None:
    """Warns at the line that called the package."""
    import sys
    import warnings

    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").partition(".")[0] == "leasehold":
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level + 1)

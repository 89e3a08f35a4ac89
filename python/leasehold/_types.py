"""Shared types of signatures. Type checkers read them, and programs that ask for annotations (``_hints``); nothing else imports them."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, TypeAlias, TypedDict

Seconds: TypeAlias = float | timedelta
Stores: TypeAlias = str | list[str] | tuple[str, ...]
Strings: TypeAlias = list[str]
ParamStyle: TypeAlias = Literal["numeric_dollar", "pyformat"]
Kind: TypeAlias = Literal["any", "permit", "read", "write"]


class TryOptions(TypedDict, total=False):
    """Options of a lock that is tried once."""

    ttl: Seconds | None
    owner: str | None
    data: bytes | None
    lock_delay: Seconds | None
    max_hold: Seconds | None
    renew_every: Seconds | None
    renew: bool
    fair: bool
    watch_holder: bool


class LockOptions(TryOptions, total=False):
    """Options of a lock."""

    wait: Seconds | None


class OnceOptions(TypedDict, total=False):
    """Options of a run."""

    key: str | None
    every: Seconds | None
    offset: Seconds | None
    at: str | None
    tz: str | None
    cron: str | None
    cooldown: Seconds | None
    keep: Seconds | None
    wait: Seconds | None
    ttl: Seconds | None
    owner: str | None
    data: bytes | None
    lock_delay: Seconds | None
    max_hold: Seconds | None
    renew_every: Seconds | None
    renew: bool
    trust_quorum: bool
    even_if_done: bool
    replace: bool
    watch_holder: bool
    max_attempts: int | None
    retry_after: Seconds | None


class AllOptions(TypedDict, total=False):
    """Options of several locks that are acquired together."""

    ttl: Seconds | None
    wait: Seconds | None
    owner: str | None
    max_hold: Seconds | None


class AnyOptions(AllOptions, total=False):
    """Options of one lock of several, and of a semaphore."""

    data: bytes | None


class ConnectOptions(TypedDict, total=False):
    """Options of a client."""

    owner: str | None
    session: str | None
    drift_ppm: int | None
    request_timeout: Seconds | None
    max_ttl: Seconds | None
    quorum_id: str | None
    create_quorum: bool

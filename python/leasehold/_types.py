"""Types that signatures share. Only read by type checkers, never imported by the package."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, TypeAlias, TypedDict

Seconds: TypeAlias = float | timedelta
Stores: TypeAlias = str | list[str] | tuple[str, ...]
ParamStyle: TypeAlias = Literal["numeric_dollar", "pyformat"]


class TryOptions(TypedDict, total=False):
    """What can be set of a lock that is tried for once."""

    ttl: Seconds | None
    owner: str | None
    data: bytes | None
    lock_delay: Seconds | None
    max_hold: Seconds | None
    renew_every: Seconds | None
    renew: bool


class LockOptions(TryOptions, total=False):
    """What can be set of a lock."""

    wait: Seconds | None


class AllOptions(TypedDict, total=False):
    """What can be set of several locks that are taken together."""

    ttl: Seconds | None
    wait: Seconds | None
    owner: str | None
    max_hold: Seconds | None


class ConnectOptions(TypedDict, total=False):
    """What can be set of a client."""

    owner: str | None
    drift_ppm: int | None
    request_timeout: Seconds | None
    max_ttl: Seconds | None
    quorum_id: str | None
    create_quorum: bool

"""Results of runs, as they are written down and read again."""

from __future__ import annotations

from enum import Enum
from typing import Any


class NoResult(Enum):
    """In the place of the result of work that was done before, since None is a result like any other."""

    __module__ = "leasehold"
    NONE = "none"
    """None was left, or the store had no room for it."""
    UNSETTLED = "unsettled"
    """There may be one: no majority of the quorum's nodes has shown the same completion yet."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"leasehold.{self}"


def written(value: object) -> tuple[str, bytes]:
    """The kind and the bytes of a result. Raises TypeError or ValueError for a value that is neither bytes nor fits into JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", bytes(value)
    import json

    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return "json", text.encode()


def read(kind: str, data: bytes) -> Any:
    """The value of a result. What cannot be read is none, as anybody can write to the store."""
    if kind != "json":
        return data
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return NoResult.NONE


def as_read(value: object) -> Any:
    """The value as those who come later read it, so that the first caller gets the same."""
    return read(*written(value))

"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


class Rejected:
    """The reason why a claim or a write was rejected."""

    @dataclass(frozen=True, slots=True)
    class Stale:
        """A later holder has claimed the item."""

        _of: ClassVar[str] = "rejected.stale"
        token: int
        """The token that was presented."""
        high_water: int
        """The highest token the item has seen."""

    @dataclass(frozen=True, slots=True)
    class OutOfOrder:
        """A write of the same lease with a higher number has already been accepted."""

        _of: ClassVar[str] = "rejected.out-of-order"
        write: int
        """The number that was presented."""
        last: int
        """The highest number accepted."""

    @dataclass(frozen=True, slots=True)
    class Unclaimed:
        """Nobody has claimed the item; a holder must claim before it writes."""

        _of: ClassVar[str] = "rejected.unclaimed"

    @dataclass(frozen=True, slots=True)
    class InvalidToken:
        """The number is not a valid token."""

        _of: ClassVar[str] = "rejected.invalid-token"
        token: int
        """The number that was presented."""
        max: int
        """The largest token, 2^53 - 1."""

    Case: TypeAlias = Stale | OutOfOrder | Unclaimed | InvalidToken


CLASSES: dict[str, type] = {
    "rejected.stale": Rejected.Stale,
    "rejected.out-of-order": Rejected.OutOfOrder,
    "rejected.unclaimed": Rejected.Unclaimed,
    "rejected.invalid-token": Rejected.InvalidToken,
}

__all__ = [
    "Rejected",
]

"""The changes of a lock. Imported when there is one, because it takes long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from leasehold._errors import LeaseholdError
    from leasehold._native import LockInfo


@dataclass(frozen=True)
class Change:
    """A change of a lock's holder."""

    __module__ = "leasehold"
    kind: Literal["held", "free", "unreadable"]
    """``held``: somebody holds it who did not at the last reading; ``free``: nobody holds it any more; ``unreadable``: the store
    cannot be reached, or refuses. When it answers again, the state is reported again."""
    holder: LockInfo | None = None
    """The holder, if it is held."""
    error: LeaseholdError | None = None
    """Why it cannot be read, if it is unreadable."""

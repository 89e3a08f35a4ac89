"""Errors of ``leasehold.protocol`` alone."""

from __future__ import annotations

from leasehold._errors import LeaseholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold.protocol._values import CommandError


class CommandRejectedError(LeaseholdError):
    """The client did not accept a command."""

    code = "rejected"

    def __init__(self, message: str, reason: CommandError.Case) -> None:
        super().__init__(message, reason)
        self.reason = reason
        """The reason, as a value for ``match``."""

    def __str__(self) -> str:
        return str(self.args[0])

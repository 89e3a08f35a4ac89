"""Errors, one class for each way a caller can react."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Literal

    from leasehold._native import LockInfo
    from leasehold._runs import Attempts


class LeaseholdError(Exception):
    """The base of all errors of leasehold. The message is for people and may change; match on the class or on ``code``."""

    # As users import it, in tracebacks as well.
    __module__ = "leasehold"
    code: str = "other"
    """The stable name of the kind, the same in every language."""
    temporary: ClassVar[bool] = False
    """True if the same call may succeed later by itself."""
    resource: str | None = None
    """The resource of the failed call."""
    holder: LockInfo | None = None
    """The holder of the lock, if that is the reason."""
    tries: int = 0
    """How often an update of :mod:`leasehold.cas` was tried."""
    fate: Literal["not_written", "unknown"] | None = None
    """The fate of its value: it was not written, or it may have been. Look at the item before you try again."""

    def __reduce__(self) -> tuple[object, ...]:
        # The holder cannot be pickled, and the message names it.
        return type(self), self.args, {name: value for name, value in self.__dict__.items() if name != "holder"}

    def __copy__(self) -> LeaseholdError:
        copied = type(self)(*self.args)
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: object) -> LeaseholdError:
        # Nothing in it is mutable.
        return self.__copy__()


class LockBusyError(LeaseholdError):
    """Somebody else holds the lock, and the caller did not want to wait."""

    __module__ = "leasehold"
    code = "busy"
    temporary = True


class LockTimeoutError(LeaseholdError, TimeoutError):
    """Somebody else held the lock for the whole ``wait``."""

    __module__ = "leasehold"
    code = "timed_out"
    temporary = True


class LeaseLostError(LeaseholdError):
    """The lease is over, so the work under the lock must stop."""

    __module__ = "leasehold"
    code = "lost"
    reason: str | None = None
    """Why it is over, where that is known: ``expired``, ``taken_over``, ``revoked`` and so on, as in the metrics."""


class NotOwnedError(LeaseholdError, RuntimeError):
    """There is no lease to release."""

    __module__ = "leasehold"
    code = "not_owned"


class StoreUnavailableError(LeaseholdError, ConnectionError):
    """The store cannot be reached, does not answer, or throttles. A later call may succeed."""

    __module__ = "leasehold"
    code = "store_unavailable"
    temporary = True


class StoreRefusedError(LeaseholdError, PermissionError):
    """The store refuses, and trying again will not help: permissions, schema, a corrupt record."""

    __module__ = "leasehold"
    code = "store_refused"


class ConfigError(LeaseholdError, ValueError):
    """An invalid setting, url or use of the client."""

    __module__ = "leasehold"
    code = "config"


class ClosedError(LeaseholdError, ValueError):
    """The client was closed, before the call or while it waited. It acquires nothing any more: connect again."""

    __module__ = "leasehold"
    code = "closed"


class StaleTokenError(LeaseholdError):
    """The protected resource has seen a later holder."""

    __module__ = "leasehold"
    code = "stale_token"


class TooManyConflictsError(LeaseholdError):
    """An update of an item was tried ``tries`` times, and others were faster each time. Nothing was written. Partition the
    item, or take a lock.
    """

    __module__ = "leasehold"
    code = "too_many_conflicts"
    temporary = True


class FinishUnconfirmedError(LeaseholdError):
    """The work of a run was done, and no answer of the store says that its completion stands: it may be done again."""

    __module__ = "leasehold"
    code = "finish_unconfirmed"


class ResultNotKeptError(LeaseholdError):
    """The work of a run is done and its completion stands, without the result that was given: it is too long, cannot be written
    down, or the store has no room for it. Those who come later may find none.
    """

    __module__ = "leasehold"
    code = "result_not_kept"


class GivenUpError(LeaseholdError):
    """The work of a run was begun ``max_attempts`` times, and never finished. It is not begun again until somebody forgets the run,
    by :meth:`Client.forget_run` or ``leasehold once --forget``.
    """

    __module__ = "leasehold"
    code = "given_up"
    attempts: Attempts
    """How often it was begun, since when, and why the last attempt failed."""


class CallbackError(LeaseholdError):
    """A callback of an election or of shards has raised: ``__cause__`` is its exception."""

    __module__ = "leasehold"
    code = "callback_failed"


class InternalError(LeaseholdError, RuntimeError):
    """The process cannot go on as it should: no thread could be started, or there is a bug in leasehold."""

    __module__ = "leasehold"
    code = "internal"


_BY_CODE: dict[str, type[LeaseholdError]] = {
    error.code: error
    for error in (
        LockBusyError,
        LockTimeoutError,
        LeaseLostError,
        NotOwnedError,
        StoreUnavailableError,
        StoreRefusedError,
        ConfigError,
        ClosedError,
        StaleTokenError,
        FinishUnconfirmedError,
        ResultNotKeptError,
        GivenUpError,
        TooManyConflictsError,
        CallbackError,
        InternalError,
    )
}


def make(code: str, message: str, resource: str | None, holder: LockInfo | None) -> LeaseholdError:
    error = _BY_CODE.get(code, LeaseholdError)(message)
    error.code = code
    error.resource = resource
    error.holder = holder
    return error

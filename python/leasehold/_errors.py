"""What can go wrong, told apart by what the caller can do about it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold._native import LockInfo


class LeaseholdError(Exception):
    """The base of all errors of leasehold. The message is for people and may change; match on the class."""

    resource: str | None = None
    """The resource that it is about."""
    holder: LockInfo | None = None
    """Who holds the lock, where that is the reason."""

    def __reduce__(self) -> tuple[object, ...]:
        # Who holds the lock is no value to pass on, and the message says it.
        return type(self), self.args, {"resource": self.resource}

    def __copy__(self) -> LeaseholdError:
        copied = type(self)(*self.args)
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: object) -> LeaseholdError:
        # Nothing in it changes.
        return self.__copy__()


class LockBusyError(LeaseholdError):
    """Somebody else holds the lock, and the caller did not want to wait."""


class LockTimeoutError(LeaseholdError, TimeoutError):
    """Somebody else held the lock for as long as the caller would wait."""


class LeaseLostError(LeaseholdError):
    """The lease is over, so the work it protected must stop."""


class NotOwnedError(LeaseholdError, RuntimeError):
    """Nothing is held that could be released."""


class StoreUnavailableError(LeaseholdError, ConnectionError):
    """The store cannot be reached, does not answer, or asks for patience. It may pass."""


class StoreRefusedError(LeaseholdError, PermissionError):
    """The store refuses, and trying again will not help: permissions, schema, a corrupt record, a full disk."""


class ConfigError(LeaseholdError, ValueError):
    """A setting, url or use of the client that cannot work."""


class StaleTokenError(LeaseholdError):
    """The protected resource has seen a later holder."""


_BY_KIND: dict[str, type[LeaseholdError]] = {
    "busy": LockBusyError,
    "timed_out": LockTimeoutError,
    "lost": LeaseLostError,
    "not_owned": NotOwnedError,
    "store_unavailable": StoreUnavailableError,
    "store_refused": StoreRefusedError,
    "config": ConfigError,
    "stale_token": StaleTokenError,
}


def make(kind: str, message: str, resource: str | None, holder: LockInfo | None) -> LeaseholdError:
    error = _BY_KIND.get(kind, LeaseholdError)(message)
    error.resource = resource
    error.holder = holder
    return error

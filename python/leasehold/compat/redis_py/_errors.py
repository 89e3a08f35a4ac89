"""The exceptions of redis-py's locks: of its own classes where it is installed, and always of leasehold's."""

from __future__ import annotations

from leasehold._errors import LeaseholdError, StoreUnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from redis.exceptions import ConnectionError as _ConnectionError
    from redis.exceptions import LockError as _LockError
    from redis.exceptions import LockNotOwnedError as _LockNotOwnedError
else:
    try:
        from redis.exceptions import ConnectionError as _ConnectionError
        from redis.exceptions import LockError as _LockError
        from redis.exceptions import LockNotOwnedError as _LockNotOwnedError
    except ImportError:

        class _ConnectionError(Exception):
            pass

        class _LockError(ValueError):
            pass

        class _LockNotOwnedError(_LockError):
            pass


class LockError(LeaseholdError, _LockError):
    """A lock that was not had in time, or is used in a way that cannot be."""

    lock_name: str | None = None

    def __init__(self, message: str | None = None, lock_name: str | None = None) -> None:
        super().__init__(message)
        self.resource = self.lock_name = lock_name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, {"resource": self.resource, "lock_name": self.lock_name}


class LockNotOwnedError(LockError, _LockNotOwnedError):
    """The lock was held once and is not any more: the work it protected may have met somebody else's."""


class LockConnectionError(StoreUnavailableError, _ConnectionError):
    """The server cannot be reached or does not answer. It may pass."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        # OSError stands between, and calls nobody further on.
        _ConnectionError.__init__(self, *args)


def unreachable(error: StoreUnavailableError) -> LockConnectionError:
    made = LockConnectionError(str(error))
    made.resource = error.resource
    return made

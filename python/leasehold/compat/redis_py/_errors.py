"""The exceptions of redis-py's locks: subclasses of its classes, if it is installed, and of leasehold's."""

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
    """A lock that could not be acquired in time, or an invalid use of a lock."""

    lock_name: str | None = None

    def __init__(self, message: str | None = None, lock_name: str | None = None) -> None:
        super().__init__(message)
        self.resource = self.lock_name = lock_name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, {"resource": self.resource, "lock_name": self.lock_name}


class LockNotOwnedError(LockError, _LockNotOwnedError):
    """The lock was acquired and lost: somebody else may have worked at the same time."""


class LockConnectionError(StoreUnavailableError, _ConnectionError):
    """The server cannot be reached or does not answer. A later call may succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # OSError is in between, and does not call the next constructor.
        _ConnectionError.__init__(self, message)


def unreachable(error: StoreUnavailableError) -> LockConnectionError:
    made = LockConnectionError(str(error))
    made.resource = error.resource
    return made

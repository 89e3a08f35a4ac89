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


class LockNotOwnedError(LockError, _LockNotOwnedError):
    """The lock was held once and is not any more: the work it protected may have met somebody else's."""


class LockConnectionError(StoreUnavailableError, _ConnectionError):
    """The server cannot be reached or does not answer. It may pass."""


def lock_error(message: str, name: str) -> LockError:
    return _about(LockError(message), name)


def not_owned(message: str, name: str) -> LockNotOwnedError:
    error = LockNotOwnedError(message)
    _about(error, name)
    return error


def unreachable(error: StoreUnavailableError) -> LockConnectionError:
    made = LockConnectionError(str(error))
    made.resource = error.resource
    return made


def _about(error: LockError, name: str) -> LockError:
    error.resource = error.lock_name = name
    return error

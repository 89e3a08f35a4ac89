"""The answers about runs: work that is done once. Imported when there is one, because it takes long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from leasehold._results import NoResult

if TYPE_CHECKING:
    from leasehold._native import LockInfo

T = TypeVar("T")


@dataclass(frozen=True)
class Completion:
    """The completion of finished work: while it stands, nobody does the work again."""

    __module__ = "leasehold"
    at: float
    """When the work was finished, in seconds since 1970."""
    owner: str | None
    """The label of the run that did it; None for runs without one."""
    token: int
    """The fencing token of that run."""
    left: float
    """Seconds for which the completion still stands."""
    result: Any = NoResult.NONE
    """The result of the run, by ``run.finish(result=...)`` or ``save_result``: a value of JSON, or bytes; a :class:`NoResult` where
    there is none.
    """
    began: float | None = None
    """When the run began, in seconds since 1970; known of runs that left a result."""


@dataclass(frozen=True)
class Ran(Generic[T]):
    """This call has done the work, and its completion stands. True."""

    __module__ = "leasehold"
    value: T
    """The result of the function; with ``save_result`` as those who come later read it."""

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True)
class AlreadyDone(Completion):
    """The work was done before, by the run of this completion. False, since this call did nothing."""

    __module__ = "leasehold"

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class RunningElsewhere:
    """Somebody else is at it, so it may still fail. False, since this call did nothing."""

    __module__ = "leasehold"
    holder: LockInfo | None
    """Who, as far as the store shows it."""

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Attempts:
    """How often the work of a run was begun, where ``max_attempts`` has them counted."""

    __module__ = "leasehold"
    count: int
    """The number of attempts that were begun."""
    max: int
    """How many were allowed when the last one began."""
    since: float
    """When the first of them began, in seconds since 1970."""
    retry_at: float
    """When the next one may begin, in seconds since 1970."""
    reason: str | None
    """Why the last one failed: type and message in one line; None where it did not say so, or is still under way."""


@dataclass(frozen=True)
class RetryLater(RunningElsewhere):
    """It has failed, and the pause before the next attempt is not over. False, since this call did nothing; nobody is the holder."""

    __module__ = "leasehold"
    attempts: Attempts
    """The attempts so far, and when the next one may begin."""


@dataclass(frozen=True)
class Replaced(RunningElsewhere):
    """A newer call with ``replace`` has taken the place of this one. False, since this call did nothing."""

    __module__ = "leasehold"


@dataclass(frozen=True)
class RunInfo:
    """The state of one occurrence of a job. It is out of date when it arrives."""

    __module__ = "leasehold"
    resource: str
    """The resource that stands for it in the store."""
    holder: LockInfo | None
    """Who runs it now; None if nobody does."""
    done: Completion | None
    """The completion of the finished work; None if it is not done."""
    name: str
    """The name of the job."""
    key: str | None
    """The key of the occurrence; None for the job as a whole."""
    attempts: Attempts | None = None
    """How often the work was begun, where ``max_attempts`` has it counted; in a list, that of runs that are neither done nor under way."""

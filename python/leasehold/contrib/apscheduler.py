"""APScheduler 3: jobs that several schedulers have, and that one of them runs at each time.

>>> from apscheduler.schedulers.background import BackgroundScheduler
>>> from leasehold.contrib.apscheduler import OnceExecutor
>>> scheduler = BackgroundScheduler(executors={"default": OnceExecutor("memory:")})
>>> job = scheduler.add_job(print, "cron", hour=2, id="nightly-report")

Each scheduler has its own store of jobs, and the same jobs with the same ids. The key of a run is the time for which the job
was scheduled; with an interval trigger, whose times begin with each scheduler, it is the period of that length.
"""

from __future__ import annotations

import threading
import time
import traceback
from datetime import datetime, timedelta, timezone

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, JobExecutionEvent
from apscheduler.executors.base import run_job
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.triggers.interval import IntervalTrigger

from leasehold import _hints
from leasehold._client import connect
from leasehold._errors import ConfigError
from leasehold._options import UNNAMED, Unnamed
from leasehold._runs import AlreadyDone, RetryLater
from leasehold.contrib._clients import shows_options
from leasehold.protocol import period_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from leasehold._client import Client
    from leasehold._types import OnceOptions, Seconds, Stores

__all__ = ["OnceExecutor"]


class OnceExecutor(ThreadPoolExecutor):  # type: ignore[misc]
    """An executor on threads that runs a job once for each time of its schedule, of all schedulers with the same store.

    A job that raises leaves no completion, and neither does a scheduler that dies: another one that stands by runs the job then.
    """

    @shows_options
    def __init__(
        self,
        stores: Stores | None | Unnamed = UNNAMED,
        *,
        max_workers: int = 10,
        pool_kwargs: dict[str, Any] | None = None,
        **options: Unpack[OnceOptions],
    ) -> None:
        """``stores`` is that of :func:`leasehold.connect`, and ``options`` are those of :meth:`leasehold.Client.once`, of
        which ``wait`` is an hour by default: so long a scheduler stands by while another one runs the job, on a thread of
        the pool.
        """
        if fixed := sorted({"key", "every", "offset", "at", "tz", "cron", "cooldown"} & options.keys()):
            raise ConfigError(f"the schedule of a job names its runs: leave out {', '.join(fixed)}")
        if options.get("replace"):
            raise ConfigError("all schedulers start a job at the same time, so each would replace the others: leave out replace")
        super().__init__(max_workers, pool_kwargs)
        self._stores = stores
        self._wait = _seconds(options.pop("wait", None), _STAND_BY)
        self._options = options
        self._ends = threading.Event()
        self._client: Client | None = None

    def start(self, scheduler: Any, alias: str) -> None:
        """Connects; called by the scheduler."""
        super().start(scheduler, alias)
        self._client = connect(self._stores)

    def shutdown(self, wait: bool = True) -> None:
        """Ends; called by the scheduler. It waits for running jobs if that is asked for, not for those of other schedulers."""
        self._ends.set()
        super().shutdown(wait)
        # Jobs that go on need their leases.
        if wait and self._client is not None:
            self._client.close()

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        def told(future: Any) -> None:
            error = future.exception()
            if error is None:
                self._run_job_success(job.id, future.result())
            else:
                self._run_job_error(job.id, error, error.__traceback__)

        self._pool.submit(self._run, job, run_times).add_done_callback(told)

    def _run(self, job: Any, run_times: list[datetime]) -> list[Any]:
        assert self._client is not None, "the scheduler starts its executors"
        events: list[Any] = []
        for run_time in run_times:
            if _is_missed(job, run_time):
                events += run_job(job, job._jobstore_alias, [run_time], self._logger.name)
                continue
            try:
                events += self._run_once(self._client, job, run_time)
            except Exception as error:
                # Other times of the job are runs of their own.
                self._logger.exception("Job %s at %s was not run", job.id, run_time)
                told = {"exception": error, "traceback": "".join(traceback.format_exception(error))}
                events.append(JobExecutionEvent(EVENT_JOB_ERROR, job.id, job._jobstore_alias, run_time, **told))
        return events

    def _run_once(self, client: Client, job: Any, run_time: datetime) -> list[Any]:
        name, end = f"apscheduler/{job.id}", time.monotonic() + self._wait
        of_job: OnceOptions = {**_occurrence(job, run_time), **self._options}
        while True:
            # In pieces, so that a scheduler that shuts down stands by no longer.
            left = max(0.0, min(_PIECE, end - time.monotonic()))
            options: OnceOptions = {**of_job, "wait": left}
            once = client.once(name, **options)
            with once as run:
                if run is not None:
                    events: list[Any] = run_job(_Due(job), job._jobstore_alias, [run_time], self._logger.name)
                    if failed := [event for event in events if event.code != EVENT_JOB_EXECUTED]:
                        run.fail(getattr(failed[0], "exception", None) or "it was not executed")
                    return events
            if isinstance(once.outcome, (AlreadyDone, RetryLater)) or left == 0 or self._ends.is_set():
                self._logger.info("Job %s at %s is not run here: %s", job.id, run_time, once.outcome)
                return []


class _Due:
    """A job that is not too late: it was in time when its scheduler began to stand by."""

    misfire_grace_time = None

    def __init__(self, job: Any) -> None:
        self.id, self.func, self.args, self.kwargs = job.id, job.func, job.args, job.kwargs
        self._shown = str(job)

    def __str__(self) -> str:
        return self._shown


_KEEP, _MAX_KEEP = timedelta(days=7), timedelta(days=36500)
_STAND_BY = 3600.0
_PIECE = 1.0


def _is_missed(job: Any, run_time: datetime) -> bool:
    grace = job.misfire_grace_time
    return grace is not None and (datetime.now(timezone.utc) - run_time).total_seconds() > grace


def _seconds(length: Seconds | None, default: float) -> float:
    if length is None:
        return default
    return length if isinstance(length, (int, float)) else length.total_seconds()


def _occurrence(job: Any, run_time: datetime) -> OnceOptions:
    if getattr(job.trigger, "jitter", None):
        raise ConfigError(f"job {job.id} has a jitter, so that its times differ between schedulers: leave it out")
    if not isinstance(job.trigger, IntervalTrigger):
        return {"key": run_time.astimezone(timezone.utc).isoformat()}
    interval = job.trigger.interval
    key = period_key(round(run_time.timestamp() * 1000), interval)
    # A scheduler that began later runs the job later in the same period.
    return {"key": key, "keep": min(2 * interval, _MAX_KEEP)} if interval > _KEEP else {"key": key}


_hints.resolve(globals())

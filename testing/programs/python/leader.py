"""A leader: of all machines that start it one does the work, until it ends and another one goes on."""

import signal
import threading

import leasehold
from ledger import Ledger, StaleError

ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
work: list[threading.Thread] = []


def lead(lease: leasehold.Lease) -> None:
    try:
        with Ledger(lease) as ledger:
            while not ended.is_set() and not lease.lost.is_set():
                try:
                    ledger.write(f"tick-{len(ledger.lines)}")
                except leasehold.LeaseLostError:    # by the check: renewals may only be late, so the term may go on
                    lease.lost.wait(0.5)
    except StaleError as error:
        print("another one leads:", error, flush=True)


def start(lease: leasehold.Lease) -> None:    # starts the work, and returns
    work.append(threading.Thread(target=lead, args=[lease]))
    work[-1].start()


def stop(error: leasehold.LeaseholdError | None) -> None:    # the lock is released when the work has stopped
    work.pop().join()


with leasehold.connect() as client, client.elect("leader", ttl=4, on_start=start, on_stop=stop):
    ended.wait()

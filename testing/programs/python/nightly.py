"""A nightly job. Every machine starts it with the day, and one of them writes the report: `nightly.py 2026-11-24`."""

import sys

import leasehold
from ledger import Ledger

day = sys.argv[1]

with leasehold.connect() as client:
    nightly = client.once("nightly-report", key=day, ttl=4, wait=3600)    # stands by, and takes over from the dead
    with nightly as run:
        if run:                                                            # leaving the block marks the day as done
            with Ledger(run) as ledger:
                for part in ("sales", "stock"):
                    ledger.write(f"{day}/{part}")
        else:
            print("nothing to do:", nightly.outcome)

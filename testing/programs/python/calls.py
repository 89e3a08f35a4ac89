"""Calls to a provider that allows three at a time, from all machines together: `calls.py CALL...`."""

import sys

import leasehold
from ledger import Ledger

with leasehold.connect() as client:
    for call in sys.argv[1:]:
        with client.semaphore("provider", 3, ttl=4) as permit, Ledger(permit) as ledger:
            ledger.write(call)

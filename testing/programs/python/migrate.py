"""A migration guard. Every instance runs it before it serves, and one at a time migrates: `migrate.py 0001 0002`."""

import sys

import leasehold
from ledger import Ledger

with leasehold.connect() as client, client.lock("migrations", ttl=4) as lease, Ledger(lease) as schema:
    for step in sys.argv[1:]:
        if step not in schema.lines:    # read after the claim, so nobody can have done it meanwhile
            schema.write(step)
print("the schema is up to date", flush=True)

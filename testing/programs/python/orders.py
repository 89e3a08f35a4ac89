"""An API that must not process an order twice, on however many machines it runs: `POST /orders/ID`."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import leasehold
from ledger import Ledger, StaleError

client = leasehold.connect()


def process(order: str) -> int:
    """The status of the answer."""
    once = client.once(f"order-{order}", keep=365 * 86400, ttl=4, wait=10)
    try:
        with once as run:
            if run:
                with Ledger(run) as ledger:
                    if order not in ledger.lines:    # the record decides: a run may die between the work and its completion
                        ledger.write(order)
                return 201
        return 200 if isinstance(once.outcome, leasehold.AlreadyDone) else 409
    except (leasehold.LeaseholdError, StaleError, OSError) as error:
        print("order", order, "later:", error, flush=True)
        return 503


class Orders(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(process(self.path.removeprefix("/orders/")))
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


with ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Orders) as server:
    print("listening on port", server.server_port, flush=True)
    server.serve_forever()

"""Serves the S3 of moto on 127.0.0.1, one request at a time: it checks conditions without a lock. Argument: port."""

import sys
import threading

from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

turn = threading.Lock()
application = DomainDispatcherApplication(create_backend_app)


def one_by_one(environ, start_response):
    with turn:
        return list(application(environ, start_response))


run_simple("127.0.0.1", int(sys.argv[1]), one_by_one, threaded=True, request_handler=MotoRequestHandler)

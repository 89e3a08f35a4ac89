"""A proxy in front of a server that loses answers."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


class LossyProxy:
    """Passes everything on, and closes the connection in place of the answers to so many requests that contain the marker."""

    def __init__(self, target: int, marker: bytes) -> None:
        self.loses = 0
        """The number of answers to be lost from now on."""
        self.lost = 0
        """The number of answers that were lost."""
        self._mutex = threading.Lock()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target)) as server:
                    proxy._pass(self.request, server, marker)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def _pass(self, client: socket.socket, server: socket.socket, marker: bytes) -> None:
        loses = threading.Event()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while (data := server.recv(65536)) and not loses.is_set():
                    client.sendall(data)
                # Ends the wait for requests as well.
                client.shutdown(socket.SHUT_RDWR)

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                with self._mutex:
                    if self.loses > 0 and marker in data:
                        self.loses, self.lost = self.loses - 1, self.lost + 1
                        loses.set()
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        answering.join()

    @contextlib.contextmanager
    def running(self) -> Iterator[LossyProxy]:
        with self._server:
            threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
            try:
                yield self
            finally:
                self._server.shutdown()

"""Starts servers of this machine for tests that run under Wine, and ends each with the connection that asked for it.

    python3 launcher.py WINEPREFIX

Prints its port. The first line of a connection is a command as JSON, the answer its process id; then `signal N`, `stopped`
(waits until it is), `look` and `wait` (its status, if it has ended).
"""

import json
import os
import re
import signal
import socketserver
import subprocess
import sys

PREFIX = sys.argv[1]


def here(text):
    """A path of Windows as Linux has it."""
    drive = re.match(r"([A-Za-z]):[\\/]", text)
    return f"{PREFIX}/dosdevices/{drive[1].lower()}:/" + text[3:].replace("\\", "/") if drive else text


class Launcher(socketserver.StreamRequestHandler):
    def handle(self):
        order = json.loads(self.rfile.readline() or "null")
        if order is None:
            return
        variables = {name: here(value) for name, value in order["variables"].items()}
        try:
            with open(here(order["log"]), "ab") as log:
                child = subprocess.Popen([here(word) for word in order["words"]], env={**os.environ, **variables},
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         cwd=os.path.dirname(log.name))
        except OSError as error:
            self.tell(error)
            return
        try:
            self.tell(child.pid)
            for line in self.rfile:
                self.tell(self.obey(child, *line.decode().split()))
        finally:
            child.kill()
            child.wait()

    def obey(self, child, order, number=None):
        if order == "signal":
            child.send_signal(int(number))
        elif order == "stopped":
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        elif order == "wait":
            return child.wait()
        elif order == "look":
            status = child.poll()
            return "runs" if status is None else status
        return "done"

    def tell(self, answer):
        self.wfile.write(f"{answer}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


# Its servers end with it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
with Server(("127.0.0.1", 0), Launcher) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()

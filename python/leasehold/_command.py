"""The ``leasehold`` command."""

from __future__ import annotations

import signal
import sys

from leasehold import _native


def main() -> int:
    # Python would only record the signal, and continue.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.run(["leasehold", *sys.argv[1:]])

"""Runs schemathesis against `leasehold serve`: `openapi.py LEASEHOLD`. The document has to be valid, and the daemon has to do what
it says, whatever is sent. Says what is wrong, and ends with 1.

Schemathesis loads this file as well, for its hooks.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import schemathesis

HERE = pathlib.Path(__file__).resolve()
# `hold` answers for as long as the lock is held; the tests of the command talk to it.
ENDLESS = "/v1/hold"
# Not all that are tried: more find nothing new, and take longer.
EXAMPLES = "30"
LONGEST_WAIT_MS = 3_600_000
SHORTEST_TTL_MS = 100
# A store on a busy disk answers in time for such a lease.
LONG_TTL_MS = 60_000


@schemathesis.hook
def before_call(context, case, _kwargs):
    """Changes lengths that are within the limits: waits are shorter, since some are for a lock that an earlier request holds, and
    leases last longer."""
    if not isinstance(case.body, dict):
        return
    wait, ttl = case.body.get("wait_ms"), case.body.get("ttl_ms")
    if type(wait) in (int, float) and 1 <= wait <= LONGEST_WAIT_MS:
        case.body["wait_ms"] = 1
    if type(ttl) in (int, float) and SHORTEST_TTL_MS <= ttl < LONG_TTL_MS:
        case.body["ttl_ms"] = LONG_TTL_MS


def main(leasehold):
    from openapi_spec_validator import validate

    with tempfile.TemporaryDirectory() as folder:
        # Its leases run out later than all requests are made.
        options = ["--store", f"sqlite:{folder}/locks.db", "--listen", "127.0.0.1:0", "--max-leases", "100000"]
        with subprocess.Popen([leasehold, "serve", *options], cwd=folder, stdout=subprocess.PIPE, text=True) as daemon:
            try:
                url = daemon.stdout.readline().removeprefix("listening on ").split(",")[0]
                with urllib.request.urlopen(f"{url}/openapi.json") as answer:
                    validate(json.load(answer))
                return run(url, folder)
            finally:
                daemon.terminate()


def run(url, folder):
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE.with_suffix(".toml")), "run"]
    command += [f"{url}/openapi.json", "--url", url, "--exclude-path", ENDLESS, "--max-examples", EXAMPLES]
    command += ["--seed", "1", "--generation-database", ":memory:", "--request-timeout", "30", "--no-color"]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": HERE.stem, "PYTHONPATH": str(HERE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve())))

"""The ``leasehold`` command of the package, and the documentation in its code."""

from __future__ import annotations

import doctest
import json
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from conftest import PATIENCE

import leasehold
import leasehold.aio
import leasehold.fence
import leasehold.cas
import leasehold.metrics
import leasehold.protocol
import leasehold.testing
from leasehold.compat import redis_py
from leasehold.compat.redis_py import asyncio as redis_py_asyncio

COMMAND = str(Path(sys.executable).parent / "leasehold")
MODULES = [leasehold, leasehold.aio, leasehold.cas, leasehold.fence, leasehold.metrics, leasehold.protocol, leasehold.testing, redis_py, redis_py_asyncio]


def command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *args], capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_command_comes_with_the_package(sqlite: str) -> None:
    script = "import os; print(os.environ['LEASEHOLD_RESOURCE'], os.environ['LEASEHOLD_TOKEN']); raise SystemExit(7)"
    done = command("exec", "--store", sqlite, "job", "--", sys.executable, "-c", script)
    resource, token = done.stdout.split()
    assert (done.returncode, resource) == (7, "job") and int(token) > 0
    with leasehold.connect(sqlite) as client, client.lock("job"):
        assert command("exec", "--store", sqlite, "--no-wait", "job", "--", "true").returncode == 75
        assert '"token":' in command("inspect", "--store", sqlite, "--json", "job").stdout
    assert command("nonsense").returncode == 64
    for whole in ("serve", "top"):
        told = command(whole, "--help")
        assert (told.returncode, f"leasehold {whole}" in told.stdout) == (0, True), told.stderr
    module = [sys.executable, "-m", "leasehold", "--help"]
    assert "exec" in subprocess.run(module, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


def test_the_command_ends_when_it_is_interrupted(sqlite: str) -> None:
    with leasehold.connect(sqlite) as client, client.lock("job"):
        args = [COMMAND, "exec", "--store", sqlite, "job", "--", "true"]
        waiting = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.communicate(timeout=0.5)
        waiting.send_signal(signal.SIGINT)
        waiting.communicate(timeout=PATIENCE)
        assert waiting.returncode != 0


def test_the_package_has_its_version_and_names() -> None:
    assert metadata.version("leasehold-sdk") == leasehold.__version__
    assert metadata.requires("leasehold-sdk") is None
    modules = {"aio", "cas", "compat", "contrib", "fence", "metrics", "protocol", "testing"}
    assert all(hasattr(leasehold, name) for name in leasehold.__all__), "some are imported on demand"
    names = {name for name in vars(leasehold) if not name.startswith("_")} - {"annotations"} - modules
    assert names | {"__version__"} == set(leasehold.__all__)
    files = {str(file) for file in metadata.files("leasehold-sdk") or []}
    assert {"leasehold/py.typed", "leasehold/_native.pyi"} <= files


def test_the_label_of_the_command_names_the_main_thread(sqlite: str) -> None:
    done = command("exec", "--store", sqlite, "job", "--", COMMAND, "inspect", "--json", "--store", sqlite, "job")
    owner = json.loads(done.stdout)["owner"]
    assert owner.endswith(":main"), owner


def test_asyncio_is_imported_only_on_demand() -> None:
    heavy = "'asyncio', 'inspect', 'typing', 'datetime', 'dataclasses', 'socket'"
    script = f"import sys; old = set(sys.modules); import leasehold; print(sorted({{{heavy}}} & (set(sys.modules) - old)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", [leasehold, leasehold.aio, leasehold.cas, leasehold.testing])
def test_examples_in_the_code_run(module: object) -> None:
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0  # type: ignore[arg-type]


def test_everything_public_is_documented() -> None:
    missing = [
        f"{module.__name__}.{name}.{member}"
        for module in MODULES
        for name in module.__all__
        if isinstance(getattr(module, name), type)
        for member, value in vars(getattr(module, name)).items()
        if not member.startswith("_") and (callable(value) or isinstance(value, property)) and not value.__doc__
    ]
    assert missing == []

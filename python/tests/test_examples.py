"""Runs each program in ``examples/python`` and compares what it prints with the comment at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE

FOLDER = Path(__file__).parents[2] / "examples" / "python"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_its_output(example: Path) -> None:
    output = example.read_text().split("\n# Output:\n")[1]
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(line.removeprefix("# ") for line in output.splitlines(keepends=True))

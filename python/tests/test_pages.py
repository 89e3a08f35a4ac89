"""The programs of the README and of the pages in ``docs``, and the commands of those pages that start them.

A comment in a page says of other blocks which test runs them, or why none does; or it has the code that makes a block whole.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile("run by|not run|from")
AFTER = "after: "
FILE = re.compile(r"# (\w+\.py)\n")
HERE = "<!-- console run by python/tests/test_pages.py -->"


def blocks(page: Path, language: str) -> list[str]:
    """Those that this suite runs."""
    text = page.read_text()
    marks = re.findall(rf"^<!-- {language} (.*) -->$", text, re.MULTILINE)
    if any(MARK.match(mark) for mark in marks) and not (language == "console" and HERE in text):
        return []
    found = (block for block in BLOCK.finditer(text) if block["language"] == language)
    return [before(block["mark"] or "") + block["code"] for block in found if not MARK.match(block["mark"] or "")]


def before(mark: str) -> str:
    return mark.removeprefix(AFTER) + "\n" if mark.startswith(AFTER) else ""


PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if blocks(page, "python")]
STARTED = [page for page in PAGES if HERE in page.read_text()]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_there_are_pages() -> None:
    assert {"README.md", "docs/python.md", "docs/once.md", "docs/compare-and-set.md"} <= set(map(name, PAGES))
    assert "docs/start-python.md" in map(name, STARTED)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_programs_of_a_page_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for code in blocks(page, "python"):
        if not FILE.match(code):
            done = run([sys.executable, "-W", "error", "-c", with_servers(code, request)], tmp_path)
            assert (done.returncode, done.stderr) == (0, ""), code


@pytest.mark.parametrize("page", STARTED, ids=name)
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for code in blocks(page, "python"):
        if file := FILE.match(code):
            (tmp_path / file[1]).write_text(with_servers(code, request))
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W error "$@"\n')
    python.chmod(0o755)
    for block in blocks(page, "console"):
        for command in block.removeprefix("$ ").split("\n$ "):
            line, _, expected = command.partition("\n")
            done = run(["sh", "-c", f"exec 2>&1; {with_servers(line, request)}"], tmp_path)
            pattern = re.escape(expected.rstrip()).replace(r"\.\.\.", ".+")
            assert re.fullmatch(pattern, done.stdout.rstrip()), f"{line}\n{done.stdout}"


def test_the_handler_of_a_function_runs_once_for_each_event() -> None:
    page = (DOCS / "deploy.md").read_text()
    (code,) = (block["code"] for block in BLOCK.finditer(page) if "def handler(event" in block["code"])
    charged: list[str] = []
    names: dict[str, Any] = {"charge": lambda event, fence: charged.append(event)}
    exec(code.replace("dynamodb://locks?region=eu-west-1", "memory:"), names)
    for event in ["7", "8", "7"]:
        names["handler"]({"id": event}, SimpleNamespace(get_remaining_time_in_millis=lambda: 20_000))
    assert charged == ["7", "8"]


def test_programs_have_the_right_types(tmp_path: Path) -> None:
    for page in PAGES:
        for number, code in enumerate(blocks(page, "python")):
            (tmp_path / f"{page.stem.replace('-', '_')}_{number}.py").write_text(code)
    mypy = ["-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "."]
    done = subprocess.run([sys.executable, *mypy], capture_output=True, text=True, timeout=4 * PATIENCE, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout


def with_servers(text: str, request: pytest.FixtureRequest) -> str:
    for url, server in [("redis://localhost", "redis"), ("http://localhost:7379", "webdis")]:
        if url in text:
            text = text.replace(url, request.getfixturevalue(server))
    return text


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LEASEHOLD_STORE": "sqlite:locks.db"}
    environment["PATH"] = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=folder, env=environment
    )

"""Checks the alerts and the board in docs/monitoring: `monitoring.py ROOT`. Says what is wrong, and ends with 1.

With promtool on the path, its checks and tests of the rules run as well.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

PARTS = ("_bucket", "_sum", "_count")


def names(text):
    """The metrics in an expression, without the parts of histograms."""
    found = set(re.findall(r"\bleasehold_\w+", text))
    return {name.removesuffix(part) for name in found for part in PARTS if name.endswith(part)} | {
        name for name in found if not name.endswith(PARTS)
    }


def known(root):
    """The metrics of clients, by their documentation, and those of the daemon, by its source."""
    page = (root / "docs/reliability.md").read_text()
    daemon = (root / "cli/src/serve/metrics.rs").read_text()
    clients = set(re.findall(r"^\| `(leasehold_\w+)` \|", page, re.MULTILINE))
    return clients, set(re.findall(r'"(leasehold_serve_\w+)"', daemon))


def check(root):
    folder = root / "docs/monitoring"
    rules = [rule for group in yaml.safe_load((folder / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    board = json.loads((folder / "board.json").read_text())
    clients, daemon = known(root)
    expressions = [rule["expr"] for rule in rules]
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    for expression in [*expressions, *shown]:
        unknown = names(expression) - clients - daemon
        if unknown or not names(expression):
            yield f"{expression}: {sorted(unknown)} is no metric of ours"
    missing = (clients | daemon) - set().union(*map(names, shown))
    if missing:
        yield f"the board shows no {sorted(missing)}"
    alerts = {rule["alert"] for rule in rules}
    explained = set(re.findall(r"^\| `(Leasehold\w+)` \|", (folder / "README.md").read_text(), re.MULTILINE))
    if alerts != explained:
        yield f"alerts without an explanation, or the other way round: {sorted(alerts ^ explained)}"
    ids = [panel["id"] for panel in board["panels"]]
    if len(ids) != len(set(ids)) or not all(panel["description"] for panel in panels):
        yield "panels have ids of their own, and say what they show"
    if promtool := shutil.which("promtool"):
        for args in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]):
            ran = subprocess.run([promtool, *args], cwd=folder, capture_output=True, text=True)
            if ran.returncode != 0:
                yield ran.stdout + ran.stderr


def main(root):
    failures = list(check(root))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))

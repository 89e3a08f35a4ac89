"""Follows every link of the built site that stays in it: `links.py SITE`. Says which lead nowhere, and ends with 1."""

from __future__ import annotations

import os
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# These follow their own links: rustdoc, and the tests of the playground.
APART = ("reference/rust/", "playground/app.html")


class Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.names.update(values[name] for name in ("id", "name") if name in values)
        for name in ("href", "src", "srcset"):
            if name in values and not (tag == "link" and values.get("rel") == "canonical"):
                self.links.append(values[name])


def check(site: Path) -> tuple[list[str], int]:
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if not is_apart(site, path)}
    wrong, followed = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            followed += 1
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link} is not there")
            elif anchor and target in pages and anchor not in pages[target].names and not anchor.startswith("__"):
                wrong.append(f"{path.relative_to(site)}: {link} has no such heading")
    return wrong, followed


def is_apart(site: Path, path: Path) -> bool:
    return path.relative_to(site).as_posix().startswith(APART)


wrong, followed = check(Path(sys.argv[1]))
print(*wrong, sep="\n", end="\n" if wrong else "")
print(f"{followed} links within the site, {len(wrong)} of them lead nowhere")
sys.exit(bool(wrong))

"""Adds to the pages of docs/ what is generated: the menu, files beside the pages, the references and the playground.

The pages stay as they are read on a code host. A link that leaves docs/ leads to a copy of that file in the site.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import shutil
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "site"
INDEX = DOCS / "README.md"
FRONT = ROOT / "README.md"
PLAYGROUND = "playground/index.md"
NODE = "reference/node"
PICTURE = "images/social.png"
ADDRESS = re.findall(r'^documentation = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[0]
TYPEDOC = Path(os.environ["LEASEHOLD_TYPEDOC"])

LINK = re.compile(r"(\]\(|\b(?:src|srcset|href)=\")([^)\s#\":]+)(?=[)#\s\"])")
PICTURES = {".svg", ".png"}
# Files of docs/ that the site has as they are.
COPIED = {".txt"}
PYTHON_MODULES = {
    "leasehold": "connect, locks, runs, elections, errors",
    "leasehold.aio": "the same for asyncio",
    "leasehold.cas": "compare-and-set on items of a store",
    "leasehold.fence": "guards for the protected side",
    "leasehold.testing": "fake clients with a clock that tests move",
    "leasehold.metrics": "counters and histograms",
    "leasehold.contrib.apscheduler": "runs for APScheduler",
    "leasehold.contrib.celery": "runs and a beat for Celery",
    "leasehold.contrib.django": "runs for commands of Django",
    "leasehold.contrib.prometheus": "an exporter for Prometheus",
    "leasehold.contrib.pytest": "fixtures for pytest",
    "leasehold.compat.redis_py": "redis-py's Lock over leasehold",
    "leasehold.compat.redis_py.asyncio": "the same for asyncio",
    "leasehold.protocol": "the protocol without I/O, for other frameworks",
}
# Blocks that show one job in several languages.
SAMPLE = re.compile(r"(?:^<!-- [^\n]* -->\n)?(^```(python|js|rust|console)\n.*?^```\n)\n", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python": "Python", "js": "Node", "rust": "Rust", "console": "Command line"}
SIDE_BY_SIDE = "cookbook.md"
# Its table has many columns.
WIDE = "stores.md"
# Sections of the index that stand below the reference: for those who check what the other pages say.
ASIDE = "Evidence"
BUTTONS = """
[Try it in your browser](playground/){.md-button .md-button--primary} [Start](start-python.md){.md-button} [Which one](choosing.md){.md-button}
"""
PLAYGROUND_PAGE = """---
hide: [toc, navigation]
---
# Playground

Workers, a store and a network that loses messages: the real protocol, compiled to WebAssembly, in this page.
[In a window of its own](app.html){target=_blank}

<iframe class="playground" src="app.html" title="The playground"></iframe>
"""


def on_config(config: Any) -> Any:
    """The menu is the index of docs/: each heading a tab, each row its pages in their order."""
    tabs = menu(INDEX.read_text())
    aside = [tab for tab in tabs if ASIDE in tab]
    config["nav"] = [*(tab for tab in tabs if ASIDE not in tab), {"Reference": [*reference(), *aside]}]
    return config


def menu(text: str) -> list[dict[str, list[Any]]]:
    _, *sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    tabs: list[dict[str, list[Any]]] = []
    for title, body in zip(sections[::2], sections[1::2]):
        rows = [line.split(" | ")[0] for line in body.splitlines() if line.startswith("| [")]
        links = [link for row in rows for link in re.findall(r"\[([^\]]+)\]\(([^)#]+)\)", row)]
        tabs.append({title: [{name.replace("`", ""): site_path(DOCS / target)} for name, target in links]})
    tabs[0] = {next(iter(tabs[0])): ["README.md", *next(iter(tabs[0].values()))]}
    return tabs


def reference() -> list[Any]:
    python = [{name: f"reference/{name}.md"} for name in PYTHON_MODULES]
    node = [{node_name(module): f"{NODE}/{module}.md"} for module in node_modules()]
    return ["reference/index.md", {"Python": python}, {"Node": node}, {"Rust": "reference/rust.md"}]


def on_files(files: Files, config: Any) -> Files:
    pages = {INDEX, FRONT} | {Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path}
    for path in sorted(outside(pages)):
        add(files, config, site_path(path), path.read_text() if path.suffix == ".md" else path.read_bytes())
    files.remove(next(file for file in files if file.src_uri == "README.md"))
    add(files, config, "README.md", landing_page())
    add(files, config, "assets/site.css", (SITE / "site.css").read_text())
    add(files, config, PLAYGROUND, PLAYGROUND_PAGE)
    for name, about in PYTHON_MODULES.items():
        add(files, config, f"reference/{name}.md", f"# {name}\n\n::: {name}\n    options:\n      show_root_heading: false\n")
    add(files, config, "reference/index.md", reference_page())
    add(files, config, "reference/rust.md", "# Rust\n\n[Open the reference of the crate](rust/leasehold/index.html)\n")
    for module in node_modules():
        # Another dialect of Markdown: here, a backslash before < would be shown.
        text = (TYPEDOC / f"{module}.md").read_text().replace("\\<", "&lt;")
        text = re.sub("^# .*$", f"# {node_name(module)}", text, count=1, flags=re.MULTILINE)
        add(files, config, f"{NODE}/{module}.md", text)
    return files


def node_modules() -> list[str]:
    """The pages that TypeDoc has made, the package itself first."""
    found = {path.relative_to(TYPEDOC).with_suffix("").as_posix() for path in TYPEDOC.rglob("*.md")}
    return ["index", *sorted(found - {"index", "modules"})]


def node_name(module: str) -> str:
    """What programs import."""
    return "leasehold" if module == "index" else f"leasehold/{module}"


def landing_page() -> str:
    """The README, its samples as tabs, above the index of docs/. Links are as from docs/."""
    def lead(found: re.Match[str]) -> str:
        opening, link = found.groups()
        return found[0] if ":" in link else opening + posixpath.relpath(link, "docs")

    front = LINK.sub(lead, FRONT.read_text())
    introduction, install, rest = front.partition("\n## Install\n")
    before, use, after = rest.partition("\n## Use\n")
    samples, _, more = after.partition("\n## ")
    assert install and use and SAMPLE.search(samples), "the README has other sections now"
    tabs = in_tabs(samples)
    index = INDEX.read_text()
    pages = index[index.index("## "):].replace("## ", "### ")
    front = f"{introduction}{BUTTONS}{install}{before}{use}{tabs}\n## {more}"
    return f"---\nhide: [navigation, toc]\n---\n{front}\n## All pages\n\n{pages}"


def in_tabs(text: str) -> str:
    """The blocks of a text as tabs: those that follow each other are side by side."""
    return SAMPLE.sub(lambda block: f'=== "{LANGUAGES[block[2]]}"\n\n{textwrap.indent(block[1], "    ")}\n', text)


def reference_page() -> str:
    rows = "\n".join(f"| [`{name}`]({name}.md) | {about} |" for name, about in PYTHON_MODULES.items())
    node = ", ".join(f"[`{node_name(module)}`](node/{module}.md)" for module in node_modules())
    return f"""# References

Made from the source of each package.

## Python

| module | contents |
|---|---|
{rows}

## Node

{node}

## Rust

[`leasehold`](rust/leasehold/index.html), the crate.

## Command line

`leasehold help`, and `leasehold help COMMAND`.
"""


def add(files: Files, config: Any, uri: str, content: str | bytes) -> None:
    files.append(File.generated(config, uri, content=content))


def outside(pages: set[Path]) -> set[Path]:
    """Files that are no pages of docs/, and to which pages lead, also those that were found on the way."""
    found: set[Path] = set()
    queue = list(pages)
    while queue:
        page = queue.pop()
        for target in targets(page):
            is_page = target in pages or target in found
            is_there = DOCS in target.parents and target.suffix in COPIED
            if not is_page and not is_there and target.is_file() and target.suffix not in PICTURES | {".html"}:
                found.add(target)
                if target.suffix == ".md":
                    queue.append(target)
            elif target.is_file() and target.suffix in PICTURES and DOCS not in target.parents:
                found.add(target)
    return found


def targets(page: Path) -> Iterator[Path]:
    for _, link in LINK.findall(page.read_text()):
        yield real(page, link)


def real(page: Path, link: str) -> Path:
    path = Path(os.path.normpath(page.parent / link))
    return path / "README.md" if (path / "README.md").is_file() else path


def site_path(path: Path) -> str:
    """The place of a file of the repository in the site."""
    path = Path(os.path.normpath(path))
    if path == FRONT:
        return "README.md"
    if path == DOCS / "playground":
        return PLAYGROUND
    if DOCS in path.parents and path.suffix in {".md"} | PICTURES | COPIED:
        return path.relative_to(DOCS).as_posix()
    name = f"source/{path.relative_to(ROOT).as_posix()}"
    return name if path.suffix in {".md"} | PICTURES else f"{name}.txt"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    if uri.startswith(("reference/", "playground/")):
        return markdown
    if uri == SIDE_BY_SIDE:
        markdown = in_tabs(markdown)
    if uri == WIDE:
        page.meta["hide"] = ["toc"]
    own = ROOT / uri.removeprefix("source/") if uri.startswith("source/") else DOCS / uri

    def lead(found: re.Match[str]) -> str:
        opening, link = found.groups()
        target = real(own, link)
        if target.is_dir() and target != DOCS / "playground":
            # A folder has no page: the words stay, and lead to the list of what is in the site.
            return f"{opening}{posixpath.relpath('README.md', posixpath.dirname(uri))}"
        return opening + posixpath.relpath(site_path(target), posixpath.dirname(uri))

    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if piece.startswith("```") else LINK.sub(lead, piece) for piece in pieces)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Adds what other sites show beside a link to the page."""
    facts = {
        "og:type": "website",
        "og:site_name": config["site_name"],
        "og:title": page.title or config["site_name"],
        "og:description": config["site_description"],
        "og:url": ADDRESS + page.url,
        "og:image": ADDRESS + PICTURE,
        "twitter:card": "summary_large_image",
    }
    metas = "".join(f'<meta property="{name}" content="{escape(text)}">' for name, text in facts.items())
    return output.replace("</head>", metas + "</head>", 1)


def on_post_build(config: Any) -> None:
    site = Path(config["site_dir"])
    missing = [*unlisted(), *(name for module in PYTHON_MODULES for name in undocumented(module, site))]
    if missing:
        raise PluginError(f"the reference for Python lacks {', '.join(missing)}: write a docstring, or list the module here")
    # Programs read the pages that llms.txt lists as they were written.
    for page in DOCS.rglob("*.md"):
        (site / page.relative_to(DOCS)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, site / page.relative_to(DOCS))
    shutil.copytree(os.environ["LEASEHOLD_RUSTDOC"], site / "reference/rust", dirs_exist_ok=True)
    shutil.copy(os.environ["LEASEHOLD_PLAYGROUND"], site / "playground/app.html")


def undocumented(module: str, site: Path) -> Iterator[str]:
    """The public names that the page of a module does not have."""
    path = ROOT / "python" / module.replace(".", "/")
    source = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    page = (site / f"reference/{module}.html").read_text()
    for statement in source.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            for name in re.findall(r"'(\w+)'", ast.unparse(statement.value)):
                if not name.startswith("_") and f'id="{module}.{name}"' not in page:
                    yield f"{module}.{name}"


def unlisted() -> Iterator[str]:
    """The public modules that have no page."""
    package = ROOT / "python/leasehold"
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package.parent).with_suffix("")
        module = ".".join(place.parent.parts if place.name == "__init__" else place.parts)
        if "._" not in module and "\n__all__ = " in path.read_text() and module not in PYTHON_MODULES:
            yield module

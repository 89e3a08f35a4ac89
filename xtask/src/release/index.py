"""Makes an index of release files, from which pip, npm and cargo install as they do from the public ones.

    python3 index.py RELEASE_FILES INDEX NPM_URL < cargo-metadata.json

pypi/simple   for `pip --index-url file://...`: pages by PEP 503
npm           for any server of files, at NPM_URL: npm takes no folder
cargo         for Cargo's `local-registry`: crates with all that they are compiled with
"""

import base64
import hashlib
import json
import shutil
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def put(files, folder):
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy(file, folder)


def pypi(files, folder):
    page = folder / "simple/leasehold-sdk"
    put(files, page)
    links = [f'<a href="{quote(file.name)}#sha256={sha256(file)}">{file.name}</a><br>\n' for file in files]
    (page / "index.html").write_text("<!doctype html>\n" + "".join(links))
    (page.parent / "index.html").write_text('<!doctype html>\n<a href="leasehold-sdk/">leasehold-sdk</a>\n')


def npm(files, folder, url):
    put(files, folder / "-")
    for file in files:
        with tarfile.open(file) as packed:
            package = json.load(packed.extractfile("package/package.json"))
        content = file.read_bytes()
        package["dist"] = {
            "tarball": f"{url}/-/{quote(file.name)}",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(),
            "shasum": hashlib.sha1(content).hexdigest(),
        }
        name, version = package["name"], package["version"]
        document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(document))


def cargo(files, folder, metadata):
    put(files, folder)
    ours = {file.name for file in files}
    packages = {package["id"]: package for package in metadata["packages"]}
    archive = lambda package: f"{package['name']}-{package['version']}.crate"
    # `cargo install --locked` wants what tests of ours are compiled with to be there as well.
    is_needed = lambda id, dependency: (
        archive(packages[id]) in ours or any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
    )
    is_there = lambda package: package["source"] is not None or archive(package) in ours
    needs = {node["id"]: [dependency["pkg"] for dependency in node["deps"]
                          if is_needed(node["id"], dependency) and is_there(packages[dependency["pkg"]])]
             for node in metadata["resolve"]["nodes"]}
    found, ahead = set(), [id for id, package in packages.items() if archive(package) in ours]
    while ahead:
        id = ahead.pop()
        if id not in found:
            found.add(id)
            ahead += needs[id]
    for package in (packages[id] for id in found):
        crate = folder / archive(package)
        if not crate.exists():
            # Cargo keeps the archive of .../src/REGISTRY/NAME-VERSION in .../cache/REGISTRY.
            unpacked = Path(package["manifest_path"]).parent
            shutil.copy(unpacked.parents[2] / "cache" / unpacked.parent.name / crate.name, crate)
        name = package["name"]
        page = folder / "index" / place(name.lower())
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a") as lines:
            lines.write(json.dumps(entry(package, sha256(crate))) + "\n")


def place(name):
    match len(name):
        case 1 | 2:
            return f"{len(name)}/{name}"
        case 3:
            return f"3/{name[0]}/{name}"
        case _:
            return f"{name[:2]}/{name[2:4]}/{name}"


def entry(package, checksum):
    """A line of the index, as Cargo's documentation of registries has it. Features may name what only tests need."""
    dependencies = [
        {
            "name": dependency["rename"] or dependency["name"],
            "package": dependency["name"] if dependency["rename"] else None,
            "req": dependency["req"],
            "features": dependency["features"],
            "optional": dependency["optional"],
            "default_features": dependency["uses_default_features"],
            "target": dependency["target"],
            "kind": dependency["kind"] or "normal",
        }
        for dependency in package["dependencies"]
    ]
    return {
        "name": package["name"],
        "vers": package["version"],
        "deps": dependencies,
        "cksum": checksum,
        # In this one old versions of Cargo do not look.
        "features": {},
        "features2": package["features"],
        "v": 2,
        "links": package["links"],
        "rust_version": package["rust_version"],
        "yanked": False,
    }


def main(release, index, url):
    release, index = Path(release), Path(index)
    if index.exists():
        shutil.rmtree(index)
    found = sorted(file for folder in (release, release / "this-machine") for file in folder.glob("*"))
    named = lambda *endings: [file for file in found if file.name.endswith(endings)]
    sources = [file for file in named(".tar.gz") if not file.name.startswith("leasehold-cli-")]
    pypi(named(".whl") + sources, index / "pypi")
    npm(named(".tgz"), index / "npm", url)
    cargo(named(".crate"), index / "cargo", json.load(sys.stdin))


if __name__ == "__main__":
    main(*sys.argv[1:])

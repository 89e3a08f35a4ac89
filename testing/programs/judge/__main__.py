"""Six programs in two languages, several processes of each, while they and their store are disturbed; counted at the end."""

from __future__ import annotations

import argparse
import atexit
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults import POINTS
from scenario import Row, Run, command
from stores import end_all

PROGRAMS = ["nightly", "orders", "calls", "leader", "migrate", "partitions"]
LANGUAGES = ["python", "node"]
NUMBERS = {"kill": 3, "stop": 2, "failover": 2, "certificate": 2, "unshared": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="judge")
    parser.add_argument("--node", type=Path, help="the folder whose node_modules has leasehold and typescript")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES)
    parser.add_argument("--faults", nargs="+", choices=list(POINTS), default=list(POINTS))
    parser.add_argument("--number", type=int, help="of faults, instead of two or three")
    parser.add_argument("--at-once", type=int, default=3, help="scenarios side by side")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    built = compile_programs(args.node) if "node" in args.languages else Path()
    # It stays where something is wrong.
    folder = Path(tempfile.mkdtemp(prefix="leasehold-programs-"))
    print(f"seed {args.seed}, logs in {folder}", flush=True)

    def play(place: int, program: str, language: str, fault: str) -> Row:
        number = NUMBERS[fault] if args.number is None or fault == "unshared" else args.number
        home = folder / f"{program}-{language}-{fault}"
        run = Run(program, language, fault, number, args.seed + place, command(language, program, built), home)
        row = run.play()
        print(f"{program}, {language}, {fault}: {verdict(row)}", flush=True)
        return row

    plays = [(program, language, fault) for fault in args.faults for program in args.programs for language in args.languages]
    with ThreadPoolExecutor(args.at_once) as pool:
        rows = list(pool.map(lambda numbered: play(numbered[0], *numbered[1]), enumerate(plays)))
    print("\n" + table(rows))
    wrong = [row for row in rows if is_wrong(row)]
    if wrong:
        print(f"\n{len(wrong)} of {len(rows)} are wrong, seed {args.seed}; what the programs said is in {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


def end(*_: object) -> None:
    """Leaves nothing running; the threads of scenarios would wait for what is killed."""
    end_all()
    os._exit(1)


def compile_programs(packages: Path | None) -> Path:
    if packages is None:
        sys.exit("--node is missing: the folder whose node_modules has leasehold and typescript")
    built = Path(tempfile.mkdtemp(prefix="programs-", dir=packages.resolve()))
    atexit.register(shutil.rmtree, built, ignore_errors=True)
    shutil.copytree(Path(__file__).parent.parent / "node", built, dirs_exist_ok=True)
    compiler = packages.resolve() / "node_modules" / "typescript" / "bin" / "tsc"
    if subprocess.run(["node", str(compiler), "--project", str(built)]).returncode != 0:
        sys.exit("the programs for Node do not compile")
    return built


def is_wrong(row: Row) -> bool:
    """Without a shared store the promises must break, or the judge does not see."""
    return not row.broken if row.fault == "unshared" else bool(row.broken)


def verdict(row: Row) -> str:
    if row.fault == "unshared":
        return f"noticed: {'; '.join(row.broken)}" if row.broken else "NOT NOTICED"
    return f"BROKEN: {'; '.join(row.broken)}" if row.broken else f"kept, {row.seconds:.0f} s"


def table(rows: list[Row]) -> str:
    head = ["program", "language", "fault", "faults", "done", "again", "twice", "lost", "most at once", "overlaps", "disorder", "refused late writes"]
    lines = [head, ["---"] * 3 + ["---:"] * (len(head) - 3)]
    for row in rows:
        counts = row.counts
        numbers = [row.faults, counts.done, counts.again, counts.twice, counts.lost, counts.most, counts.overlaps, counts.disorder, counts.refused]
        lines.append([row.program, row.language, row.fault, *map(str, numbers)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()

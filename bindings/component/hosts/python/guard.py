"""What a protected resource does with a token: guard.py COMPONENT MARK TOKEN.

MARK is a file with the highest token that the resource has seen; none is there before the first. A token below it comes
from a holder that has lost its lock and does not know yet; it is refused, with status 1. A mark that cannot be read or
kept is no missing one: the status is 2 then, as for any mistake, and nothing was claimed. In a real resource the mark
changes in one step with the data, which also keeps two claims at once apart; a file does not.
"""

import os
import re
import sys
import tempfile
import traceback
from pathlib import Path

from leasehold_component import FENCE, Machine, Program, Variant


def main(component: str, mark: str, token: str) -> int:
    claimed = number(token)
    file = Path(mark)
    machine = Machine(Program(component))
    guard = machine.call("[static]guard.create", read(file), interface=FENCE)
    if isinstance(guard, Variant):
        raise ValueError(f"{mark}: {guard}")
    refusal = machine.call("[method]guard.claim", guard, claimed, interface=FENCE)
    if refusal:
        print(f"refused: {refusal.tag}")
        return 1
    write(file, machine.call("[method]guard.high-water", guard, interface=FENCE))
    print(f"claimed {claimed}")
    return 0


def number(word: str) -> int:
    """Of digits and nothing else; `int` alone takes spaces, signs, underlines and the digits of other scripts."""
    if not re.fullmatch("[0-9]{1,20}", word):
        raise ValueError(f"{word!r} is no token")
    return int(word)


def read(mark: Path) -> int | None:
    try:
        # A link would be replaced by the new mark, and what it leads to left as it was.
        with open(os.open(mark, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return number(file.read(32).decode("latin-1").removesuffix("\n"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{mark}: {error}") from error


def write(mark: Path, token: int) -> None:
    """Whoever reads it finds the old mark or the new one, also after a crash, and never half of one."""
    handle, name = tempfile.mkstemp(prefix=f"{mark.name}.", dir=mark.parent)
    try:
        with open(handle, "w") as file:
            os.fchmod(handle, 0o644)
            file.write(f"{token}\n")
            file.flush()
            os.fsync(handle)
        os.replace(name, mark)
    except BaseException:
        os.unlink(name)
        raise
    # What is in a folder, and not only in its files, has to reach the disk as well.
    folder = os.open(mark.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("usage: guard.py COMPONENT MARK TOKEN", file=sys.stderr)
        sys.exit(2)
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except Exception:
        # Python's own status would be 1, which says that a token was refused.
        traceback.print_exc()
        sys.exit(2)

"""What a protected resource does with a token: guard.py COMPONENT MARK TOKEN.

MARK is a file with the highest token that the resource has seen. A token below it comes from a holder that has lost its
lock and does not know yet; it is refused, with status 1. In a real resource the mark changes in one step with the data.
"""

import sys
from pathlib import Path

from leasehold_component import FENCE, Machine, Program


def main(component: str, mark: str, token: str) -> int:
    machine = Machine(Program(component))
    file = Path(mark)
    seen = int(file.read_text()) if file.exists() else None
    guard = machine.call("[static]guard.create", seen, interface=FENCE)
    refusal = machine.call("[method]guard.claim", guard, int(token), interface=FENCE)
    if refusal:
        print(f"refused: {refusal.tag}")
        return 1
    file.write_text(str(machine.call("[method]guard.high-water", guard, interface=FENCE)))
    print(f"claimed {token}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

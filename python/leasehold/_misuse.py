"""Advice for a statement of the other kind: ``with`` for asyncio, ``async with`` for threads."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Type checkers find that the methods are missing.
    class AsyncOnly:
        """Entered by ``async with``."""

    class SyncOnly:
        """Entered by ``with``."""

else:

    class AsyncOnly:
        """Entered by ``async with``."""

        def __enter__(self):
            raise TypeError(f"use `async with`: {self!r} is for asyncio; leasehold.connect() has what a plain `with` enters")

        def __exit__(self, kind, error, traceback): ...

    class SyncOnly:
        """Entered by ``with``."""

        async def __aenter__(self):
            raise TypeError(f"use `with`: {self!r} is for threads; leasehold.aio.connect() has what `async with` enters")

        async def __aexit__(self, kind, error, traceback): ...

"""A service of `cargo xtask chaos http` on FastAPI; service.mjs does the same on Express."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response

from leasehold import aio
from leasehold.contrib.asgi import IdempotencyMiddleware

# The longest pause before the effect and after it; one work in so many takes long.
WORK = 0.040
LONG = 10
LONG_WORK = 0.400
# One work in so many answers that it has failed, before its effect.
FAILS = 12
MOST_PADDING = 2_000

task = json.loads(sys.argv[1])
# What becomes of each work stands in the ledger.
logging.getLogger("leasehold").setLevel(logging.CRITICAL)


def say(line: str) -> None:
    # One write, so that a line is there whole or not at all.
    os.write(1, f"{line}\n".encode())


class Ends:
    """Says with which status each work has ended, from outside of the middleware."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        status = 500

        async def told(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope["receipts"] = []
        try:
            await self.app(scope, receive, told)
        finally:
            for receipt in scope["receipts"]:
                say(f"ended {receipt} {status}")


async def pause() -> None:
    await asyncio.sleep(random.uniform(0, LONG_WORK if random.randrange(LONG) == 0 else WORK))


async def main() -> None:
    app = FastAPI()

    @app.post("/charge")
    async def charge(request: Request) -> Response:
        order = await request.json()
        receipt = secrets.token_hex(8)
        request.scope["receipts"].append(receipt)
        say(f"begun {order['key']} {order['eur']} {receipt}")
        await pause()
        if random.randrange(FAILS) == 0:
            return Response("failed as it was told to", 500, headers={"x-receipt": receipt})
        say(f"effect {receipt}")
        await pause()
        padding = "é" * random.randrange(MOST_PADDING // 2)
        body = json.dumps({**order, "receipt": receipt, "padding": padding}, ensure_ascii=False)
        return Response(body, 201, headers={"x-receipt": receipt}, media_type="application/json")

    if task["is_protected"]:
        settings = {}
        if task["max_ttl_ms"] is not None:
            settings = {"max_ttl": task["max_ttl_ms"] / 1_000, "quorum_id": task["quorum"]}
        client = await aio.connect(task["stores"], **settings)
        user = lambda scope: dict(scope["headers"])[b"x-user"].decode()  # noqa: E731
        app.add_middleware(IdempotencyMiddleware, client, principal=user, ttl=task["ttl_ms"] / 1_000)
    app.add_middleware(Ends)
    listener = socket.create_server(("127.0.0.1", 0))
    say(f"listening {listener.getsockname()[1]}")
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off"))
    await server.serve(sockets=[listener])


asyncio.run(main())

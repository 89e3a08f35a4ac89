"""Requests with an ``Idempotency-Key`` that are answered once, for FastAPI, Starlette and other ASGI applications.

.. code-block:: python

    app = FastAPI()
    app.add_middleware(IdempotencyMiddleware, stores="redis://locks", principal=lambda scope: str(scope["user"].id))

The first request with a key does the work; later ones get its response, with ``Idempotency-Replayed: true``. What is promised, and what
is not kept, is in the guide: docs/idempotency.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import sys
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from leasehold import _hints
from leasehold._errors import ClosedError, LeaseholdError, ResultNotKeptError, StoreUnavailableError
from leasehold._options import UNNAMED, Unnamed
from leasehold._results import NoResult
from leasehold._runs import Completion, RunningElsewhere

if TYPE_CHECKING:
    from leasehold._types import Seconds, Stores
    from leasehold.aio import Client, Run

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

__all__ = ["IdempotencyMiddleware"]

_HEADER = b"idempotency-key"
_UNDER_WAY = "leasehold.idempotency"
_KEY = re.compile(r'"[ !#-~]{1,255}"|[!#-~]{1,255}')
_KEPT = 4_096
_SHOWN = 200
"""The characters of a path in the name of a run, which people read."""
_UNSHOWN = re.compile(r"[^ -z|~]")
"""Beside what is not ASCII, braces, which have a meaning in names on Redis Cluster."""
_NEVER_KEPT = frozenset(
    [
        *(b"set-cookie", b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"date", b"upgrade", b"trailer"),
        *(b"te", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
    ]
)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_ASKED_AGAIN = frozenset([408, 425, 429])
"""Statuses that ask for the same request again, as all from 500 on do."""


class IdempotencyMiddleware:
    """ASGI middleware that answers each request with an ``Idempotency-Key`` once."""

    def __init__(
        self,
        app: App,
        stores: Client | Stores | None | Unnamed = UNNAMED,
        *,
        principal: Callable[[Scope], str],
        keep: Seconds = 86_400,
        ttl: Seconds = 30,
        methods: Collection[str] = ("POST", "PATCH"),
        required: bool = False,
        max_body: int = 1 << 20,
    ) -> None:
        """``stores`` is that of :func:`leasehold.connect`, or a client of :mod:`leasehold.aio` that stays yours.

        principal: who asks, from the ASGI scope; for example the id of the user. Two of them never share a response. It is
            required, since without it one user would get what another one has asked for.
        keep: how long a response is kept, a day by default.
        ttl: the time after which another process may do the work of one that died.
        methods: those to which it applies.
        required: True answers 400 to requests of these methods that have no key; without it they pass.
        max_body: the longest body of a request with a key, in bytes; a longer one is answered 413.
        """
        self._app = app
        self._stores = stores
        self._principal = principal
        self._options: Any = {"keep": keep, "ttl": ttl}
        if isinstance(methods, str):
            raise TypeError(f"methods has to be a collection of methods, such as [{methods!r}], not a str")
        self._methods = frozenset(method.upper() for method in methods)
        self._required = required
        self._max_body = max_body
        self._own: Client | None = None
        self._connecting = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Called by the server."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._closing(send))
            return
        if scope["type"] != "http" or scope["method"] not in self._methods:
            await self._app(scope, receive, send)
            return
        keys = [value.decode("latin-1").strip() for name, value in scope["headers"] if name.lower() == _HEADER]
        if not keys and not self._required:
            await self._app(scope, receive, send)
        elif not keys:
            await _problem(send, 400, "this request needs the header Idempotency-Key: a text of your own, new for each operation")
        elif len(keys) > 1 or not _KEY.fullmatch(keys[0]):
            await _problem(send, 400, "Idempotency-Key has to be one text of 1 to 255 printable ASCII characters, such as a UUID")
        else:
            await self._answer_once(scope, receive, send, keys[0].strip('"'))

    async def _answer_once(self, scope: Scope, receive: Receive, send: Send, key: str) -> None:
        occurrence = self._occurrence(scope, key)
        if scope.get(_UNDER_WAY) == occurrence:
            # The middleware stands twice: the outer one does all that this one would.
            await self._app(scope, receive, send)
            return
        body = await _body(receive, self._max_body)
        if body is None:
            await _problem(send, 413, f"a request with an Idempotency-Key has at most {self._max_body} bytes")
            return
        fingerprint = _hash(scope.get("query_string", b""), body)
        client = await self._client()
        once = client.once(**occurrence, **self._options, data=fingerprint.encode())
        try:
            run = await once.__aenter__()
            outcome: Completion | RunningElsewhere | None = once.outcome
            if isinstance(outcome, RunningElsewhere) and (outcome.holder is None or outcome.holder.data is None):
                # A client does not ask the store while it holds the lock itself, or asks for another request already.
                seen = await client.inspect_run(**occurrence)
                outcome = seen.done or RunningElsewhere(seen.holder)
        except (StoreUnavailableError, ClosedError):
            # A server that ends closes its client: another one may be asked.
            await _uncertain(send)
            return
        if run is None:
            await _other(outcome, fingerprint, send)
            return
        answer: list[Message] = []
        is_whole = False

        async def collect(message: Message) -> None:
            # What an application does after its response, such as background tasks, decides nothing of it.
            nonlocal is_whole
            if is_whole:
                return
            if message["type"] == "http.response.start":
                message = {**message, "headers": list(message.get("headers", []))}
            answer.append(message)
            is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            if is_whole and await _ends(run, fingerprint, answer):
                for one in answer:
                    await send(one)
            elif is_whole:
                await _uncertain(send)

        try:
            # A response that is sent past its messages could not be kept.
            await self._app({**scope, "extensions": {}, _UNDER_WAY: occurrence}, _again(body, receive), collect)
        except BaseException:
            if not is_whole:
                # It is released, and the work left to the next request.
                await once.__aexit__(*sys.exc_info())
            raise
        if not is_whole:
            # The application left its response unfinished, as where the client has gone.
            with contextlib.suppress(LeaseholdError):
                await run.release()
            await _uncertain(send)

    def _occurrence(self, scope: Scope, key: str) -> Any:
        principal = self._principal(scope)
        if not isinstance(principal, str):
            raise TypeError(f"principal must return a str that says who asks, not {type(principal).__name__}")
        path = scope["path"]
        shown = _UNSHOWN.sub("?", path[:_SHOWN])
        whole = _hash(scope["method"].encode(), path.encode("utf-8", "replace"), principal.encode("utf-8", "replace"), key.encode())
        return {"name": f"{scope['method']} {shown}", "key": whole}

    async def _client(self) -> Client:
        from leasehold import aio

        if isinstance(self._stores, aio.Client):
            return self._stores
        async with self._connecting:
            if self._own is None:
                self._own = await aio.connect(self._stores)
        return self._own

    def _closing(self, send: Send) -> Send:
        async def told(message: Message) -> None:
            own = self._own
            if message["type"].startswith("lifespan.shutdown") and own is not None:
                self._own = None
                await own.close()
            await send(message)

        return told


def _is_asked_again(start: Message) -> bool:
    """Returns True for a response that asks for the same request again. By 409, another service says that it sees the work under way."""
    status = start["status"]
    has_retry = any(name.lower() == b"retry-after" for name, _ in start.get("headers", []))
    return status >= 500 or status in _ASKED_AGAIN or (status == 409 and has_retry)


async def _ends(run: Run, fingerprint: str, answer: list[Message]) -> bool:
    """Records that the work is done, before anybody gets the answer. False if that is not certain."""
    if _is_asked_again(next((message for message in answer if message["type"] == "http.response.start"), {"status": 500})):
        with contextlib.suppress(LeaseholdError):
            await run.release()
        return True
    try:
        await run.finish(result=_written(fingerprint, answer))
    except ResultNotKeptError:
        # The work is done, and this caller gets the response.
        return True
    except LeaseholdError:
        return False
    return True


async def _uncertain(send: Send) -> None:
    await _problem(send, 503, "it is not certain that this was done: send the same request again", retry=True)


async def _other(outcome: Any, fingerprint: str, send: Send) -> None:
    """Answers a request whose work another one has done, or does."""
    differs = "this Idempotency-Key was used for another request: use a new key for each operation"
    if isinstance(outcome, Completion):
        kept = None if outcome.result is NoResult.UNSETTLED else _read(outcome.result)
        if outcome.result is NoResult.UNSETTLED:
            await _problem(send, 409, "this was done, and the response is not settled yet: ask again", retry=True)
        elif kept is None or (kept["fingerprint"] == fingerprint and kept["status"] is None):
            await _problem(send, 409, "this was done, and the response is not kept, since it was too long")
        elif kept["fingerprint"] != fingerprint:
            await _problem(send, 422, differs)
        else:
            headers = [*kept["headers"], (b"idempotency-replayed", b"true")]
            if kept["status"] not in (204, 304):
                headers.append((b"content-length", b"%d" % len(kept["body"])))
            await send({"type": "http.response.start", "status": kept["status"], "headers": headers})
            await send({"type": "http.response.body", "body": kept["body"]})
        return
    holder = outcome.holder if isinstance(outcome, RunningElsewhere) else None
    if holder is not None and holder.data not in (None, fingerprint.encode()):
        await _problem(send, 422, differs)
    else:
        await _problem(send, 409, "the first request with this Idempotency-Key is still at work: ask again", retry=True)


async def _body(receive: Receive, most: int) -> bytes | None:
    """The body of the request; None of one that is too long, or whose client has gone."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives the application a body that was read already."""
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def _hash(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.hexdigest()


def _written(fingerprint: str, answer: list[Message]) -> bytes:
    """The response as it is kept: a line of JSON, and the body. Of one that is too long, the fingerprint alone."""
    start = next(message for message in answer if message["type"] == "http.response.start")
    body = b"".join(message.get("body", b"") for message in answer if message["type"] == "http.response.body")
    headers = [
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in start.get("headers", [])
        if name.lower() not in _NEVER_KEPT and _fits(name, value)
    ]
    whole = _line({"fingerprint": fingerprint, "status": start["status"], "headers": headers}) + body
    return whole if len(whole) <= _KEPT else _line({"fingerprint": fingerprint, "status": None})


def _line(kept: dict[str, Any]) -> bytes:
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def _read(result: object) -> Any:
    """The response that :func:`_written` has written; None for anything else, since others may write to the store."""
    if not isinstance(result, bytes):
        return None
    line, end, body = result.partition(b"\n")
    try:
        kept = json.loads(line.decode(), parse_constant=_refuse)
        status, fingerprint, given = kept["status"], kept["fingerprint"], kept.get("headers", [])
        if not isinstance(fingerprint, str) or not (status is None or (type(status) is int and 200 <= status < 500)):
            return None
        if not end or not isinstance(given, list) or not all(isinstance(pair, list) for pair in given):
            return None
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not all(_fits(name, value) for name, value in headers):
        return None
    # Another one could set cookies by it, or end the body early.
    headers = [(name, value) for name, value in headers if name.lower() not in _NEVER_KEPT]
    return {"fingerprint": fingerprint, "status": status, "headers": headers, "body": body}


def _refuse(constant: str) -> Any:
    """NaN and the infinities, which Python reads and others do not."""
    raise ValueError(constant)


def _fits(name: bytes, value: bytes) -> bool:
    """Returns True if a header can be sent. With a line break it would begin another one."""
    return _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


async def _problem(send: Send, status: int, detail: str, *, retry: bool = False) -> None:
    body = json.dumps({"title": "Idempotency-Key", "status": status, "detail": detail}).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"%d" % len(body))]
    if retry:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_hints.resolve(globals())

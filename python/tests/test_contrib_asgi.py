"""Requests with an ``Idempotency-Key`` that are answered once, with FastAPI and Starlette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.routing import Route

import leasehold
from leasehold import aio
from leasehold.contrib.asgi import _NEVER_KEPT, IdempotencyMiddleware, _hash, _is_asked_again, _read

User = Callable[[Any], str]


def user(scope: Any) -> str:
    named: bytes = dict(scope["headers"]).get(b"x-user", b"")
    return named.decode()


class Shop:
    """An application that counts its work."""

    def __init__(self, store: str, **options: Any) -> None:
        self.calls: list[str] = []
        self.app = FastAPI()
        self.app.add_middleware(IdempotencyMiddleware, store, principal=user, **options)

        @self.app.api_route("/charge", methods=["GET", "POST", "PUT"], status_code=201)
        async def charge(request: Request, response: Response) -> dict[str, Any]:
            self.calls.append((await request.body()).decode())
            response.set_cookie("session", "hunter2")
            response.headers["x-charge"] = str(len(self.calls))
            return {"charge": len(self.calls), "é": "ü"}

        @self.app.post("/status/{status}")
        async def status(status: int, request: Request) -> Response:
            self.calls.append(str(status))
            headers = {"Retry-After": "1"} if "x-again" in request.headers else {}
            return JSONResponse({"call": len(self.calls)}, status, headers)

        @self.app.post("/raises")
        async def raises() -> None:
            self.calls.append("raises")
            # An error of the application's own locks is no error of ours.
            raise leasehold.StoreUnavailableError("of another store") if len(self.calls) % 2 else ValueError("no")

        @self.app.post("/long")
        async def long() -> Response:
            self.calls.append("long")
            return Response(b"x" * 4_096)


@pytest.fixture
def store(sqlite: str) -> str:
    return sqlite


@pytest.fixture
def shop(store: str) -> Shop:
    return Shop(store)


@pytest.fixture
def client(shop: Shop) -> Iterator[TestClient]:
    with TestClient(shop.app, raise_server_exceptions=False) as client:
        yield client


def post(client: TestClient, path: str = "/charge", *, key: str = "k1", body: str = "9 EUR", **headers: str) -> Any:
    return client.post(path, content=body, headers={"Idempotency-Key": key, **headers})


def test_the_second_request_gets_the_first_response(shop: Shop, client: TestClient, store: str) -> None:
    first, second = post(client), post(client, key='"k1"')
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json() == {"charge": 1, "é": "ü"} and shop.calls == ["9 EUR"]
    assert second.headers["x-charge"] == "1" and second.headers["content-type"] == first.headers["content-type"]
    assert "idempotency-replayed" not in first.headers and second.headers["idempotency-replayed"] == "true"
    assert "set-cookie" in first.headers and "set-cookie" not in second.headers
    # Another process gets it, too, and nothing of the cookie is in the store.
    other = Shop(store)
    with TestClient(other.app) as elsewhere:
        assert post(elsewhere).json() == first.json() and other.calls == []
    with leasehold.connect(store) as looking:
        [run] = looking.runs("POST /charge@")
        assert run.done is not None and b"hunter2" not in run.done.result and b"charge" in run.done.result


def test_other_keys_users_paths_and_methods_are_other_requests(shop: Shop, client: TestClient) -> None:
    answers = [
        post(client),
        post(client, key="k2"),
        post(client, **{"X-User": "ann"}),
        post(client, **{"X-User": "bob"}),
        post(client, "/status/200"),
    ]
    assert len(shop.calls) == len(answers) and not any("idempotency-replayed" in answer.headers for answer in answers)
    for method in ("GET", "PUT"):
        for _ in range(2):
            client.request(method, "/charge", headers={"Idempotency-Key": "k1"})
    assert len(shop.calls) == len(answers) + 4, "methods to which it does not apply"
    for _ in range(2):
        client.post("/charge")
    assert len(shop.calls) == len(answers) + 6, "requests without a key"


def test_another_body_under_the_same_key_is_refused(shop: Shop, client: TestClient) -> None:
    post(client)
    for differs in (post(client, body="10 EUR"), client.post("/charge?x=1", content="9 EUR", headers={"Idempotency-Key": "k1"})):
        assert differs.status_code == 422 and "another request" in differs.json()["detail"]
        assert differs.headers["content-type"] == "application/problem+json"
    assert len(shop.calls) == 1


@pytest.mark.parametrize("status", [200, 400, 404, 409])
def test_answers_about_the_request_are_kept(shop: Shop, client: TestClient, status: int) -> None:
    first, second = (post(client, f"/status/{status}") for _ in range(2))
    assert first.status_code == second.status_code == status and first.json() == second.json() and len(shop.calls) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 409])
def test_answers_that_ask_for_another_try_are_not_kept(shop: Shop, client: TestClient, status: int) -> None:
    for call in (1, 2):
        answer = post(client, f"/status/{status}", **({"X-Again": "yes"} if status == 409 else {}))
        assert answer.status_code == status and answer.json() == {"call": call}


def test_middleware_that_stands_twice_does_the_work_once(store: str) -> None:
    shop = Shop(store)
    outer = IdempotencyMiddleware(shop.app, store, principal=user)
    with TestClient(outer) as client:
        first, second = post(client), post(client)
    assert (first.status_code, second.text, len(shop.calls)) == (201, first.text, 1)


def test_an_exception_leaves_the_work_to_the_next_request(shop: Shop, client: TestClient) -> None:
    for call in (1, 2, 3):
        assert post(client, "/raises").status_code == 500 and len(shop.calls) == call


def test_a_response_that_is_too_long_is_not_kept(shop: Shop, client: TestClient) -> None:
    assert len(post(client, "/long").content) == 4_096
    again = post(client, "/long")
    assert again.status_code == 409 and "not kept" in again.json()["detail"] and len(shop.calls) == 1
    assert post(client, "/long", body="other").status_code == 422


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "ü", '"open', "a b"])
def test_keys_that_cannot_be_are_refused(shop: Shop, client: TestClient, key: str) -> None:
    answer = client.post("/charge", headers=[(b"Idempotency-Key", key.encode("latin-1"))])
    assert answer.status_code == 400 and not shop.calls


def test_a_key_can_be_required_and_bodies_are_bounded(store: str) -> None:
    shop = Shop(store, required=True, max_body=10, methods=["put"])
    with TestClient(shop.app) as client:
        assert client.put("/charge").status_code == 400
        assert client.put("/charge", content=b"x" * 11, headers={"Idempotency-Key": "k"}).status_code == 413
        assert client.put("/charge", content=b"x" * 10, headers={"Idempotency-Key": "k"}).status_code == 201
        assert client.post("/charge").status_code == 201
    assert len(shop.calls) == 2


def test_the_principal_is_required(store: str) -> None:
    with pytest.raises(TypeError, match="principal"):
        IdempotencyMiddleware(FastAPI(), store)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not a str"):
        IdempotencyMiddleware(FastAPI(), store, principal=lambda scope: "", methods="POST")
    app = Starlette(routes=[Route("/", lambda request: Response("ok"), methods=["POST"])])
    app.add_middleware(IdempotencyMiddleware, store, principal=lambda scope: None)  # type: ignore[arg-type,return-value]
    with TestClient(app) as client, pytest.raises(TypeError, match="principal must return a str"):
        client.post("/", headers={"Idempotency-Key": "k"})


Answer = tuple[int, dict[bytes, bytes], bytes]


async def asked(app: Any, body: bytes = b"9 EUR", key: bytes = b"k1") -> Answer:
    """One request, as a server makes it."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"idempotency-key", key)]
    await app({"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


def test_a_request_that_comes_meanwhile_is_told_so(store: str) -> None:
    async def body() -> None:
        begun, may_end, ended = asyncio.Event(), asyncio.Event(), []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            begun.set()
            await may_end.wait()
            ended.append(await receive())
            await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"1")]})
            await send({"type": "http.response.body", "body": b"do", "more_body": True})
            await send({"type": "http.response.body", "body": b"ne"})

        async with await aio.connect(store) as one, await aio.connect(store) as two:
            here, there = (IdempotencyMiddleware(app, client, principal=lambda scope: "") for client in (one, two))
            first = asyncio.ensure_future(asked(here))
            await begun.wait()
            for other in (here, there):
                status, headers, _ = await asked(other)
                assert (status, headers[b"retry-after"]) == (409, b"1")
                assert (await asked(other, b"10 EUR"))[0] == 422
            may_end.set()
            status, headers, content = await first
            assert (status, content) == (200, b"done") and ended == [{"type": "http.request", "body": b"9 EUR", "more_body": False}]
            assert (await asked(there)) == (200, {b"x-a": b"1", b"content-length": b"4", b"idempotency-replayed": b"true"}, b"done")

    asyncio.run(body())


def test_requests_that_come_at_once_after_it_was_done_all_get_the_response(store: str) -> None:
    async def body() -> None:
        async with await aio.connect(store) as one, await aio.connect(store) as two:
            apps = [IdempotencyMiddleware(_created, client, principal=lambda scope: "") for client in (one, two)]
            first = await asked(apps[0])
            for app in apps:
                answers = await asyncio.gather(*(asked(app) for _ in range(20)), asked(app, b"10 EUR"))
                assert [status for status, _, _ in answers] == [first[0]] * 20 + [422]

    asyncio.run(body())


def test_a_lost_lease_is_not_answered_with_success(store: str) -> None:
    async def body() -> None:
        async with await aio.connect(store) as client, await aio.connect(store) as rival:

            async def app(scope: Any, receive: Any, send: Any) -> None:
                [run] = [run async for run in rival.runs()]
                assert run.holder is not None and run.holder.token is not None
                await rival.release_if(run.resource, token=run.holder.token)
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"done"})

            status, headers, content = await asked(IdempotencyMiddleware(app, client, principal=lambda scope: ""))
            assert (status, headers[b"retry-after"]) == (503, b"1") and b"not certain" in content

    asyncio.run(body())


def test_an_unfinished_response_leaves_the_work_to_the_next(store: str) -> None:
    async def body() -> None:
        calls = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            calls.append(1)
            await send({"type": "http.response.start", "status": 200, "headers": iter([(b"x-a", b"1")])})
            await send({"type": "http.response.body", "body": b'{"items":[', "more_body": True})
            if len(calls) > 1:
                await send({"type": "http.response.body", "body": b"]}"})

        async with await aio.connect(store) as client:
            idempotent = IdempotencyMiddleware(app, client, principal=lambda scope: "")
            assert (await asked(idempotent))[0] == 503
            assert await asked(idempotent) == (200, {b"x-a": b"1"}, b'{"items":[]}')
            assert (await asked(idempotent))[2] == b'{"items":[]}' and len(calls) == 2

    asyncio.run(body())


def test_work_after_the_response_decides_nothing_of_it(store: str) -> None:
    async def body() -> None:
        calls = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            calls.append(1)
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            raise OSError("no mail")

        async with await aio.connect(store) as client, await aio.connect(store) as other:
            first = IdempotencyMiddleware(app, client, principal=lambda scope: "")
            with pytest.raises(OSError, match="no mail"):
                await asked(first)
            again = IdempotencyMiddleware(app, other, principal=lambda scope: "")
            assert await asked(again) == (204, {b"idempotency-replayed": b"true"}, b"") and len(calls) == 1

    asyncio.run(body())


def test_an_application_may_be_started_again(store: str) -> None:
    shop = Shop(store)
    for call in (1, 2):
        with TestClient(shop.app) as client:
            assert post(client, key=str(call)).status_code == 201 and len(shop.calls) == call


def test_a_cancelled_request_leaves_the_work_to_the_next(store: str) -> None:
    async def body() -> None:
        begun, calls = asyncio.Event(), []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            calls.append(1)
            begun.set()
            if len(calls) == 1:
                await asyncio.Event().wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"done"})

        async with await aio.connect(store) as client:
            idempotent = IdempotencyMiddleware(app, client, principal=lambda scope: "")
            first = asyncio.ensure_future(asked(idempotent))
            await begun.wait()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert (await asked(idempotent))[0] == 200 and len(calls) == 2

    asyncio.run(body())


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"status": 200},
        b"",
        b"[]\n",
        b"{}\n",
        b"\xff\n",
        b'{"fingerprint":1,"status":200}\n',
        b'{"fingerprint":"f","status":"200"}\n',
        b'{"fingerprint":"f","status":true}\n',
        b'{"fingerprint":"f","status":99}\n',
        b'{"fingerprint":"f","status":500}\n',
        b'{"fingerprint":"f","status":200,"headers":[["a"]]}\n',
        b'{"fingerprint":"f","status":200,"headers":[["a","b\\r\\nx: y"]]}\n',
        b'{"fingerprint":"f","status":200,"headers":[["a",1]]}\n',
        b'{"fingerprint":"f","status":200,"headers":[["\\u0394","b"]]}\n',
        b"[" * 4_000,
    ],
)
def test_what_others_have_written_is_no_response(result: object) -> None:
    assert _read(result) is None


def test_parts_of_a_request_do_not_run_together() -> None:
    assert _hash(b"ab", b"c") != _hash(b"a", b"bc") and _hash(b"a") == _hash(b"a")


VECTORS = json.loads((Path(__file__).parents[2] / "bindings" / "idempotency.json").read_text())


@pytest.mark.parametrize("asked", VECTORS["requests"], ids=lambda asked: str(asked["why"]))
def test_requests_are_the_runs_that_others_make_of_them(store: str, asked: dict[str, str]) -> None:
    """``bindings/idempotency.json`` has the same for Node and Go."""

    async def main() -> None:
        async with await aio.connect(store) as client:
            app = IdempotencyMiddleware(_created, client, principal=lambda scope: asked["principal"])
            scope = {
                "type": "http",
                "method": asked["method"],
                "path": asked["path"],
                "query_string": asked["query"].encode(),
                "headers": [(b"idempotency-key", asked["key"].encode())],
            }

            async def receive() -> Any:
                return {"type": "http.request", "body": asked["body"].encode(), "more_body": False}

            await app(scope, receive, _dropped)
            [run] = [run async for run in client.runs()]
        assert (run.name, run.key) == (asked["name"], asked["occurrence"])
        assert run.done is not None and _read(run.done.result)["fingerprint"] == asked["fingerprint"]

    asyncio.run(main())


@pytest.mark.parametrize("kept", VECTORS["responses"], ids=lambda kept: str(kept["why"]))
def test_responses_are_read_as_others_read_them(kept: dict[str, Any]) -> None:
    seen = _read(kept["kept"].encode())
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in seen["headers"]]
    read = (seen["fingerprint"], seen["status"], headers, seen["body"].decode())
    assert read == (kept["fingerprint"], kept["status"], kept["headers"], kept["body"])


@pytest.mark.parametrize("text", VECTORS["none"])
def test_what_others_take_for_no_response_is_none(text: str) -> None:
    assert _read(text.encode()) is None


def test_others_keep_the_same_responses_and_the_same_headers_of_them() -> None:
    for of in VECTORS["again"]:
        start = {"status": of["status"], "headers": [(name.encode(), value.encode()) for name, value in of["headers"].items()]}
        assert _is_asked_again(start) == of["again"], of
    assert sorted(name.decode() for name in _NEVER_KEPT) == VECTORS["never_kept"]


async def _created(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


async def _dropped(message: Any) -> None:
    pass

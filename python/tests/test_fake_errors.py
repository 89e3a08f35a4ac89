"""A fake client raises the same class with the same words as the real one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import PATIENCE

import leasehold
from leasehold import testing

Pair = tuple[Any, Any]
Provoke = Callable[[Any, Any], object]


def held(c: Any, r: Any, call: Callable[[Any], object]) -> None:
    """Calls while the rival holds the lock."""
    with r.acquire("job", ttl=60):
        call(c)


def closed(c: Any, call: Callable[[Any], object]) -> None:
    c.close()
    call(c)


def hold(c: Any, call: Callable[[Any], object]) -> None:
    lease = c.acquire("job")
    try:
        call(lease)
    finally:
        if lease.remaining():
            lease.release()


def revoked(c: Any, r: Any) -> None:
    lease = c.acquire("job", ttl=600, renew_every=0.2)
    assert r.revoke("job", lease.token)
    assert lease.lost.wait(PATIENCE)
    lease.check()


CASES: dict[str, Provoke] = {
    "empty name": lambda c, r: c.acquire(""),
    "long name": lambda c, r: c.acquire("x"*1025),
    "control": lambda c, r: c.acquire("a\nb"),
    "name type": lambda c, r: c.acquire(7),
    "ttl 0": lambda c, r: c.acquire("job", ttl=0),
    "ttl .05": lambda c, r: c.acquire("job", ttl=0.05),
    "ttl big": lambda c, r: c.acquire("job", ttl=1e6),
    "ttl inf": lambda c, r: c.acquire("job", ttl=float("inf")),
    "ttl nan": lambda c, r: c.acquire("job", ttl=float("nan")),
    "ttl neg": lambda c, r: c.acquire("job", ttl=-1),
    "ttl str": lambda c, r: c.acquire("job", ttl="30"),
    "ttl bool": lambda c, r: c.acquire("job", ttl=True),
    "wait str": lambda c, r: c.acquire("job", wait="1"),
    "wait neg": lambda c, r: c.acquire("job", wait=-1),
    "owner long": lambda c, r: c.acquire("job", owner="x"*257),
    "owner type": lambda c, r: c.acquire("job", owner=7),
    "data long": lambda c, r: c.acquire("job", data=b"x"*5000),
    "data type": lambda c, r: c.acquire("job", data="text"),
    "lock_delay": lambda c, r: c.acquire("job", lock_delay=1e6),
    "max_hold": lambda c, r: c.acquire("job", ttl=30, max_hold=1),
    "renew_every": lambda c, r: c.acquire("job", ttl=30, renew_every=20),
    "renew contra": lambda c, r: c.acquire("job", renew=False, renew_every=1),
    "unknown": lambda c, r: c.acquire("job", timeout=1),
    "unknown2": lambda c, r: c.acquire("job", foo=1),
    "try wait": lambda c, r: c.try_acquire("job", wait=1),
    "busy": lambda c, r: held(c, r, lambda c: c.acquire("job", wait=0)),
    "timed out": lambda c, r: held(c, r, lambda c: c.acquire("job", wait=0.05)),
    "self deadlock": lambda c, r: hold(c, lambda l: c.acquire("job")),
    "release twice": lambda c, r: hold(c, lambda l: (l.release(), l.release())),
    "check released": lambda c, r: hold(c, lambda l: (l.release(), l.check())),
    "check far": lambda c, r: hold(c, lambda l: l.check(100)),
    "check type": lambda c, r: hold(c, lambda l: l.check("a")),
    "lock release unheld": lambda c, r: c.lock("job").release(),
    "extend": lambda c, r: hold(c, lambda l: l.extend()),
    "on_lost": lambda c, r: hold(c, lambda l: l.on_lost(7)),
    "closed acquire": lambda c, r: closed(c, lambda c: c.acquire("job")),
    "closed once": lambda c, r: closed(c, lambda c: c.once("job", key="a").__enter__()),
    "inspect empty": lambda c, r: c.inspect(""),
    "list long": lambda c, r: next(c.list("x"*1025)),
    "watch short": lambda c, r: next(c.watch("job", every=0.01)),
    "watch empty": lambda c, r: next(c.watch("")),
    "release_if nothing": lambda c, r: c.release_if("job"),
    "revoke str": lambda c, r: c.revoke("job", "1"),
    "sem 0": lambda c, r: c.semaphore("s", 0).__enter__(),
    "sem 65": lambda c, r: c.semaphore("s", 65).__enter__(),
    "sem str": lambda c, r: c.semaphore("s", "2"),
    "sem differ": lambda c, r: (c.semaphore("s", 2).__enter__(), r.semaphore("s", 3).__enter__()),
    "sem busy": lambda c, r: (c.semaphore("s", 1).__enter__(), r.semaphore("s", 1, wait=0).__enter__()),
    "sem timeout": lambda c, r: (c.semaphore("s", 1).__enter__(), r.semaphore("s", 1, wait=0.05).__enter__()),
    "sem unknown": lambda c, r: c.semaphore("s", 1, foo=1),
    "set_permits held": lambda c, r: (c.semaphore("s", 1).__enter__(), r.set_permits("s", 2)),
    "set_permits 0": lambda c, r: r.set_permits("s", 0),
    "rw 0": lambda c, r: c.rw_lock("s", readers=0).read().__enter__(),
    "rw write busy": lambda c, r: (c.rw_lock("s", readers=2).read().__enter__(), r.rw_lock("s", readers=2, wait=0).write().__enter__()),
    "rw read busy": lambda c, r: (c.rw_lock("s", readers=2).write().__enter__(), r.rw_lock("s", readers=2, wait=0).read().__enter__()),
    "rw upgrade": lambda c, r: (c.rw_lock("s", readers=2).read().__enter__(), c.rw_lock("s", readers=2).write().__enter__()),
    "rw differ": lambda c, r: (c.rw_lock("s", readers=2).read().__enter__(), r.rw_lock("s", readers=3).read().__enter__()),
    "any none enter": lambda c, r: c.lock_any([]).__enter__(),
    "any str": lambda c, r: c.lock_any("ab"),
    "any 65": lambda c, r: c.lock_any([str(i) for i in range(65)]).__enter__(),
    "any busy": lambda c, r: held(c, r, lambda c: c.lock_any(["job"], wait=0).__enter__()),
    "all busy": lambda c, r: held(c, r, lambda c: c.lock_all(["a", "job"], wait=0)),
    "all unknown": lambda c, r: c.lock_all(["a"], foo=1),
    "once key+every": lambda c, r: c.once("j", key="a", every=60),
    "once key+cool": lambda c, r: c.once("j", key="a", cooldown=60),
    "once cool+keep": lambda c, r: c.once("j", cooldown=60, keep=60),
    "once offset": lambda c, r: c.once("j", key="a", offset=60),
    "once offset big": lambda c, r: c.once("j", every=60, offset=61),
    "once every 0": lambda c, r: c.once("j", every=0),
    "once every .5": lambda c, r: c.once("j", every=0.5),
    "once every big": lambda c, r: c.once("j", every=1e10),
    "once keep short": lambda c, r: c.once("j", every=86400, keep=3600),
    "once keep ttl": lambda c, r: c.once("j", key="a", keep=10, ttl=30),
    "once key empty": lambda c, r: c.once("j", key=""),
    "once key type": lambda c, r: c.once("j", key=7),
    "once unknown": lambda c, r: c.once("j", key="a", foo=7),
    "elect cb": lambda c, r: c.elect("x", on_start=7),
    "shards 0": lambda c, r: c.shards("x", 0),
    "shards cb": lambda c, r: c.shards("x", 2, on_gain=7),
    "set_shards": lambda c, r: c.set_shards("x", 0),
    "finish twice": lambda c, r: (lambda run: (run.finish(), run.finish()))(c.once("j", key="a").__enter__()),
    "exit unentered": lambda c, r: c.once("j", key="a").__exit__(None, None, None),
    "leases idx": lambda c, r: c.lock_all(["a"])[3],
    "leases key": lambda c, r: c.lock_all(["a"])["b"],
    "semaphore ttl": lambda c, r: c.semaphore("s", 2, ttl=0).__enter__(),
    "lock ttl": lambda c, r: c.lock("job", ttl=0).__enter__(),
    "reader ttl": lambda c, r: c.rw_lock("s", ttl=0).read().__enter__(),
    "any ttl": lambda c, r: c.lock_any(["a", "b"], ttl=0).__enter__(),
    "lost by a revoke": lambda c, r: revoked(c, r),
}


def real(name: str) -> Pair:
    return leasehold.connect(f"memory:{name}", owner="me"), leasehold.connect(f"memory:{name}", owner="rival")


def fake(name: str) -> Pair:
    clock = testing.FakeClock()
    return testing.connect(clock, owner="me"), testing.connect(clock, owner="rival")


def told(make: Callable[[str], Pair], name: str, provoke: Provoke) -> tuple[type[Exception], str, object, object]:
    c, r = make(name)
    with pytest.raises(Exception) as raised:
        provoke(c, r)
    error = raised.value
    # Which of several locks is tried first is random, and the real clock goes on.
    said = re.sub(r"token [0-9]+|#reader[0-9]+|only [0-9.]+ s", "...", str(error))
    resource = re.sub(r"#reader[0-9]+", "...", str(getattr(error, "resource", None)))
    return type(error), said, resource, getattr(error, "reason", None)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("case", CASES)
def test_fakes_refuse_in_the_words_of_the_real_client(case: str) -> None:
    name = f"fake-errors-{case.replace(' ', '-')}"
    assert told(fake, name, CASES[case]) == told(real, name, CASES[case])

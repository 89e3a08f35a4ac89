"""The worker of `cargo xtask chaos` in Python; those in Rust and JavaScript do the same."""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import threading
import time

import redis

import leasehold
from leasehold.fence import RedisGuard

LOOK = 0.005
STALL_NS = 10_000_000
PATIENCE = 10
BARE_WORK = 0.020
WORK = 0.003
SLIP = 0.001
LONG = 4
MOST_ROUNDS = 6
UNWATCHED = 4
PASSING = leasehold.LockBusyError, leasehold.LockTimeoutError, leasehold.StoreUnavailableError

task = json.loads(sys.argv[1])
ttl = task["ttl_ms"] / 1_000
server = redis.Redis(unix_socket_path=task["counters"])
mark = RedisGuard.mark_key("guarded")
held: leasehold.Lease | None = None
# Losses stand in the journal.
logging.getLogger("leasehold").setLevel(logging.CRITICAL)


def say(what: str, **more: object) -> None:
    say_at(time.monotonic_ns(), what, **more)


def say_at(at: int, what: str, **more: object) -> None:
    line = {"at": at, "what": what, **more}
    # One write, so that a line is there whole or not at all.
    os.write(1, (json.dumps(line) + "\n").encode())


def end_of(lease: leasehold.Lease) -> tuple[int, int]:
    # The clock first: whatever comes between makes the end look earlier, never later.
    now = time.monotonic_ns()
    return now, now + int(lease.remaining() * 1e9)


def pause(most: float) -> None:
    time.sleep(random.uniform(0, most))


def watch() -> None:
    known = (0, 0)
    last = time.monotonic_ns()
    while True:
        time.sleep(LOOK)
        now = time.monotonic_ns()
        if now - last > LOOK * 1e9 + STALL_NS:
            say("stalled", **{"from": last})
        last = now
        lease = held
        if lease is None:
            continue
        token, (at, until) = lease.token, end_of(lease)
        if (token != known[0] or until > known[1] + 1_000_000) and until > at:
            known = (token, until)
            say_at(at, "valid", token=token, until=until)


def accepted(lease: leasehold.Lease, reply: object) -> bool:
    try:
        RedisGuard.outcome(mark, lease.token, reply)
        return True
    except leasehold.StaleTokenError:
        is_valid = lease.remaining() > 0
        say("refused", token=lease.token, valid=is_valid)
        return False


def numbers(*counters: str) -> list[int]:
    return [int(value or 0) for value in server.mget(*counters)]


def write(counter: str, value: int, token: int) -> None:
    server.eval(task["write"], 2, counter, f"{counter}-log", value, token)


def use(lease: leasehold.Lease) -> bool:
    token = lease.token
    if not accepted(lease, server.eval(RedisGuard.CLAIM_SCRIPT, 1, mark, token)):
        return not lease.lost.is_set()
    long = random.randrange(LONG) == 0
    for _ in range(random.randint(1, MOST_ROUNDS)):
        locked, guarded = numbers("locked", "guarded")
        pause(WORK)
        at = time.monotonic_ns()
        try:
            lease.check()
        except leasehold.LeaseLostError:
            say("lost", token=token)
            return False
        say_at(at, "checked", token=token)
        pause(SLIP)
        write("locked", locked + 1, token)
        script = RedisGuard.CHECK + task["guarded_write"]
        reply = server.eval(script, 3, mark, "guarded", "guarded-log", token, guarded + 1, token)
        if not accepted(lease, reply):
            return not lease.lost.is_set()
        if long:
            pause(ttl / 2)
    return True


def hold(lease: leasehold.Lease) -> None:
    token = lease.token
    notified = threading.Event()

    def tell(_loss: leasehold.LeaseholdError) -> None:
        say("notified", token=token)
        notified.set()

    lease.on_lost(tell)
    lost = False
    if use(lease):
        say("releasing", token=token)
        try:
            lease.release()
            say("released", token=token)
        except leasehold.LeaseLostError:
            say("lost", token=token)
            lost = True
        except PASSING as error:
            say("failed", kind=error.code)
    else:
        lost = True
    if lost and not notified.wait(PATIENCE):
        say("not_notified", token=token)


def main() -> None:
    global held
    settings = {"owner": task["name"]}
    if task["max_ttl_ms"] is not None:
        settings["max_ttl"] = task["max_ttl_ms"] / 1_000
        settings["quorum_id"] = task["quorum"]
    client = None
    while client is None:
        try:
            client = leasehold.connect(task["stores"], **settings)
        except PASSING as error:
            say("failed", kind=error.code)
    say("started")
    threading.Thread(target=watch, daemon=True).start()
    while True:
        (bare,) = numbers("bare")
        pause(BARE_WORK)
        write("bare", bare + 1, 0)
        say("asked")
        try:
            lease = client.acquire(task["lock"], ttl=ttl, wait=ttl * 5)
        except PASSING as error:
            say("failed", kind=error.code)
        else:
            is_watched = random.randrange(UNWATCHED) > 0
            say("granted", token=lease.token, until=end_of(lease)[1], watched=is_watched)
            held = lease if is_watched else None
            hold(lease)
            held = None
        pause(ttl / 10)


main()

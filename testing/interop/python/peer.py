"""redis-py's Lock, driven line by line: see ../README.md."""

import sys

from redis import Redis
from redis.exceptions import LockError


class Peer:
    def __init__(self, url):
        self.redis = Redis.from_url(url)
        self.held = {}

    def acquire(self, key, ttl_ms):
        timeout = None if ttl_ms == "none" else int(ttl_ms) / 1000
        lock = self.redis.lock(key, timeout=timeout, blocking=False)
        if not lock.acquire():
            return "busy"
        self.held[key] = lock
        return "ok"

    def extend(self, key, ttl_ms):
        return confirmed(lambda: self.held[key].extend(int(ttl_ms) / 1000))

    def release(self, key):
        return confirmed(self.held.pop(key).release)

    def answer(self, line):
        command, *arguments = line.split()
        methods = {"acquire": self.acquire, "extend": self.extend, "release": self.release}
        return methods[command](*arguments)


def confirmed(action):
    try:
        action()
    except LockError:
        return "not-held"
    return "ok"


def main():
    peer = Peer(sys.argv[1])
    for line in sys.stdin:
        if line.strip() == "quit":
            return
        try:
            answer = peer.answer(line)
        except Exception as error:
            answer = f"error {type(error).__name__}: {' '.join(str(error).split())}"
        print(answer, flush=True)


if __name__ == "__main__":
    main()

"""Workers that want one lock of python-redis-lock: a line for each, with the instants of its turns in nanoseconds.

The arguments: the url, the library, the workers, and in milliseconds how long to work, to hold the lock and to pause.
"""

import sys
import threading
import time

import redis
import redis_lock

url, _, workers, *times = sys.argv[1:]
duration, hold, pause = (int(word) / 1000 for word in times)
end = time.monotonic() + duration
lines = [[] for _ in range(int(workers))]


def rest(seconds):
    if seconds:
        time.sleep(seconds)


def work(line):
    server = redis.Redis.from_url(url)
    while time.monotonic() < end:
        wanted = time.monotonic_ns()
        lock = redis_lock.Lock(server, "contended", expire=10)
        lock.acquire()
        granted = time.monotonic_ns()
        rest(hold)
        released = time.monotonic_ns()
        lock.release()
        line += [wanted, granted, released]
        rest(pause)


threads = [threading.Thread(target=work, args=(line,)) for line in lines]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for line in lines:
    print(*line, flush=True)

"""Workers that share the partitions of a queue. Run: ``python examples/python/shards.py``"""

import queue
import threading

import leasehold

PARTITIONS = 4
# Each partition is read by one worker at a time, so its items are done in order.
partitions: list[queue.Queue[str]] = [queue.Queue() for _ in range(PARTITIONS)]
done: list[list[str]] = [[] for _ in range(PARTITIONS)]


def work(client: leasehold.Client) -> leasehold.Shards:
    stops: dict[int, threading.Event] = {}
    threads: dict[int, threading.Thread] = {}

    def consume(shard: leasehold.Shard, stop: threading.Event) -> None:
        while not stop.is_set() and not shard.lost.is_set():
            try:
                item = partitions[shard.index].get(timeout=0.01)
            except queue.Empty:
                continue
            # The store that the work writes to should refuse tokens older than shard.token.
            done[shard.index].append(item)

    def start(shard: leasehold.Shard) -> None:
        stop = stops[shard.index] = threading.Event()
        thread = threads[shard.index] = threading.Thread(target=consume, args=(shard, stop))
        thread.start()

    def finish(shard: leasehold.Shard, error: leasehold.LeaseholdError | None) -> None:
        # The shard is kept until this returns: the piece in hand is finished.
        stops.pop(shard.index).set()
        threads.pop(shard.index).join()

    return client.shards("mail", PARTITIONS, ttl=10, look_every=0.1, on_gain=start, on_loss=finish)


def wait_until(first: leasehold.Shards, second: leasehold.Shards, counts: list[int]) -> None:
    pause = threading.Event()
    while [len(first.held), len(second.held)] != counts:
        pause.wait(0.01)


with leasehold.connect("memory:") as client:
    with work(client) as first, work(client) as second:
        wait_until(first, second, [2, 2])
        print("two workers have 2 shards each")
        for number in range(20):
            partitions[number % PARTITIONS].put(f"mail {number}")
        first.stop()
        wait_until(first, second, [0, 4])
        print("one has stopped, and the other one has all 4")
        pause = threading.Event()
        while sum(map(len, done)) < 20:
            pause.wait(0.01)
    print("partition 0:", ", ".join(done[0]))

# Output:
# two workers have 2 shards each
# one has stopped, and the other one has all 4
# partition 0: mail 0, mail 4, mail 8, mail 12, mail 16

"""A queue in eight partitions, shared by all machines that start it. Each partition is worked on in order, by one of them."""

import signal
import threading

import leasehold
from ledger import Ledger, StaleError

ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())


class Consumer(threading.Thread):
    def __init__(self, shard: leasehold.Shard) -> None:
        super().__init__()
        self.shard = shard
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            with Ledger(self.shard) as ledger:
                while not self.stopping.is_set() and not self.shard.lost.is_set():
                    try:
                        ledger.write(f"{self.shard.index}/{len(ledger.lines)}")
                    except leasehold.LeaseLostError:    # by the check: renewals may only be late, so the shard may stay ours
                        self.shard.lost.wait(0.5)
        except StaleError as error:
            print("another one has partition", self.shard.index, error, flush=True)


consumers: dict[int, Consumer] = {}


def start(shard: leasehold.Shard) -> None:
    consumers[shard.index] = Consumer(shard)
    consumers[shard.index].start()


def stop(shard: leasehold.Shard, error: leasehold.LeaseholdError | None) -> None:
    consumer = consumers.pop(shard.index)
    consumer.stopping.set()
    consumer.join()    # the shard is let go when the piece in hand is done


with leasehold.connect() as client, client.shards("mail", 8, ttl=4, look_every=1, on_gain=start, on_loss=stop):
    ended.wait()

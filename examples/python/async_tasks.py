"""Tasks of asyncio that add to one counter under a lock. Run: ``python examples/python/async_tasks.py``"""

import asyncio

import leasehold.aio

count = 0


async def add_one(client: leasehold.aio.Client) -> None:
    global count
    # If the lease is lost, the block is cancelled and the statement raises LeaseLostError.
    async with client.lock("counter", ttl=30, wait=60, on_lost="cancel"):
        seen = count
        await asyncio.sleep(0.001)
        count = seen + 1


async def main() -> None:
    async with leasehold.aio.connect("memory:") as client:
        await asyncio.gather(*(add_one(client) for _ in range(20)))
        print("20 tasks counted to", count)


asyncio.run(main())

# Output:
# 20 tasks counted to 20

"""A block that only one worker enters at a time. Run: ``python examples/python/with_block.py``"""

import leasehold


def main() -> None:
    # ``sqlite:locks.db`` locks between processes, ``redis://host`` and ``dynamodb://TABLE`` between machines.
    with leasehold.connect("memory:shop") as client, leasehold.connect("memory:shop") as rival:
        with client.lock("invoice/42", ttl=30, wait=10) as lease:
            try:
                rival.acquire("invoice/42", wait=0)
            except leasehold.LockBusyError as busy:
                print("the rival is refused:", busy.resource, "is held")
            lease.check(5)  # raises LeaseLostError unless 5 s of validity are left
            print("invoice 42 is charged")

        with rival.lock("invoice/42", wait=10) as later:
            # The resource keeps the highest token that it has seen, and rejects smaller ones.
            print("the next token is larger:", later.token > lease.token)


if __name__ == "__main__":
    main()

# Output:
# the rival is refused: invoice/42 is held
# invoice 42 is charged
# the next token is larger: True

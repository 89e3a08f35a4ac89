"""A report that is made once, although three workers are asked for it. Run: ``python examples/python/once.py``"""

import leasehold

# `sqlite:locks.db` serves the processes of one machine, `redis://host` and `dynamodb://TABLE` many machines.
client = leasehold.connect("memory:")


# The braces are filled from the arguments of the call. With `wait=60` a worker would stand by while another one is at it.
@client.once("report", key="{day}", owner="night shift")
def report(day: str, worker: int) -> str:
    if worker == 1:
        raise ConnectionError("no data yet")
    return f"report of {day}, made by worker {worker}"


for worker in (1, 2, 3):
    try:
        outcome = report("monday", worker)
    except ConnectionError as error:
        print(f"worker {worker} fails: {error}")  # and leaves the work to the next one
        continue
    match outcome:
        case leasehold.Ran(value):
            print(value)
        case leasehold.AlreadyDone(_, owner):
            print(f"worker {worker} finds it done by the {owner}")
        case leasehold.RunningElsewhere():
            print(f"worker {worker} steps aside")

client.close()

# Output:
# worker 1 fails: no data yet
# report of monday, made by worker 2
# worker 3 finds it done by the night shift

"""A function that runs once at a time for each argument. Run: ``python examples/python/decorator.py``"""

import threading

import leasehold

client = leasehold.connect("memory:")
started = threading.Event()
may_end = threading.Event()


# The braces are filled from the arguments of the call. ``wait=0`` raises instead of waiting.
@client.lock("report/{day}", wait=0)
def report(day: str) -> None:
    print("reporting", day)
    if day == "monday":
        started.set()
        may_end.wait()


thread = threading.Thread(target=report, args=["monday"])
thread.start()
started.wait()

try:
    report("monday")
except leasehold.LockBusyError:
    print("monday is being reported already")
report("tuesday")

may_end.set()
thread.join()
client.close()

# Output:
# reporting monday
# monday is being reported already
# reporting tuesday

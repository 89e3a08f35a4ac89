"""Signals, forks, other processes, and the end of the interpreter."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
from conftest import PATIENCE, TTL, Server, connect, eventually, unix

import leasehold

HEADER = f"import leasehold, os, signal, sys, threading, time\nTTL, PATIENCE = {TTL}, {PATIENCE}\n"


def start(script: str, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-X", "faulthandler", "-c", HEADER + textwrap.dedent(script), *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **(env or {})})


def run(script: str, *args: str, patience: float = PATIENCE) -> str:
    """Runs a script to its end, and returns its output."""
    process = start(script, *args)
    try:
        said, complained = process.communicate(timeout=patience)
    finally:
        process.kill()
    assert (process.returncode, complained) == (0, "")
    return said.strip()


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    # A process without output fails its test.
    assert select.select([process.stdout], [], [], PATIENCE)[0], "it says nothing"
    return process.stdout.readline().strip()


# Prints a line as soon as the process waits.
TELLS = """
        import logging
        class Tells(logging.Handler):
            def emit(self, record):
                if record.event in ("lock.contended", "lock.renewed"):
                    logging.getLogger("leasehold").removeHandler(self)
                    print("waits", flush=True)
        logging.getLogger("leasehold").setLevel(5)
        logging.getLogger("leasehold").addHandler(Tells())
"""
WAITERS = {
    "acquire": "client.acquire('job')",
    "with": "client.lock('job').__enter__()",
    "threading": "client.lock('job').acquire()",
    "all": "client.lock_all(['a', 'job'])",
    "lost": "client.acquire('other', renew_every=0.1).lost.wait()",
}


@unix
@pytest.mark.parametrize("how", WAITERS)
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_an_interrupted_wait_leaves_nothing_held(how: str, kind: str, request: pytest.FixtureRequest) -> None:
    store: str = request.getfixturevalue(kind)
    client = connect(store)
    lease = client.acquire("job", ttl=TTL, wait=PATIENCE)
    waiter = start(
        f"""{TELLS}
        client = leasehold.connect(sys.argv[1])
        try:
            {WAITERS[how]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            sys.stdin.read()
        """,
        store,
    )
    assert says(waiter) == "waits"
    waiter.send_signal(signal.SIGINT)
    assert says(waiter) == "interrupted"
    lease.release()
    # The process is alive, and has left the queue.
    for name in ("job", "a"):
        client.acquire(name, ttl=TTL, wait=PATIENCE).release()
    waiter.communicate("", timeout=PATIENCE)
    assert waiter.returncode == 0
    client.close()


@unix
def test_a_handler_of_a_signal_runs_while_a_lock_is_awaited(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    lease = client.acquire(name)
    handled: list[int] = []

    def handle(number: int, frame: object) -> None:
        handled.append(number)
        lease.release()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        me = threading.main_thread().ident
        assert me is not None
        timer = threading.Timer(0.2, signal.pthread_kill, (me, signal.SIGUSR1))
        timer.start()
        # From another thread, so that no thread waits for itself.
        with client.lock(name, wait=PATIENCE):
            assert handled == [signal.SIGUSR1]
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


FORK = """
    import warnings
    # Newer interpreters warn of any fork with threads.
    warnings.simplefilter("ignore", DeprecationWarning)
    # On a slow machine as well.
    TTL = 300
    store = sys.argv[1]
    client = leasehold.connect(store, request_timeout=60)
    lease = client.acquire("job", ttl=TTL)
    lock = client.lock("second", ttl=TTL)
    told = []
    lease.on_lost(told.append)
    # Threads of the client and of the test run while it forks.
    stop = threading.Event()
    def work(n):
        while not stop.is_set():
            with client.lock(f"thread-{n}", ttl=TTL):
                pass
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(int(3 * PATIENCE))
                assert lease.remaining() == 0 and lease.lost.is_set() and lease.lost.wait()
                assert isinstance(lease.lost.reason, leasehold.LeaseLostError)
                for use, error in [
                    (lease.check, leasehold.LeaseLostError),
                    (lease.release, leasehold.LeaseLostError),
                    (lock.acquire, leasehold.ConfigError),
                    (lambda: client.inspect("job"), leasehold.ConfigError),
                ]:
                    try:
                        use()
                    except error as refused:
                        assert "fork" in str(refused) or "parent" in str(refused), refused
                    else:
                        raise AssertionError(f"{use} works in the child")
                client.close()
                own = leasehold.connect(store, request_timeout=60)
                if not store.startswith("memory"):
                    assert own.try_acquire("job") is None
                with own.lock("childs", ttl=TTL, wait=PATIENCE) as mine:
                    mine.check(1)
                del lease, lock, client
                own.close()
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            # Through the exit handlers as well, every other time.
            os._exit(0) if _ % 2 else sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        lease.check(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert client.inspect("job").token == lease.token and not told
    lease.release()
    client.close()
    print("unharmed")
"""


@unix
def test_a_forked_child_holds_nothing_and_affects_no_lease(store: str) -> None:
    assert run(FORK, store, patience=10 * PATIENCE) == "unharmed"


def in_child(store: str, inherited: Any) -> None:
    if inherited is not None:
        assert inherited.remaining() == 0.0
    with leasehold.connect(store) as client:
        assert client.try_acquire("held") is None
        with client.lock("childs", ttl=TTL, wait=PATIENCE):
            pass


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_processes_of_multiprocessing_have_clients_of_their_own(method: str, sqlite: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with connect(sqlite) as client, client.lock("held", ttl=TTL) as lease:
        inherited = lease if method == "fork" else None
        children = [context.Process(target=in_child, args=(sqlite, inherited)) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join(PATIENCE)
        assert [child.exitcode for child in children] == [0, 0, 0]
        lease.check(0.5)


def leave_behind(store: str) -> None:
    # The frame of `in_child` drops its references; a module does not.
    sys.modules["kept"] = leasehold.connect(store).acquire("kept", ttl=3600, wait=PATIENCE)  # type: ignore[assignment]


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_process_of_multiprocessing_releases_its_leases_when_it_exits(method: str, sqlite: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with connect(sqlite) as client:
        child = context.Process(target=leave_behind, args=(sqlite,))
        child.start()
        child.join(PATIENCE)
        assert child.exitcode == 0
        client.acquire("kept", ttl=TTL, wait=PATIENCE).release()


BUSY = "[time.sleep(0.02) for _ in range(100_000)]"


@pytest.mark.parametrize(
    "callback",
    [
        "lease = client.acquire('job', ttl=0.1, renew=False)\nlease.on_lost(called)",
        "sys.modules['kept'] = client.elect('job', ttl=TTL, on_start=called)",
        "election = client.elect('job', ttl=TTL, on_start=lambda lease: leads.set(), on_stop=called)\n"
        "leads.wait(PATIENCE)\ndel election",
    ],
)
def test_a_running_callback_does_not_delay_the_exit(callback: str, sqlite: str) -> None:
    script = f"""
begun, leads = threading.Event(), threading.Event()
def called(_):
    begun.set()
    {BUSY}
client = leasehold.connect(sys.argv[1])
{callback}
assert begun.wait(PATIENCE)
"""
    run(script, sqlite)


@unix
def test_an_interrupt_ends_the_wait_for_a_term_to_end(sqlite: str) -> None:
    for leave in ("election.resign()", "with election: pass"):
        said = run(
            f"""
            leads, stops = threading.Event(), threading.Event()
            def stop(error):
                stops.set()
                {BUSY}
            client = leasehold.connect(sys.argv[1])
            election = client.elect("job", ttl=TTL, on_start=lambda lease: leads.set(), on_stop=stop)
            assert leads.wait(PATIENCE)
            threading.Thread(target=lambda: (stops.wait(), signal.raise_signal(signal.SIGINT)), daemon=True).start()
            try:
                {leave}
            except KeyboardInterrupt:
                print("interrupted")
            """,
            sqlite,
        )
        assert said == "interrupted"


def test_a_process_releases_its_leases_when_it_exits(sqlite: str, redis: str) -> None:
    for store in (sqlite, redis):
        client = connect(store)
        run("kept = leasehold.connect(sys.argv[1]).acquire('ending', ttl=3600)\nsys.modules['kept'] = kept", store)
        run("leasehold.connect(sys.argv[1]).acquire('ending', ttl=3600, wait=PATIENCE)\nraise SystemExit", store)
        # The frame of a daemon thread is never cleared.
        run(
            """
            def hold():
                kept = leasehold.connect(sys.argv[1]).acquire("ending", ttl=3600, wait=PATIENCE)
                held.set()
                time.sleep(3600)
            held = threading.Event()
            threading.Thread(target=hold, daemon=True).start()
            assert held.wait(PATIENCE)
            """,
            store,
        )
        # The ttl is an hour: it was released.
        client.acquire("ending", ttl=TTL, wait=PATIENCE).release()
        client.close()


@pytest.mark.parametrize(
    "ending",
    [
        "client.acquire('job', ttl=TTL).on_lost(lambda error: time.sleep(3600)); client.close()",
        "wait = lambda: (leads.set(), client.acquire('held'))\n"
        "threading.Thread(target=wait, daemon=True).start(); leads.wait(PATIENCE)",
        "lease = client.acquire('job', ttl=TTL); threading.Thread(target=lease.lost.wait, daemon=True).start()",
        "sys.modules['e'] = client.elect('job', ttl=TTL, on_start=lambda lease: leads.set()); leads.wait(PATIENCE)",
        "stops = lambda error: time.sleep(3600)\n"
        "sys.modules['e'] = client.elect('job', ttl=TTL, on_start=lambda lease: leads.set(), on_stop=stops)\n"
        "leads.wait(PATIENCE)",
        "client.lock('job').__enter__(); [client.acquire(f'n{n}', ttl=TTL) for n in range(50)]",
    ],
)
def test_the_exit_of_the_interpreter_never_hangs(ending: str, sqlite: str) -> None:
    with connect(sqlite) as other, other.lock("held", ttl=TTL):
        run(f"leads = threading.Event()\nclient = leasehold.connect(sys.argv[1])\n{ending}", sqlite)


@pytest.mark.parametrize(
    "ending",
    [
        # A guarded write on a daemon thread.
        "from leasehold.fence import Guard\n"
        "guard = Guard()\n"
        "guard.claim(1)\n"
        "write = lambda: (begun.set(), BUSY)\n"
        "threading.Thread(target=guard.write, args=(1, write), daemon=True).start()",
        # A callback that raises at exit, where printing the exception is slow.
        "sys.unraisablehook = lambda shown: BUSY\n"
        "client = leasehold.connect('memory:')\n"
        "sys.modules['e'] = client.elect('job', on_start=lambda lease: begun.set(), on_stop=lambda error: 1 / 0)",
    ],
)
def test_running_python_code_does_not_delay_the_exit(ending: str) -> None:
    script = f"begun = threading.Event()\n{ending}\nassert begun.wait(PATIENCE)".replace("BUSY", BUSY)
    for _ in range(5):
        run(script)


@unix
def test_a_store_that_is_gone_does_not_delay_the_exit() -> None:
    server = Server("redis")
    try:
        holder = start(
            """
            client = leasehold.connect(sys.argv[1], request_timeout=60)
            lease = client.acquire("job", ttl=3600)
            print("holds", flush=True)
            sys.stdin.readline()
            """,
            server.url,
        )
        assert says(holder) == "holds"
        # It accepts connections, and answers nothing.
        server.freeze()
        holder.communicate("end\n", timeout=PATIENCE)
        assert holder.returncode == 0
    finally:
        server.close()


@unix
def test_a_waiter_gets_the_lock_of_a_killed_holder(redis: str, sqlite: str) -> None:
    for store in (redis, sqlite):
        holder = start(
            "lease = leasehold.connect(sys.argv[1]).acquire('killed', ttl=1, wait=PATIENCE)\n"
            "print(lease.token, flush=True)\ntime.sleep(3600)",
            store,
        )
        token = int(says(holder))
        holder.kill()
        holder.communicate()
        with connect(store) as client, client.lock("killed", ttl=TTL, wait=PATIENCE) as lease:
            assert lease.token > token


def test_a_subinterpreter_is_refused_clearly() -> None:
    said = run(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import leasehold
        try:
            print(interpreters.run_string(interpreters.create(), "import leasehold"))
        except Exception as error:
            print(repr(error))
        """
    )
    # Newer interpreters refuse by themselves.
    assert "ImportError" in said and "in subinterpreters" in said


def test_threads_come_and_go(memory: str) -> None:
    client = leasehold.connect(memory)
    done: list[int] = []

    def work(n: int) -> None:
        with client.lock("one", ttl=TTL, wait=PATIENCE), client.lock(f"own-{n}", ttl=TTL):
            done.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(done) == list(range(200))
    eventually("it is free", lambda: client.inspect("one") is None)
    client.close()


def hung_redis() -> tuple[Server, leasehold.Client]:
    server = Server("redis")
    return server, leasehold.connect(server.url, request_timeout=3)


@unix
def test_other_threads_run_while_a_hung_store_is_waited_for() -> None:
    server, client = hung_redis()
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.wait(0.001):
            counted[0] += 1

    counting = threading.Thread(target=count)
    try:
        lease, _kept = client.acquire("released", ttl=3600), client.acquire("closed", ttl=3600)
        counting.start()
        server.freeze()
        for wait in (lease.release, client.close):
            before = counted[0]
            with pytest.raises(leasehold.StoreUnavailableError):
                wait()
            # Of 2 s.
            assert counted[0] - before > 20
    finally:
        stop.set()
        counting.join()
        server.close()


@unix
def test_an_unconfirmed_release_does_not_change_the_result_of_the_body() -> None:
    server, client = hung_redis()
    try:
        with contextlib.suppress(leasehold.StoreUnavailableError), client:
            stopped = client.lock("stopped", ttl=3600)
            # The work was done under the lock.
            with stopped:
                server.freeze()
            with pytest.raises(ZeroDivisionError):
                server.go_on()
                with client.lock("other", ttl=3600):
                    server.freeze()
                    _ = 1 / 0
    finally:
        server.close()


def end_with_a_thread(store: str, says: Any) -> None:
    from multiprocessing.util import Finalize

    holds, ends = threading.Event(), threading.Event()

    def work() -> None:
        lease = leasehold.connect(store).acquire("childs", ttl=300)
        holds.set()
        assert ends.wait(PATIENCE)
        says.send(lease.remaining() > 0)
        lease.release()

    threading.Thread(target=work).start()
    assert holds.wait(PATIENCE)
    # After our own, which has a higher priority.
    Finalize(None, ends.set, exitpriority=-10)


@unix
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_keeps_the_leases_of_its_threads_until_they_end(sqlite: str) -> None:
    context: Any = multiprocessing.get_context("fork")
    with connect(sqlite) as client:
        hears, says = context.Pipe(duplex=False)
        child = context.Process(target=end_with_a_thread, args=(sqlite, says))
        child.start()
        assert hears.poll(PATIENCE) and hears.recv() is True
        child.join(PATIENCE)
        assert child.exitcode == 0 and client.inspect("childs") is None

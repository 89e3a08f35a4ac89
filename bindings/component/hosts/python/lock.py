"""Holds a lock until its input ends: lock.py COMPONENT STORE URL RESOURCE [OPTIONS].

STORE is `webdis`, `upstash` or `dynamodb`. Credentials come from the environment: UPSTASH_REDIS_REST_TOKEN for the
second, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN or without, for the third. What happens is
written line by line. The status is 0 if the lock was released, 1 if it was not granted, 3 if the lease was lost, also
by a mistake of this program, and 2 for anything else that ends it, such as a word that makes no sense.
"""

import argparse
import os
import sys
import threading
import traceback

from host import Host, Refused
from leasehold_component import Program, Record, Variant

# The host chooses the numbers of its locks; this one has one.
LOCK = 1


def main() -> int:
    arguments = parser().parse_args()
    status = 1
    try:
        host = Host(Program(arguments.component), store(arguments), credentials(arguments.store))
        host.acquire(LOCK, arguments.resource, options(arguments))
        threading.Thread(target=close_at_end_of_input, args=[host], daemon=True).start()
        for _, event in host.run():
            match event.tag:
                case "acquired" | "lost":
                    status = 3
                case "released":
                    status = 0
            print(line(event), flush=True)
            if event.tag in ("failed", "lost"):
                host.close()
        return status
    except Refused as refused:
        print(f"refused: {refused}", file=sys.stderr)
    except Exception:
        # Python's own status would be 1, which says that nothing was granted.
        traceback.print_exc()
    return 3 if status == 3 else 2


def close_at_end_of_input(host: Host) -> None:
    try:
        # By its number: the object keeps a lock while it reads, which would be in the way when the program ends first.
        while os.read(sys.stdin.fileno(), 4096):
            pass
    finally:
        # Whatever concerns the machine happens on the thread of its loop.
        host.inbox.put(host.close)


def store(arguments: argparse.Namespace) -> Variant:
    url = arguments.url
    if arguments.store == "dynamodb":
        optional = dict.fromkeys(["key", "sort_key", "expires", "plaintext"])
        return Variant("dynamodb", Record(table=arguments.table, region=arguments.region, url=url, **optional))
    access = "with-credentials" if arguments.store == "upstash" else "anonymous"
    dialect = Record(dialect=arguments.store, url=url, access=access, retention_ms=None, plaintext=None)
    return Variant("redis-http", dialect)


def credentials(kind: str) -> Variant | None:
    if kind == "upstash":
        return Variant("token", Record(token=os.environ["UPSTASH_REDIS_REST_TOKEN"]))
    if kind == "dynamodb":
        keys = Record(
            access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
            secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
            session_token=os.environ.get("AWS_SESSION_TOKEN"),
            expires_unix_ms=None,
        )
        return Variant("aws", keys)
    return None


def options(arguments: argparse.Namespace) -> Record:
    every = arguments.renew_ms
    return Record(
        ttl_ms=arguments.ttl_ms,
        wait=Variant("for", Record(wait_ms=arguments.wait_ms)) if arguments.wait_ms else Variant("once"),
        lock_delay_ms=0,
        max_hold_ms=None,
        renewal=Variant("every", Record(interval_ms=every)) if every else Variant("automatic"),
        owner=arguments.owner,
        data=None,
    )


def line(event: Variant) -> str:
    """An event in a few words."""
    said = event.payload
    match event.tag:
        case "acquired":
            return f"acquired {said.token}"
        case "contended":
            return f"contended {owner(said.holding)}"
        case "failed":
            return f"failed {said.failure.tag} {reason(said.failure)}".rstrip()
        case "renew-delayed":
            return f"renew-delayed {said.fault.kind}"
        case "lost":
            return f"lost {said.reason.tag}"
        case "released":
            return "released" if said.confirmed else "released unconfirmed"
        case other:
            return other


def reason(failure: Variant) -> str:
    match failure.tag:
        case "busy" | "timed-out":
            return owner(failure.payload.holding)
        case "throttled" | "unavailable":
            return failure.payload.kind
        case "refused":
            return failure.payload.detail
        case _:
            return ""


def owner(holding: Record | None) -> str:
    return (holding and holding.owner) or "somebody"


def text(word: str) -> str:
    # A word in another encoding is none that can be encoded, which argparse tells as it tells any ValueError.
    word.encode()
    return word


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Holds a lock until its input ends.")
    parser.add_argument("component", help="leasehold.wasm, or a .cwasm made of it")
    parser.add_argument("store", choices=["webdis", "upstash", "dynamodb"])
    parser.add_argument("url", type=text)
    parser.add_argument("resource", type=text)
    parser.add_argument("--ttl-ms", type=int, help="default: 30000")
    parser.add_argument("--wait-ms", type=int, default=0, help="how long to try; default: once")
    parser.add_argument("--renew-ms", type=int, default=0, help="default: every third of the ttl")
    parser.add_argument("--owner", type=text, default="")
    parser.add_argument("--table", type=text, default="", help="of DynamoDB")
    parser.add_argument("--region", type=text, default="us-east-1", help="of DynamoDB")
    return parser


if __name__ == "__main__":
    sys.exit(main())

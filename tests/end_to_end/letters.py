"""An agent's job with dead letters, in a process of its own: `record N`, `replay`, `killed`.

The other side is a file: an account that keeps the key of each refund, as payment services do.
Prints what was done as JSON.
"""

import json
import logging
import os
import signal
import sqlite3
import sys

import toolfault
from toolfault import dead_letters


def account():
    book = sqlite3.connect(os.environ["ACCOUNT"], isolation_level=None)
    book.execute("CREATE TABLE IF NOT EXISTS asked (key TEXT)")
    book.execute("CREATE TABLE IF NOT EXISTS refund (key TEXT PRIMARY KEY, order_id TEXT)")
    return book


@toolfault.guard("refund_order", on_error="raise", idempotent=True)
def refund_order(order_id, idempotency_key):
    """Refund an order, once for each key."""
    book = account()
    book.execute("INSERT INTO asked VALUES (?)", [idempotency_key])
    book.execute("INSERT OR IGNORE INTO refund VALUES (?, ?)", [idempotency_key, order_id])
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)  # between the effect and the acknowledgement


async def work(letter):
    if letter.payload["order_id"] == "A-bad":
        raise KeyError("a bug of the handler")
    return refund_order(letter.payload["order_id"])


def main():
    logging.basicConfig()
    toolfault.configure("refund-agent")
    if sys.argv[1] == "record":
        for order in sys.argv[2:]:
            with toolfault.run("c-refund", run_id=f"run-of-{order}"):
                dead_letters.record({"order_id": order}, tool="refund_order")
        toolfault.shutdown()
        print(json.dumps({}))  # noqa: T201
    else:
        print(json.dumps(dead_letters.replay(work, service="refund-agent")._asdict()))  # noqa: T201


if __name__ == "__main__":
    main()

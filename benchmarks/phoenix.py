"""The spans of `ingest.py` sent to Arize Phoenix: how many a second are in its database.

    python -m venv /tmp/phoenix && /tmp/phoenix/bin/pip install arize-phoenix
    python benchmarks/phoenix.py /tmp/phoenix/bin/phoenix

Phoenix acknowledges before it stores, so the clock stops when its own SQLite has them all.
"""

from __future__ import annotations

import argparse
import os
import socket
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from ingest import loaded, requests


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@contextmanager
def _serving(program, folder):
    port = _free_port()
    environment = os.environ | {
        "PHOENIX_WORKING_DIR": str(folder), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(_free_port()), "PHOENIX_TELEMETRY_ENABLED": "false",
    }  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([program, "serve"], env=environment, **quiet) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            while not _answers(f"{address}/healthz"):
                time.sleep(0.2)
            yield address
        finally:
            process.terminate()


def _answers(address):
    try:
        with urlopen(address, timeout=1):  # noqa: S310 - our own
            return True
    except (URLError, OSError):
        return False


def _stored(folder):
    with closing(sqlite3.connect(f"file:{folder / 'phoenix.db'}?mode=ro", uri=True)) as database:
        return database.execute("SELECT count(*) FROM spans").fetchone()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="the command `phoenix`")
    parser.add_argument("--spans", type=int, default=3_000)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="toolfault-bench-") as folder,
        _serving(chosen.program, Path(folder)) as address,
    ):
        began = time.perf_counter()
        acknowledged, _ = loaded(requests(chosen.spans, 100), address, "http")
        while _stored(Path(folder)) < chosen.spans:
            time.sleep(0.1)
        stored = time.perf_counter() - began
    print(
        f"acknowledged {chosen.spans / acknowledged:,.0f} spans/s, stored {chosen.spans / stored:,.0f} spans/s"
    )


if __name__ == "__main__":
    main()

"""How long look-ups and lists take over HTTP while spans arrive.

    python benchmarks/lookup.py --calls 1000000

Fills a database of its own through the store's write path, 30 days of calls that were not ok, then
asks a whole service (`toolfault up`) one question at a time. Prints milliseconds.

What a database that is used has in memory is read first, and the spans are made before they are sent:
neither the disk nor the maker of the load is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import psycopg
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from toolfault import conventions as names
from toolfault import reference
from toolfault.store import partitions, schema
from toolfault.store.embedded import EmbeddedPostgres
from toolfault.store.rows import Call
from toolfault.store.write import Writer

DAYS, BATCH = 30, 5000
#: Requests of a tenth of a second each that are made before the first is sent.
AHEAD = 1200
#: Look-ups until each connection knows the statements of every day.
WARM = 250
TOOLS = [f"tool_{i:02}" for i in range(40)]
SERVICES = [f"agent_{i}" for i in range(8)]
#: outcome, code, reason, effect, action, share of all
KINDS = [
    ("failed", "INTERNAL", "unmapped_failure", "unknown", "stop_and_tell_user", 40),
    ("failed", "UNAVAILABLE", "upstream_unavailable", "none", "retry_later", 25),
    ("timed_out", "UNAVAILABLE", "timed_out", "unknown", "check_before_retry", 15),
    ("declined", "CONFLICT", "slot_taken", "none", "none", 15),
    ("invalid", "INVALID_ARGUMENT", "argument_not_valid", "none", "fix_arguments", 4.9),
    ("failed", "RATE_LIMITED", "quota_spent", "none", "retry_later", 0.1),
]
_ATTRIBUTES = json.dumps({names.TOOL_CALL_ID: "call_91", names.REQUEST_MODEL: "some-model"})


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--calls", type=int, default=20_000, help="calls in the database")
    asked.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the database there and fill what is missing"
    )
    asked.add_argument("--fill-only", action="store_true", help="measure nothing")
    asked.add_argument(
        "--rate", type=int, default=2000, help="spans a second that arrive meanwhile"
    )
    asked.add_argument("--look-ups", type=int, default=500)
    asked.add_argument("--lists", type=int, default=30, help="requests for each filter")
    asked.add_argument("--send", metavar="URL", help=argparse.SUPPRESS)
    chosen = asked.parse_args()
    if chosen.send:
        send(chosen.send, chosen.rate)
        return
    with folder(chosen.data) as data, EmbeddedPostgres(data) as url:
        began = time.monotonic()
        fill(url, chosen.calls)
        print(f"{chosen.calls:,} calls in {DAYS} partitions, "
              f"filled in {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")  # fmt: skip
        if chosen.fill_only:
            return
        references = sample_of(url, chosen.calls)
        read_once(data)
        with service(url) as (addresses, pid):
            show_cpu(addresses["web"], references, pid, data)
        with service(url) as (addresses, _), sending(addresses["http"], chosen.rate):
            measure(addresses["web"], references, chosen, url)


@contextlib.contextmanager
def folder(kept: Path | None):
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="lookup-") as name:
        yield Path(name)


def fill(url: str, calls: int) -> None:
    """Brings the database to so many calls, evenly over the days, with two writers."""
    schema.upgrade(url)
    with psycopg.connect(url) as conn:
        partitions.maintain(conn, datetime.now(UTC))
        there = conn.execute("SELECT coalesce(sum(calls), 0)::bigint FROM error_group_tally")
        missing = calls - there.fetchone()[0]
    if missing < BATCH:
        return
    with ProcessPoolExecutor(2) as pool:
        for done in [pool.submit(fill_half, url, missing // 2, half) for half in (0, 1)]:
            done.result()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("VACUUM ANALYZE")
        conn.execute("CHECKPOINT")


def fill_half(url: str, calls: int, half: int) -> None:
    writer, dice = Writer.open(url), random.Random()
    end, days = datetime.now(UTC), timedelta(days=DAYS - 1)
    for first in range(0, calls, BATCH):
        size = min(BATCH, calls - first)
        writer.load(
            [made(dice, end - days * (1 - (first + i + half / 2) / calls)) for i in range(size)]
        )
    writer.close()


def read_once(folder: Path) -> None:
    """Have the system keep the database's files in memory."""
    for path in (folder / "postgres" / "base").glob("*/*"):
        with path.open("rb") as file:
            while file.read(1 << 20):
                pass


def sample_of(url: str, calls: int) -> list[tuple[str, str, str]]:
    """Some thousand references, each with its conversation and its trace, of all days."""
    share = min(100.0, 2_000_000 / calls)
    with psycopg.connect(url) as conn:
        found = conn.execute(
            "SELECT reference_id, conversation_id, encode(trace_id, 'hex') FROM tool_call"
            " TABLESAMPLE SYSTEM (%s) WHERE conversation_id IS NOT NULL", (share,)
        ).fetchall()  # fmt: skip
    return random.Random(7).sample(found, min(len(found), 2000))


def made(dice: random.Random, at: datetime) -> Call:
    """One call that was not ok."""
    outcome, code, reason, effect, action, _ = dice.choices(KINDS, [kind[-1] for kind in KINDS])[0]
    tool, service = dice.choice(TOOLS), dice.choice(SERVICES)
    kind = f"{service} {tool} {code} {reason}"
    return Call(
        started_at=at, told_at=None, received_at=at + timedelta(seconds=2), duration_us=800_000,
        attempts=2, possibly_twice=False, transient=False, trace_id=dice.randbytes(16),
        span_id=dice.randbytes(8), parent_span_id=None, service=service, environment="production",
        tool=tool, outcome=outcome, code=code, reason=reason, action=action, effect=effect,
        reference_id=reference.new(day=at.date()), run_id=None,
        conversation_id=f"c-{dice.getrandbits(18):05x}", agent="assistant", version="1.4.2",
        exception_type="KeyError", frame="tools:call",
        fingerprint=hashlib.sha256(kind.encode()).digest()[:16],
        message="The tool failed unexpectedly.", attributes=_ATTRIBUTES,
    )  # fmt: skip


@contextlib.contextmanager
def service(url: str):
    command = [sys.executable, "-m", "toolfault.cli", "up", "--json", "--grpc-port", "0"]
    command += ["--http-port", "0", "--web-port", "0"]
    settings = {**os.environ, "TOOLFAULT_DATABASE_URL": url}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as process:
        try:
            yield json.loads(process.stdout.readline()), process.pid
        finally:
            process.terminate()


@contextlib.contextmanager
def sending(url: str, rate: int):
    command = [sys.executable, __file__, "--send", url, "--rate", str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            time.sleep(2)
            yield
        finally:
            process.terminate()


def send(url: str, rate: int) -> None:
    """Sends `rate` spans a second, one in twenty not ok, ten requests a second, until ended."""
    dice, size = random.Random(), max(rate // 10, 1)
    made_before = [batch_of(dice, size).SerializeToString() for _ in range(AHEAD)]
    print("ready", flush=True)
    due = time.monotonic()
    while rate:
        body = made_before.pop() if made_before else batch_of(dice, size).SerializeToString()
        asked = urllib.request.Request(  # noqa: S310 - our own service
            f"{url}/v1/traces", body, {"Content-Type": "application/x-protobuf"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            answer.read()
        due += 0.1
        time.sleep(max(due - time.monotonic(), 0))


def batch_of(dice: random.Random, size: int) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    attribute(resource.resource, "service.name", dice.choice(SERVICES))
    attribute(resource.resource, "deployment.environment.name", "production")
    spans = resource.scope_spans.add().spans
    now = time.time_ns()
    for i in range(size):
        span = spans.add(
            trace_id=dice.randbytes(16), span_id=dice.randbytes(8), name="execute_tool tool",
            start_time_unix_nano=now - 800_000_000, end_time_unix_nano=now,
        )  # fmt: skip
        record = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": dice.choice(TOOLS),
            names.START: now - 800_000_000, names.DURATION: 0.8, names.ATTEMPTS: 1,
            names.OUTCOME: "ok", names.EFFECT: "applied", names.ACTION: "none",
        }  # fmt: skip
        if i % 20 == 0:
            record |= {
                names.OUTCOME: "failed", names.CODE: "INTERNAL", names.EFFECT: "unknown",
                names.REASON: "unmapped_failure", names.ACTION: "stop_and_tell_user",
                names.REFERENCE_ID: reference.new(),
            }  # fmt: skip
        for name, value in record.items():
            attribute(span, name, value)
    return request


def attribute(of, name: str, value: str | float) -> None:
    held = of.attributes.add(key=name).value
    kind = {str: "string_value", int: "int_value", float: "double_value"}[type(value)]
    setattr(held, kind, value)


def measure(web: str, sample: list[tuple[str, str, str]], chosen, url: str) -> None:
    conn = http.client.HTTPConnection(urlsplit(web).netloc, timeout=30)
    dice = random.Random(7)
    picked = [dice.choice(sample) for _ in range(chosen.look_ups)]
    before, began = stored(url), time.monotonic()
    show("warm-up", times(conn, [f"/api/v1/references/{one[0]}" for one in picked[:WARM]]))
    show("reference, API", times(conn, [f"/api/v1/references/{one[0]}" for one in picked]))
    show("reference, page", times(conn, [f"/r/{one[0]}" for one in picked]))
    with psycopg.connect(url) as database:
        group = database.execute("SELECT encode(fingerprint, 'hex') FROM error_group").fetchone()[0]
    queries = filters(dice.choice(sample)).items()
    lists = {f"errors, {name}": f"/api/v1/errors?{urlencode(query)}" for name, query in queries}
    pages = ("/errors", "/", "/groups", f"/groups/{group}", "/tools/tool_07")
    lists |= {f"page {path[:20]}": path for path in pages}
    show("each list for the first time", times(conn, [*lists.values()]))
    for name, path in lists.items():
        show(name, times(conn, [path] * chosen.lists))
    rate = (stored(url) - before) / (time.monotonic() - began)
    print(f"meanwhile {rate:,.0f} spans/s were stored; load {os.getloadavg()[0]:.1f}")


def show_cpu(web: str, sample: list[tuple[str, str, str]], pid: int, folder: Path) -> None:
    """What a look-up costs, whatever else the machine does: nothing else is asked meanwhile."""
    conn = http.client.HTTPConnection(urlsplit(web).netloc, timeout=30)
    postmaster = int((folder / "postgres" / "postmaster.pid").read_text().split()[0])
    for name, path in (("API", "/api/v1/references/{}"), ("page", "/r/{}")):
        paths = [path.format(one[0]) for one in sample[:300]]
        times(conn, paths[:50])
        before = cpu(pid), cpu(postmaster)
        times(conn, paths)
        own, database = (
            (cpu(of) - was) * 1000 / len(paths)
            for of, was in zip((pid, postmaster), before, strict=True)
        )
        print(f"CPU of a look-up, {name:10} service {own:.1f} ms   database {database:.1f} ms")


def cpu(pid: int) -> float:
    """Seconds of a process and its children."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if pid in (int(stat.parent.name), int(fields[1])):
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def filters(one: tuple[str, str, str]) -> dict[str, dict[str, str]]:
    day_ago = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    return {
        "no filter": {}, "tool": {"tool": "tool_07"}, "code": {"code": "INTERNAL"},
        "rare code": {"code": "RATE_LIMITED"}, "outcome": {"outcome": "declined"},
        "reason": {"reason": "timed_out"}, "reason without a call": {"reason": "nothing"},
        "service": {"service": "agent_3"}, "environment": {"environment": "production"},
        "conversation": {"conversation": one[1]}, "trace": {"trace": one[2]},
        "since": {"since": day_ago}, "until": {"until": day_ago},
        "tool and rare code": {"tool": "tool_07", "code": "RATE_LIMITED"},
    }  # fmt: skip


def stored(url: str) -> int:
    with psycopg.connect(url) as conn:
        return conn.execute("SELECT coalesce(sum(calls), 0)::bigint FROM call_total").fetchone()[0]


def times(conn: http.client.HTTPConnection, paths: list[str]) -> list[float]:
    took = []
    for path in paths:
        began = time.perf_counter()
        conn.request("GET", path)
        answer = conn.getresponse()
        answer.read()
        took.append((time.perf_counter() - began) * 1000)
        assert answer.status == 200, (path, answer.status)
    return took


def show(name: str, took: list[float]) -> None:
    ordered = sorted(took)
    p99 = ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]
    print(f"{name:28} p50 {statistics.median(took):7.1f} ms   p99 {p99:7.1f} ms", flush=True)


if __name__ == "__main__":
    main()

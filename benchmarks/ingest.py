"""How fast spans become durable, what that costs, and what the store alone could do.

    python benchmarks/ingest.py                    # everything, about three minutes
    python benchmarks/ingest.py --spans 50000      # shorter

A real service in a process of its own, PostgreSQL as it comes with toolfault (fsync on), and a
loader in a third process that sends requests encoded beforehand. All share the machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from urllib.parse import urlsplit
from uuid import UUID

import grpc
import psycopg

from toolfault import reference
from toolfault.ingest import decode, select
from toolfault.store import partitions, schema
from toolfault.store.embedded import EmbeddedPostgres
from toolfault.store.write import Writer

PER_REQUEST, SENDERS, GROUP = 500, 8, 5_000
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
TICKS = os.sysconf("SC_CLK_TCK")


# --- spans --------------------------------------------------------------------------------------


def requests(spans, per_request=PER_REQUEST, seed=1, padding=""):
    """Encoded requests: a tenth of the calls failed, all of them are new."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    random, made = Random(f"{seed} {time.time_ns()}"), []
    for at in range(0, spans, per_request):
        request = ExportTraceServiceRequest()
        group = request.resource_spans.add()
        _fill(group.resource, {"service.name": "booking", "deployment.environment.name": "prod"})
        scope = group.scope_spans.add()
        for number in range(at, min(at + per_request, spans)):
            _add(scope, random, number, padding)
        made.append(request.SerializeToString())
    return made


def _add(scope, random, number, padding):
    now, tool = time.time_ns(), f"tool_{number % 40}"
    span = scope.spans.add(
        trace_id=random.randbytes(16), span_id=random.randbytes(8), parent_span_id=random.randbytes(8),
        name=f"execute_tool {tool}", kind=1, start_time_unix_nano=now - 25 * 10**7, end_time_unix_nano=now,
    )  # fmt: skip
    record = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": f"call_{random.randbytes(12).hex()}",
        "gen_ai.agent.name": "concierge", "gen_ai.conversation.id": str(UUID(int=number // 8)),
        "toolfault.start": now - 25 * 10**7, "toolfault.duration": 0.25, "toolfault.outcome": "ok",
        "toolfault.attempts": 1, "toolfault.effect": "applied", "toolfault.run_id": f"run-{UUID(int=number // 8)}",
    }  # fmt: skip
    if number % 10 == 0:
        record |= {
            "toolfault.outcome": "failed", "toolfault.code": "UNAVAILABLE", "toolfault.reason": "upstream_unavailable",
            "toolfault.reference_id": reference.new(), "toolfault.effect": "unknown",
            "toolfault.action": "check_before_retry", "toolfault.exception_type": "httpx.ReadTimeout",
            "toolfault.frame": "booking.calendar:reserve", "toolfault.message": f"The calendar did not answer for room {number % 900}.",
        }  # fmt: skip
    _fill(span, record | ({"padding": padding} if padding else {}))


def _fill(into, told):
    kinds = {str: "string_value", int: "int_value", float: "double_value"}
    for key, value in told.items():
        setattr(into.attributes.add(key=key).value, kinds[type(value)], value)


# --- the loader, in a process of its own --------------------------------------------------------


def load(file, address, transport):
    """Sends each request once, eight at a time; prints how long each took."""
    bodies = pickle.loads(Path(file).read_bytes())  # noqa: S301 - our own
    taken, lock = [], threading.Lock()

    def work():
        send = _by_http(address) if transport == "http" else _by_grpc(address)
        while True:
            with lock:
                if not bodies:
                    return
                body = bodies.pop()
            began = time.perf_counter()
            while not send(body):
                time.sleep(0.2)
            taken.append(time.perf_counter() - began)

    threads = [threading.Thread(target=work) for _ in range(min(SENDERS, len(bodies)))]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"seconds": time.perf_counter() - began, "taken": taken}))


def _by_http(address):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)

    def send(body):
        connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    return send


def _by_grpc(address):
    channel = grpc.insecure_channel(
        urlsplit(address).netloc,
        options=[("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)],
    )
    export = channel.unary_unary(EXPORT)

    def send(body):
        try:
            export(body, timeout=120)
        except grpc.RpcError:
            return False
        return True

    return send


def loaded(bodies, address, transport):
    """Seconds in all and of each request."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(pickle.dumps(bodies))
        file.flush()
        command = [sys.executable, __file__, "--load", file.name, address, transport]
        told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return told["seconds"], told["taken"]


# --- what is measured ---------------------------------------------------------------------------


class Bench:
    """One PostgreSQL, a new database for each measurement."""

    def __init__(self, server_url, server_pid):
        self._server, self._pid = server_url, server_pid

    def database(self, retention):
        name = f"bench_{time.monotonic_ns()}"
        with psycopg.connect(self._server, autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name}")
        url = f"{self._server.rpartition('/')[0]}/{name}"
        schema.upgrade(url)
        with psycopg.connect(url) as conn:
            partitions.maintain(conn, datetime.now(UTC), retention)
        return url

    def store_alone(self, spans, retention=None):
        """Spans per second through the store's write path, already decoded."""
        rows = [row for batch in _decoded(requests(spans)) for row in batch.calls]
        writer = Writer.open(self.database(retention or partitions.Retention()))
        writer.load(rows[:GROUP])
        began = time.perf_counter()
        for at in range(GROUP, len(rows), GROUP):
            writer.load(rows[at : at + GROUP])
        seconds = time.perf_counter() - began
        writer.close()
        return (len(rows) - GROUP) / seconds

    def service(self, bodies, spans, transport, warm_up=True):
        """What the service does with requests."""
        with _serving(self.database(partitions.Retention())) as (pid, addresses):
            if warm_up:
                loaded(requests(5_000, seed=2), addresses[transport], transport)
            before = _cpu(pid), _cpu_of_server(self._pid)
            seconds, taken = loaded(bodies, addresses[transport], transport)
            after = _cpu(pid), _cpu_of_server(self._pid)
            return {
                "spans/s": spans / seconds,
                "service us/span": (after[0] - before[0]) / spans * 1e6,
                "postgres us/span": (after[1] - before[1]) / spans * 1e6,
                "p50 ms": statistics.median(taken) * 1e3,
                "p99 ms": sorted(taken)[int(len(taken) * 0.99)] * 1e3,
                "peak MiB": _peak_mib(pid),
            }


def _decoded(bodies):
    for body in bodies:
        yield from select.spans(decode.traces(body, is_json=False), datetime.now(UTC))


@contextmanager
def _serving(url):
    command = [sys.executable, "-m", "toolfault.cli", "up", "--json"]
    command += ["--grpc-port", "0", "--http-port", "0", "--web-port", "0"]
    environment = os.environ | {"TOOLFAULT_DATABASE_URL": url, "TOOLFAULT_LOG_LEVEL": "error"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield process.pid, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def _cpu(pid):
    """Seconds of user and system time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _cpu_of_server(pid):
    """Of PostgreSQL with the processes it has and had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / TICKS
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return _cpu(pid) + ended + sum(map(_cpu, children))


def _peak_mib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _shown(name, result):
    print(f"{name:<28}", "  ".join(f"{key} {value:,.1f}" for key, value in result.items()), flush=True)  # fmt: skip


def measure(spans):
    with tempfile.TemporaryDirectory(prefix="toolfault-bench-") as folder:
        server = EmbeddedPostgres(Path(folder))
        try:
            url = server.start()
            pid = int((Path(folder) / "postgres" / "postmaster.pid").read_text().split()[0])
            _measure(Bench(url, pid), spans)
        finally:
            server.stop()


def _measure(bench, spans):
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {spans:,} spans")
    for transport in ("http", "grpc"):
        alone = bench.store_alone(spans)
        result = bench.service(requests(spans), spans, transport)
        result |= {"store alone spans/s": alone, "ratio": result["spans/s"] / alone}
        _shown(transport, result)
    for days in (1, 400):
        few = partitions.Retention(ok_days=days, days=days, outline_days=400, ahead_days=1)
        _shown(f"store, {days} days", {"spans/s": bench.store_alone(spans // 2, few)})
    wide = "x" * 61_000
    _shown("8 MiB requests, http", bench.service(requests(2_600, 130, padding=wide), 2_600, "http"))  # fmt: skip
    for transport in ("http", "grpc"):
        bodies = requests(6_000, 1_000, padding=wide)
        _shown(f"six of 60 MiB, {transport}", bench.service(bodies, 6_000, transport, warm_up=False))  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spans", type=int, default=200_000)
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        load(*chosen.load)
    else:
        measure(chosen.spans)


if __name__ == "__main__":
    main()

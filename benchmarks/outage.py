"""What the guard adds while its server is down or hangs, and what becomes of the telemetry.

Run by `overhead.py`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import PIPE
from threading import Thread

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from toolfault.conventions import COUNT, TELEMETRY_DROPPED

AGENT = """
import contextlib, json, statistics, time, toolfault
from opentelemetry import trace
toolfault.configure("bench")
tracer = trace.get_tracer("bare")
def body(fail):
    if fail:
        raise KeyError("slot 10:00")
guarded = toolfault.guard("ping")(body)
def bare(fail):
    with contextlib.suppress(KeyError), tracer.start_as_current_span("execute_tool ping", attributes=ATTRIBUTES) as span:
        span.set_attributes(RECORD)
        body(fail)
taken = {"guard": [], "bare span": []}
for n in range(6000):
    for name, call in ("guard", guarded), ("bare span", bare):
        began = time.perf_counter_ns()
        call(n % 10 == 0)
        taken[name].append((time.perf_counter_ns() - began) / 1000)
        time.sleep(0.0002)
figures = {name: (statistics.median(us), statistics.quantiles(us, n=100)[98]) for name, us in taken.items()}
print(json.dumps([figures, time.time()]))
"""
#: 6,000 spans of each kind; an event and an exception detail of 600 bugs; the declared tool.
SENT = 2 * 6000 + 2 * 600 + 1


class Received(BaseHTTPRequestHandler):
    """Counts the spans and records that arrive, and the lost ones that are reported."""

    arrived = lost = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            for told in ExportTraceServiceRequest.FromString(body).resource_spans:
                Received.arrived += sum(len(scope.spans) for scope in told.scope_spans)
        else:
            for told in ExportLogsServiceRequest.FromString(body).resource_logs:
                for record in (r for scope in told.scope_logs for r in scope.log_records):
                    self.count(record)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def count(self, record):
        if record.event_name == TELEMETRY_DROPPED:
            Received.lost += sum(a.value.int_value for a in record.attributes if a.key == COUNT)
        else:
            Received.arrived += 1

    def log_message(self, *_):
        pass


def without_a_server(attributes):
    """Calls in turn with bare spans of the same process; every tenth of both raises.

    Args:
        attributes: the line of Python that says what the bare spans carry.
    """
    print("\nno server (6,000 calls, one in ten a bug)")
    script = f"{attributes}\n{AGENT}"
    for name in ("down", "hanging"):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            if name == "hanging":
                server.listen()
            figures, exit_took = finished(agent(script, server.getsockname()[1]))
        for kind, (p50, p99) in figures.items():
            print(f"  {name:8} {kind:10} p50 {p50:7.1f} us  p99 {p99:7.1f} us")
        added = figures["guard"][1] - figures["bare span"][1]
        print(
            f"  {name:8} p99 added {added:7.1f} us (hold: <= 1000)  exit {exit_took:.1f} s (<= 5)"
        )
    server_that_returns(script)


def server_that_returns(script):
    """Down for the first seconds: what was lost meanwhile is told to the server once it is back."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = unused.getsockname()
    told = agent(script, address[1])
    time.sleep(5)
    with ThreadingHTTPServer(address, Received) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        finished(told)
        server.shutdown()
    print(
        f"  back after 5 s: of {SENT:,} spans and records {Received.arrived:,} arrived and "
        f"{Received.lost:,} were reported lost; {SENT - Received.arrived - Received.lost} unknown"
    )


def agent(script, port):
    env = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
    return subprocess.Popen([sys.executable, "-c", script], env=env, stdout=PIPE, stderr=PIPE, text=True)  # fmt: skip


def finished(process):
    """The figures an agent printed, and the seconds it took to exit after that."""
    out, _ = process.communicate()
    exited = time.time()
    assert process.returncode == 0, out
    figures, ended = json.loads(out)
    return figures, exited - ended

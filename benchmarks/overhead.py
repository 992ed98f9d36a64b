"""What the guard adds to a call, beside a bare span with the same attributes, in one run.

    python benchmarks/overhead.py

Prints microseconds and ratios; the figures to hold stand beside them. Peers' decorators are
measured where they are installed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import tracemalloc

from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import toolfault
from toolfault import ToolFailure, guard
from toolfault.telemetry import events, spans

ROUNDS, CALLS = 30, 400


class NoSpans(SpanExporter):
    def export(self, spans):
        return SpanExportResult.SUCCESS


class NoLogs(LogRecordExporter):
    def export(self, batch):
        return LogRecordExportResult.SUCCESS

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=10_000):
        return True


ATTRIBUTES = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "ping",
    "gen_ai.tool.type": "function",
    "gen_ai.conversation.id": "conversation",
}
RECORD = {
    "toolfault.start": 1_790_000_000_000_000_000,
    "toolfault.duration": 0.001,
    "toolfault.outcome": "ok",
    "toolfault.attempts": 1,
    "toolfault.effect": "applied",
    "toolfault.run_id": "run",
}


@guard("ping")
def ping():
    return "pong"


@guard("boom")
def boom():
    raise ToolFailure("boom", "down", transient=True)


@guard("bug")
def bug():
    raise KeyError("slot 10:00")


def bare_ok(tracer):
    def call():
        with tracer.start_as_current_span("execute_tool ping", attributes=ATTRIBUTES) as span:
            result = "pong"
            span.set_attributes(RECORD)
        return result

    return call


def bare_failing(tracer):
    def body():
        with tracer.start_as_current_span("execute_tool ping", attributes=ATTRIBUTES) as span:
            span.set_attributes(RECORD)
            raise KeyError("slot 10:00")

    def call():
        with contextlib.suppress(KeyError):
            body()

    return call


def measure(calls):
    """Microseconds per call of each named function, measured in turn: p50 and p99."""
    samples = {name: [] for name in calls}
    for function in calls.values():
        for _ in range(CALLS):
            function()
    gc.disable()
    for _ in range(ROUNDS):
        for name, function in calls.items():
            for _ in range(CALLS):
                began = time.perf_counter_ns()
                function()
                samples[name].append((time.perf_counter_ns() - began) / 1000)
    gc.enable()
    return {
        name: (statistics.median(taken), statistics.quantiles(taken, n=100)[98])
        for name, taken in samples.items()
    }


def peers(tracer_provider):
    found = {}
    if importlib.util.find_spec("openinference"):
        from openinference.instrumentation import OITracer, TraceConfig

        tracer = OITracer(tracer_provider.get_tracer("peer"), TraceConfig())
        found["openinference @tracer.tool"] = tracer.tool(lambda: "pong")
    if importlib.util.find_spec("logfire"):
        import logfire

        logfire.configure(send_to_logfire=False, console=False)
        found["logfire @instrument"] = logfire.instrument("ping")(lambda: "pong")
    return found


def row(name, figures, base=None, holds=""):
    ratio = f"{figures[0] / base[0]:5.2f}x" if base else "      "
    print(f"{name:34} {figures[0]:9.1f} {figures[1]:9.1f}   {ratio}   {holds}")


def without_sdk():
    body = measure({"function": lambda: "pong", "guard, no SDK": ping})
    print(f"{'':34} {'p50 us':>9} {'p99 us':>9}   ratio    figure to hold")
    row("function alone", body["function"])
    row("guard, no SDK", body["guard, no SDK"], holds="p50 <= 5 us")


def with_sdk():
    tracer_provider, logger_provider = TracerProvider(), LoggerProvider()
    tracer_provider.add_span_processor(BatchSpanProcessor(NoSpans()))
    logger_provider.add_log_record_processor(BatchLogRecordProcessor(NoLogs()))
    tracer = tracer_provider.get_tracer("bare")
    trace.set_tracer_provider(tracer_provider)
    spans.use_provider(tracer_provider)
    events.use_provider(logger_provider)
    with toolfault.run("conversation", run_id="run"):
        others = peers(tracer_provider)
        told = measure(
            {
                "bare span": bare_ok(tracer),
                "guard": ping,
                **others,
                "bare span that records": bare_failing(tracer),
                "guard, typed failure": boom,
                "guard, bug with detail": bug,
            }
        )
    row("bare span", told["bare span"])
    row("guard, ok", told["guard"], told["bare span"], "<= 2x")
    for name in others:
        row(name, told[name], told["bare span"])
    base = told["bare span that records"]
    row("bare span, exception recorded", base)
    row("guard, typed failure", told["guard, typed failure"], base, "p50 <= 5x, p99 <= 1000 us")
    row("guard, bug with detail", told["guard, bug with detail"], base, "p50 <= 5x, p99 <= 1000 us")
    spans.use_provider(None)
    events.use_provider(None)


def memory():
    calls = int(os.environ.get("CALLS", "1000000"))
    for _ in range(10_000):
        ping()
    trace.get_tracer_provider().force_flush()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(calls):
        ping()
    trace.get_tracer_provider().force_flush()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(f"\nmemory after {calls:,} more calls: {grown / 1024:+.1f} KiB")


SERVERLESS = """
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
print(json.dumps({name: (statistics.median(us), statistics.quantiles(us, n=100)[98]) for name, us in taken.items()}))
"""


def without_a_server():
    """Calls in turn with bare spans of the same process; every tenth of both raises."""
    print("\nno server (6,000 calls, one in ten a bug)")
    script = f"ATTRIBUTES, RECORD = {ATTRIBUTES!r}, {RECORD!r}\n{SERVERLESS}"
    for name, listens in (("down", False), ("hanging", True)):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
            if listens:
                server.listen()
            else:
                server.close()
            env = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"}
            began = time.monotonic()
            done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)  # fmt: skip
            took = time.monotonic() - began
        told = json.loads(done.stdout)
        for kind, (p50, p99) in told.items():
            print(f"  {name:8} {kind:10} p50 {p50:7.1f} us  p99 {p99:7.1f} us")
        added = told["guard"][1] - told["bare span"][1]
        print(
            f"  {name:8} p99 of the guard beyond the bare span's {added:7.1f} us"
            f" (hold: <= 1000)  whole process {took:.1f} s"
        )


if __name__ == "__main__":
    without_sdk()
    with_sdk()
    memory()
    without_a_server()

"""What the guard adds to a call, beside a bare span with the same attributes, in one run.

    python benchmarks/overhead.py

Prints microseconds and ratios; the figures to hold stand beside them. Beside the p99 of a clock
stands that of the thread's own CPU time: where others use the machine, the clock's is theirs.
Peers' decorators are measured where they are installed. CALLS says how many the memory is watched
over.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import statistics
import time
import tracemalloc
from typing import NamedTuple

from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from outage import without_a_server

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


class Figures(NamedTuple):
    """Microseconds."""

    p50: float
    p99: float
    cpu_p99: float


def measure(calls):
    """Figures of each named function, called in turn."""
    samples = {name: ([], []) for name in calls}
    for function in calls.values():
        for _ in range(CALLS):
            function()
    gc.disable()
    for _ in range(ROUNDS):
        for name, function in calls.items():
            taken, worked = samples[name]
            for _ in range(CALLS):
                cpu = time.thread_time_ns()
                began = time.perf_counter_ns()
                function()
                taken.append((time.perf_counter_ns() - began) / 1000)
                worked.append((time.thread_time_ns() - cpu) / 1000)
    gc.enable()
    return {
        name: Figures(statistics.median(taken), p99(taken), p99(worked))
        for name, (taken, worked) in samples.items()
    }


def p99(taken):
    return statistics.quantiles(taken, n=100)[98]


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
    ratio = f"{figures.p50 / base.p50:5.2f}x" if base else "      "
    told = " ".join(f"{figure:9.1f}" for figure in figures)
    print(f"{name:30} {told}   {ratio}   {holds}")


def without_sdk():
    body = measure({"function": lambda: "pong", "guard, no SDK": ping})
    print(f"{'':30} {'p50 us':>9} {'p99 us':>9} {'p99 CPU':>9}   ratio    figure to hold")
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


if __name__ == "__main__":
    without_sdk()
    with_sdk()
    memory()
    without_a_server(f"ATTRIBUTES, RECORD = {ATTRIBUTES!r}, {RECORD!r}")

"""Batch export that counts what it loses and never holds up the end of the process.

OpenTelemetry's batch processors drop without a count that a program can read. A gate in front of
each keeps at most as many records under way as its queue holds, so every loss happens here, is
counted, and is reported as `telemetry_dropped` with the first export that succeeds again.
Needs the SDK; imported by `setup`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from toolfault.conventions import COUNT, TELEMETRY_DROPPED
from toolfault.telemetry import events

_EXIT_SECONDS = 4.0  # with the rest of its work the interpreter ends within 5 s
_DEFAULT_QUEUE, _DEFAULT_BATCH = 2048, 512


def _queue_size(variable: str) -> int:
    told = os.environ.get(variable) or str(_DEFAULT_QUEUE)
    if not told.strip().isdecimal() or not int(told):
        raise ValueError(f"{variable} is {told!r}; give a number of records, 1 or more")
    return int(told)


def _batch_size(variable: str, queue: int) -> int:
    """As told, or the SDK's own, but no more than the queue holds: the SDK refuses that."""
    told = os.environ.get(variable, "")
    return min(int(told) if told.isdecimal() and int(told) else _DEFAULT_BATCH, queue)


class Gate:
    """Records under way and records lost, of one processor."""

    def __init__(self, queue_variable: str) -> None:
        self.limit = _queue_size(queue_variable)
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._lost = 0

    def admit(self) -> bool:
        """Whether there is room for one more record; a refused one is counted as lost."""
        with self._lock:
            if self._under_way >= self.limit:
                self._lost += 1
                return False
            self._under_way += 1
            return True

    def lose(self, count: int) -> None:
        """Count records as lost."""
        with self._lock:
            self._lost += count

    def done(self, count: int, *, delivered: bool) -> None:
        """An export ended; after a delivered one, earlier losses are reported."""
        with self._lock:
            self._under_way -= count
            if not delivered:
                self._lost += count
                return
            lost, self._lost = self._lost, 0
        if lost:
            events.emit(TELEMETRY_DROPPED, {COUNT: lost}, severity=events.WARN)


class _CountedSpans(SpanExporter):
    def __init__(self, exporter: SpanExporter, gate: Gate) -> None:
        self._exporter = exporter
        self._gate = gate

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            self._gate.done(len(spans), delivered=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class SpanDelivery(SpanProcessor):
    """A batch span processor behind a gate."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._gate = Gate("OTEL_BSP_MAX_QUEUE_SIZE")
        self._batch = BatchSpanProcessor(
            _CountedSpans(exporter, self._gate),
            max_queue_size=self._gate.limit,
            max_export_batch_size=_batch_size("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", self._gate.limit),
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a sampled span, or count it as lost."""
        if span.context is not None and span.context.trace_flags.sampled and self._gate.admit():
            self._batch.on_end(span)

    def shutdown(self) -> None:
        """End the worker after a last export."""
        self._batch.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what is queued."""
        return self._batch.force_flush(timeout_millis)


class _CountedLogs(LogRecordExporter):
    def __init__(self, exporter: LogRecordExporter, gate: Gate) -> None:
        self._exporter = exporter
        self._gate = gate

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        result = LogRecordExportResult.FAILURE
        try:
            result = self._exporter.export(batch)
        finally:
            delivered = result is LogRecordExportResult.SUCCESS
            self._gate.done(len(batch), delivered=delivered)
            if not delivered:
                # A report of losses that was itself lost: its count must not be.
                self._gate.lose(sum(map(_reported, batch)))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 10_000) -> bool:  # noqa: ARG002
        return True


def _reported(record: ReadableLogRecord | ReadWriteLogRecord) -> int:
    told = record.log_record
    if told.event_name != TELEMETRY_DROPPED:
        return 0
    count: Any = (told.attributes or {}).get(COUNT, 0)
    return int(count)


class LogDelivery(LogRecordProcessor):
    """A batch log record processor behind a gate."""

    def __init__(self, exporter: LogRecordExporter) -> None:
        self._gate = Gate("OTEL_BLRP_MAX_QUEUE_SIZE")
        self._batch = BatchLogRecordProcessor(
            _CountedLogs(exporter, self._gate),
            max_queue_size=self._gate.limit,
            max_export_batch_size=_batch_size("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", self._gate.limit),
        )

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Queue a record, or count it as lost."""
        if self._gate.admit():
            self._batch.on_emit(log_record)
        else:
            self._gate.lose(_reported(log_record))

    def shutdown(self) -> None:
        """End the worker after a last export."""
        self._batch.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what is queued."""
        return self._batch.force_flush(timeout_millis)


class Ender:
    """Ends providers from a thread that was started early.

    An export that hangs holds whoever waits for it, and a new thread cannot be started while the
    interpreter ends; so one waits from the beginning, and the process leaves it behind in time.
    """

    def __init__(self) -> None:
        self._ends: list[Callable[[], object]] = []
        self._start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        self._asked, self._ended = threading.Event(), threading.Event()
        self._until = float("inf")  # monotonic s
        threading.Thread(target=self._run, name="toolfault-end", daemon=True).start()

    def add(self, end: Callable[[], object], first: Callable[[], object] | None = None) -> None:
        """Have `end` called at the end, after those that were added earlier, `first` before them.

        Events, set up last, are flushed first: what a tool declares arrives before its calls do.
        They end last, for the end of the spans may tell what was lost.
        """
        self._ends = [*((first,) if first else ()), *self._ends, end]

    def _run(self) -> None:
        self._asked.wait()
        for end in self._ends:
            end()
        self._ended.set()

    def end(self) -> None:
        """Call what was added, and wait 4 seconds at most, however often it is called."""
        now = time.monotonic()
        self._until = min(self._until, now + _EXIT_SECONDS)
        self._asked.set()
        self._ended.wait(max(self._until - now, 0.0))

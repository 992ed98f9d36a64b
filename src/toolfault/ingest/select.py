"""Records to rows: which are stored, as what, and what becomes of the rest.

Stored: calls (our record on a span or a run event; tool spans of processes without the library),
run events, and log records stamped with a reference. The rest is acknowledged and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from toolfault import conventions as c
from toolfault.ingest import events, foreign, record
from toolfault.ingest.decode import Group
from toolfault.ingest.place import Place, place_of
from toolfault.store.rows import Call, Event, Log

#: Rows of one batch: a larger request is committed in several.
MAX_BATCH_ROWS = 10_000
INVALID_ID = "invalid_id"
_NO_TRACE, _NO_SPAN = events.NO_TRACE, events.NO_SPAN


@dataclass(slots=True)
class Batch:
    """What is written together, and what was met on the way to it."""

    calls: list[Call] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    ignored: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """Rows to write."""
        return len(self.calls) + len(self.events) + len(self.logs)


def spans(groups: Iterable[Group], received_at: datetime) -> Iterator[Batch]:
    """The batches of a trace request; at least one."""
    batch = Batch()
    for group in groups:
        place = place_of(group.resource)
        for span in group.records:
            _take_span(batch, span, place, received_at)
            if len(batch.calls) >= MAX_BATCH_ROWS:
                yield batch
                batch = Batch()
    yield batch


def _take_span(batch: Batch, span: Any, place: Place, received_at: datetime) -> None:
    trace_id, span_id = span.trace_id, span.span_id
    if len(trace_id) != 16 or len(span_id) != 8 or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        batch.refused[INVALID_ID] += 1
        return
    attributes = span.attributes
    call = None
    if c.OUTCOME in attributes:
        tool = None if c.TOOL_NAME in attributes else foreign.tool_of(span, attributes)
        times = span.start_time_unix_nano, span.end_time_unix_nano
        call = record.call_of(
            attributes, place, received_at, (trace_id, span_id), times,
            tool=tool, span=span,
        )  # fmt: skip
    elif c.SDK_MARK not in attributes and foreign.is_tool_span(span, attributes):
        call = foreign.call_of(span, attributes, place, received_at)
    if call is None:
        batch.ignored += 1
    else:
        batch.calls.append(call)


def log_records(groups: Iterable[Group], received_at: datetime) -> Iterator[Batch]:
    """The batches of a log request; at least one."""
    batch = Batch()
    for group in groups:
        place = place_of(group.resource)
        for log in group.records:
            _take_log(batch, log, place, received_at)
            if batch.rows >= MAX_BATCH_ROWS:
                yield batch
                batch = Batch()
    yield batch


def _take_log(batch: Batch, log: Any, place: Place, received_at: datetime) -> None:
    attributes = log.attributes
    named = events.event_name(log, attributes)
    if named in c.RECORD_EVENTS:
        batch.calls.append(events.call_of(log, attributes, place, received_at))
    elif named in c.DETAIL_RECORDS:
        batch.logs.append(events.log_of(log, named, attributes, place, received_at))
    elif named is not None and named.startswith(c.EVENT_PREFIX):
        batch.events.append(events.event_of(log, named, attributes, place, received_at))
    elif c.REFERENCE_ID in attributes:
        batch.logs.append(events.log_of(log, named, attributes, place, received_at))
    else:
        batch.ignored += 1

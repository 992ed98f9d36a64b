"""What the ingestion service hands to the store: a row of `tool_call`, `run_event` or `log_record`.

Fields are the tables' columns in their order; a test holds the two together. Times are UTC,
`attributes` is JSON as text, `told_at` is left to the writer.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Call(NamedTuple):
    """One logical tool call; of an ok call only the columns of `tool_call_ok` are kept."""

    started_at: datetime
    told_at: datetime | None
    received_at: datetime
    duration_us: int
    attempts: int
    possibly_twice: bool
    transient: bool
    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes | None
    service: str
    environment: str
    tool: str
    outcome: str
    code: str | None
    reason: str | None
    action: str
    effect: str
    reference_id: str | None
    run_id: str | None
    conversation_id: str | None
    agent: str | None
    version: str | None
    exception_type: str | None
    frame: str | None
    fingerprint: bytes | None
    message: str | None
    attributes: str | None


class Event(NamedTuple):
    """A run event that is not a call."""

    occurred_at: datetime
    told_at: datetime | None
    received_at: datetime
    amount: int | None
    severity: int
    trace_id: bytes
    span_id: bytes
    digest: bytes
    event_name: str
    service: str
    environment: str
    label: str | None
    outcome: str | None
    reference_id: str | None
    run_id: str | None
    conversation_id: str | None
    version: str | None
    attributes: str | None


class Log(NamedTuple):
    """Exception detail, a black-box record, or an application's record stamped with a reference."""

    occurred_at: datetime
    told_at: datetime | None
    received_at: datetime
    severity: int
    trace_id: bytes
    span_id: bytes
    digest: bytes
    event_name: str | None
    service: str
    environment: str
    reference_id: str | None
    exception_type: str | None
    body: str | None
    stacktrace: str | None
    attributes: str | None


class Loaded(NamedTuple):
    """How many rows of a batch were new."""

    calls: int
    events: int
    logs: int

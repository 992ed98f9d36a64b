"""Calls of two services that end in every way, and everything else that a panel counts, as OTLP requests."""

import json
import time
from itertools import count
from uuid import uuid4

from tests.ingest import otlp

from toolfault import conventions as c
from toolfault.reference import new

BOOKING = {
    "service.name": "booking",
    "deployment.environment.name": "production",
    "service.version": "2.1.0",
}
SEARCH = {
    "service.name": "search",
    "deployment.environment.name": "staging",
    "service.version": "7.0.3",
}
#: Of each round, the calls of the tool in trouble: outcome, code, reason, effect, how many.
TROUBLE = (
    ("ok", None, None, "applied", 1),
    ("failed", "INTERNAL", "unmapped_failure", "unknown", 14),
    ("failed", "PERMISSION_DENIED", "token_expired", "none", 22),
    ("timed_out", "UNAVAILABLE", "timed_out", "unknown", 1),
    ("declined", "CONFLICT", "slot_taken", "none", 1),
    ("refused", "PERMISSION_DENIED", "needs_approval", "none", 1),
    ("invalid", "INVALID_ARGUMENT", "date_not_iso", "none", 1),
)
HEALTHY = (("ok", None, None, "applied", 10), ("failed", "NOT_FOUND", "no_such_room", "none", 1))
TOOLS = (
    (BOOKING, "book_slot", TROUBLE),
    (BOOKING, "list_rooms", HEALTHY),
    (SEARCH, "find_person", HEALTHY),
)
_numbers = count(1)


def once(now):
    """What is said before the first round: declarations, and what services say of themselves."""
    for resource, tool, _ in TOOLS:
        declared = {c.TOOL_NAME: tool, c.WRITES: True, c.IDEMPOTENT: False}
        yield "logs", otlp.logs(event(c.TOOL_DECLARED, declared, now), resource=resource)
    dropped = {c.COUNT: 1}
    events = [
        event(c.TELEMETRY_DROPPED, dropped, now),
        event(c.UNREGISTERED_TOOL, {c.TOOL_NAME: "no_such_tool"}, now),
        event("toolfault.something_else", {}, now),
    ]
    yield "logs", otlp.logs(*events, resource=BOOKING)
    yield "traces", otlp.traces(_span("GET /", now, {}), resource=BOOKING)


def each_round(now):
    """One round: calls, exhausted budgets, a late call, a drop."""
    for resource, tool, mix in TOOLS:
        calls = [call(tool, now, how) for *how, amount in mix for _ in range(amount)]
        yield "traces", otlp.traces(*calls, resource=resource)
    an_hour_ago = now - 3_600_000_000_000
    yield "traces", otlp.traces(call("book_slot", an_hour_ago, TROUBLE[0][:4]), resource=BOOKING)
    exhausted = [event(c.BUDGET_EXHAUSTED, {c.TOOL_NAME: "book_slot"}, now) for _ in range(15)]
    dropped = event(c.TELEMETRY_DROPPED, {c.COUNT: 5}, now)
    yield "logs", otlp.logs(*exhausted, dropped, resource=BOOKING)


def call(tool, now, how, seconds=0.05):
    outcome, code, reason, effect = how
    attempts = 2 if outcome == "timed_out" else 1
    record = {
        c.OPERATION_NAME: c.EXECUTE_TOOL,
        c.TOOL_NAME: tool,
        c.START: now,
        c.DURATION: seconds * attempts,
        c.OUTCOME: outcome,
        c.ATTEMPTS: attempts,
        c.EFFECT: effect,
    }
    if outcome != "ok":
        record |= {
            c.CODE: code,
            c.REASON: reason,
            c.REFERENCE_ID: new(),
            c.MESSAGE: f"It did not work: {reason}.",
        }
    if code == "INTERNAL":
        record |= {c.EXCEPTION_TYPE: "KeyError", c.FRAME: "booking.slots:reserve"}
    return _span(f"execute_tool {tool}", now, record)


def _span(name, now, attributes):
    number = next(_numbers)
    ids = {"trace_id": uuid4().bytes, "span_id": number.to_bytes(8, "big")}
    times = {"start_time_unix_nano": now, "end_time_unix_nano": now + 50_000_000}
    return otlp.span(name, attributes, **ids, **times)


def event(name, attributes, now):
    number = next(_numbers)
    return otlp.log(
        name, attributes, time_unix_nano=now + number, span_id=number.to_bytes(8, "big")
    )


def alert(now_text):
    """What Alertmanager tells the look-up service."""
    labels = {
        "alertname": "ToolfaultInternalErrorSpike",
        "severity": "critical",
        "code": "INTERNAL",
    }
    where = {"service": "booking", "environment": "production", "tool": "book_slot"}
    annotations = {
        "summary": "INTERNAL errors of book_slot are far above the usual level.",
        "runbook_url": "https://toolfault.example/runbooks.md#toolfaultinternalerrorspike",
        "lookup_url": "http://localhost:8700/errors?tool=book_slot",
    }
    firing = {"status": "firing", "labels": labels | where, "annotations": annotations}
    firing |= {
        "startsAt": now_text,
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": "1a2b3c4d5e6f7081",
    }
    return json.dumps({"version": "4", "status": "firing", "alerts": [firing]})


def now():
    return time.time_ns()

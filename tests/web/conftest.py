"""An application over a real database, and rows as ingestion would write them."""

import json
from datetime import UTC, date, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client import CollectorRegistry

from toolfault import conventions as names
from toolfault import reference
from toolfault.store.queries.base import open_engine
from toolfault.store.rows import Call, Event, Log
from toolfault.store.write import Writer
from toolfault.web.app import make_app

_numbers = count(1)


def new_reference(day: date | None = None) -> str:
    return reference.new(day=day or datetime.now(UTC).date())


def call(**fields) -> Call:
    """A failed booking, unless told otherwise."""
    number = next(_numbers)
    now = datetime.now(UTC)
    attributes = fields.pop("attributes", {})
    row = {
        "started_at": now - timedelta(minutes=2),
        "told_at": None,
        "received_at": now - timedelta(minutes=1),
        "duration_us": 2_600_000,
        "attempts": 1,
        "possibly_twice": False,
        "transient": False,
        "trace_id": number.to_bytes(16),
        "span_id": number.to_bytes(8),
        "parent_span_id": None,
        "service": "calendar-agent",
        "environment": "production",
        "tool": "book_meeting",
        "outcome": "failed",
        "code": "INTERNAL",
        "reason": "unmapped_failure",
        "action": "stop_and_tell_user",
        "effect": "unknown",
        "reference_id": fields["reference_id"] if "reference_id" in fields else new_reference(),
        "run_id": None,
        "conversation_id": "c-1",
        "agent": "scheduling-assistant",
        "version": "2.14.0",
        "exception_type": "KeyError",
        "frame": "calendar_tools.google:parse_event",
        "fingerprint": b"fingerprint-0001",
        "message": "The tool failed unexpectedly.",
        "attributes": json.dumps(attributes),
    }
    return Call(**{**row, **fields})


def ok(**fields) -> Call:
    quiet = dict.fromkeys(
        ["code", "reason", "reference_id", "exception_type", "frame", "fingerprint", "message"]
    )
    return call(**{**quiet, "outcome": "ok", "action": "none", "effect": "applied", **fields})


def declared(tool="book_meeting", **fields) -> Event:
    """What a process says about one of its tools."""
    attributes = {
        names.TOOL_NAME: tool,
        names.WRITES: True,
        names.IDEMPOTENT: False,
        names.OWNER: "Calendar tools",
        names.OWNER_CONTACT: "#calendar-oncall",
        names.RUNBOOK: "https://runbooks.example.com/book_meeting",
        names.REASONS: json.dumps({"unmapped_failure": "Our calendar had a fault"}),
        **fields,
    }
    return event(names.TOOL_DECLARED, label=tool, attributes=attributes)


def event(name, *, attributes=None, **fields) -> Event:
    number = next(_numbers)
    now = datetime.now(UTC)
    row = {
        "occurred_at": now - timedelta(minutes=3),
        "told_at": None,
        "received_at": now - timedelta(minutes=3),
        "amount": None,
        "severity": 9,
        "trace_id": bytes(16),
        "span_id": bytes(8),
        "digest": number.to_bytes(8),
        "event_name": name,
        "service": "calendar-agent",
        "environment": "production",
        "label": None,
        "outcome": None,
        "reference_id": None,
        "run_id": None,
        "conversation_id": None,
        "version": "2.14.0",
        "attributes": json.dumps(attributes or {}),
    }
    return Event(**{**row, **fields})


def log_of(of: Call, name, **fields) -> Log:
    """A record stamped with a call's reference."""
    attributes = fields.pop("attributes", {})
    row = {
        "occurred_at": of.started_at + timedelta(seconds=1),
        "told_at": None,
        "received_at": of.received_at,
        "severity": 17,
        "trace_id": of.trace_id,
        "span_id": of.span_id,
        "digest": next(_numbers).to_bytes(8),
        "event_name": name,
        "service": of.service,
        "environment": of.environment,
        "reference_id": of.reference_id,
        "exception_type": None,
        "body": None,
        "stacktrace": None,
        "attributes": json.dumps(attributes),
    }
    return Log(**{**row, **fields})


@pytest.fixture
def store(database_url):
    """Writes rows as the service does."""
    writer = Writer.open(database_url)
    yield lambda calls=(), events=(), logs=(): writer.load(calls, events, logs)
    writer.close()


@pytest.fixture
def make():
    """Rows as ingestion would hand them to the store."""
    return SimpleNamespace(
        call=call, ok=ok, declared=declared, event=event, log_of=log_of, reference=new_reference
    )


@pytest.fixture
def engine(database_url):
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def conn(engine):
    with engine.connect() as opened:
        yield opened


@pytest.fixture
def browse(engine):
    """Makes a client of an application with the given settings."""
    clients = []

    def made(**settings):
        app = make_app(engine, **{"registry": CollectorRegistry(), **settings})
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8700"
        )
        clients.append(client)
        return client

    return made


@pytest.fixture
def web(browse):
    """A client of the application as it is on loopback: open."""
    return browse()

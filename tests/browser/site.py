"""The pages over real HTTP, and an afternoon's worth of calls behind them."""

import json
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import httpx
import uvicorn
from prometheus_client import CollectorRegistry
from tests.web.conftest import call, declared, event, log_of, new_reference, ok

from toolfault import conventions as names
from toolfault import reference
from toolfault.store.queries.base import open_engine
from toolfault.store.tokens import Role, create_token
from toolfault.store.write import Writer
from toolfault.web.app import make_app
from toolfault.web.cards import Links

CONVERSATION = "c-58f2e1d7"


@contextmanager
def served(database_url, **settings):
    """The address of the pages over a database, answered by a thread of this process."""
    engine = open_engine(database_url)
    app = make_app(engine, registry=CollectorRegistry(), **settings)
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, ws="none", log_config=None, access_log=False)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        engine.dispose()


@contextmanager
def afternoon(database_url):
    """The pages with one reference of each state; attributes name them."""
    refs = _fill(database_url)
    links = Links(trace="https://traces.example.com/{trace_id}", log=None)
    with served(database_url, links=links) as url:
        _alert(url)
        yield SimpleNamespace(
            url=url, conversation=CONVERSATION, arrive=lambda n: _arrive(database_url, n), **refs
        )


def _arrive(database_url, number):
    """So many errors more."""
    now, writer = datetime.now(UTC), Writer.open(database_url)
    writer.load([call(started_at=now, received_at=now) for _ in range(number)])
    writer.close()


@contextmanager
def guarded(database_url):
    """The pages behind tokens: a reference, and the secret of a support desk."""
    writer, failed = Writer.open(database_url), call()
    writer.load([failed])
    writer.close()
    engine = open_engine(database_url)
    _, secret = create_token(engine, "support-desk", [Role.SUPPORT])
    engine.dispose()
    with served(database_url, is_open=False) as url:
        yield SimpleNamespace(url=url, reference=failed.reference_id, secret=secret)


def _fill(database_url):
    now = datetime.now(UTC)
    failed = _failed(now)
    declined = call(
        outcome="declined", code="CONFLICT", reason="booking_not_cancellable", action="none",
        effect="none", tool="cancel_booking", fingerprint=None, exception_type=None, frame=None,
        message="It begins in less than an hour.", conversation_id=CONVERSATION,
        started_at=now - timedelta(minutes=6),
    )  # fmt: skip
    invalid = call(
        outcome="invalid", code="INVALID_ARGUMENT", reason="argument_not_valid", effect="none",
        action="fix_arguments", attempts=0, attributes={names.FIELD: "date"},
        conversation_id=CONVERSATION, fingerprint=None, exception_type=None, frame=None,
    )  # fmt: skip
    more = [_like(failed, now, i) for i in range(60)]
    booked = [
        ok(conversation_id=CONVERSATION, started_at=now - timedelta(minutes=9 + i))
        for i in range(3)
    ]
    partial = call()
    writer = Writer.open(database_url)
    writer.load([], [declared(tool) for tool in ("book_meeting", "search_flights", "list_slots")])
    writer.load(
        [failed, declined, invalid, *more, *booked, *_week(now), *_followed(now)],
        [
            declared(),
            declared("cancel_booking"),
            _released("2.13.9", now - timedelta(hours=49)),
            _released("2.14.0", now - timedelta(hours=20)),
            _dead_letter(failed),
        ],
        [*_logs(failed), log_of(partial, names.LOG, body="the calendar did not answer")],
    )
    writer.close()
    last = "0" if failed.reference_id[-1] != "0" else "1"
    return {
        "failed": failed.reference_id,
        "group": failed.fingerprint.hex(),
        "declined": declined.reference_id,
        "invalid": invalid.reference_id,
        "mistyped": failed.reference_id[:-1] + last,
        "partial": partial.reference_id,
        "pending": new_reference(),
        "not_received": reference.new(day=(now - timedelta(days=3)).date()),
        "expired": reference.new(day=(now - timedelta(days=60)).date()),
    }


def _failed(now):
    """A booking that was tried twice and may have landed."""
    started = now - timedelta(minutes=4)
    began = int(started.timestamp() * 1e9)
    tries = [
        {"number": 1, "start": began, "end": began + 900_000_000, "code": "UNAVAILABLE",
         "reason": "upstream_unavailable", "effect": "none"},
        {"number": 2, "start": began + 1_700_000_000, "end": began + 2_600_000_000,
         "code": "INTERNAL", "reason": "unmapped_failure", "effect": "unknown", "waited": 0.8},
    ]  # fmt: skip
    return call(
        started_at=started,
        attempts=2,
        conversation_id=CONVERSATION,
        run_id="run-771",
        attributes={names.ATTEMPT_LIST: json.dumps(tries), names.TOOL_CALL_ID: "call_91"},
    )


def _like(failed, now, number):
    """Others of the same group, and some of another."""
    is_same = number % 3
    return call(
        started_at=now - timedelta(minutes=10 + 20 * number),
        received_at=now - timedelta(minutes=9 + 20 * number),
        conversation_id=f"c-{number}",
        version="2.14.0" if number < 30 else "2.13.9",
        **({} if is_same else {
            "tool": "list_slots", "code": "UNAVAILABLE", "reason": "upstream_unavailable",
            "outcome": "timed_out", "fingerprint": b"fingerprint-0002", "action": "retry_later",
            "effect": "none",
        }),
    )  # fmt: skip


def _week(now):
    """What the tools do on other days: mostly well."""
    quiet = {"fingerprint": None, "exception_type": None, "frame": None, "effect": "none"}
    kinds = [
        {**quiet, "outcome": "invalid", "code": "INVALID_ARGUMENT", "reason": "date_not_iso_8601",
         "action": "fix_arguments", "attempts": 0, "attributes": {names.FIELD: "date"}},
        {**quiet, "outcome": "declined", "code": "NOT_FOUND", "reason": "no_free_slot", "action": "none"},
        {**quiet, "outcome": "refused", "code": "PERMISSION_DENIED", "reason": "rejected",
         "action": "stop_and_tell_user", "attempts": 0},
        {**quiet, "outcome": "cancelled", "code": None, "reason": None, "action": "none",
         "effect": "unknown", "reference_id": None},
    ]  # fmt: skip
    calls = []
    for number in range(900):
        at = now - timedelta(minutes=11 * number)
        where = {"tool": ("book_meeting", "search_flights", "list_slots")[number % 3],
                 "started_at": at, "received_at": at, "conversation_id": f"c-w{number // 3}",
                 "duration_us": 200_000 + 7_919 * number % 4_000_000}  # fmt: skip
        calls.append(ok(**where, attempts=1 + (number % 11 == 0)))
        if number % 7 == 0:
            calls.append(call(**{**where, **kinds[number // 7 % 4]}))
    return calls


def _followed(now):
    """A conversation that was told to stop and tried again, and won."""
    at, where = now - timedelta(minutes=31), {"conversation_id": "c-twice"}
    return [
        call(started_at=at, received_at=at, **where),
        ok(started_at=at + timedelta(minutes=1), received_at=at + timedelta(minutes=1), **where),
    ]


def _logs(failed):
    stack = 'Traceback (most recent call last):\n  File "google.py", line 88, in parse_event\n'
    return [
        log_of(failed, names.EXCEPTION, exception_type="KeyError", body="'dateTime'",
               stacktrace=f"{stack}KeyError: 'dateTime'"),
        log_of(failed, names.LOG, body="calendar answered 200 without a start", severity=13,
               attributes={names.LOGGER_NAME: "calendar.google"}),
    ]  # fmt: skip


def _released(version, at):
    """A version declares the tool."""
    return declared()._replace(
        version=version, occurred_at=at, received_at=at, digest=version.encode()[:8].ljust(8)
    )


def _dead_letter(failed):
    return event(names.DEAD_LETTER, label=failed.tool, reference_id=failed.reference_id)


def _alert(url):
    alert = {
        "status": "firing",
        "labels": {"alertname": "ToolfaultInternal", "service": "calendar-agent",
                   "tool": "book_meeting", "severity": "page"},
        "annotations": {"summary": "book_meeting fails with INTERNAL",
                        "runbook_url": "https://runbooks.example.com/internal"},
        "startsAt": (datetime.now(UTC) - timedelta(minutes=8)).isoformat(),
        "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "f1",
    }  # fmt: skip
    body = {"version": "4", "groupKey": "{}", "status": "firing", "receiver": "toolfault",
            "alerts": [alert]}  # fmt: skip
    httpx.post(f"{url}/api/v1/alerts", json=body).raise_for_status()

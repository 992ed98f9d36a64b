"""Some minutes of an ordinary day that goes wrong, for the pictures in docs/images.

At first every tool does what it usually does. Then a new version of one service breaks a tool of it, and soon the
credential of another tool is rejected.
"""

import random
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from tests.dashboards import traffic
from tests.dashboards.conftest import Prometheus, quick, send
from tests.dashboards.grafana import Grafana
from tests.end_to_end.harness import new_database, running
from tests.ingest import otlp

from toolfault import conventions as c
from toolfault.store.embedded import EmbeddedPostgres

PLACES = {
    "booking": ("production", "2.0.4"),
    "billing": ("production", "5.3.1"),
    "search": ("production", "7.0.3"),
    "booking (staging)": ("staging", "2.1.0"),
}
#: Service, tool, calls a second, seconds a call takes.
TOOLS = (
    ("booking", "book_slot", 6, 0.12), ("booking", "cancel_booking", 2, 0.09), ("booking", "list_rooms", 9, 0.04),
    ("billing", "create_invoice", 3, 0.3), ("billing", "refund_payment", 1, 0.5), ("search", "find_person", 8, 0.06),
    ("search", "summarise_week", 2, 1.4), ("booking (staging)", "book_slot", 1, 0.15),
)  # fmt: skip
OK = ("ok", None, None, "applied")
#: What happens now and then on any day, of a thousand calls.
USUAL = (
    (4, ("failed", "UNAVAILABLE", "upstream_unavailable", "none")),
    (3, ("timed_out", "UNAVAILABLE", "timed_out", "unknown")),
    (2, ("failed", "RATE_LIMITED", "too_many_requests", "none")),
    (8, ("invalid", "INVALID_ARGUMENT", "date_not_iso", "none")),
    (2, ("failed", "NOT_FOUND", "no_such_record", "none")),
)
OFTEN = {
    "cancel_booking": (120, ("declined", "CONFLICT", "booking_not_cancellable", "none")),
    "refund_payment": (150, ("refused", "PERMISSION_DENIED", "needs_approval", "none")),
}
BUG = ("failed", "INTERNAL", "unmapped_failure", "unknown")
DENIED = ("failed", "PERMISSION_DENIED", "credential_expired", "none")


def play(service, minutes):
    """One round a second; the bug comes at 30 % of the time, the rejected credential at 50 %."""
    dice = random.Random(4711)  # noqa: S311 - the same day every time
    begun = time.monotonic()
    declared, alerted = set(), False
    with httpx.Client() as client:
        while (gone := (time.monotonic() - begun) / (60 * minutes)) < 1:
            now = time.time_ns()
            broken, denied = gone > 0.3, gone > 0.5
            versions = {name: version for name, (_, version) in PLACES.items()} | (
                {"booking": "2.1.0"} if broken else {}
            )
            for name, version in set(versions.items()) - declared:
                send(client, service, _declared(name, version, now))
            declared |= set(versions.items())
            for name, tool, rate, seconds in TOOLS:
                calls = [
                    _call(dice, tool, now, seconds, bug=broken and (name, tool) == ("booking", "book_slot"),
                          denied=denied and tool == "create_invoice")
                    for _ in range(dice.randint(rate - rate // 2, rate + rate // 2))
                ]  # fmt: skip
                request = otlp.traces(*calls, resource=_resource(name, versions[name]))
                send(client, service, [("traces", request)])
            exhausted = [
                traffic.event(c.BUDGET_EXHAUSTED, {c.TOOL_NAME: "create_invoice"}, now)
                for _ in range(2 if denied else dice.random() < 0.03)
            ]
            billing = _resource("billing", "5.3.1")
            send(client, service, [("logs", otlp.logs(*exhausted, resource=billing))])
            if broken and not alerted:
                alerted = True
                client.post(
                    f"{service['web']}/api/v1/alerts",
                    content=traffic.alert(datetime.now(UTC).isoformat()),
                    headers={"Content-Type": "application/json"},
                )
            time.sleep(max(0, 1 - time.monotonic() % 1))


def _resource(name, version):
    return {
        "service.name": name.partition(" ")[0],
        "deployment.environment.name": PLACES[name][0],
        "service.version": version,
    }


def _declared(name, version, now):
    events = [
        traffic.event(c.TOOL_DECLARED, {c.TOOL_NAME: tool, c.WRITES: True}, now)
        for owner, tool, *_ in TOOLS
        if owner == name
    ]
    yield "logs", otlp.logs(*events, resource=_resource(name, version))


def _call(dice, tool, now, seconds, *, bug, denied):
    how = OK
    drawn = dice.random() * 1000
    for often, other in (*USUAL, *([OFTEN[tool]] if tool in OFTEN else [])):
        drawn -= often
        if drawn < 0:
            how = other
            break
    if bug and dice.random() < 0.55:
        how = BUG
    if denied and dice.random() < 0.8:
        how = DENIED
    took = 2.0 if how[0] == "timed_out" else seconds * dice.lognormvariate(0, 0.4)
    return traffic.call(tool, now, how, took)


@contextmanager
def world(folder: Path, minutes):
    """Grafana's view of it all."""
    with EmbeddedPostgres(folder / "postgres") as server:
        url = new_database(server, "lapse")
        (folder / "prometheus").mkdir()
        with running(TOOLFAULT_DATABASE_URL=url) as service:
            spec = quick(service["web"])
            with Prometheus(folder / "prometheus", service["web"], spec) as address:
                began = time.time() + 3
                play(service, minutes)
                time.sleep(2)
                grafana = Grafana(address, url, spec, began, step=5)
                yield grafana
                grafana.close()

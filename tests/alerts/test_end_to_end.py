"""From a tool that breaks in an agent to the page, and to the incident on the reference's card.

Real Prometheus, Alertmanager, PostgreSQL and service; the rules are the shipped ones with windows of
seconds. The pager is a web server of ours that Alertmanager takes for PagerDuty.
"""

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from tests.end_to_end.harness import Service, environment, new_database, running

from toolfault.alerts.spec import Alerts
from toolfault.demo.monitoring import FAST, start_monitoring

AGENT = Path(__file__).parent / "agent.py"
WITHIN = 100.0  # s
pytestmark = pytest.mark.timeout(300)
AT_ONCE = (
    "internal_error_spike", "many_tools_failing", "credential_rejected", "budget_exhaustion_rising",
)  # fmt: skip
#: At a demo's windows, without its low threshold. A card shows the newest incident: without these two
#: that is the one about the burst.
WITHOUT = ("new_internal_error_group", "internal_errors_elevated")
SPEC = replace(
    FAST,
    alerts=replace(
        Alerts(),
        **{name: replace(getattr(Alerts(), name), wait="0s", keep="5s") for name in AT_ONCE},
        **{name: replace(getattr(Alerts(), name), enabled=False) for name in WITHOUT},
    ),
)


@pytest.fixture(scope="module")
def pages():
    """Everything the pager was told, and its address."""
    told = []

    class Pager(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pager) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield told, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def service(postgres, pages, tmp_path_factory):
    """A service that Prometheus scrapes and Alertmanager tells of alerts."""
    folder = tmp_path_factory.mktemp("monitoring")
    (folder / "key").write_text("visibly-fake")

    def only_the_pager(config):
        receivers = [_reached(receiver, folder) for receiver in config["receivers"]]
        urls = {"pagerduty_url": pages[1]}
        return {**config, "receivers": receivers, "global": {**config["global"], **urls}}

    url = new_database(postgres, "alerts")
    with (
        running(TOOLFAULT_DATABASE_URL=url) as addresses,
        start_monitoring(folder, addresses["web"], SPEC, only_the_pager),
    ):
        yield Service(url, **addresses)


def _reached(receiver, folder):
    if receiver["name"] == "pager":
        (settings,) = receiver["pagerduty_configs"]
        return {
            "name": "pager",
            "pagerduty_configs": [{**settings, "routing_key_file": str(folder / "key")}],
        }
    return receiver if receiver["name"] == "toolfault" else {"name": receiver["name"]}


@contextmanager
def _agent(service, way, conversations, clock):
    """An agent that breaks once its declared tools have been scraped."""
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": service.grpc,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
    }
    command = [sys.executable, str(AGENT), way, str(conversations)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**settings),
    ) as process:
        assert process.stdout.readline() == "ready\n"
        _until(lambda: f'service="breaks-{way}"' in _totals(service))
        time.sleep(4)  # scraped every two seconds
        clock.start()
        out, _ = process.communicate("break\n")
    assert process.returncode == 0
    yield json.loads(out)


def _totals(service):
    return httpx.get(f"{service.web}/metrics/tools").text


def _until(condition):
    deadline = time.monotonic() + WITHIN
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)
    return found


class Clock:
    """Shows beside a test's result how long something took since its agent broke."""

    def __init__(self, record):
        self._record, self._began = record, 0.0

    def start(self):
        self._began = time.monotonic()

    def show(self, what):
        self._record(what, time.monotonic() - self._began)


@pytest.fixture
def clock(record_property):
    return Clock(record_property)


def _incident(service, reference):
    matches = service.look_up(reference)["matches"]
    return matches[0].get("incident") if matches else None


def _triggered(pages, since):
    """Summaries of what woke somebody."""
    return [
        page["payload"]["summary"] for page in pages[0][since:] if page["event_action"] == "trigger"
    ]


def test_a_burst_of_internal_errors_becomes_an_incident_on_the_card_and_ends(service, pages, clock):
    before = len(pages[0])
    with _agent(service, "one", 60, clock) as references:
        incident = _until(lambda: _incident(service, references[0]))
        clock.show("the incident on the card")
    assert incident["name"] == "ToolfaultInternalErrorSpike"
    assert incident["summary"] == (
        "INTERNAL errors of broken are far above the usual level: most likely a bug."
    )
    assert incident["runbook"].endswith("/runbooks#toolfaultinternalerrorspike")
    assert incident["until"] is None
    _until(lambda: _triggered(pages, before))
    clock.show("the page")
    assert _triggered(pages, before) == [incident["summary"]]
    _until(lambda: _incident(service, references[0])["until"])
    clock.show("the end")


def test_two_tools_of_a_service_that_break_are_one_page_that_says_what_each_is(
    service, pages, clock
):
    before = len(pages[0])
    with _agent(service, "two", 60, clock):
        _until(lambda: any("broken_two" in said for said in _triggered(pages, before)))
        clock.show("the page")
    page = pages[0][-1]
    assert page["payload"]["summary"] == (
        "INTERNAL errors of broken_one are far above the usual level: most likely a bug. "
        "INTERNAL errors of broken_two are far above the usual level: most likely a bug."
    )
    links = {link["text"]: link["href"] for link in page["links"]}
    assert links["Calls"].endswith("/errors?service=breaks-two&environment=test")
    assert links["Dashboard"].endswith(
        "/d/toolfault-overview?var-service=breaks-two&var-environment=test"
    )
    assert links["Runbook"].endswith("/runbooks#toolfaultinternalerrorspike")


def test_a_rejected_credential_becomes_an_incident_and_a_page(service, pages, clock):
    before = len(pages[0])
    with _agent(service, "denied", 90, clock) as references:
        incident = _until(lambda: _incident(service, references[0]))
        clock.show("the incident on the card")
    assert incident["name"] == "ToolfaultCredentialRejected"
    _until(lambda: _triggered(pages, before))
    clock.show("the page")
    assert _triggered(pages, before) == [
        "Most calls of denied are denied: its credential has probably expired."
    ]


def test_conversations_that_give_up_become_an_incident_that_wakes_nobody(service, pages, clock):
    before = len(pages[0])
    with _agent(service, "down", 60, clock) as references:
        incident = _until(lambda: _incident(service, references[0]))
        clock.show("the incident on the card")
    assert incident["name"] == "ToolfaultBudgetExhaustionRising"
    assert _triggered(pages, before) == []


def test_six_tools_that_break_at_once_page_once(service, pages, clock):
    before = len(pages[0])
    with _agent(service, "six", 60, clock) as references:
        incident = _until(lambda: _incident(service, references[0]))
        clock.show("the incident on the card")
        _until(lambda: _triggered(pages, before))
        clock.show("the page")
        _until(lambda: _incident(service, references[0])["until"])
    assert incident["name"] == "ToolfaultManyToolsFailing"
    assert _triggered(pages, before) == [
        "Several tools of breaks-six broke at once: look at what they share, not at one tool."
    ]

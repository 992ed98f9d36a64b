"""One world for all tests of this folder: a service that agents report to, and a Prometheus that watches it."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
import yaml
from tests.dashboards import traffic
from tests.dashboards.grafana import Grafana
from tests.end_to_end.harness import environment, new_database, running

from toolfault import ports, settings
from toolfault.alerts.places import expression
from toolfault.alerts.rules import files
from toolfault.alerts.spec import Alerts, Baseline, Links, Spec, Windows, alert_name
from toolfault.dashboards.on_call import DRAWN

#: Alerts that fire as soon as their condition is met.
AT_ONCE = (
    "internal_error_spike",
    "internal_errors_elevated",
    "credential_rejected",
    "permission_denied",
)
INTERNAL = 'toolfault_tool_calls_total{tool="book_slot",outcome="failed",code="INTERNAL"}'
INTERNAL_EACH_ROUND = 14
_MOST_ROUNDS = 60
_READY_WITHIN = 30  # s


def quick(web):
    """The shipped alerts, evaluated every second and without waiting: a test has no five minutes."""
    shipped = Alerts()
    alerts = {name: replace(getattr(shipped, name), wait="0s") for name in AT_ONCE}
    return Spec(
        windows=Windows(evaluation="1s"),
        baseline=Baseline(bucket="3s", learned="3s"),
        links=Links(toolfault=web),
        alerts=replace(shipped, **alerts),
    )


@pytest.fixture(scope="session")
def world(postgres, tmp_path_factory):
    """Grafana's view of it all, after everything a panel shows has happened."""
    url = new_database(postgres, "dashboards")
    began = time.time()
    with running(TOOLFAULT_DATABASE_URL=url) as service:
        spec = quick(service["web"])
        with Prometheus(tmp_path_factory.mktemp("prometheus"), service["web"], spec) as address:
            watch = Watch(address, spec)
            rounds = play(service, watch)
            watch.wait_for(f"sum({INTERNAL}) == {INTERNAL_EACH_ROUND * rounds}")
            watch.wait_for("count(up == 1) == 2")
            grafana = Grafana(address, url, spec, began, rounds=rounds)
            yield grafana
            grafana.close()


class Prometheus:
    """A Prometheus that scrapes the service every second and has the alerts' rules."""

    def __init__(self, folder, web, spec):
        target = [{"targets": [web.removeprefix("http://")]}]
        jobs = {spec.jobs.service: "/metrics", spec.jobs.tools: "/metrics/tools"}
        config = {
            "global": {
                "scrape_interval": "1s",
                "scrape_timeout": "1s",
                "evaluation_interval": "1s",
            },
            "rule_files": ["*.rules.yml"],
            "scrape_configs": [
                {"job_name": job, "metrics_path": path, "static_configs": target}
                for job, path in jobs.items()
            ],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        for name, rules in files(spec).items():
            (folder / name).write_text(yaml.safe_dump(rules))
        with ports.listen(settings.read({}, web_port=0), "web") as free:
            self._port = ports.port_of(free)
        self._folder = folder

    def __enter__(self):
        address = f"http://127.0.0.1:{self._port}"
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={self._folder}/prometheus.yml", "--enable-feature=exemplar-storage",
             f"--storage.tsdb.path={self._folder}/data", f"--web.listen-address=127.0.0.1:{self._port}",
             "--log.level=warn"],
            env=environment(),
        )  # fmt: skip
        deadline = time.monotonic() + _READY_WITHIN
        while not _is_ready(address):
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return address

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)


def _is_ready(address):
    try:
        return httpx.get(f"{address}/-/ready").status_code == 200
    except httpx.TransportError:
        return False


def play(service, watch):
    """The demo's agent, and beside it rounds of traffic until every drawn alert's condition is met: how many."""
    with ThreadPoolExecutor(1) as pool, httpx.Client() as client:
        agent = pool.submit(
            subprocess.run,
            [sys.executable, "-m", "toolfault.demo.agent"],
            env=environment(
                OTEL_EXPORTER_OTLP_ENDPOINT=service["grpc"],
                OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
                OTEL_RESOURCE_ATTRIBUTES="service.version=1.4.0,deployment.environment.name=demo",
            ),
            check=True,
            capture_output=True,
        )
        send(client, service, traffic.once(traffic.now()))
        told = client.post(
            f"{service['web']}/api/v1/alerts",
            content=traffic.alert(datetime.now(UTC).isoformat()),
            headers={"Content-Type": "application/json"},
        )
        assert told.is_success, told.text
        rounds = 0
        while not (agent.done() and watch.has_seen_all()):
            begun = time.monotonic()
            send(client, service, traffic.each_round(traffic.now()))
            time.sleep(max(0, begun + 1 - time.monotonic()))
            rounds += 1
            assert rounds < _MOST_ROUNDS
        agent.result()
        return rounds


class Watch:
    """What Prometheus must have seen before anything is asked of it."""

    def __init__(self, address, spec):
        self._address = address
        self._conditions = [expression(spec, drawn.key) for drawn in DRAWN]
        self._firing = [
            f'ALERTS{{alertstate="firing",alertname="{alert_name(name)}"}}' for name in AT_ONCE
        ]

    def has_seen_all(self):
        return all(map(self._has, [*self._conditions, *self._firing]))

    def wait_for(self, expr):
        deadline = time.monotonic() + _READY_WITHIN
        while not self._has(expr):
            assert time.monotonic() < deadline, expr
            time.sleep(0.2)

    def _has(self, expr):
        asked = httpx.post(f"{self._address}/api/v1/query", data={"query": expr}).json()
        return bool(asked["data"]["result"])


def send(client, service, requests):
    for signal, request in requests:
        answer = client.post(
            f"{service['http']}/v1/{signal}",
            content=request.SerializeToString(),
            headers={"Content-Type": "application/x-protobuf"},
        )
        assert answer.status_code == 200, answer.text

"""One world for all tests of this folder: a service that agents report to, and a Prometheus that watches it."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import httpx
import pytest
import yaml
from tests.dashboards import traffic
from tests.dashboards.grafana import Grafana
from tests.end_to_end.harness import environment, new_database, running

from toolfault import ports, settings
from toolfault.alerts.rules import files
from toolfault.alerts.spec import Alerts, Links, Spec, alert_name
from toolfault.alerts.windows import Baseline, Windows

#: One tool of one service, for which every panel has data, too.
ONE = {"environment": "production", "service": "booking", "tool": "book_slot"}
#: Alerts that fire as soon as their condition is met.
AT_ONCE = (
    "internal_error_spike",
    "internal_errors_elevated",
    "credential_rejected",
    "permission_denied",
)
_MOST_ROUNDS = 200  # of a second or more
_READY_WITHIN = 30  # s
_SETTLED = 2  # s, in which a scrape or an evaluation that has begun ends


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
    """Grafana's view of it all, at a moment when everything a panel shows has happened."""
    url = new_database(postgres, "dashboards")
    began = time.time()
    with running(TOOLFAULT_DATABASE_URL=url) as service:
        spec = quick(service["web"])
        with Prometheus(tmp_path_factory.mktemp("prometheus"), service["web"], spec) as address:
            grafana = Grafana(address, url, spec, began)
            play(service, grafana)
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


def play(service, grafana):
    """The demo's agent, and beside it rounds of traffic until every panel has something to show."""
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
        missing = ["everything"]
        while missing:
            assert grafana.rounds < _MOST_ROUNDS, missing
            begun = time.monotonic()
            send(client, service, traffic.each_round(traffic.now()))
            grafana.rounds += 1
            time.sleep(max(0, begun + 1 - time.monotonic()))
            missing = what_is_missing(grafana) if agent.done() else ["the demo's agent"]
        agent.result()


def what_is_missing(grafana):
    """The first thing that cannot be seen yet; what was seen must stay when all has settled."""
    grafana.until = time.time()
    missing = _missing(grafana)
    if not missing:
        time.sleep(_SETTLED)
        missing = _missing(grafana)
    return missing


def _missing(grafana):
    firing = (f'ALERTS{{alertstate="firing",alertname="{alert_name(name)}"}}' for name in AT_ONCE)
    for expression in (*firing, "count(up == 1) == 2"):
        if not grafana.now(expression, {}):
            return [expression]
    for page, chosen in product(grafana.pages.values(), (None, ONE)):
        values = grafana.values(page, chosen)
        for panel in page["panels"]:
            if not all(grafana.data_of(one, values) for one in panel.get("targets", ())):
                return [page["title"], panel["title"], chosen]
    return []


def send(client, service, requests):
    for signal, request in requests:
        answer = client.post(
            f"{service['http']}/v1/{signal}",
            content=request.SerializeToString(),
            headers={"Content-Type": "application/x-protobuf"},
        )
        assert answer.status_code == 200, answer.text

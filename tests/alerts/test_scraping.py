"""Prometheus' configuration, as Prometheus' own tool understands it."""

import json

from tests.alerts.checks import run

from toolfault.alerts.build import build
from toolfault.alerts.scraping import prometheus
from toolfault.alerts.spec import Spec

REPLICAS = ("https://a.example:8700", "https://b.example:8700")


def test_promtool_accepts_it_with_the_rules_beside_it(tmp_path):
    build(tmp_path, Spec())
    (tmp_path / "token").write_text("visibly-fake")
    config = prometheus(
        Spec(), REPLICAS, alertmanager="http://alertmanager:9093", token_file="token"
    )
    path = tmp_path / "prometheus.yml"
    path.write_text(json.dumps(config))  # which is YAML, too
    done = run("promtool", "check", "config", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("rules found") == 7


def test_both_pages_of_every_replica_are_scraped_with_the_token():
    own, tools = prometheus(Spec(), REPLICAS, token_file="secrets/token")["scrape_configs"]
    assert (own["job_name"], own["metrics_path"]) == ("toolfault", "/metrics")
    assert (tools["job_name"], tools["metrics_path"]) == ("toolfault-tools", "/metrics/tools")
    for job in (own, tools):
        assert job["scheme"] == "https"
        assert job["static_configs"] == [{"targets": ["a.example:8700", "b.example:8700"]}]
        assert job["authorization"] == {"credentials_file": "secrets/token"}


def test_without_a_token_or_an_alertmanager_nothing_is_said_of_them():
    config = prometheus(Spec(), REPLICAS)
    assert config["alerting"] == {"alertmanagers": []}
    assert all("authorization" not in job for job in config["scrape_configs"])

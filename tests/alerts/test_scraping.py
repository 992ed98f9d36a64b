"""Prometheus' configuration, as Prometheus' own tool understands it."""

from pathlib import Path

import yaml
from tests.alerts.checks import run, wrong_scraping

from toolfault.alerts.build import build
from toolfault.alerts.scraping import prometheus
from toolfault.alerts.spec import Spec, Stack

COMMITTED = Path(__file__).parents[2] / "alerts" / "prometheus.yml"
REPLICAS = ("https://a.example:8700", "https://b.example:8700")


def test_promtool_accepts_it_with_the_rules_beside_it(tmp_path):
    build(tmp_path, Spec(stack=Stack(token_file="token")))
    (tmp_path / "token").write_text("visibly-fake")
    done = run("promtool", "check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("rules found") == 8


def test_it_scrapes_service_tools_and_collector_and_tells_alertmanager():
    assert wrong_scraping(yaml.safe_load(COMMITTED.read_text())) == ""


def test_both_pages_of_every_replica_are_scraped_with_the_token():
    spec = Spec(stack=Stack(replicas=REPLICAS, token_file="secrets/token"))
    own, tools, _ = prometheus(spec)["scrape_configs"]
    assert (own["job_name"], own["metrics_path"]) == ("toolfault", "/metrics")
    assert (tools["job_name"], tools["metrics_path"]) == ("toolfault-tools", "/metrics/tools")
    for job in (own, tools):
        assert job["scheme"] == "https"
        assert job["static_configs"] == [{"targets": ["a.example:8700", "b.example:8700"]}]
        assert job["authorization"] == {"credentials_file": "secrets/token"}


def test_without_token_collector_and_alertmanager_nothing_is_said_of_them():
    config = prometheus(Spec(stack=Stack(collectors=(), alertmanagers=(), token_file="")))
    assert config["alerting"] == {"alertmanagers": []}
    assert [job["job_name"] for job in config["scrape_configs"]] == ["toolfault", "toolfault-tools"]
    assert all("authorization" not in job for job in config["scrape_configs"])

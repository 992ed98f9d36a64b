"""Alertmanager's configuration, as Alertmanager's own tool understands it."""

from pathlib import Path

import yaml
from tests.alerts.checks import run, wrong_routes

from toolfault.alerts.build import build
from toolfault.alerts.routing import alertmanager
from toolfault.alerts.spec import Receivers, Spec, Stack

COMMITTED = Path(__file__).parents[2] / "alerts" / "alertmanager.yml"


def test_amtool_accepts_the_configuration():
    done = run("amtool", "check-config", COMMITTED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_reaches_whom_it_should():
    assert wrong_routes(COMMITTED) == ""


def test_an_owner_with_a_channel_is_told_there_and_critical_alerts_still_wake_somebody(tmp_path):
    build(tmp_path, Spec(receivers=Receivers(owner_channels={"payments": "#payments"})))
    config = tmp_path / "alertmanager.yml"

    def reached(**labels: str) -> str:
        pairs = [f"{name}={value}" for name, value in labels.items()]
        done = run("amtool", "config", "routes", "test", f"--config.file={config}", *pairs)
        return done.stdout.strip()

    assert reached(alertname="ToolfaultX", severity="warning", owner="payments") == (
        "toolfault,chat of payments"
    )
    assert reached(alertname="ToolfaultX", severity="critical", owner="payments") == (
        "toolfault,pager"
    )


def test_grouping_and_inhibition_keep_environments_apart():
    config = yaml.safe_load(COMMITTED.read_text())
    assert config["route"]["group_by"] == ["alertname", "service", "environment"]
    equal = [rule.get("equal") for rule in config["inhibit_rules"]]
    assert equal == [
        ["service", "environment", "tool"],
        ["service", "environment", "tool"],
        ["service", "environment"],
        None,  # without telemetry there is nothing to tell services apart
    ]


def _webhook(stack):
    receivers = {
        receiver["name"]: receiver for receiver in alertmanager(Spec(stack=stack))["receivers"]
    }
    (webhook,) = receivers["toolfault"]["webhook_configs"]
    return webhook


def test_the_service_is_told_at_its_first_address_with_a_token_from_a_file():
    stack = Stack(replicas=("https://a.example", "https://b.example"), token_file="secrets/token")
    assert _webhook(stack) == {
        "url": "https://a.example/api/v1/alerts",
        "send_resolved": True,
        "http_config": {"authorization": {"credentials_file": "secrets/token"}},
    }


def test_a_service_that_asks_for_no_token_is_shown_none():
    assert "http_config" not in _webhook(Stack(token_file=""))

"""What is checked of a set of generated files, with Prometheus' and Alertmanager's own tools."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

PROMTOOL = Path(__file__).parent / "promtool"
#: Seconds between evaluations, which promtool does not look at.
INTERVALS = {
    "toolfault-baseline-tool": "30m",
    "toolfault-baseline-ticket": "30m",
    "toolfault-baseline-model": "30m",
    "toolfault-tool": "1m",
    "toolfault-tool-long": "5m",
    "toolfault-ticket": "30m",
    "toolfault-ticket-alerts": "5m",
    "toolfault-model": "1m",
    "toolfault-model-buckets": "5m",
    "toolfault-events": "5m",
    "toolfault-pipeline": "1m",
    "toolfault-silence": "5m",
}
#: Labels of an alert, and the receivers it reaches in turn.
ROUTES = [
    ({"alertname": "ToolfaultInternalErrorSpike", "severity": "critical"}, "toolfault,pager"),
    ({"alertname": "ToolfaultPermissionDenied", "severity": "warning"}, "toolfault,chat"),
    ({"alertname": "ToolfaultPolicyRefusalsElevated", "severity": "ticket"}, "toolfault,tickets"),
    ({"alertname": "ToolfaultWatchdog", "severity": "none"}, "dead-mans-switch"),
    ({"alertname": "SomethingElse", "severity": "critical"}, "pager"),
    # an owner has no channel of their own unless the settings give one
    (
        {"alertname": "ToolfaultLateTelemetry", "severity": "warning", "owner": "somebody"},
        "toolfault,chat",
    ),
]
WAITS: dict[tuple[str, ...], Any] = {
    ("route", "group_wait"): "30s",
    ("route", "group_interval"): "5m",
    ("route", "repeat_interval"): "12h",
    ("route", "routes", 0, "group_wait"): "0s",
    ("route", "routes", 0, "repeat_interval"): "5m",
    ("route", "routes", 1, "group_interval"): "1m",
    ("route", "routes", 2, "repeat_interval"): "1h",
}
RECEIVERS: dict[str, Any] = {
    "pager": {"routing_key_file": "/etc/alertmanager/secrets/pagerduty_routing_key"},
    "chat": {"api_url_file": "/etc/alertmanager/secrets/slack_url", "channel": "#toolfault"},
    "tickets": {
        "api_url_file": "/etc/alertmanager/secrets/slack_url",
        "channel": "#toolfault-tickets",
    },
    "dead-mans-switch": {
        "url": "https://dead-mans-switch.example/toolfault",
        "send_resolved": False,
    },
    "toolfault": {
        "url": "http://toolfault:8700/api/v1/alerts",
        "send_resolved": True,
        "http_config": {"authorization": {"credentials_file": "/run/tokens/scrape"}},
    },
}
_REPLICAS: dict[str, Any] = {
    "scheme": "http",
    "static_configs": [{"targets": ["toolfault:8700"]}],
    "authorization": {"credentials_file": "/run/tokens/scrape"},
}
#: Prometheus' configuration: what to scrape how often, and whom to tell.
SCRAPING: dict[str, Any] = {
    "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
    "rule_files": ["toolfault-*.rules.yml"],
    "alerting": {
        "alertmanagers": [
            {"scheme": "http", "static_configs": [{"targets": ["alertmanager:9093"]}]}
        ]
    },
    "scrape_configs": [
        {"job_name": "toolfault", "metrics_path": "/metrics", **_REPLICAS},
        {"job_name": "toolfault-tools", "metrics_path": "/metrics/tools", **_REPLICAS},
        {
            "job_name": "otel-collector",
            "scheme": "http",
            "static_configs": [{"targets": ["otel-collector:8888"]}],
        },
    ],
}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def cases_of(rule_file: str) -> list[Path]:
    """The promtool tests of a rule file, the quick ones first."""
    tests = [path for path in PROMTOOL.glob("*.yml") if f"alerts/{rule_file}" in path.read_text()]
    return sorted(tests, key=lambda path: path.stat().st_size)


def promtool_test(test: Path, rules: Path) -> str:
    """What promtool says of the rules in this folder; nothing if all is as it should be."""
    copy = rules / f"test-{test.name}"
    copy.write_text(test.read_text().replace("../../../alerts/", f"{rules}/"))
    done = run("promtool", "test", "rules", copy)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def wrong_intervals(files: dict[str, Any]) -> str:
    found = {
        group["name"]: group["interval"]
        for file in files.values()
        for group in file.get("groups", ())
    }
    return "" if found == INTERVALS else f"intervals: {found}"


def wrong_scraping(config: Any) -> str:
    return "" if config == SCRAPING else f"prometheus.yml: {config}"


def wrong_routes(config: Path) -> str:
    """What of the routes, waits and receivers is not as it should be."""
    for labels, receivers in ROUTES:
        pairs = [f"{name}={value}" for name, value in labels.items()]
        done = run(
            "amtool", "config", "routes", "test", f"--config.file={config}",
            f"--verify.receivers={receivers}", *pairs,
        )  # fmt: skip
        if done.returncode != 0:
            return f"{labels}: {done.stdout}{done.stderr}"
    data = yaml.safe_load(config.read_text())
    for path, expected in WAITS.items():
        if _at(data, path) != expected:
            return f"{path}: {_at(data, path)}, not {expected}"
    return _wrong_receivers(data)


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


def _wrong_receivers(data: Any) -> str:
    found = {}
    for receiver in data["receivers"]:
        (settings,) = (value[0] for name, value in receiver.items() if name != "name")
        expected = RECEIVERS.get(receiver["name"], {})
        found[receiver["name"]] = {name: settings.get(name) for name in expected}
        if "http_config" in settings and receiver["name"] != "toolfault":
            return f"{receiver['name']} sends a token"
    return "" if found == RECEIVERS else f"receivers: {found}"

"""Prometheus' configuration: what to scrape, which rules to load, whom to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec


def prometheus(spec: Spec) -> dict[str, Any]:
    """The configuration; /metrics/tools is the same from every replica: one job of its own."""
    stack = spec.stack
    token = {"authorization": {"credentials_file": stack.token_file}} if stack.token_file else {}
    replicas = {**_targets(stack.replicas), **token}
    jobs = [
        {"job_name": spec.jobs.service, "metrics_path": "/metrics", **replicas},
        {"job_name": spec.jobs.tools, "metrics_path": "/metrics/tools", **replicas},
    ]
    if stack.collectors:
        jobs.append({"job_name": spec.jobs.collector, **_targets(stack.collectors)})
    return {
        "global": {"scrape_interval": stack.every, "evaluation_interval": stack.every},
        "rule_files": ["toolfault-*.rules.yml"],
        "alerting": {
            "alertmanagers": [_targets(stack.alertmanagers)] if stack.alertmanagers else []
        },
        "scrape_configs": jobs,
    }


def _targets(addresses: tuple[str, ...]) -> dict[str, Any]:
    """Of one scheme: what Prometheus takes in one place."""
    return {
        "scheme": urlsplit(addresses[0]).scheme,
        "static_configs": [{"targets": [urlsplit(address).netloc for address in addresses]}],
    }

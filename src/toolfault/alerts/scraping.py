"""Prometheus' configuration: what to scrape, which rules to load, whom to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec


def prometheus(
    spec: Spec,
    replicas: tuple[str, ...],
    *,
    every: str = "30s",
    alertmanager: str | None = None,
    token_file: str | None = None,
) -> dict[str, Any]:
    """The configuration for these replicas, by the addresses of their pages.

    /metrics/tools is the same from every replica: one job of its own.
    """
    by = {
        "scheme": urlsplit(replicas[0]).scheme,
        "static_configs": [{"targets": [urlsplit(replica).netloc for replica in replicas]}],
        **({"authorization": {"credentials_file": token_file}} if token_file else {}),
    }
    to = (
        [{"static_configs": [{"targets": [urlsplit(alertmanager).netloc]}]}] if alertmanager else []
    )
    return {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": ["toolfault-*.rules.yml"],
        "alerting": {"alertmanagers": to},
        "scrape_configs": [
            {"job_name": spec.jobs.service, "metrics_path": "/metrics", **by},
            {"job_name": spec.jobs.tools, "metrics_path": "/metrics/tools", **by},
        ],
    }

"""What Grafana reads at its start: data sources with fixed names, and where the dashboards are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfault.dashboards.finish import POSTGRES_PLUGIN, UIDS

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec


def data_sources(spec: Spec) -> dict[str, Any]:
    """Prometheus, whose exemplars lead to cards, and PostgreSQL, which is only read.

    Addresses are the environment's, the password is a file's: Grafana fills them in. A doubled dollar
    is one.
    """
    prometheus = {
        "name": "toolfault Prometheus",
        "type": "prometheus",
        "uid": UIDS["prometheus"],
        "access": "proxy",
        "url": "${TOOLFAULT_PROMETHEUS_URL}",
        "jsonData": {
            "httpMethod": "POST",
            "timeInterval": "15s",
            "exemplarTraceIdDestinations": [
                {
                    "name": "ref",
                    "url": f"{spec.links.toolfault}/r/$${{__value.raw}}",
                    "urlDisplayLabel": "Card of this call",
                }
            ],
        },
    }
    postgres = {
        "name": "toolfault PostgreSQL",
        "type": POSTGRES_PLUGIN,
        "uid": UIDS[POSTGRES_PLUGIN],
        "access": "proxy",
        "url": "${TOOLFAULT_POSTGRES_ADDRESS}",
        "user": "toolfault_read",
        "secureJsonData": {"password": "$__file{/run/secrets/toolfault_read_password}"},
        "jsonData": {
            "database": "${TOOLFAULT_POSTGRES_DATABASE}",
            "sslmode": "${TOOLFAULT_POSTGRES_SSLMODE}",
            "postgresVersion": 1600,
            "maxOpenConns": 5,
        },
    }
    return {"apiVersion": 1, "datasources": [prometheus, postgres]}


def providers() -> dict[str, Any]:
    """The folder that Grafana shows the dashboards in."""
    provider = {
        "name": "toolfault",
        "folder": "toolfault",
        "folderUid": "toolfault",
        "type": "file",
        "allowUiUpdates": False,
        "disableDeletion": True,
        "updateIntervalSeconds": 30,
        "options": {"path": "/etc/grafana/dashboards/toolfault"},
    }
    return {"apiVersion": 1, "providers": [provider]}

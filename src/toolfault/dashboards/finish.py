"""The finishing step: grafanalib writes for a Grafana of years ago, this makes it today's classic JSON.

Classic, as that is what every Grafana provisions from files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfault import conventions as names
from toolfault.dashboards import queries, statements
from toolfault.dashboards.looks import BAD, PLAIN

if TYPE_CHECKING:
    from toolfault.dashboards.spec import Dashboard, Variable

SCHEMA = 42
POSTGRES_PLUGIN = "grafana-postgresql-datasource"
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
POSTGRES = {"type": POSTGRES_PLUGIN, "uid": "${postgres}"}
#: Of the provisioned data sources.
UIDS = {"prometheus": "toolfault-prometheus", POSTGRES_PLUGIN: "toolfault-postgres"}
TITLES = {
    "overview": "Overview",
    "tool": "Tool",
    "on-call": "On-call",
    "pipeline": "Pipeline health",
}

_PAGE = frozenset({
    "annotations", "description", "editable", "graphTooltip", "id", "links", "panels", "refresh",
    "schemaVersion", "tags", "templating", "time", "timepicker", "timezone", "title", "uid", "version",
})  # fmt: skip
_PANEL = frozenset({
    "datasource", "description", "fieldConfig", "gridPos", "id", "options", "targets", "title",
    "transformations", "type",
})  # fmt: skip
_ROW = frozenset({"collapsed", "gridPos", "id", "panels", "title", "type"})


def finished(dashboard: Dashboard, page: dict[str, Any]) -> dict[str, Any]:
    """The page without what Grafana no longer knows, and with what grafanalib does not."""
    return {
        **{key: value for key, value in page.items() if key in _PAGE},
        "id": None,
        "panels": [_panel(panel) for panel in page["panels"]],
        "templating": {"list": _variables(dashboard)},
        "annotations": {"list": _annotations()},
        "links": [_link(key) for key in names.DASHBOARDS if key != dashboard.key],
        "timepicker": {"refresh_intervals": ["10s", "30s", "1m", "5m", "15m"]},
        "version": 1,
    }


def _panel(panel: dict[str, Any]) -> dict[str, Any]:
    if panel["type"] == "row":
        return {key: panel[key] for key in panel.keys() & _ROW}
    kept = {key: _without_nulls(panel[key]) for key in panel.keys() & _PANEL}
    defaults = kept["fieldConfig"]["defaults"]
    defaults["thresholds"] = _thresholds(defaults["thresholds"]["steps"])
    if panel["type"] == "timeseries":
        _modern_timeseries(kept)
    elif panel["type"] in ("state-timeline", "table"):
        _modern(kept)
    return kept


def _thresholds(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The first step has no value; grafanalib writes the text "null"."""
    shown = [
        {"color": step["color"], "value": step["value"] if i else None}
        for i, step in enumerate(steps)
    ]
    return {"mode": "absolute", "steps": shown or [{"color": PLAIN, "value": None}]}


def _without_nulls(value: Any) -> Any:
    """Null means something only as the value of a first threshold."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if one is not None or key == "value"}
        return {key: _without_nulls(one) for key, one in kept.items()}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def _modern_timeseries(panel: dict[str, Any]) -> None:
    panel["options"]["legend"]["showLegend"] = True
    custom = panel["fieldConfig"]["defaults"]["custom"]
    custom["scaleDistribution"] = {"type": "linear"}


def _modern(panel: dict[str, Any]) -> None:
    """Grafanalib's tables and time lines have options of versions long gone."""
    panel["fieldConfig"]["defaults"]["custom"] = {}
    if panel["type"] == "table":
        panel["options"] |= {"showHeader": True, "frameIndex": 0}
    else:
        panel["options"] |= {
            "legend": {
                "showLegend": False,
                "displayMode": "list",
                "placement": "bottom",
                "calcs": [],
            },
            "tooltip": {"mode": "single", "sort": "none"},
        }


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    sources = [
        _source("datasource", "Prometheus", "prometheus"),
        _source("postgres", "PostgreSQL", POSTGRES_PLUGIN),
    ]
    return [*sources, *map(_choice, dashboard.variables)]


def _source(name: str, title: str, plugin: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": title,
        "type": "datasource",
        "query": plugin,
        "current": {"text": UIDS[plugin], "value": UIDS[plugin]},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
    }


def _choice(variable: Variable) -> dict[str, Any]:
    """Without a text of its own for All: SQL gets the values themselves, quoted by Grafana."""
    return {
        "name": variable.name,
        "label": variable.title,
        "type": "query",
        "datasource": PROMETHEUS,
        "definition": variable.query,
        "query": {"qryType": 1, "query": variable.query, "refId": "variable"},
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "includeAll": True,
        "multi": True,
        "options": [],
        "refresh": 2,  # when the time changes
        "regex": "",
        "sort": 1,
    }


def _annotations() -> list[dict[str, Any]]:
    alerts = {
        "name": "Alerts",
        "datasource": PROMETHEUS,
        "enable": True,
        "iconColor": BAD,
        "expr": f"ALERTS{{{queries.FIRING}}}",
        "step": "60s",
        "titleFormat": "{{alertname}}",
        "textFormat": "{{service}} {{environment}} {{tool}}",
        "tagKeys": "severity",
    }
    versions = {
        "name": "Versions started",
        "datasource": POSTGRES,
        "enable": True,
        "iconColor": PLAIN,
        "target": {
            "refId": "versions",
            "editorMode": "code",
            "format": "table",
            "rawQuery": True,
            "rawSql": statements.VERSIONS_STARTED,
        },
    }
    return [alerts, versions]


def _link(key: str) -> dict[str, Any]:
    return {
        "title": TITLES[key],
        "type": "link",
        "url": f"/d/{names.DASHBOARDS[key]}",
        "icon": "dashboard",
        "tooltip": "",
        "tags": [],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }

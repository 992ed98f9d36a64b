"""From the specification to Grafana's JSON. The only module that knows grafanalib."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grafanalib import core as grafana
from grafanalib._gen import DashboardEncoder

from toolfault import conventions as names
from toolfault.dashboards import finish
from toolfault.dashboards.spec import Section, Sql
from toolfault.dashboards.tables import overrides_of_columns, sorting, transformations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolfault.dashboards.spec import Dashboard, Kind, Link, Panel, Prom

_COLUMNS = 24


class _Heatmap(grafana.Panel):  # type: ignore[misc]
    """The present heat map; grafanalib knows the one before it."""

    def to_json_data(self) -> dict[str, Any]:
        scheme = {"mode": "scheme", "scheme": "Oranges", "fill": "dark-orange", "exponent": 0.5}
        options = {
            "calculate": False,
            "cellGap": 1,
            "color": {**scheme, "scale": "exponential", "steps": 64, "reverse": False},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "showValue": "never",
            "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": True},
            "yAxis": {"axisPlacement": "left", "unit": "s", "reverse": False},
        }
        return dict(self.panel_json({"type": "heatmap", "options": options}))


def to_json(dashboard: Dashboard) -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    page = grafana.Dashboard(
        title=dashboard.title,
        uid=names.DASHBOARDS[dashboard.key],
        description=dashboard.says,
        panels=list(_placed(dashboard)),
        editable=False,
        graphTooltip=1,  # one crosshair over all panels
        refresh="1m",
        schemaVersion=finish.SCHEMA,
        tags=["toolfault"],
        time=grafana.Time("now-3h", "now"),
        timezone="browser",
    ).auto_panel_ids()
    return finish.finished(dashboard, json.loads(json.dumps(page, cls=DashboardEncoder)))


def _placed(dashboard: Dashboard) -> Iterator[grafana.Panel]:
    """Panels from left to right; a line is as high as its first panel."""
    x = y = line = 0
    for one in dashboard.content:
        if isinstance(one, Section):
            yield grafana.RowPanel(
                title=one.title, gridPos=grafana.GridPos(1, _COLUMNS, 0, y + line)
            )
            x, y, line = 0, y + line + 1, 0
            continue
        if x + one.width > _COLUMNS:
            x, y = 0, y + line
        yield _panel(one, grafana.GridPos(one.height, one.width, x, y))
        x, line = x + one.width, one.height


def _panel(panel: Panel, place: grafana.GridPos) -> grafana.Panel:
    """What all kinds have in common, then what is the kind's own."""
    common = {
        "title": panel.title,
        "description": panel.says,
        "targets": [_target(panel.kind, i, one) for i, one in enumerate(panel.queries)],
        "dataSource": finish.POSTGRES if isinstance(panel.queries[0], Sql) else finish.PROMETHEUS,
        "thresholds": _steps(panel.limits),
        "gridPos": place,
        "maxDataPoints": None,
    }
    defaults: dict[str, Any] = {"noValue": panel.nothing, "links": _links(panel.links)}
    if panel.decimals is not None:
        defaults["decimals"] = panel.decimals
    kind, own = _KINDS[panel.kind]
    more = own(panel)
    extra = more.pop("extraJson", {})
    extra.setdefault("fieldConfig", {}).setdefault("defaults", {}).update(defaults)
    return kind(**common, **more, extraJson=extra)


def _target(kind: Kind, index: int, query: Prom | Sql) -> dict[str, Any]:
    """Grafanalib's targets know neither exemplars nor editors."""
    ref = {"refId": "ABCDEFGH"[index], "editorMode": "code"}
    if isinstance(query, Sql):
        asked = {"format": "table", "rawQuery": True, "rawSql": query.statement}
        return {**ref, **asked, "datasource": finish.POSTGRES}
    is_now = kind in ("stat", "table")
    return {
        **ref,
        "datasource": finish.PROMETHEUS,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "format": {"table": "table", "heatmap": "heatmap"}.get(kind, "time_series"),
        "range": not is_now,
        "instant": is_now,
        "exemplar": query.exemplars,
    }


def _steps(limits: Mapping[float, str]) -> list[grafana.Threshold]:
    """Grafana's first step has no value."""
    if not limits:
        return []
    (_, first), *others = limits.items()
    steps = [grafana.Threshold(first, 0, 0.0)]
    return [
        *steps,
        *(grafana.Threshold(colour, i, float(at)) for i, (at, colour) in enumerate(others, 1)),
    ]


def _links(links: tuple[Link, ...]) -> list[dict[str, Any]]:
    return [{"title": link.title, "url": link.url, "targetBlank": False} for link in links]


def _stat(panel: Panel) -> dict[str, Any]:
    options = {
        "percentChangeColorMode": "standard",
        "showPercentChange": False,
        "wideLayout": True,
    }
    return {
        "format": panel.unit,
        "colorMode": "background_solid" if len(panel.limits) > 1 else "value",
        "graphMode": "none",
        "reduceCalc": "lastNotNull",
        "noValue": panel.nothing,
        "color": {"mode": "thresholds"},
        "extraJson": {"options": options},
    }


def _timeseries(panel: Panel) -> dict[str, Any]:
    stacking = {"mode": "normal", "group": "A"} if panel.stacked else {"mode": "none", "group": "A"}
    return {
        "unit": panel.unit,
        "fillOpacity": 70 if panel.stacked else 0,
        "lineWidth": 0 if panel.stacked else 2,
        "showPoints": "auto",
        "stacking": stacking,
        "tooltipMode": "multi",
        "tooltipSort": "desc",
        "valueMin": 0,
        "thresholdsStyleMode": "dashed" if panel.limits else "off",
        "overrides": _series_colours(panel.colours),
        "extraJson": {"options": {"tooltip": {"hideZeros": True}}},
    }


def _series_colours(colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """By what a series' name begins with."""
    return [
        {
            "matcher": {"id": "byRegexp", "options": f"/^{name}(?![^ ])/"},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in colours.items()
    ]


def _table(panel: Panel) -> dict[str, Any]:
    options = {"cellHeight": "sm", "sortBy": sorting(panel)}
    return {
        "overrides": overrides_of_columns(panel),
        "transformations": transformations(panel),
        "extraJson": {"options": options},
    }


def _timeline(panel: Panel) -> dict[str, Any]:
    options = {"mergeValues": True, "rowHeight": 0.8, "showValue": "never", "alignValue": "left"}
    field = {"unit": panel.unit, "color": {"mode": "thresholds"}}
    return {"extraJson": {"options": options, "fieldConfig": {"defaults": field}}}


def _heatmap(panel: Panel) -> dict[str, Any]:
    return {"extraJson": {"fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []}}}


_KINDS: dict[Kind, tuple[Any, Any]] = {
    "stat": (grafana.Stat, _stat),
    "timeseries": (grafana.TimeSeries, _timeseries),
    "table": (grafana.Table, _table),
    "timeline": (grafana.StateTimeline, _timeline),
    "heatmap": (_Heatmap, _heatmap),
}

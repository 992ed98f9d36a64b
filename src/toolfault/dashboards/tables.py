"""Columns of a table: which are shown, how, and where their cells lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfault.dashboards.spec import Prom

if TYPE_CHECKING:
    from toolfault.dashboards.spec import Column, Panel


def overrides_of_columns(panel: Panel) -> list[dict[str, Any]]:
    """All columns are hidden, then those with a title are shown: rows link by hidden ones, too."""
    every = {"id": "byRegexp", "options": ".*"}
    hidden = {"id": "custom.hideFrom", "value": _hidden(True)}
    return [{"matcher": every, "properties": [hidden]}, *map(_override, panel.columns)]


def _hidden(hidden: bool) -> dict[str, bool]:
    return {"viz": hidden, "legend": False, "tooltip": False}


def _override(column: Column) -> dict[str, Any]:
    properties = [
        {"id": "custom.hideFrom", "value": _hidden(False)},
        {"id": "displayName", "value": column.title},
    ]
    if column.unit:
        properties.append({"id": "unit", "value": column.unit})
    if column.width:
        properties.append({"id": "custom.width", "value": column.width})
    if column.links:
        links = [{"title": link.title, "url": link.url} for link in column.links]
        properties.append({"id": "links", "value": links})
    properties += _colours(column)
    return {"matcher": {"id": "byName", "options": column.name}, "properties": properties}


def _colours(column: Column) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if column.limits:
        steps = [
            {"color": colour, "value": at if i else None}
            for i, (at, colour) in enumerate(column.limits.items())
        ]
        found.append({"id": "thresholds", "value": {"mode": "absolute", "steps": steps}})
        found.append({"id": "color", "value": {"mode": "thresholds"}})
    if column.colours:
        options = {value: {"color": colour} for value, colour in column.colours.items()}
        found.append({"id": "mappings", "value": [{"type": "value", "options": options}]})
    if found:
        found.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    return found


def sorting(panel: Panel) -> list[dict[str, Any]]:
    """Largest first, by the title of a column."""
    return [{"displayName": panel.sort, "desc": True}] if panel.sort else []


def transformations(panel: Panel) -> list[dict[str, Any]]:
    """Several queries become one table, and columns stand in the order of the specification."""
    order = {column.name: i for i, column in enumerate(panel.columns)}
    organized = {"id": "organize", "options": {"indexByName": order}}
    merged = [{"id": "merge", "options": {}}] if isinstance(panel.queries[0], Prom) else []
    return [*merged, organized]

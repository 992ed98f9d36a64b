"""A page of a dashboard as HTML: places, colours, limits and texts from its JSON, data from what its queries found."""

import math
import re
from datetime import UTC, datetime
from html import escape

from tests.dashboards.plots import heatmap, timeline, timeseries
from tests.dashboards.units import shown

GAP, ROW, TOP = 8, 30, 92
CLASSIC = ("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0")
STYLE = """
* { box-sizing: border-box } body { margin: 0; background: #111217; color: #ccccdc; font: 13px "DejaVu Sans", sans-serif }
header { padding: 12px 16px 0; height: 84px } header b { font-size: 17px; color: #fff } header i { color: #8e95a5; font-style: normal }
header p { margin: 10px 0 0 } header p span { background: #1e2228; border: 1px solid #34383e; padding: 4px 9px; margin-right: 8px; border-radius: 2px }
section { position: absolute; background: #181b1f; border: 1px solid #25282d; border-radius: 3px; overflow: hidden }
section.row { background: none; border: none; font-size: 15px; color: #fff; padding: 5px 2px }
h2 { font-size: 13px; font-weight: 600; margin: 0; padding: 7px 10px 3px; color: #d8d9e3; white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
.stat { position: absolute; inset: 0; display: flex; align-items: center; justify-content: center; font-size: 34px; font-weight: 600; padding-top: 18px }
.nothing { color: #8e95a5; text-align: center; padding: 30px 12px }
table { border-collapse: collapse; width: 100%; table-layout: fixed; font-size: 12px } th, td { text-align: left; padding: 4px 8px; border-bottom: 1px solid #25282d; overflow: hidden; white-space: nowrap; text-overflow: ellipsis }
th { color: #6e9fff; font-weight: 600 } td.n { text-align: right; font-variant-numeric: tabular-nums } th.n { text-align: right } u { text-decoration-color: #4c5666; text-underline-offset: 2px }
svg { display: block } text { fill: #9aa1b1; font-size: 11px } .legend { padding: 0 10px; font-size: 11px; line-height: 16px; height: 18px; overflow: hidden; white-space: nowrap }
.legend b { display: inline-block; width: 12px; height: 3px; margin: 0 5px 3px 0 } .legend span { margin-right: 14px }
"""


def page_html(page, width):
    """The page, and how high it is."""
    boxes = [_box(one, page, width) for one in page["panels"]]
    bottom = max(
        place["y"] + place["h"] for place in (one["panel"]["gridPos"] for one in page["panels"])
    )
    chosen = "".join(f"<span><i>{escape(name)}</i> All</span>" for name in page["values"])
    times = " to ".join(
        datetime.fromtimestamp(page[at], UTC).strftime("%H:%M:%S") for at in ("began", "until")
    )
    head = f"<header><b>{escape(page['title'])}</b> <i>&nbsp; {times} UTC · drawn by tests/dashboards/draw.py from real query results, not by Grafana</i><p>{chosen}</p></header>"
    html = f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{head}{''.join(boxes)}"
    return html, TOP + bottom * (ROW + GAP) + GAP


def _box(one, page, width):
    panel = one["panel"]
    place, unit = panel["gridPos"], (width - GAP) / 24
    w, h = place["w"] * unit - GAP, place["h"] * (ROW + GAP) - GAP
    style = f"left:{GAP + place['x'] * unit:.1f}px;top:{TOP + place['y'] * (ROW + GAP)}px;width:{w:.1f}px;height:{h}px"
    title = escape(panel["title"])
    if panel["type"] == "row":
        return f'<section class=row style="{style}">⌄ {title}</section>'
    defaults = panel["fieldConfig"]["defaults"]
    if not any(one["found"]):
        body = f"<div class=nothing>{escape(defaults['noValue'])}</div>"
    else:
        body = DRAWN[panel["type"]](panel, one["found"], page, (w, h - 28))
    return f'<section style="{style}"><h2>{title}</h2>{body}</section>'


def limit_colour(steps, value):
    """The colour of the last step that the value reaches."""
    colour = steps[0]["color"]
    for step in steps[1:]:
        if value >= step["value"]:
            colour = step["color"]
    return colour


def _stat(panel, found, _page, _size):
    one = found[0][0]
    value = float(next(iter(one.values())) if isinstance(one, dict) else one[1])
    defaults = panel["fieldConfig"]["defaults"]
    colour = limit_colour(defaults["thresholds"]["steps"], value)
    text = shown(value, defaults["unit"], defaults.get("decimals"))
    solid = panel["options"]["colorMode"] == "background_solid"
    style = f"background:{colour};color:#fff" if solid else "color:#6e9fff"
    return f'<div class=stat style="{style}">{text}</div><h2 style="position:absolute;top:0;color:#fff">{escape(panel["title"])}</h2>'


def _series(panel, found):
    """Name, colour and points of each series."""
    fixed = [
        (
            override["matcher"]["options"].strip("/"),
            override["properties"][0]["value"]["fixedColor"],
        )
        for override in panel["fieldConfig"]["overrides"]
    ]
    named = []
    for target, series in zip(panel["targets"], found, strict=True):
        for labels, points in series:
            name = target["legendFormat"]
            for label, value in labels.items():
                name = name.replace(f"{{{{{label}}}}}", value)
            named.append((name, points))
    return [
        (name, _colour(fixed, name) or CLASSIC[i % len(CLASSIC)], points)
        for i, (name, points) in enumerate(sorted(named, key=lambda one: one[0]))
    ]


def _colour(fixed, name):
    return next((colour for pattern, colour in fixed if re.search(pattern, name)), None)


def _lines(panel, found, page, size):
    defaults = panel["fieldConfig"]["defaults"]
    series = _series(panel, found)
    is_stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    if is_stacked:
        series = [one for one in series if any(value for _, value in one[2])] or series[:1]
    steps = defaults["thresholds"]["steps"]
    limits = (
        [(step["value"], step["color"]) for step in steps[1:]]
        if defaults["custom"]["thresholdsStyle"]["mode"] != "off"
        else []
    )
    legend = "".join(
        f'<span><b style="background:{colour}"></b>{escape(name)}</span>'
        for name, colour, _ in series
    )
    plot = timeseries(
        series,
        page,
        (size[0], size[1] - 20),
        defaults["unit"],
        is_stacked=is_stacked,
        limits=limits,
    )
    return f"{plot}<div class=legend>{legend}</div>"


def _timeline(panel, found, page, size):
    colour = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"]
    return timeline(_series(panel, found), page, size, colour)


def _heatmap(_panel, found, page, size):
    return heatmap(found[0], page, size)


def _table(panel, found, _page, size):
    columns = [_column(override) for override in panel["fieldConfig"]["overrides"][1:]]
    rows = found[0] if "rawSql" in panel["targets"][0] else _merged(panel, found)
    if panel["options"]["sortBy"]:
        by = next(
            c["name"] for c in columns if c["title"] == panel["options"]["sortBy"][0]["displayName"]
        )
        rows = sorted(rows, key=lambda row: -(row.get(by) or -math.inf))
    fits = int((size[1] - 26) // 25)
    head = "".join(f"<th{c['class']}{c['width']}>{escape(c['title'])}</th>" for c in columns)
    body = "".join(
        f"<tr>{''.join(_cell(c, row.get(c['name'])) for c in columns)}</tr>" for row in rows[:fits]
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _merged(panel, found):
    """Several results as one table: rows of the same labels are one."""
    rows = {}
    several = len(found) > 1
    for target, series in zip(panel["targets"], found, strict=True):
        for labels, value in series:
            kept = {name: text for name, text in labels.items() if name != "__name__"}
            row = rows.setdefault(tuple(sorted(kept.items())), kept)
            row[f"Value #{target['refId']}" if several else "Value"] = value
    return list(rows.values())


def _column(override):
    told = {one["id"]: one["value"] for one in override["properties"]}
    unit, width = told.get("unit", ""), told.get("custom.width")
    numeric = unit in ("none", "percentunit", "bytes")
    return {
        "name": override["matcher"]["options"], "title": told["displayName"], "unit": unit,
        "class": " class=n" if numeric else "", "width": f' style="width:{width}px"' if width else "",
        "links": "links" in told, "steps": told.get("thresholds", {}).get("steps"),
        "colours": {k: v["color"] for m in told.get("mappings", []) for k, v in m["options"].items()},
    }  # fmt: skip


def _cell(column, value):
    if value is None:
        return f"<td{column['class']}></td>"
    text = escape(shown(value, column["unit"]))
    colour = column["colours"].get(str(value))
    if column["steps"]:
        colour = limit_colour(column["steps"], float(value))
    style = (
        f' style="color:color-mix(in srgb, {colour} 75%, white);font-weight:600"' if colour else ""
    )
    return f"<td{column['class']}{style}>{f'<u>{text}</u>' if column['links'] else text}</td>"


DRAWN = {
    "stat": _stat,
    "timeseries": _lines,
    "table": _table,
    "state-timeline": _timeline,
    "heatmap": _heatmap,
}

"""Graphs as plain SVG."""

import math
from datetime import UTC, datetime
from html import escape
from itertools import pairwise

from tests.dashboards.units import shown

LEFT, RIGHT, TOP, BOTTOM = 64, 12, 6, 20
MARKS = {"alert": "#c4341f", "version": "#5794f2"}


class Frame:
    """Where times and values lie."""

    def __init__(self, page, size, highest):
        self.width, self.height = size[0] - 2, size[1]
        self._began, self._until, self.highest = page["began"], page["until"], highest or 1

    def x(self, at):
        return LEFT + (at - self._began) / (self._until - self._began) * (self.width - LEFT - RIGHT)

    def y(self, value):
        return self.height - BOTTOM - value / self.highest * (self.height - BOTTOM - TOP)

    def times(self):
        step = 60 if self.width > 300 else 120
        at = math.ceil(self._began / step) * step
        while at < self._until:
            text = datetime.fromtimestamp(at, UTC).strftime("%H:%M")
            yield f'<text x="{self.x(at):.0f}" y="{self.height - 5}" text-anchor="middle">{text}</text>'
            at += step

    def svg(self, *parts):
        return f'<svg width="{self.width:.0f}" height="{self.height:.0f}">{"".join(parts)}</svg>'


def timeseries(series, page, size, unit, *, is_stacked, limits):
    tops = _stacked(series) if is_stacked else [points for *_, points in series]
    highest = max(
        [value for points in tops for _, value in points] + [1.05 * limit for limit, _ in limits],
        default=1,
    )
    frame = Frame(page, size, _round_up(highest))
    parts = [*_axis(frame, unit), *frame.times(), *_marks(frame, page)]
    base = {}
    for (_, colour, points), top in zip(series, tops, strict=True):
        if is_stacked:
            parts.append(_area(frame, top, base, colour))
            base |= dict(map(tuple, top))
        else:
            parts.append(
                f'<polyline points="{_line(frame, points)}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
    for limit, colour in limits:
        parts.append(
            f'<line x1="{LEFT}" x2="{frame.width - RIGHT:.0f}" y1="{frame.y(limit):.1f}" y2="{frame.y(limit):.1f}" '
            f'stroke="{colour}" stroke-width="1.5" stroke-dasharray="8 5"/>'
        )
    return frame.svg(*parts)


def _stacked(series):
    below, tops = {}, []
    for *_, points in series:
        top = [(at, value + below.get(at, 0)) for at, value in points]
        below |= dict(top)
        tops.append(top)
    return tops


def _round_up(value):
    if value <= 0:
        return 1
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value)


def _axis(frame, unit):
    for part in range(5):
        value = frame.highest * part / 4
        y = frame.y(value)
        yield f'<line x1="{LEFT}" x2="{frame.width - RIGHT:.0f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#25282d"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(shown(value, unit))}</text>'


def _marks(frame, page):
    for kind, at in page["marks"]:
        if at > page["began"]:
            x = frame.x(at)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{frame.height - BOTTOM}" stroke="{MARKS[kind]}" stroke-dasharray="3 3"/>'


def _line(frame, points):
    return " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in points)


def _area(frame, top, base, colour):
    under = [(at, base.get(at, 0)) for at, _ in reversed(top)]
    return f'<polygon points="{_line(frame, [*top, *under])}" fill="{colour}" fill-opacity="0.75"/>'


def timeline(series, page, size, colour):
    frame = Frame(page, size, 1)
    height = min(24, (frame.height - BOTTOM) / max(len(series), 1))
    parts = [*frame.times(), *_marks(frame, page)]
    step = min(
        (b[0] - a[0] for *_, points in series for a, b in pairwise(points)),
        default=5,
    )
    for i, (name, _, points) in enumerate(series):
        y = TOP + i * height
        parts += [
            f'<rect x="{frame.x(at):.1f}" y="{y:.1f}" width="{frame.x(at + step) - frame.x(at) + 0.5:.1f}" height="{height - 4:.1f}" fill="{colour}"/>'
            for at, _ in points
        ]
        parts.append(f'<text x="{LEFT}" y="{y + 13:.1f}" style="fill:#fff">{escape(name)}</text>')
    return frame.svg(*parts)


def heatmap(series, page, size):
    """Buckets hold those below them: a cell is what a bucket has more than the one below."""
    rising = sorted(series, key=lambda one: float(one[0]["le"]))
    frame = Frame(page, size, len(rising))
    times = sorted({at for _, points in rising for at, _ in points})
    width = frame.x(times[-1]) - frame.x(times[-2]) if len(times) > 1 else 5
    cells, below = [], {}
    for i, (labels, points) in enumerate(rising):
        cells += [(at, i, value - below.get(at, 0)) for at, value in points]
        below = dict(map(tuple, points))
        labels["name"] = "more" if labels["le"] == "+Inf" else shown(float(labels["le"]), "s")
    most = max(value for *_, value in cells) or 1
    parts = [
        f'<rect x="{frame.x(at):.1f}" y="{frame.y(i + 1):.1f}" width="{width - 1:.1f}" height="{frame.y(i) - frame.y(i + 1) - 1:.1f}" '
        f'fill="#ff9830" fill-opacity="{max(0.06, (value / most) ** 0.5):.2f}"/>'
        for at, i, value in cells
        if value > 0 and at > page["began"]
    ]
    names = [
        f'<text x="{LEFT - 6}" y="{frame.y(i + 0.5) + 4:.1f}" text-anchor="end">{labels["name"]}</text>'
        for i, (labels, _) in enumerate(rising)
    ]
    return frame.svg(*parts, *names, *frame.times())

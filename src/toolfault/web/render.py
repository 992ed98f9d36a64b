"""Templates: everything escaped, and what cannot be seen made visible."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from toolfault.web import charts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Control, format (direction among them), private and lone surrogate characters; line ends stay.
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_KEPT = frozenset("\n\t")


def visible(value: Any) -> Any:
    """Text in which nothing hides: control and direction characters are written out."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isprintable() or value.replace("\n", "").replace("\t", "").isprintable():
        return value  # at once, not symbol by symbol
    return "".join(_shown(symbol) for symbol in value)


def _shown(symbol: str) -> str:
    if symbol in _KEPT or unicodedata.category(symbol) not in _UNSEEN:
        return symbol
    return f"[U+{ord(symbol):04X}]"


def clock(at: datetime) -> str:
    """Time of day."""
    return f"{at.astimezone(UTC):%H:%M:%S}"


def moment(at: datetime) -> str:
    """Day and time."""
    return f"{at.astimezone(UTC):%-d %b %Y, %H:%M:%S}"


def day_clock(at: datetime) -> str:
    """Day and minute, short."""
    return f"{at.astimezone(UTC):%-d %b %H:%M}"


def stretch(since: datetime, until: datetime | None) -> str:
    """From when until when, short."""
    if until is None:
        return f"since {day_clock(since)}"
    if day_clock(since) == day_clock(until):
        return f"{day_clock(since)}, less than a minute"
    is_one_day = since.astimezone(UTC).date() == until.astimezone(UTC).date()
    end = f"{until.astimezone(UTC):%H:%M}" if is_one_day else day_clock(until)
    return f"{day_clock(since)} to {end}"


def milliseconds(at: datetime) -> str:
    """Time of day to the millisecond, for log lines."""
    return f"{at.astimezone(UTC):%H:%M:%S.%f}"[:-3]


def as_json(value: Any) -> str:
    """A value as an envelope is shown."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def ago(at: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = (now - at).total_seconds()
    if seconds < 0:
        return "ahead of this clock"
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {word} ago"
    return f"{int(seconds)} s ago"


def span(seconds: float) -> str:
    """A duration with three digits at most."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def as_line(counts: Sequence[int]) -> charts.Line:
    """Counts as a small line that fills its height."""
    return charts.line(counts, 0, most=max(counts, default=0))


def as_points(counts: Sequence[int], width: int, height: int) -> str:
    """Counts as the points of a line across so many pixels."""
    across, down = (width - 4) / max(len(counts) - 1, 1), (height - 7) / max(*counts, 1)
    return " ".join(
        f"{2 + i * across:.1f},{height - 3 - n * down:.1f}" for i, n in enumerate(counts)
    )


def _environment() -> Environment:
    templates = Environment(
        loader=PackageLoader("toolfault.web"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (
        clock, moment, day_clock, stretch, milliseconds, as_json, as_line, as_points, ago, span,
    ):  # fmt: skip
        templates.filters[function.__name__] = function
    return templates


_TEMPLATES = _environment()


def page(template: str, values: Mapping[str, Any]) -> str:
    """A page from its template."""
    return _TEMPLATES.get_template(template).render(values)

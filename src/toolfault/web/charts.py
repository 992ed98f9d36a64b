"""Where the parts of a chart lie: in per cent across, so that text keeps its size, in pixels down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from toolfault.taxonomy import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: What was not ok, in the order in which it is stacked.
NOT_OK = (
    Outcome.FAILED,
    Outcome.TIMED_OUT,
    Outcome.INVALID,
    Outcome.NOT_FOUND,
    Outcome.REFUSED,
    Outcome.DECLINED,
    Outcome.CANCELLED,
)
LINE_STEP, LINE_HEIGHT = 4, 22
_STEPS_OF_SCALE = (1, 2, 5)


class Part(NamedTuple):
    """One outcome's share of a bar or a column: where it begins and how long it is."""

    outcome: str
    at: float
    size: float


@dataclass(frozen=True, slots=True)
class Bar:
    """What was not ok among some calls; a bar longer than its scale is cut."""

    parts: tuple[Part, ...]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Columns:
    """Stacked columns over time: the number at the top of the scale, and the parts of each."""

    top: int
    columns: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """The points of a small line, and the height of its usual level."""

    points: tuple[tuple[int, int], ...]
    usual: int | None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time up to now, in equal steps."""

    name: str
    step_name: str
    step: timedelta
    steps: int

    def starts(self, now: datetime) -> list[datetime]:
        """When each step begins, oldest first; the last one is not over yet."""
        size = self.step.total_seconds()
        begun = datetime.fromtimestamp(now.timestamp() // size * size, UTC)
        return [begun - self.step * (self.steps - 1 - i) for i in range(self.steps)]

    def sorted(
        self, counted: Iterable[tuple[datetime, str, int]], starts: Sequence[datetime]
    ) -> list[dict[str, int]]:
        """Calls by outcome in each step, from counts by hour."""
        steps: list[dict[str, int]] = [{} for _ in starts]
        for hour, outcome, calls in counted:
            at = (hour - starts[0]) // self.step
            if 0 <= at < len(steps):
                steps[at][outcome] = steps[at].get(outcome, 0) + calls
        return steps


_HOUR = timedelta(hours=1)
SPANS = {
    "1h": Span("1 h", "hour", _HOUR, 2),
    "24h": Span("24 h", "hour", _HOUR, 25),
    "48h": Span("48 h", "hour", _HOUR, 48),
    "7d": Span("7 d", "6 hours", 6 * _HOUR, 28),
    "28d": Span("28 d", "day", 24 * _HOUR, 28),
}
#: Those that a page of a tool or a group offers.
OFFERED = ("48h", "7d", "28d")


def span(name: str, otherwise: str = "48h") -> Span:
    """The stretch of time of that name."""
    return SPANS.get(name, SPANS[otherwise])


def bar(outcomes: Mapping[str, int], full: float, width: float) -> Bar:
    """A bar that is full at this share of all calls."""
    scale = width / (max(sum(outcomes.values()), 1) * full)
    parts, at = [], 0.0
    for outcome in NOT_OK:
        size = min(outcomes.get(outcome, 0) * scale, width - at)
        if size > 0:
            parts.append(Part(outcome, round(at, 1), round(size, 1)))
            at += size
    return Bar(
        tuple(parts), at >= width and sum(outcomes.get(one, 0) for one in NOT_OK) * scale > width
    )


def columns(steps: Sequence[Mapping[str, int]], room: int) -> Columns:
    """Columns with so many pixels of room; each part from its upper edge, measured from the top."""
    top = _top(
        max((sum(step.get(one, 0) for one in (*NOT_OK, Outcome.OK)) for step in steps), default=0)
    )
    return Columns(top, tuple(tuple(_column(step, room / top, room)) for step in steps))


def _column(step: Mapping[str, int], scale: float, room: int) -> Iterable[Part]:
    edge = float(room)
    for outcome in (*NOT_OK, Outcome.OK):
        if size := step.get(outcome, 0) * scale:
            edge -= size
            yield Part(outcome, round(edge, 1), round(size, 1))


def _top(most: int) -> int:
    """The least round number that is not below the highest column."""
    power = 1
    while True:
        for step in _STEPS_OF_SCALE:
            if step * power >= most:
                return step * power
        power *= 10


def line(values: Sequence[float], usual: float, *, most: float) -> Line:
    """A line from left to right in whole pixels: there is one in every row of a list."""
    down = (LINE_HEIGHT - 6) / (most or 1)
    heights = [round(LINE_HEIGHT - 3 - value * down) for value in values]
    points = tuple((2 + i * LINE_STEP, height) for i, height in enumerate(heights))
    return Line(points, round(LINE_HEIGHT - 3 - usual * down) if usual else None)

"""How far tools are from their own usual level."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from toolfault.store.queries import tools
from toolfault.taxonomy import Outcome
from toolfault.web import charts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Scope

#: Declined and refused are answers, invalid is the model's: shown, not counted as errors.
ERRORS = (Outcome.FAILED, Outcome.TIMED_OUT)
_USUAL = timedelta(days=7)
_HOUR = timedelta(hours=1)
_DAY = 24
#: The bars of all tools are full at this share of calls; the lines reach their top there at least.
FULL_BAR, BAR_WIDTH, LEAST_TOP = 0.2, 176, 0.02
#: A usual level is known once so many calls were seen before.
_ENOUGH = 100
_FEW = 3


@dataclass(slots=True)
class Level:
    """One tool's calls since the hour before this one, beside those of the week before."""

    service: str
    environment: str
    tool: str
    outcomes: Counter[str] = field(default_factory=Counter)
    before: Counter[str] = field(default_factory=Counter)
    course: tuple[float, ...] = ()

    @property
    def calls(self) -> int:
        """All calls lately."""
        return self.outcomes.total()

    @property
    def errors(self) -> int:
        """Those that failed or timed out."""
        return sum(self.outcomes[outcome] for outcome in ERRORS)

    @property
    def share(self) -> float:
        """Errors among all calls lately."""
        return self.errors / self.calls if self.calls else 0.0

    @property
    def usual(self) -> float | None:
        """Errors among all calls of the week before; None while too little was seen."""
        total = self.before.total()
        return sum(self.before[outcome] for outcome in ERRORS) / total if total >= _ENOUGH else None

    @property
    def times(self) -> float | None:
        """How many times its usual level a tool is at; half an error stands for none."""
        if self.usual is None:
            return None
        return self.share / max(self.usual, 0.5 / self.before.total())

    @property
    def is_unlike_itself(self) -> bool:
        """Whether the present level is worth a colour."""
        if self.errors < _FEW:
            return False
        return self.times >= 2 if self.times is not None else self.share >= 0.05

    @property
    def not_ok(self) -> list[tuple[str, int]]:
        """Outcomes besides ok, most frequent first."""
        return [(name, n) for name, n in self.outcomes.most_common() if n and name != Outcome.OK]

    @property
    def bar(self) -> charts.Bar:
        """What was not ok, drawn on one scale for every tool."""
        return charts.bar(self.outcomes, FULL_BAR, BAR_WIDTH)

    @property
    def line(self) -> charts.Line:
        """The share of errors over the day; the usual level at a third of the height at least."""
        usual = self.usual or 0.0
        return charts.line(self.course, usual, most=max([*self.course, 3 * usual, LEAST_TOP]))


def lately(now: datetime) -> datetime:
    """From when calls count as recent: the start of the hour before this one."""
    return now.replace(minute=0, second=0, microsecond=0) - _HOUR


def levels(
    conn: Connection, now: datetime, *, tool: str | None = None, scope: Scope = None
) -> list[Level]:
    """All tools, the one most unlike itself first."""
    recent = lately(now)
    found: dict[tuple[str, str, str], Level] = {}
    for row in tools.ended(conn, recent - _USUAL, recent, tool=tool, scope=scope):
        level = found.setdefault(row[:3], Level(*row[:3]))
        level.outcomes[row.outcome] += row.lately
        level.before[row.outcome] += row.before
    return sorted(found.values(), key=_distance, reverse=True)


def _distance(level: Level) -> tuple[bool, float, int]:
    times = level.times if level.times is not None else level.share * 100
    return level.is_unlike_itself, times, level.calls


def total(found: Sequence[Level]) -> Level:
    """All tools taken together."""
    whole = Level("", "", "")
    for level in found:
        whole.outcomes.update(level.outcomes)
        whole.before.update(level.before)
    return whole


def follow(conn: Connection, shown: Sequence[Level], now: datetime) -> None:
    """Gives each of these tools its share of errors in each of the last 24 hours."""
    first = now.replace(minute=0, second=0, microsecond=0) - _HOUR * (_DAY - 1)
    places = {(one.service, one.environment, one.tool): [0.0] * _DAY for one in shown}
    for row in tools.shares(conn, places, first):
        at = (row.hour - first) // _HOUR
        if at < _DAY:
            places[row[:3]][at] = row.errors / row.calls
    for one in shown:
        one.course = tuple(places[one.service, one.environment, one.tool])

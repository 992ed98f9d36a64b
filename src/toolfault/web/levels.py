"""How far tools are from their own usual level."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from toolfault.store.queries import tools
from toolfault.taxonomy import Outcome

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolfault.store.queries.base import Scope

#: Declined and refused are answers, invalid is the model's: shown, not counted as errors.
ERRORS = (Outcome.FAILED, Outcome.TIMED_OUT)
_USUAL = timedelta(days=7)
_HOUR = timedelta(hours=1)
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


def hourly(
    conn: Connection, tool: str, now: datetime, hours: int, scope: Scope = None
) -> tuple[list[datetime], list[int], Counter[str]]:
    """The last hours of a tool: their starts, calls that were not ok in each, and all outcomes."""
    first = now.replace(minute=0, second=0, microsecond=0) - _HOUR * (hours - 1)
    starts = [first + _HOUR * i for i in range(hours)]
    counts, outcomes = Counter[datetime](), Counter[str]()
    for row in tools.hours(conn, tool, first, scope):
        outcomes[row.outcome] += row.calls
        if row.outcome != Outcome.OK:
            counts[row.hour] += row.calls
    return starts, [counts[start] for start in starts], outcomes

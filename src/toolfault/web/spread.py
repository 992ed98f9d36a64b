"""How long a tool's calls take, and whether repeating them helps: from its histograms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfault.store.stage import DURATION_BOUNDS
from toolfault.taxonomy import Outcome
from toolfault.web.render import span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolfault.store.queries.tools import Spread

_QUANTILES = (0.5, 0.95, 0.99)
_TRIES = ("0, stopped before", "1", "2", "3", "4 to 5", "6 to 8", "9 to 12", "over 12")
_NOT_REPEATED = _TRIES[:2]
_DURATIONS = (*(span(bound / 1e6) for bound in DURATION_BOUNDS), "longer")


@dataclass(frozen=True, slots=True)
class Tried:
    """Calls that made so many attempts."""

    attempts: str
    calls: int
    ok: int


@dataclass(frozen=True, slots=True)
class Took:
    """Calls that ended well, or did not, and the seconds within which so many of them ended."""

    calls: int
    half: float
    most: float
    nearly_all: float


@dataclass(frozen=True, slots=True)
class Whole:
    """Durations and attempts of one tool since counting began."""

    calls: int
    attempts: float
    tried: tuple[Tried, ...]
    ok: Took | None
    not_ok: Took | None
    durations: tuple[tuple[str, dict[str, int]], ...]

    @property
    def rescued(self) -> int:
        """Calls that ended well after more than one attempt."""
        return sum(one.ok for one in self.tried if one.attempts not in _NOT_REPEATED)

    @property
    def lost(self) -> int:
        """Calls that were repeated and did not end well."""
        repeated = [one for one in self.tried if one.attempts not in _NOT_REPEATED]
        return sum(one.calls - one.ok for one in repeated)


def whole(rows: Sequence[Spread]) -> Whole | None:
    """The histograms of a tool, read; None where none of its calls was counted."""
    took, tries = _by_outcome(rows, "duration_buckets"), _by_outcome(rows, "attempts_buckets")
    calls = sum(sum(counts) for counts in tries.values())
    if not calls:
        return None
    ended_ok = tries.get(Outcome.OK, [0] * len(_TRIES))
    tried = zip(_TRIES, _summed(tries), ended_ok, strict=True)
    # A cancelled call took as long as somebody was willing to wait.
    bad = {name: one for name, one in took.items() if name not in (Outcome.OK, Outcome.CANCELLED)}
    return Whole(
        calls,
        sum(row.attempts for row in rows) / calls,
        tuple(Tried(name, some, ok) for name, some, ok in tried if some),
        _took(took.get(Outcome.OK, [])),
        _took(_summed(bad)),
        _shown(took),
    )


def _by_outcome(rows: Sequence[Spread], field: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        counts = getattr(row, field)
        so_far = found.get(row.outcome, [0] * len(counts))
        found[row.outcome] = [a + b for a, b in zip(so_far, counts, strict=True)]
    return found


def _summed(histograms: Mapping[str, Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*histograms.values(), strict=True)]


def _took(counts: Sequence[int]) -> Took | None:
    calls = sum(counts)
    return Took(calls, *(_quantile(of, calls, counts) for of in _QUANTILES)) if calls else None


def _quantile(of: float, calls: int, counts: Sequence[int]) -> float:
    """Seconds, as if calls lay evenly within a bucket; of the endless last one its beginning."""
    rank, low = of * calls, 0
    for bound, count in zip(DURATION_BOUNDS, counts, strict=False):
        if count and rank <= count:
            return (low + (bound - low) * rank / count) / 1e6
        rank, low = rank - count, bound
    return low / 1e6


def _shown(took: Mapping[str, Sequence[int]]) -> tuple[tuple[str, dict[str, int]], ...]:
    """Calls by outcome in each bucket, from the first that has any to the last."""
    steps = [
        (name, {outcome: counts[i] for outcome, counts in took.items() if counts[i]})
        for i, name in enumerate(_DURATIONS)
    ]
    filled = [i for i, (_, counts) in enumerate(steps) if counts]
    return tuple(steps[filled[0] : filled[-1] + 1])

"""Error groups: one row per fingerprint, counts per hour, reopened by a version not seen before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolfault.store.totals import hour_of, seen_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from toolfault.store.rows import Call
    from toolfault.store.stage import Stage
    from toolfault.store.totals import Totals

# The versions of services that are deployed hourly add up; past this the database is asked again.
_MOST_KNOWN = 100_000
_REOPEN = """UPDATE error_group SET versions = versions || %(version)s::text,
    status_at = CASE WHEN status = 'resolved' THEN %(now)s ELSE status_at END,
    status = CASE WHEN status = 'resolved' THEN 'open' ELSE status END
    WHERE fingerprint = %(fingerprint)s AND %(version)s::text <> ALL (versions)"""


@dataclass(slots=True)
class _Seen:
    """What a batch has of one group that is not known yet."""

    first: Call  # the first that is not late, if there is one
    versions: set[str] = field(default_factory=set)


class Groups:
    """Remembers which versions of which groups are written, so that most batches write none."""

    def __init__(self) -> None:
        self._known: set[tuple[bytes, str | None]] = set()
        self._added: set[tuple[bytes, str | None]] = set()

    def begin(self) -> None:
        """Forgets what a transaction wrote that did not commit."""
        self._added = set()

    def committed(self) -> None:
        """Remembers what the transaction wrote."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known |= self._added

    def write(self, stage: Stage, calls: Sequence[Call], totals: Totals, now: datetime) -> None:
        """Writes the groups of new calls and counts them; late calls never reopen or announce a group."""
        grouped = [call for call in calls if call.fingerprint is not None]
        if seen := self._unknown(grouped, totals):
            new = _insert(stage, seen)
            for fingerprint in new:
                totals.count_group(seen[fingerprint].first)
            _reopen(stage, {key: group for key, group in seen.items() if key not in new}, now)
        if grouped:
            stage.add("error_group_tally", _tally(grouped, totals.slot))

    def _unknown(self, calls: Iterable[Call], totals: Totals) -> dict[bytes, _Seen]:
        seen: dict[bytes, _Seen] = {}
        for call in calls:
            fingerprint = call.fingerprint or b""
            if (fingerprint, call.version) in self._known:
                continue
            group = seen.setdefault(fingerprint, _Seen(call))
            if totals.is_late(call):
                continue
            if totals.is_late(group.first):
                group.first = call
            if call.version:
                group.versions.add(call.version)
            self._added.add((fingerprint, call.version))
        return seen


def _insert(stage: Stage, seen: dict[bytes, _Seen]) -> set[bytes]:
    """Fingerprints of the groups that are new."""
    stage.add("error_group", [_row(seen[fingerprint]) for fingerprint in sorted(seen)])
    return {fingerprint for (fingerprint,) in stage.cursor.fetchall()}


def _row(group: _Seen) -> tuple[object, ...]:
    call = group.first
    return (
        seen_at(call), call.fingerprint, call.service, call.environment, call.tool, call.code, call.reason,
        call.exception_type, call.frame, call.reference_id, sorted(group.versions),
    )  # fmt: skip


def _reopen(stage: Stage, groups: dict[bytes, _Seen], now: datetime) -> None:
    for fingerprint in sorted(groups):
        for version in sorted(groups[fingerprint].versions):
            stage.cursor.execute(
                _REOPEN, {"fingerprint": fingerprint, "version": version, "now": now}
            )


def _tally(calls: Iterable[Call], slot: int) -> list[tuple[object, ...]]:
    """Rows of `error_group_tally` in the order of their key."""
    counts: dict[tuple[bytes, datetime], tuple[int, datetime]] = {}
    for call in calls:
        at = seen_at(call)
        key = call.fingerprint or b"", hour_of(at)
        count, last = counts.get(key, (0, at))
        counts[key] = count + 1, max(last, at)
    return [(hour, count, last, slot, key) for (key, hour), (count, last) in sorted(counts.items())]

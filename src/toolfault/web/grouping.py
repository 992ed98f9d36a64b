"""Groups as cards, lists and pages show them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from toolfault.store.queries import groups as queries
from toolfault.web.models import GroupSummary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.groups import Brief, Group
    from toolfault.web.listing import GroupItem

_HOUR = timedelta(hours=1)
_HOURS = 24


def summarise(group: Brief) -> GroupSummary:
    """A group as cards show it."""
    return GroupSummary(
        fingerprint=group.fingerprint.hex(),
        title=group_title(group),
        status=group.status,
        calls_last_day=sum(group.trend),
        calls_last_hour=group.calls_last_hour,
        first_seen=group.first_seen,
        last_seen=group.last_seen,
        versions=tuple(group.versions),
        trend=tuple(group.trend),
    )


def group_title(group: Group | Brief) -> str:
    """What a group is called: its exception and place, else its reason, else its code."""
    if group.exception_type:
        place = f" in {group.frame}" if group.frame else ""
        return f"{group.exception_type}{place}"
    return group.reason or group.code


def begin_of_trend(now: datetime) -> datetime:
    """The first of the last 24 hours."""
    return now.replace(minute=0, second=0, microsecond=0) - _HOUR * (_HOURS - 1)


def trends(
    conn: Connection, items: Sequence[GroupItem], now: datetime
) -> dict[str, tuple[int, ...]]:
    """Calls of each group in each of the last 24 hours, by its fingerprint."""
    first = begin_of_trend(now)
    counts: dict[str, list[int]] = {one.fingerprint: [0] * _HOURS for one in items}
    keys = [bytes.fromhex(one.fingerprint) for one in items]
    for row in queries.trends(conn, keys, first):
        at = (row.hour - first) // _HOUR
        if at < _HOURS:
            counts[row.fingerprint.hex()][at] += row.calls
    return {fingerprint: tuple(hours) for fingerprint, hours in counts.items()}

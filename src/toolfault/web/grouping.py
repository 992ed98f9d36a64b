"""Groups as cards, lists and pages show them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from toolfault.store.queries import groups as queries
from toolfault.web.models import GroupSummary

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.groups import Group

_HOUR = timedelta(hours=1)


def summarise(group: Group, hours: tuple[int, ...] = ()) -> GroupSummary:
    """A group as cards and lists show it."""
    return GroupSummary(
        fingerprint=group.fingerprint.hex(),
        title=group_title(group),
        status=group.status,
        calls=group.calls,
        calls_last_hour=group.calls_last_hour,
        first_seen=group.first_seen,
        last_seen=group.last_seen,
        versions=tuple(group.versions),
        trend=hours,
    )


def group_title(group: Group) -> str:
    """What a group is called: its exception and place, else its reason, else its code."""
    if group.exception_type:
        place = f" in {group.frame}" if group.frame else ""
        return f"{group.exception_type}{place}"
    return group.reason or group.code


def trend(conn: Connection, fingerprint: bytes, now: datetime, hours: int = 24) -> tuple[int, ...]:
    """Calls of a group in each of the last hours, oldest first, empty hours included."""
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    since = this_hour - _HOUR * (hours - 1)
    counts = {row.hour: row.calls for row in queries.hours(conn, fingerprint, since)}
    return tuple(counts.get(since + _HOUR * i, 0) for i in range(hours))

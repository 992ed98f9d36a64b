"""What may have caused a group, as its page and the API show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfault.store.queries import causes as queries
from toolfault.web.listing import ReleaseItem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from sqlalchemy import Connection

    from toolfault.store.queries.groups import Group
    from toolfault.web.models import IncidentSummary


def releases(conn: Connection, group: Group, since: datetime) -> tuple[ReleaseItem, ...]:
    """What was released while the group was counted."""
    found = queries.releases(conn, group.tool, since, scope=frozenset([group.service]))
    return tuple(ReleaseItem(**one._asdict()) for one in found)


def marks(
    released: Iterable[queries.Release | ReleaseItem],
    incident: IncidentSummary | None,
    first: datetime,
    shown: timedelta,
) -> list[tuple[float, str]]:
    """Moments to be marked on a chart over time: place in per cent, and what happened."""
    moments = [(one.at, f"{one.version} released, {one.at:%H:%M}") for one in released]
    if incident is not None:
        moments.append((incident.since, f"alert, {incident.since:%H:%M}"))
    placed = [((at - first) / shown * 100, text) for at, text in moments]
    return sorted((round(place, 2), text) for place, text in placed if 0 <= place <= 100)

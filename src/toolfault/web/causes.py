"""What may have caused a group, as its page and the API show it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from toolfault.store.queries import causes as queries
from toolfault.web.listing import ReleaseItem, SharedItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.groups import Group
    from toolfault.web.models import IncidentSummary

_WEEK = timedelta(days=7)
#: A value is shared by the calls of a group from this part of them on.
_MOST_OF = 0.5


def releases(conn: Connection, group: Group, since: datetime) -> tuple[ReleaseItem, ...]:
    """What was released while the group was counted."""
    found = queries.releases(conn, group.tool, since, scope=frozenset([group.service]))
    return tuple(ReleaseItem(**one._asdict()) for one in found)


def shared(conn: Connection, group: Group, now: datetime) -> tuple[SharedItem, ...]:
    """What the group's calls share."""
    seen = queries.shared(conn, group.fingerprint, group.service, group.tool, now - _WEEK)
    return tuple(_shared(seen))


def _shared(seen: Sequence[queries.Shared]) -> Iterable[SharedItem]:
    """The values that most calls of the group have; the ones most unlike other errors first."""
    here, elsewhere = Counter[str](), Counter[str]()
    for one in seen:
        here[one.name] += one.here
        elsewhere[one.name] += one.elsewhere
    items = [
        SharedItem(
            name=one.name,
            value=one.value,
            here=one.here / here[one.name],
            elsewhere=one.elsewhere / elsewhere[one.name] if elsewhere[one.name] else None,
        )
        for one in seen
        if here[one.name] and one.here >= _MOST_OF * here[one.name]
    ]
    return sorted(items, key=lambda item: (item.elsewhere or 0.0) - item.here)


def marks(
    released: Iterable[queries.Release | ReleaseItem],
    incident: IncidentSummary | None,
    first: datetime,
    hours: int,
) -> list[tuple[float, str]]:
    """Moments to be marked on a chart of hours: place in per cent, and what happened."""
    moments = [(one.at, f"{one.version} released, {one.at:%H:%M}") for one in released]
    if incident is not None:
        moments.append((incident.since, f"alert, {incident.since:%H:%M}"))
    placed = [((at - first) / timedelta(hours=hours) * 100, text) for at, text in moments]
    return sorted((round(place, 2), text) for place, text in placed if 0 <= place <= 100)

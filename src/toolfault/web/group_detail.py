"""One group with all that stands around it, for its page and the API."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from toolfault.store.queries import causes as cause_queries
from toolfault.store.queries import groups
from toolfault.web import causes, group_calls, listing
from toolfault.web.incidents import Incidents, place_of
from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Scope
    from toolfault.store.queries.groups import Group, GroupCall
    from toolfault.web.context import Context
    from toolfault.web.group_calls import Conversation

WEEK = timedelta(days=7)
#: Calls of a group that are read.
_READ = 1000
#: Conversations whose next calls are looked up, and how many of them are listed.
_FOLLOWED, _LISTED = 40, 20
#: The oldest call that is kept is the group's first if it began no later than this after it.
_NEAR = timedelta(hours=1)
#: Successful calls are kept 3 days, the first of which may be cut: before, nobody knows what followed.
_OK_KEPT = timedelta(days=2)


def group_detail(
    ctx: Context, scope: Scope, fingerprint: str, since: datetime
) -> listing.GroupDetail:
    """One group with all that stands around it; trend and releases begin at `since`.

    Raises:
        ProblemError: 404 when there is none in scope.
    """
    key, now = bytes.fromhex(fingerprint), ctx.now()
    with ctx.engine.connect() as conn:
        group = groups.group(conn, key, now, scope).first()
        if group is None:
            raise ProblemError(404, "There is no such group.")
        calls, first = groups.newest(conn, key, _READ), groups.first(conn, key)
        hours = groups.hours(conn, key, since)
        met = _followed(conn, group_calls.conversations(calls), now, scope)
        return listing.GroupDetail(
            **listing.GroupItem.of(group, _incident(conn, group)).model_dump(),
            **_impact(calls),
            first_version=_first_version(group, [*calls, *([first] if first else [])]),
            trend=tuple(listing.HourItem(hour=one.hour, calls=one.calls) for one in hours),
            releases=causes.releases(conn, group, since),
            shared=_shared(conn, group, calls, now),
            samples=tuple(group_calls.samples(calls, first)),
            affected=tuple(
                group_calls.affected(met, group.tool, ok_kept_since=now - _OK_KEPT)[:_LISTED]
            ),
            called_again=sum(one.again(group.tool) is not None for one in met),
            followed=len(met),
        )


def _incident(conn: Connection, group: Group) -> Any:
    return Incidents(conn, [group.last_seen]).of(place_of(group), group.last_seen)


def _followed(
    conn: Connection, met: Sequence[Conversation], now: datetime, scope: Scope
) -> Sequence[Conversation]:
    """The conversations that are looked at, each with what came after the group's last call."""
    shown = met[:_FOLLOWED]
    moments = [(one.id, one.environment, one.last_seen) for one in shown]
    known = {(one.id, one.environment): one for one in shown}
    if moments:
        since = min(at for _, _, at in moments)
        for step in groups.after(conn, moments, since, now, scope):
            known[step.conversation_id, step.environment].after.append(step)
    return shown


def _impact(calls: Sequence[GroupCall]) -> dict[str, Any]:
    """What the group did to the people who met it."""
    met = Counter(
        (call.conversation_id, call.environment) for call in calls if call.conversation_id
    )
    unsure = sum(map(group_calls.is_unsure, calls))
    return {
        "outcome": calls[0].outcome if calls else None,
        "environments": tuple(sorted({call.environment for call in calls})),
        "conversations": len(met),
        "met_again": sum(times > 1 for times in met.values()),
        "unsure": unsure,
        "nothing": len(calls) - unsure,
        "actions": dict(Counter(call.action for call in calls).most_common()),
    }


def _first_version(group: Group, calls: Sequence[GroupCall]) -> str | None:
    """The version of its first call; once that is deleted, the first one the group remembers."""
    oldest = min(calls, key=lambda call: call.started_at, default=None)
    if oldest is not None and oldest.started_at < group.first_seen + _NEAR:
        return oldest.version
    return group.versions[0] if group.versions else None


def _shared(
    conn: Connection, group: Group, calls: Sequence[GroupCall], now: datetime
) -> tuple[listing.SharedItem, ...]:
    recent = [call for call in calls if call.received_at >= now - WEEK]
    others = cause_queries.others(conn, group.fingerprint, group.service, group.tool, now - WEEK)
    return tuple(group_calls.shared(recent, others))

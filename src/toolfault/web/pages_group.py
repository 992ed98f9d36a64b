"""The page of one error group, and changing its status there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Depends, Path
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from toolfault.store.queries import groups, lists, tools
from toolfault.store.tokens import Role
from toolfault.taxonomy import Outcome
from toolfault.web import api_lists, causes, changing, charts, levels, listing
from toolfault.web.context import Ctx
from toolfault.web.group_detail import group_detail
from toolfault.web.incidents import covers, in_scope, place_of
from toolfault.web.pages import answer_page
from toolfault.web.pages_lists import Form
from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Scope
    from toolfault.store.queries.lists import Incident

router = APIRouter(include_in_schema=False)

_ROOM = 114
_STATUSES = (("open", "Open"), ("resolved", "Resolved"), ("muted", "Muted"))
_CHANGED = {"open": "Opened again", "resolved": "Resolved", "muted": "Muted"}
_MOST_ALERTS = 5
_FINGERPRINT = TypeAdapter[str](listing.Fingerprint)


class Moment(NamedTuple):
    """Something that happened to a group."""

    at: datetime
    what: str


def _group_named(fingerprint: str) -> str:
    """The group that an address names: for people, one of a wrong form is one that is not there."""
    try:
        return _FINGERPRINT.validate_python(fingerprint)
    except ValidationError:
        raise ProblemError(404, "There is no such group.") from None


@router.get("/groups/{fingerprint}")
def group_page(
    request: Request,
    ctx: Ctx,
    fingerprint: Annotated[str, Depends(_group_named)],
    period: str = "48h",
) -> Response:
    """One group: when it began, what its calls share, what it did and to whom."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now, scope, span = ctx.now(), principal.services, charts.span(period)
    starts = span.starts(now)
    group = group_detail(ctx, scope, fingerprint, starts[0])
    with ctx.engine.connect() as conn:
        declared = tools.named(conn, group.tool, scope)
        alerts = _alerts(conn, group, now, scope)
        share = _share(conn, group, now, scope)
        may_see = principal.viewer.detail
        detail = _detail(conn, group) if may_see else None
    own = [tool for tool in declared if tool.service == group.service]
    counted = [(one.hour, group.outcome or Outcome.FAILED, one.calls) for one in group.trend]
    steps = span.sorted(counted, starts)
    return answer_page(
        ctx,
        principal,
        "group.html",
        "/groups",
        group=group,
        span=span,
        starts=starts,
        trend=charts.columns(steps, _ROOM),
        counts=[sum(step.values()) for step in steps],
        marks=causes.marks(group.releases, group.incident, starts[0], span.step * span.steps),
        tool=listing.ToolItem.of(own[0]) if own else None,
        share=share,
        since=levels.lately(now),
        period=period if period in charts.OFFERED else "48h",
        offered=charts.OFFERED,
        detail=detail,
        detail_withheld=not may_see,
        history=_history(group, alerts),
        may_change=principal.may(Role.ENGINEER),
        statuses=_STATUSES,
    )


def _detail(conn: Connection, group: listing.GroupDetail) -> groups.Detail | None:
    """What the exception of one of the samples said; it has the same type and place in all calls."""
    calls = [(one.reference, bytes.fromhex(one.trace_id), one.at) for one in group.samples]
    return groups.detail(conn, calls) if calls else None


def _share(
    conn: Connection, group: listing.GroupDetail, now: datetime, scope: Scope
) -> tuple[int, int]:
    """Calls of the group lately, and all calls of its tool."""
    since = levels.lately(now)
    place = {"service": [group.service], "tool": [group.tool]}
    counted = tools.hours(conn, since, narrowed=place, scope=scope)
    mine = sum(one.calls for one in group.trend if one.hour >= since)
    return mine, sum(one.calls for one in counted)


def _alerts(
    conn: Connection, group: listing.GroupDetail, now: datetime, scope: Scope
) -> list[Incident]:
    """The newest alerts over calls like these since the first of them."""
    found = in_scope(lists.incidents(conn, group.first_seen, now).rows(), scope)
    return [one for one in found if covers(one, place_of(group))][:_MOST_ALERTS]


def _history(group: listing.GroupDetail, alerts: Iterable[Incident]) -> list[Moment]:
    """What happened to the group, newest first."""
    version = f", in version {group.first_version}" if group.first_version else ""
    moments = [Moment(group.first_seen, f"First call{version}")]
    moments += [Moment(one.started_at, f"{one.name} fired") for one in alerts]
    moments += [Moment(one.ended_at, f"{one.name} ended") for one in alerts if one.ended_at]
    moments += [Moment(one.at, f"{one.service} {one.version} released") for one in group.releases]
    if group.status_at is not None:
        moments.append(Moment(group.status_at, _CHANGED[group.status]))
    if group.last_seen > group.first_seen:
        moments.append(Moment(group.last_seen, "Last call"))
    return sorted(moments, reverse=True)


@router.post("/groups/{fingerprint}/status")
def change_group(
    request: Request, ctx: Ctx, fingerprint: Annotated[listing.Fingerprint, Path()], form: Form
) -> Response:
    """Opens, resolves or mutes a group from its page."""
    principal = ctx.doors.admit(request, Role.ENGINEER)
    try:
        change = changing.StatusChange(status=form.get("status", ""))  # type: ignore[arg-type]
    except ValidationError:
        raise ProblemError(422, "A status is open, resolved or muted.") from None
    api_lists.change_status(ctx, principal.services, fingerprint, change.status)
    return RedirectResponse(f"/groups/{fingerprint}", 303)

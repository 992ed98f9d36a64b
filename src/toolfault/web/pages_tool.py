"""The page of one tool."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from toolfault.store.queries import causes as release_queries
from toolfault.store.queries import tool_errors, tools
from toolfault.store.tokens import Role
from toolfault.taxonomy import Outcome
from toolfault.web import api_lists, causes, charts, levels, listing, reasons, spread
from toolfault.web.context import Ctx
from toolfault.web.pages import answer_page
from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Scope

router = APIRouter(include_in_schema=False)

_OF_ERRORS = timedelta(days=7)
#: Successful calls are kept 3 days at least of which the first may be cut; later ones cannot be followed.
_OK_KEPT = timedelta(days=2)
_ROOM, _ROOM_OF_ALL, _ROOM_OF_DURATIONS = 114, 30, 100


@router.get("/tools/{tool:pasted}")
def tool_page(
    request: Request, ctx: Ctx, tool: Annotated[listing.Text, Path()], period: str = "48h"
) -> Response:
    """One tool: is it worse than usual, do retries help, which reasons, which fields."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now, scope = ctx.now(), principal.services
    with ctx.engine.connect() as conn:
        declared = [listing.ToolItem.of(row) for row in tools.named(conn, tool, scope)]
        found = levels.levels(conn, now, tool=tool, scope=scope)
        declared_reasons = {reason for one in declared for reason in one.reasons}
        errors = _errors(conn, tool, now, scope, declared_reasons)
        if not (declared or found or errors["reasons"]):
            raise ProblemError(404, "There is no such tool.")
        over_time = _over_time(conn, tool, charts.span(period), now, scope)
        whole = spread.whole(tools.spread(conn, tool, scope))
    open_groups = listing.GroupFilters(tool=[tool], status=["open"])
    return answer_page(
        ctx,
        principal,
        "tool.html",
        "/tools",
        tool=tool,
        declared=declared,
        levels=found,
        whole=whole,
        durations=charts.columns([counts for _, counts in whole.durations], _ROOM_OF_DURATIONS)
        if whole
        else None,
        groups=api_lists.groups_page(ctx, scope, open_groups, None, 10).items,
        since=levels.lately(now),
        period=period if period in charts.OFFERED else "48h",
        offered=charts.OFFERED,
        **over_time,
        **errors,
    )


def _over_time(
    conn: Connection, tool: str, span: charts.Span, now: datetime, scope: Scope
) -> dict[str, Any]:
    """How calls ended in each step of the time that is shown."""
    starts = span.starts(now)
    steps = span.sorted(
        tools.hours(conn, starts[0], narrowed={"tool": [tool]}, scope=scope), starts
    )
    released = release_queries.releases(conn, tool, starts[0], scope=scope)
    outcomes = Counter[str]()
    for step in steps:
        outcomes.update(step)
    bad = [{name: n for name, n in step.items() if name != Outcome.OK} for step in steps]
    return {
        "span": span,
        "starts": starts,
        "steps": steps,
        "outcomes": outcomes,
        "all_calls": charts.columns(
            [{Outcome.OK: sum(step.values())} for step in steps], _ROOM_OF_ALL
        ),
        "not_ok": charts.columns(bad, _ROOM),
        "marks": causes.marks(released, None, starts[0], span.step * span.steps),
        "stopped": tools.stopped(conn, tool, starts[0], scope),
    }


def _errors(
    conn: Connection, tool: str, now: datetime, scope: Scope, declared: Collection[str]
) -> dict[str, Any]:
    """What stands in its newest errors."""
    since = now - _OF_ERRORS
    asked = tool_errors.Errors(conn, tool, since=since, now=now, scope=scope)
    counted = {row.code: row.calls for row in tools.codes(conn, tool, since, scope)}
    given = reasons.given(asked.reasons(_OK_KEPT), counted, declared)
    return {
        "reasons": given,
        "fixed": reasons.fixed(given, Outcome.INVALID),
        "fields": asked.fields(),
        "refused": asked.refused(),
    }

"""The pages around look-ups: errors, groups, tools, health."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Query
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from toolfault import conventions as names
from toolfault.store.queries import tools, totals
from toolfault.store.tokens import Role
from toolfault.taxonomy import CODE_OF_QUIET, Code, Outcome
from toolfault.web import api_lists, charts, grouping, letters, levels, listing, record
from toolfault.web.context import Ctx
from toolfault.web.guard import is_from_our_page
from toolfault.web.pages import answer_page
from toolfault.web.problems import ProblemError, wrong_values

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolfault.store.queries.base import Scope

router = APIRouter(include_in_schema=False)

_DAY = timedelta(days=1)
_PERIODS = {"1h": timedelta(hours=1), "24h": _DAY, "7d": timedelta(days=7)}
_AROUND = timedelta(minutes=15)
_ROOM, _FEW = 72, 2
#: A page stays below 100 kB together with its stylesheet and script.
_ROWS, _GROUP_ROWS, _TOOL_ROWS = 40, 30, 50
#: Pages that the way back from a page remembers; an address may not grow without end.
_MOST_PASSED = 20
#: Metrics label calls that have no code, and links from dashboards carry their labels.
_OUTCOME_OF_LABEL = {label: outcome.value for outcome, label in CODE_OF_QUIET.items()}


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, from one of our own pages."""
    if not is_from_our_page(request.headers):
        raise ProblemError(403, "A form must be sent by a page of this service.")
    return dict(parse_qsl((await request.body()).decode(errors="replace")))


Form = Annotated[dict[str, str], Depends(_form)]


@router.get("/errors")
def errors_page(request: Request, ctx: Ctx) -> Response:
    """Which calls, filtered how; the address holds every filter."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    asked = {key: value for key, value in request.query_params.multi_items() if value}
    filters = _filters(request, ctx.now())
    page = api_lists.errors_page(ctx, principal.services, filters, asked.get("cursor"), _ROWS)
    span = charts.span(asked.get("period", ""), "24h")
    starts = span.starts(ctx.now())
    with ctx.engine.connect() as conn:
        catalog = tools.tools(conn, scope=principal.services)
        steps = _steps(conn, filters, span, starts, principal.services)
    return answer_page(
        ctx,
        principal,
        "errors.html",
        "/errors",
        page=page,
        filters=filters,
        period=asked.get("period", ""),
        periods=_PERIODS,
        codes=list(Code),
        counts=_summed(steps),
        chart=_chart(steps, filters) if steps and len(steps) > _FEW else None,
        span=span,
        starts=starts,
        outcomes=[outcome for outcome in Outcome if outcome is not Outcome.OK],
        tools=sorted({tool.tool for tool in catalog}),
        services=sorted({tool.service for tool in catalog}),
        **_turns(request, page.next),
    )


def _steps(
    conn: Connection,
    filters: listing.ErrorFilters,
    span: charts.Span,
    starts: list[datetime],
    scope: Scope,
) -> list[dict[str, int]] | None:
    """How calls ended in each step, or None where the filters are finer than what is counted."""
    if filters.reason or filters.conversation or filters.trace or filters.group or filters.until:
        return None
    counted = tools.hours(conn, starts[0], narrowed=filters.model_dump(), scope=scope)
    return span.sorted(counted, starts)


def _summed(steps: list[dict[str, int]] | None) -> Counter[str] | None:
    return sum(map(Counter, steps), Counter[str]()) if steps is not None else None


def _chart(steps: list[dict[str, int]], filters: listing.ErrorFilters) -> charts.Columns:
    """What was not ok over time; of the outcomes that are chosen, if any are."""
    shown = set(filters.outcome) or {*charts.NOT_OK}
    return charts.columns([{k: n for k, n in step.items() if k in shown} for step in steps], _ROOM)


def _turns(request: Request, more: str | None) -> dict[str, Any]:
    """Where the pages before and after this one are.

    A cursor only leads on. So the address holds those of all pages passed, newest last, and the
    page before is one without the last of them.
    """
    kept, passed = list[tuple[str, str]](), list[tuple[str, str]]()
    for key, value in request.query_params.multi_items():
        if value:
            (passed if key == "cursor" else kept).append((key, value))
    path, passed = request.url.path, passed[-_MOST_PASSED:]
    return {
        "more": _address(path, [*kept, *passed, ("cursor", more)]) if more else None,
        "newer": _address(path, [*kept, *passed[:-1]]) if len(passed) > 1 else None,
        "is_later": bool(passed),
        "first": _address(path, kept),
    }


def _address(path: str, query: list[tuple[str, Any]]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _filters(request: Request, now: datetime) -> listing.ErrorFilters:
    """Filters as the form sends them, empty fields left out, a period or a moment made into bounds.

    Raises:
        ProblemError: 422 when a filter is not one of ours.
    """
    values: dict[str, Any] = {}
    for key, value in request.query_params.multi_items():
        if not value:
            continue
        if key == "code" and value in _OUTCOME_OF_LABEL:
            values.setdefault("outcome", []).append(_OUTCOME_OF_LABEL[value])
        elif key in ("tool", "code", "outcome", "reason", "service", "environment"):
            values.setdefault(key, []).append(value)
        else:
            values[key] = value
    try:
        return listing.ErrorFilters(**{**_bounds(values, now), **values})
    except ValidationError as wrong:
        named = [{**one, "loc": ("query", *one["loc"])} for one in wrong.errors()]
        told = " ".join(f"{one['field']}: {one['problem']}" for one in wrong_values(named))
        raise ProblemError(422, f"A filter is not accepted. {told}") from None


def _bounds(values: dict[str, Any], now: datetime) -> dict[str, datetime]:
    period = _PERIODS.get(str(values.get("period")))
    if period is not None:
        return {"since": now - period}
    try:
        moment = datetime.fromisoformat(values["around"]).replace(tzinfo=UTC)
        return {"since": moment - _AROUND, "until": moment + _AROUND}
    except (KeyError, ValueError, OverflowError):
        return {}


@router.get("/groups")
def groups_page(
    request: Request,
    ctx: Ctx,
    filters: Annotated[listing.GroupFilters, Query()],
    cursor: str | None = None,
) -> Response:
    """Groups of calls that failed in the same way."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    page = api_lists.groups_page(ctx, principal.services, filters, cursor, _GROUP_ROWS)
    with ctx.engine.connect() as conn:
        trends = grouping.trends(conn, page.items, ctx.now())
    return answer_page(
        ctx,
        principal,
        "groups.html",
        "/groups",
        page=page,
        filters=filters,
        trends=trends,
        **_turns(request, page.next),
    )


@router.get("/tools")
def tools_page(request: Request, ctx: Ctx, named: listing.Text = "") -> Response:
    """All tools whose name holds a text, the one most unlike itself first."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now = ctx.now()
    with ctx.engine.connect() as conn:
        found = levels.levels(conn, now, scope=principal.services)
        catalog = tools.tools(conn, scope=principal.services, most=2000)
    called = {(one.service, one.environment, one.tool) for one in found}
    found = [one for one in found if named in one.tool]
    quiet = [row for row in catalog if row[:3] not in called and named in row.tool]
    return answer_page(
        ctx,
        principal,
        "tools.html",
        "/tools",
        levels=found[:_TOOL_ROWS],
        quiet=quiet[:_TOOL_ROWS],
        others=len(found[_TOOL_ROWS:]) + len(quiet[_TOOL_ROWS:]),
        named=named,
        owners={row[:3]: record.declaration(row.declared or {})["owner"] for row in catalog},
        since=levels.lately(now),
    )


@router.get("/health")
def health_page(request: Request, ctx: Ctx) -> Response:
    """Does telemetry arrive, what was lost, what waits for somebody."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    with ctx.engine.connect() as conn:
        size, events = totals.size(conn), totals.events(conn)
    lost = [
        row
        for row in events
        if row.metric in (names.TELEMETRY_DROPPED_TOTAL, names.LATE_CALLS)
        and row.amount
        and (principal.services is None or row.service in principal.services)
    ]
    ahead = (size.last_partition - ctx.now().date()).days if size.last_partition else 0
    own = [
        sample
        for family in ctx.registry.collect()
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    ]
    waiting = letters.letters_page(ctx, principal.services, None, 50, waiting=True)
    return answer_page(
        ctx,
        principal,
        "health.html",
        "/health",
        trouble=ctx.readiness(),
        size=size,
        ahead=ahead,
        lost=lost,
        dropped_name=names.TELEMETRY_DROPPED_TOTAL,
        own=own if principal.may(Role.ENGINEER) else [],
        letters=waiting.items,
        may_open=principal.may(Role.ENGINEER),
    )

"""The pages around look-ups: errors, groups, tools, health."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Path, Query
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from toolfault import conventions as names
from toolfault.store.queries import causes as release_queries
from toolfault.store.queries import tools, totals
from toolfault.store.tokens import Role
from toolfault.taxonomy import CODE_OF_QUIET, Code, Outcome
from toolfault.web import api_lists, causes, changing, letters, levels, listing, record
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
_DAYS_OF_REASONS = timedelta(days=7)
_HOURS = 48
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
    page = api_lists.errors_page(ctx, principal.services, filters, asked.get("cursor"), 50)
    since = _whole_hour(ctx.now() - _PERIODS.get(asked.get("period", ""), _DAY))
    with ctx.engine.connect() as conn:
        catalog = tools.tools(conn, scope=principal.services)
        counts = _counts(conn, filters, since, principal.services)
    kept = [(k, v) for k, v in request.query_params.multi_items() if v and k != "cursor"]
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
        counts=counts,
        counted_since=since,
        outcomes=[outcome for outcome in Outcome if outcome is not Outcome.OK],
        tools=sorted({tool.tool for tool in catalog}),
        services=sorted({tool.service for tool in catalog}),
        more=_address("/errors", [*kept, ("cursor", page.next)]) if page.next else None,
        is_later=bool(asked.get("cursor")),
        first=_address("/errors", kept),
    )


def _whole_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _counts(
    conn: Connection, filters: listing.ErrorFilters, since: datetime, scope: Scope
) -> dict[str, int] | None:
    """How calls ended lately, or None where the filters are finer than what is counted."""
    if filters.reason or filters.conversation or filters.trace or filters.group or filters.until:
        return None
    return tools.outcomes(conn, since, narrowed=filters.model_dump(), scope=scope)


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
        told = " ".join(f"{one['field']}: {one['problem']}" for one in wrong_values(wrong.errors()))
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
    page = api_lists.groups_page(ctx, principal.services, filters, cursor, 50)
    kept = [(k, v) for k, v in request.query_params.multi_items() if v and k != "cursor"]
    more = _address("/groups", [*kept, ("cursor", page.next)]) if page.next else None
    values: dict[str, Any] = {"page": page, "filters": filters, "more": more}
    values["first"] = _address("/groups", kept)
    return answer_page(ctx, principal, "groups.html", "/groups", is_later=bool(cursor), **values)


@router.get("/groups/{fingerprint}")
def group_page(
    request: Request, ctx: Ctx, fingerprint: Annotated[listing.Fingerprint, Path()]
) -> Response:
    """One group: when it began, what it did and to whom."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now = ctx.now()
    group = api_lists.group_detail(ctx, principal.services, fingerprint, timedelta(hours=_HOURS))
    counts = {one.hour: one.calls for one in group.trend}
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    starts = [first + timedelta(hours=i) for i in range(_HOURS)]
    with ctx.engine.connect() as conn:
        declared = tools.named(conn, group.tool, principal.services)
    own = [tool for tool in declared if tool.service == group.service]
    return answer_page(
        ctx,
        principal,
        "group.html",
        "/groups",
        group=group,
        counts=[counts.get(start, 0) for start in starts],
        starts=starts,
        marks=causes.marks(group.releases, group.incident, first, _HOURS),
        tool=listing.ToolItem.of(own[0]) if own else None,
        may_change=principal.may(Role.ENGINEER),
        statuses=[("open", "Open"), ("resolved", "Resolved"), ("muted", "Muted")],
    )


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


@router.get("/tools")
def tools_page(request: Request, ctx: Ctx) -> Response:
    """All tools, the one most unlike itself first."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now = ctx.now()
    with ctx.engine.connect() as conn:
        found = levels.levels(conn, now, scope=principal.services)
        catalog = tools.tools(conn, scope=principal.services, most=2000)
    owners = {row[:3]: record.declaration(row.declared or {})["owner"] for row in catalog}
    quiet = [
        row for row in catalog if row[:3] not in {(f.service, f.environment, f.tool) for f in found}
    ]
    values: dict[str, Any] = {
        "levels": found,
        "quiet": quiet,
        "owners": owners,
        "since": levels.lately(now),
    }
    return answer_page(ctx, principal, "tools.html", "/tools", **values)


@router.get("/tools/{tool:path}")
def tool_page(request: Request, ctx: Ctx, tool: Annotated[listing.Text, Path()]) -> Response:
    """One tool: is it worse than usual, which reasons, which fields do models get wrong."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now, scope = ctx.now(), principal.services
    with ctx.engine.connect() as conn:
        declared = [listing.ToolItem.of(row) for row in tools.named(conn, tool, scope)]
        found = levels.levels(conn, now, tool=tool, scope=scope)
        starts, counts, outcomes = levels.hourly(conn, tool, now, _HOURS, scope)
        released = release_queries.releases(conn, tool, starts[0], scope=scope)
        reasons = tools.reasons(conn, tool, now - _DAYS_OF_REASONS, scope)
        fields = tools.wrong_fields(conn, tool, names.FIELD, now - _DAYS_OF_REASONS, scope=scope)
    if not (declared or found or reasons):
        raise ProblemError(404, "There is no such tool.")
    open_groups = listing.GroupFilters(tool=[tool], status=["open"])
    return answer_page(
        ctx,
        principal,
        "tool.html",
        "/tools",
        tool=tool,
        declared=declared,
        levels=found,
        starts=starts,
        counts=counts,
        outcomes=outcomes,
        marks=causes.marks(released, None, starts[0], _HOURS),
        reasons=reasons,
        fields=fields,
        known_reasons={reason for one in declared for reason in one.reasons},
        groups=api_lists.groups_page(ctx, scope, open_groups, None, 10).items,
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

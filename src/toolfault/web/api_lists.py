"""The JSON API for lists, what people change, and alerts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Path, Query
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request

from toolfault.store.queries import changes, errors, groups, lists, tools
from toolfault.store.queries.base import Scope
from toolfault.store.tokens import Role
from toolfault.web import changing, cursor, listing
from toolfault.web.api import PROBLEMS
from toolfault.web.context import Context, Ctx
from toolfault.web.group_detail import WEEK, group_detail
from toolfault.web.incidents import Incidents, place_of
from toolfault.web.problems import ProblemError

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)

Size = Annotated[int, Query(ge=1, le=200, description="Items a page.")]
Cursor = Annotated[str | None, Query(max_length=2000)]
Row = TypeVar("Row")


async def _only_declared(request: Request) -> None:
    """A parameter with a slip of the pen would give a list that is not narrowed at all."""
    route = request.scope["route"]
    operation = request.app.openapi()["paths"][route.path_format]["get"]
    known = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        raise RequestValidationError([{"loc": ("query", n), "type": "unknown"} for n in unknown])


ONLY_DECLARED = Depends(_only_declared)


def page_of(
    rows: Sequence[Row], size: int, key: Callable[[Row], str]
) -> tuple[Sequence[Row], str | None]:
    """The rows of a page and its cursor, from one row more than a page has."""
    shown = rows[:size]
    return shown, key(shown[-1]) if len(rows) > size else None


@router.get("/errors", tags=["lists"], dependencies=[ONLY_DECLARED])
def get_errors(
    request: Request,
    ctx: Ctx,
    filters: Annotated[listing.ErrorFilters, Query()],
    cursor: Cursor = None,
    size: Size = 50,
) -> listing.ErrorPage:
    """Calls that were not ok, newest arrival first; cancelled ones only where asked for.

    A page may be short, even empty, and still have a next one: a search for a rare value stops
    after so many calls, and `searched_to` says how far back it went.
    """
    principal = ctx.doors.admit(request, Role.SUPPORT)
    return errors_page(ctx, principal.services, filters, cursor, size)


def errors_page(
    ctx: Context, scope: Scope, filters: listing.ErrorFilters, after: str | None, size: int
) -> listing.ErrorPage:
    """One page of the list of errors."""
    before = cursor.decode(after, datetime, bytes, bytes)
    with ctx.engine.connect() as conn:
        found = errors.errors(
            conn, _filters(filters), before=_triple(before), scope=scope, most=size + 1
        )
        rows, more = page_of(
            found.rows, size, lambda row: cursor.encode(row.received_at, row.trace_id, row.span_id)
        )
        incidents = Incidents(conn, [row.told_at or row.started_at for row in rows])
        items = [
            listing.ErrorItem.of(row, incidents.of(place_of(row), row.started_at)) for row in rows
        ]
    end = found.searched_to if more is None else None
    return listing.ErrorPage(
        items=tuple(items),
        next=cursor.encode(*end) if end else more,
        searched_to=end[0] if end else None,
    )


def _triple(key: cursor.Key | None) -> tuple[datetime, bytes, bytes] | None:
    return None if key is None else (key[0], key[1], key[2])


def _filters(filters: listing.ErrorFilters) -> errors.Filters:
    return errors.Filters(
        tool=tuple(filters.tool),
        code=tuple(filters.code),
        outcome=tuple(filters.outcome),
        reason=tuple(filters.reason),
        service=tuple(filters.service),
        environment=tuple(filters.environment),
        conversation=filters.conversation,
        trace=bytes.fromhex(filters.trace) if filters.trace else None,
        fingerprint=bytes.fromhex(filters.group) if filters.group else None,
        since=filters.since,
        until=filters.until,
    )


@router.get("/groups", tags=["lists"], dependencies=[ONLY_DECLARED])
def get_groups(
    request: Request,
    ctx: Ctx,
    filters: Annotated[listing.GroupFilters, Query()],
    cursor: Cursor = None,
    size: Size = 50,
) -> listing.Page[listing.GroupItem]:
    """Groups of calls that failed in the same way, last seen first."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    return groups_page(ctx, principal.services, filters, cursor, size)


def groups_page(
    ctx: Context, scope: Scope, filters: listing.GroupFilters, after: str | None, size: int
) -> listing.Page[listing.GroupItem]:
    """One page of the list of groups."""
    key = cursor.decode(after, datetime, bytes)
    before = None if key is None else (key[0], key[1])
    with ctx.engine.connect() as conn:
        found = groups.groups(
            conn, ctx.now(), **filters.model_dump(), before=before, scope=scope, most=size + 1
        )
        rows, more = page_of(found, size, lambda row: cursor.encode(row.last_seen, row.fingerprint))
        incidents = Incidents(conn, [row.last_seen for row in rows])
        items = [
            listing.GroupItem.of(row, incidents.of(place_of(row), row.last_seen)) for row in rows
        ]
    return listing.Page[listing.GroupItem](items=tuple(items), next=more)


@router.get("/groups/{fingerprint}", tags=["lists"])
def get_group(
    request: Request, ctx: Ctx, fingerprint: Annotated[listing.Fingerprint, Path()]
) -> listing.GroupDetail:
    """One group: when it began, what it did and to whom."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    return group_detail(ctx, principal.services, fingerprint, ctx.now() - WEEK)


@router.patch("/groups/{fingerprint}", tags=["changes"])
def patch_group(
    request: Request,
    ctx: Ctx,
    fingerprint: Annotated[listing.Fingerprint, Path()],
    change: changing.StatusChange,
) -> listing.GroupDetail:
    """Opens, resolves or mutes a group. A new version that meets a resolved one opens it again."""
    principal = ctx.doors.admit(request, Role.ENGINEER)
    change_status(ctx, principal.services, fingerprint, change.status)
    return group_detail(ctx, principal.services, fingerprint, ctx.now() - WEEK)


def change_status(ctx: Context, scope: Scope, fingerprint: str, status: listing.Status) -> None:
    """Changes the status of a group.

    Raises:
        ProblemError: 404 when there is none in scope.
    """
    with ctx.engine.connect() as conn:
        if not changes.set_status(conn, bytes.fromhex(fingerprint), status, ctx.now(), scope):
            raise ProblemError(404, "There is no such group.")


@router.get("/tools", tags=["lists"], dependencies=[ONLY_DECLARED])
def get_tools(
    request: Request, ctx: Ctx, cursor: Cursor = None, size: Size = 50
) -> listing.Page[listing.ToolItem]:
    """Tools as they declared themselves."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    return tools_page(ctx, principal.services, cursor, size)


def tools_page(
    ctx: Context, scope: Scope, after: str | None, size: int
) -> listing.Page[listing.ToolItem]:
    """One page of the catalog."""
    key = cursor.decode(after, str, str, str) or ("", "", "")
    with ctx.engine.connect() as conn:
        found = tools.tools(conn, after=(key[0], key[1], key[2]), scope=scope, most=size + 1)
    rows, more = page_of(
        found, size, lambda row: cursor.encode(row.service, row.environment, row.tool)
    )
    return listing.Page[listing.ToolItem](items=tuple(map(listing.ToolItem.of, rows)), next=more)


@router.post("/alerts", tags=["alerts"])
def post_alerts(request: Request, ctx: Ctx, body: changing.Alerts) -> changing.Recorded:
    """Alertmanager's webhook: what fires becomes an incident that cards, groups and lists point at."""
    ctx.doors.admit(request, Role.SCRAPE)
    with ctx.engine.connect() as conn:
        for alert in body.alerts:
            changes.record_incident(
                conn,
                alert_id=alert.fingerprint,
                name=alert.labels.get("alertname", "alert"),
                started_at=alert.startsAt,
                ended_at=alert.endsAt if alert.status == "resolved" else None,
                labels=alert.labels,
                annotations=alert.annotations,
            )
    return changing.Recorded(recorded=len(body.alerts))


@router.get("/audit", tags=["lists"], dependencies=[ONLY_DECLARED])
def get_audit(request: Request, ctx: Ctx, size: Size = 50) -> listing.Page[listing.AuditItem]:
    """The newest look-ups and who made them. For administrators."""
    ctx.doors.admit(request, Role.ADMIN)
    with ctx.engine.connect() as conn:
        rows = lists.audit(conn, most=size)
    items = tuple(listing.AuditItem(**row._asdict()) for row in rows)
    return listing.Page[listing.AuditItem](items=items, next=None)

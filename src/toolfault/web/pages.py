"""The pages for look-ups: search, the card, and what a refusal looks like."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from toolfault.reference import all_in
from toolfault.store.queries import errors, lists, tools
from toolfault.store.queries.base import together
from toolfault.store.tokens import Role
from toolfault.web import api_lists, grouping, incidents, levels, listing, render
from toolfault.web.context import Context, Ctx

if TYPE_CHECKING:
    from toolfault.web.access import Principal
    from toolfault.web.models import Match
    from toolfault.web.problems import ProblemError

router = APIRouter(include_in_schema=False)

#: Tools on the home page.
_SHOWN = 8


def _digest(folder: Path) -> str:
    """Changes when a stylesheet or script does, so that browsers may keep them."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


_ASSETS = _digest(Path(__file__).parent / "static")


def answer_page(
    ctx: Context,
    principal: Principal,
    template: str,
    current: str,
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """A page with its frame around it."""
    now = ctx.now()
    with ctx.engine.connect() as conn:
        with together(conn):
            open_now = lists.incidents(conn, now, now)
            arrived = errors.newest(conn) if principal.services is None else None
        alerts = incidents.in_scope(open_now.rows(), principal.viewer.scope)
        newest = arrived.first() if arrived else None
    frame = {
        "assets": _ASSETS,
        "current": current,
        "principal": principal,
        "asked": "",
        "now": now,
        "firing": sum(one.ended_at is None for one in alerts),
        "newest": newest.received_at if newest else None,
        "retention_days": ctx.retention_days,
    }
    return HTMLResponse(render.page(template, {**frame, **values}), status)


def storeless_page(
    request: Request, template: str, status: int = 200, **values: Any
) -> HTMLResponse:
    """A page that asks the store nothing: it opens while the store is away."""
    ctx: Context = request.app.state.context
    frame = {
        "assets": _ASSETS,
        "current": "",
        "principal": None,
        "asked": "",
        "now": ctx.now(),
        "firing": 0,
        "newest": None,
        "retention_days": ctx.retention_days,
    }
    return HTMLResponse(render.page(template, {**frame, **values}), status)


def problem_page(request: Request, problem: ProblemError, back: str | None = None) -> HTMLResponse:
    """A refusal for people; the store may be the reason for it. Signing in leads `back`."""
    back = back or (_address(request) if request.method == "GET" else "/")
    page = storeless_page(request, "problem.html", problem.status, problem=problem, next=back)
    page.headers.update(problem.headers)
    if problem.status == 401 and request.headers.get("sec-fetch-site") == "cross-site":
        # A link in a chat or an alert brings no SameSite=Strict cookie; this page's own reload does.
        page.headers["Refresh"] = "0"
    return page


def _address(request: Request) -> str:
    """Path and query as they were asked for: an alert's link holds its filters there."""
    path = request.scope["raw_path"].decode("ascii")
    return f"{path}?{request.url.query}" if request.url.query else path


@router.get("/look")
def look(request: Request, ctx: Ctx, q: str = "") -> Response:
    """Search: a reference, or the text it stands in, or a conversation, or a trace."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    if not q.strip():
        return RedirectResponse("/", 303)
    answer = ctx.look_up(request, principal, q)
    if not answer.is_here and (other := _other_id(ctx, principal, q.strip())):
        return RedirectResponse(f"/errors?{urlencode(other)}", 303)
    also = f"?{urlencode({'also': answer.others}, doseq=True)}" if answer.others else ""
    return RedirectResponse(f"/r/{quote(answer.reference, safe='')}{also}", 303)


def _other_id(ctx: Context, principal: Principal, text: str) -> dict[str, str] | None:
    """The filter under which the text names a conversation or a trace that has errors."""
    trace = _trace_id(text)
    tries = (
        [({"conversation": text}, errors.Filters(conversation=text))] if text.isprintable() else []
    )
    if trace is not None:
        tries.insert(0, ({"trace": trace.hex()}, errors.Filters(trace=trace)))
    with ctx.engine.connect() as conn:
        for found, filters in tries:
            if errors.errors(conn, filters, scope=principal.viewer.scope, most=1).rows:
                return found
    return None


def _trace_id(text: str) -> bytes | None:
    try:
        trace = bytes.fromhex(text)
    except ValueError:
        return None
    return trace if len(trace) == 16 else None


@router.get("/r/{ref:pasted}")
def reference_page(
    request: Request, ref: str, ctx: Ctx, also: Annotated[tuple[str, ...], Query()] = ()
) -> Response:
    """The card of a reference, or why there is none and what to do."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    answer = ctx.look_up(request, principal, ref)
    base = ctx.base_url or str(request.base_url).rstrip("/")

    def link_to(reference: str) -> str:
        return f"{base}/r/{quote(reference, safe='')}"

    return answer_page(
        ctx,
        principal,
        "reference.html",
        "/r",
        200 if answer.is_here else 404,
        answer=answer,
        others=[*dict.fromkeys([*answer.others, *all_in(" ".join(also))])],
        asked=answer.reference,
        link_to=link_to,
        note=lambda match: _hand_over_note(match, link_to(match.reference)),
        marked=_marked,
    )


def _hand_over_note(match: Match, link: str) -> str:
    """What support writes to whoever takes it."""
    at = match.started_at or match.received_at
    parts = [
        f"Reference {match.reference}",
        f"{match.tool or 'tool not known'} {match.outcome or 'outcome not known'}",
        " ".join(filter(None, [match.code, match.reason])),
        f"{render.moment(at)} UTC",
    ]
    effect = f"Took effect: {match.words.effect.lower()}."
    return f"{', '.join(filter(None, parts))}. {effect} {link}"


def _marked(typed: str, stored: str) -> list[tuple[str, bool]]:
    """Symbols of a stored reference, each with whether it differs from what was typed."""
    is_aligned = len(typed) == len(stored)
    return [(symbol, is_aligned and symbol != typed[i]) for i, symbol in enumerate(stored)]


@router.get("/")
def home(request: Request, ctx: Ctx) -> Response:
    """Search first; then what is on fire, and which tool is unlike itself."""
    principal = ctx.doors.admit(request, Role.SUPPORT)
    now, scope = ctx.now(), principal.viewer.scope
    groups = api_lists.groups_page(ctx, scope, listing.GroupFilters(status=["open"]), None, 6)
    with ctx.engine.connect() as conn:
        found = levels.levels(conn, now, scope=scope)
        alerts = incidents.in_scope(lists.incidents(conn, now, now).rows(), scope)
        declared = tools.tools(conn, scope=scope, most=1)
        trends = grouping.trends(conn, groups.items, now)
        levels.follow(conn, found[:_SHOWN], now)
    return answer_page(
        ctx,
        principal,
        "home.html",
        "/",
        levels=found[:_SHOWN],
        others=max(len(found) - _SHOWN, 0),
        total=levels.total(found),
        since=levels.lately(now),
        incidents=incidents.gravest_first(one for one in alerts if one.ended_at is None),
        groups=groups,
        trends=trends,
        is_empty=not (found or declared or groups.items),
    )

"""The JSON API for look-ups, and the plain routes of operation."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from fastapi import APIRouter, Depends, Response
from fastapi.security import HTTPBearer
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse

from toolfault.metrics import StoreSize, Together, ToolTotals, exposition
from toolfault.store.queries import totals
from toolfault.store.queries.base import ping
from toolfault.store.tokens import Role
from toolfault.web.context import Context, Ctx
from toolfault.web.models import Answer
from toolfault.web.problems import MEDIA_TYPE

#: Named for the OpenAPI document; the door itself decides.
TOKEN = Depends(
    HTTPBearer(auto_error=False, description="A token made with `toolfault token create`.")
)
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What to do, in a sentence."},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
#: Every refusal has one shape.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": phrase, "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
    for status, phrase in (
        (401, "No valid token."),
        (403, "The token lacks the role."),
        (404, "There is no such thing, or it is out of the token's scope."),
        (413, "The body is too large."),
        (414, "The pasted text is too long."),
        (422, "A value is not accepted."),
        (429, "Too many attempts."),
        (503, "The database does not answer."),
    )
}
router = APIRouter(prefix="/api/v1")
operation = APIRouter(include_in_schema=False)


@router.get(
    "/references/{ref:pasted}",
    response_model=Answer,
    responses={
        **PROBLEMS,
        404: {"model": Answer, "description": "Nothing to show; says why and what to do."},
    },
    tags=["look-up"],
)
def get_reference(request: Request, ref: str, ctx: Ctx) -> Response:
    """What is known about a reference, or about the text it stands in."""
    answer = ctx.look_up(request, ctx.doors.admit(request, Role.SUPPORT), ref)
    status = 200 if answer.is_here else 404
    return Response(answer.model_dump_json(), status, media_type="application/json")


_READY_WITHIN = 2.0  # s; a stopped database keeps a connection open and says nothing
_NO_ANSWER = "The database does not answer."


@operation.get("/healthz")
async def healthz() -> JSONResponse:
    """Whether this process runs."""
    return JSONResponse({"status": "ok"})


@operation.get("/readyz")
async def readyz(ctx: Ctx) -> JSONResponse:
    """Whether this process can serve, and if not why."""
    reason = ctx.readiness()
    if reason is None:
        try:
            async with asyncio.timeout(_READY_WITHIN):
                reason = await asyncio.to_thread(_store_trouble, ctx)
        except TimeoutError:
            reason = _NO_ANSWER
    if reason is None:
        return JSONResponse({"status": "ready"})
    return JSONResponse({"status": "not ready", "reason": reason}, 503, {"Retry-After": "5"})


def _store_trouble(ctx: Context) -> str | None:
    try:
        with ctx.engine.connect() as conn:
            ping(conn)
    except (SQLAlchemyError, psycopg.Error):
        return _NO_ANSWER
    return None


@operation.get("/metrics")
def own_metrics(request: Request, ctx: Ctx) -> Response:
    """The metrics of this replica alone."""
    ctx.doors.admit(request, Role.SCRAPE)

    def size() -> totals.Size:
        with ctx.engine.connect() as conn:
            return totals.size(conn)

    store = StoreSize(size, lambda: ctx.now().date())
    return _scraped(*exposition(Together(ctx.registry, store), _accept(request)))


@operation.get("/metrics/tools")
def tool_metrics(request: Request, ctx: Ctx) -> Response:
    """The totals of all tools, the same from every replica."""
    ctx.doors.admit(request, Role.SCRAPE)

    def read() -> totals.Totals:
        one_moment = ctx.engine.execution_options(isolation_level="REPEATABLE READ")
        with one_moment.begin() as conn:
            return totals.totals(conn)

    return _scraped(*exposition(ToolTotals(read), _accept(request)))


def _accept(request: Request) -> str:
    return request.headers.get("accept", "")


def _scraped(body: bytes, content_type: str) -> Response:
    return Response(body, headers={"Content-Type": content_type})
